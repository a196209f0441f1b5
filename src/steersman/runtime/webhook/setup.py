"""A manager's webhooks: what there is to ask, where it is served, and how the API server is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from steersman._util.tasks import end
from steersman.apimachinery.errors import ApiError
from steersman.client.client import Client
from steersman.client.errors import ClientError
from steersman.client.resources import Kind, ResourceMapping
from steersman.runtime.election import own_namespace
from steersman.runtime.endpoints import parse_address
from steersman.runtime.webhook.certificates import Certificates, SecretCertificates, Served
from steersman.runtime.webhook.hooks import ConversionHook, Convert, Judge, Mutate, MutatingHook, ValidatingHook
from steersman.runtime.webhook.registration import AdmissionRule, Reach, configurations, conversion, register
from steersman.runtime.webhook.server import WebhookServer

logger = logging.getLogger("steersman.runtime.webhook")

RETRY = 5.0


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Where a manager's webhooks are served, and how the API server reaches them.

    `address` is what is listened on. The API server is told `service` (namespace, name: in a cluster), or `url`
    ("https://HOST:PORT": for development; by default that of the address, if it is one of loopback). Their certificate
    is for these, self-made and kept in the Secret NAME-webhook-cert, unless `certificates` says otherwise. With
    `register` false nobody is told: the configurations come from manifests.
    """

    address: str = "127.0.0.1:9443"
    service: tuple[str, str] | None = None
    url: str | None = None
    certificates: Certificates | None = None
    register: bool = True
    namespace: str | None = None
    """Where the Secret is kept: by default the namespace of the Pod this runs in, else the client's."""

    def hosts(self) -> list[str]:
        """The names that the certificate is for."""
        if self.service is not None:
            namespace, name = self.service
            return [f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local"]
        if self.url:
            return [self.url.removeprefix("https://").rsplit(":", 1)[0].strip("[]")]
        host = parse_address(self.address)[0]
        return [host, *(["localhost"] if host == "127.0.0.1" else [])]

    def placed(self, address: str | None, service: str | None) -> Webhooks:
        """The same at another address, or reached by another Service (NAMESPACE/NAME); None leaves it.

        Raises ValueError for a text that is no address, or names no Service.
        """
        if address:
            parse_address(address)
        options = replace(self, address=address or self.address)
        return replace(options, service=parse_service(service)) if service else options


def parse_service(text: str) -> tuple[str, str]:
    """(namespace, name) of NAMESPACE/NAME. Raises ValueError."""
    namespace, _, name = text.partition("/")
    if not namespace or not name or "/" in name:
        raise ValueError(f"{text!r} names no Service: write it as NAMESPACE/NAME")
    return namespace, name


@dataclass(slots=True)
class Declared:
    """A webhook of a kind, as the operator has declared it."""

    kind: Kind[Any]
    judge: Judge | None
    mutate: Mutate | None
    options: Mapping[str, Any] = field(default_factory=dict)


class WebhookSetup:
    """Collects what is declared; `start` serves it and tells the API server."""

    def __init__(self, options: Webhooks) -> None:
        self.options = options
        self.server = WebhookServer()
        self._declared: list[Declared] = []
        self._conversions: dict[str, ConversionHook] = {}
        self._rules: list[AdmissionRule] = []
        self._tasks: list[asyncio.Task[None]] = []

    def admission(self, declared: Declared) -> None:
        self._declared.append(declared)

    def conversion(self, crd: str, conversions: Mapping[tuple[str, str], Convert]) -> None:
        """Raises ValueError for a definition that has its conversions already."""
        if crd in self._conversions:
            raise ValueError(f"the conversions of {crd} are there already")
        hook = self._conversions[crd] = ConversionHook(f"convert.{crd}", conversions)
        self.server.add(conversion_path(crd), hook)

    @property
    def declared(self) -> Sequence[Declared]:
        """The webhooks of kinds."""
        return tuple(self._declared)

    @property
    def converted(self) -> Sequence[str]:
        """The names of the definitions whose objects are converted."""
        return tuple(self._conversions)

    async def start(self, client: Client, name: str) -> None:
        """Raises CertificateError, ListenError, ApiError, ValueError."""
        for declared in self._declared:
            await self._add(client, declared)
        options = self.options
        certificates = options.certificates or SecretCertificates(
            client,
            options.namespace or own_namespace() or client.namespace,
            f"{name}-webhook-cert",
            options.hosts(),
        )
        host, port = parse_address(options.address)
        served = await self.server.start(host, port, certificates, lambda found: self._renewed(client, name, found))
        if options.register:
            await self._register(client, name, served)

    async def stop(self) -> None:
        await end(self._tasks)
        await self.server.stop()

    async def _add(self, client: Client, declared: Declared) -> None:
        mapping = await client.mapper.mapping(declared.kind.api_kind())
        for rule in rules_of(declared, mapping):
            if rule.phase == "Mutating" and declared.mutate is not None:
                self.server.add(rule.path, MutatingHook(rule.name, declared.kind, declared.mutate))
            elif declared.judge is not None:
                self.server.add(rule.path, ValidatingHook(rule.name, declared.kind, declared.judge))
            self._rules.append(rule)

    def _reach(self, served: Served) -> Reach:
        options = self.options
        url = options.url or ""
        if not url and options.service is None:
            host = parse_address(options.address)[0]
            url = f"https://{f'[{host}]' if ':' in host else host}:{self.server.port}"
        return Reach(url.rstrip("/"), options.service, bundle=served.bundle)

    async def _register(self, client: Client, name: str, served: Served) -> None:
        reach = self._reach(served)
        objects = configurations(name, self._rules, reach)
        objects += [conversion(crd, conversion_path(crd), reach) for crd in self._conversions]
        await register(client, objects, name)

    def _renewed(self, client: Client, name: str, served: Served) -> None:
        """Other certificates are served: the API server must know who has signed them."""
        if self.options.register:
            self._tasks = [task for task in self._tasks if not task.done()]
            self._tasks.append(asyncio.create_task(self._register_again(client, name, served)))

    async def _register_again(self, client: Client, name: str, served: Served) -> None:
        while True:
            try:
                return await self._register(client, name, served)
            except (ApiError, ClientError) as error:
                logger.warning("the API server could not be told of new certificates, trying again: %s", error)
            await asyncio.sleep(RETRY)


def declare(
    kind: Kind[Any],
    validate: Judge | None,
    default: Mutate | None,
    operations: Sequence[str],
    **options: Any,
) -> Declared:
    """A declared webhook. Raises ValueError when there is nothing to ask."""
    if validate is None and default is None:
        raise ValueError(f"a webhook for {kind.api_kind().kind} needs `validate` or `default`")
    return Declared(kind, validate, default, {"operations": list(operations), **options})


def rules_of(declared: Declared, mapping: ResourceMapping) -> list[AdmissionRule]:
    """What the API server is told of a declared webhook: of its mutating part, and of its validating one."""
    group, _, version = mapping.api_version.rpartition("/")
    group = group or "core"
    where = f"{group.replace('.', '-')}-{version}-{mapping.kind.lower()}"
    rules = []
    phases: tuple[tuple[Literal["Mutating", "Validating"], str, Any], ...] = (
        ("Mutating", "mutate", declared.mutate),
        ("Validating", "validate", declared.judge),
    )
    for phase, verb, func in phases:
        if func is None:
            continue
        options = dict(declared.options)
        if phase == "Mutating":
            options["operations"] = [name for name in options["operations"] if name != "DELETE"]
        name = f"{verb}.{version}.{mapping.plural}.{group}"
        rules.append(AdmissionRule(phase, name, f"/{verb}-{where}", mapping, **options))
    return rules


def conversion_path(crd: str) -> str:
    """Where reviews of a definition's objects are answered."""
    return f"/convert-{crd.replace('.', '-')}"
