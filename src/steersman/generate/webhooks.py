"""How the API server is told of an operator's webhooks by manifests: configurations, conversions, and a Service."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from steersman.generate.kinds import Kinds
from steersman.runtime.endpoints import parse_address
from steersman.runtime.manager import Manager
from steersman.runtime.webhook.registration import Reach, configurations, conversion
from steersman.runtime.webhook.setup import conversion_path, rules_of

PORT = 9443
Object = dict[str, Any]


def has_webhooks(manager: Manager) -> bool:
    """Whether the API server is to ask the operator anything."""
    return bool(manager.webhooks.declared or manager.webhooks.converted)


def webhook_port(manager: Manager) -> int:
    """Where they are served in a Pod."""
    return port_for_all(manager.webhooks.options.address) or PORT


def port_for_all(address: str | None) -> int | None:
    """The port of an address that others reach; None for a free port, or one of this machine alone (loopback)."""
    if address is None:
        return None
    host, port = parse_address(address)
    is_local = host.startswith("127.") or host in ("localhost", "::1")
    return None if is_local else port or None


def service_of(manager: Manager, name: str, namespace: str) -> tuple[str, str]:
    """(namespace, name) of the Service: what the manager says, else NAME-webhook in the operator's namespace."""
    return manager.webhooks.options.service or (namespace, f"{name}-webhook")


def registrations(manager: Manager, kinds: Kinds, service: tuple[str, str]) -> list[Object]:
    """The ValidatingWebhookConfiguration and the MutatingWebhookConfiguration.

    They name no authority: the operator puts its own in, or whoever injects those of its certificates.
    """
    rules = [
        rule
        for declared in manager.webhooks.declared
        for rule in rules_of(declared, kinds.known(declared.kind).mapping)
    ]
    return configurations(manager.name or "steersman", rules, Reach(service=service))


def converted(crds: Iterable[Object], names: Collection[str], service: tuple[str, str]) -> list[Object]:
    """Definitions, of which those with these names say that a webhook behind a Service converts their objects."""
    reach, found = Reach(service=service), []
    for crd in crds:
        name = crd["metadata"]["name"]
        if name in names:
            said = conversion(name, conversion_path(name), reach)["spec"]["conversion"]
            crd = {**crd, "spec": {**crd["spec"], "conversion": said}}
        found.append(crd)
    return found


def service(where: tuple[str, str], labels: Mapping[str, str], selector: Mapping[str, str]) -> Object:
    """The Service by which the API server reaches the operator's Pods."""
    namespace, name = where
    port = {"name": "webhooks", "port": 443, "targetPort": "webhooks", "protocol": "TCP"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {"selector": dict(selector), "ports": [port]},
    }
