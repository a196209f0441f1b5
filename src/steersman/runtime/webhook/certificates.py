"""A webhook server's certificates: from files that are followed, or made by itself and kept in a Secret.

Source of the need: kubernetes-sigs/kubebuilder#4477; of the file watching: controller-runtime `pkg/certwatcher`.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from steersman.apimachinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.client.client import Client
from steersman.client.errors import ClientError
from steersman.client.resources import Object, Resource
from steersman.net.pki import KeyPair, create_ca, create_server_certificate

logger = logging.getLogger("steersman.runtime.webhook")

SECRET = Resource("v1", "Secret", "secrets", True)
FILE_INTERVAL = 10.0
SECRET_INTERVAL = 60.0
CA_DAYS = 365
LEAF_DAYS = 30
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class Served:
    """A certificate and its key, and who has signed it (PEM): one or several authorities; b"" for the system's."""

    pair: KeyPair
    bundle: bytes = b""


class Certificates(Protocol):
    """Where a server's certificates come from."""

    async def current(self) -> Served:
        """What is to be served now. Raises CertificateError."""
        ...

    async def follow(self, changed: Callable[[Served], None]) -> None:
        """Call `changed` whenever there is something else to be served, until cancelled."""
        ...


class CertificateError(Exception):
    """There is no certificate to serve; says what is wrong."""


class FileCertificates:
    """Certificate and key from files, such as cert-manager's volume; looked at every ten seconds.

    `ca` is put into the webhooks' configurations; without it, they keep what is there (cert-manager's injector).
    """

    def __init__(self, cert: Path, key: Path, ca: Path | None = None, *, interval: float = FILE_INTERVAL) -> None:
        self._paths = [cert, key, *([ca] if ca is not None else [])]
        self._interval = interval
        self._given: Served | None = None

    async def current(self) -> Served:
        try:
            cert, key, *ca = await asyncio.to_thread(lambda: [path.read_bytes() for path in self._paths])
        except OSError as error:
            raise CertificateError(f"a certificate cannot be read: {error}") from None
        self._given = Served(KeyPair(cert, key), ca[0] if ca else b"")
        return self._given

    async def follow(self, changed: Callable[[Served], None]) -> None:
        known = self._given or await self.current()  # what has changed since it was given is told
        while True:
            await asyncio.sleep(self._interval)
            try:
                found = await self.current()
            except CertificateError as error:
                logger.warning("%s; the old ones are served on", error)
                continue
            if found != known:
                known = found
                changed(found)


class SecretCertificates:
    """An authority and a certificate of its own making, kept in a Secret that all replicas share.

    Whoever comes first makes them; whoever finds them too old renews them; the Secret's resourceVersion decides between
    two that do so at once. A certificate is renewed when a third of its time is left. A new authority is known to the
    API server (`bundle`) for `settle` seconds before the first certificate that it has signed is served; the old one
    stays known until the next change.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        hosts: Sequence[str],
        *,
        ca_days: float = CA_DAYS,
        leaf_days: float = LEAF_DAYS,
        interval: float = SECRET_INTERVAL,
        settle: float = 60.0,
        now: Callable[[], datetime.datetime] = lambda: datetime.datetime.now(datetime.UTC),
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._hosts = list(hosts)
        self._ca_days = ca_days
        self._leaf_days = leaf_days
        self._interval = interval
        self._settle = datetime.timedelta(seconds=settle)
        self._now = now
        self._given: Served | None = None

    async def current(self) -> Served:
        for _ in range(_ATTEMPTS):
            try:
                self._given = await self._attempt()
                return self._given
            except (Conflict, AlreadyExists):
                continue  # another replica was faster: read what it has made
        raise CertificateError(f"the Secret {self._namespace}/{self._name} keeps changing")

    async def follow(self, changed: Callable[[Served], None]) -> None:
        known = self._given or await self.current()  # what has changed since it was given is told
        while True:
            await asyncio.sleep(self._interval)
            try:
                found = await self.current()
            except (ApiError, ClientError, CertificateError) as error:
                logger.warning("the certificates could not be looked after: %s", error)
                continue
            if found != known:
                known = found
                changed(found)

    async def _attempt(self) -> Served:
        try:
            secret = await self._client.get(SECRET, self._name, namespace=self._namespace)
        except NotFound:
            secret = await self._client.create(self._new())
            return _served(secret)
        data = _decoded(secret)
        renewed = self._renewed(data)
        if renewed is not None:
            secret = {**secret, "data": _encoded(renewed)}
            secret = await self._client.update(secret)
        return _served(secret)

    def _new(self) -> Object:
        ca = create_ca(f"{self._name} webhooks", self._ca_days)
        leaf = create_server_certificate(ca, self._hosts, self._leaf_days)
        data = {"ca.crt": ca.cert, "ca.key": ca.key, "tls.crt": leaf.cert, "tls.key": leaf.key, "bundle.crt": ca.cert}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "type": "kubernetes.io/tls",
            "data": _encoded(data),
        }

    def _renewed(self, data: dict[str, bytes]) -> dict[str, bytes] | None:
        """The Secret's content after the next step that is due; None if none is."""
        if not {"ca.crt", "ca.key", "tls.crt", "tls.key", "bundle.crt"} <= set(data):
            return _decoded(self._new())
        if "next-ca.crt" in data:
            if self._now() < datetime.datetime.fromisoformat(data["next-since"].decode()) + self._settle:
                return None
            ca = KeyPair(data.pop("next-ca.crt"), data.pop("next-ca.key"))
            del data["next-since"]
            return {**data, "ca.crt": ca.cert, "ca.key": ca.key, **self._leaf(ca)}
        ca = KeyPair(data["ca.crt"], data["ca.key"])
        if self._is_old(ca.cert):
            new = create_ca(f"{self._name} webhooks", self._ca_days)
            started = self._now().isoformat().encode()
            both = ca.cert.rstrip() + b"\n" + new.cert
            return {**data, "next-ca.crt": new.cert, "next-ca.key": new.key, "next-since": started, "bundle.crt": both}
        if self._is_old(data["tls.crt"]) or not self._names(data["tls.crt"]):
            return {**data, **self._leaf(ca)}
        return None

    def _leaf(self, ca: KeyPair) -> dict[str, bytes]:
        leaf = create_server_certificate(ca, self._hosts, self._leaf_days)
        return {"tls.crt": leaf.cert, "tls.key": leaf.key}

    def _is_old(self, pem: bytes) -> bool:
        from cryptography import x509

        cert = x509.load_pem_x509_certificate(pem)
        whole = cert.not_valid_after_utc - cert.not_valid_before_utc
        return cert.not_valid_after_utc - self._now() < whole / 3

    def _names(self, pem: bytes) -> bool:
        """Whether the certificate is for all of our hosts."""
        from cryptography import x509

        names = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName)
        known = {str(name.value) for name in names.value}
        return set(self._hosts) <= known


def _served(secret: Object) -> Served:
    data = _decoded(secret)
    return Served(KeyPair(data["tls.crt"], data["tls.key"]), data["bundle.crt"])


def _decoded(secret: Object) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}


def _encoded(data: dict[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(value).decode() for key, value in data.items()}
