"""A webhook server's certificates: from files that are followed, or made by itself and kept in a Secret.

Source of the need: kubernetes-sigs/kubebuilder#4477; of the file watching: controller-runtime `pkg/certwatcher`.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import logging
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from steersman.apimachinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.client.client import Client
from steersman.client.errors import ClientError
from steersman.client.resources import Object, Resource
from steersman.net.pki import KeyPair, create_ca, create_server_certificate, load_key
from steersman.net.tls import server_ssl_context

logger = logging.getLogger("steersman.runtime.webhook")

SECRET = Resource("v1", "Secret", "secrets", True)
FILE_INTERVAL = 10.0
SECRET_INTERVAL = 60.0
CA_DAYS = 365
LEAF_DAYS = 30
_ATTEMPTS = 20
_NO_CRYPTOGRAPHY = "certificates of webhooks are made with cryptography: pip install 'steersman-client[webhooks]'"


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
            raise CertificateError(f"a certificate cannot be read: {error.filename}: {error.strerror}") from None
        if (why := _unusable(cert, key)) is not None:  # the one may be written some time before the other
            raise CertificateError(f"{self._paths[0]} and {self._paths[1]} are no certificate and its key: {why}")
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
    stays known until the next change. When the Secret is deleted, or its content is of no use, all that is not served
    yet is made anew, too: a replica that knows what was in it puts that back, with a new authority on its way.
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
        self._known: dict[str, bytes] | None = None

    async def current(self) -> Served:
        try:
            import cryptography  # noqa: F401 - the client's distribution has it as an extra
        except ImportError:
            raise CertificateError(_NO_CRYPTOGRAPHY) from None
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
            secret = await self._client.create(self._secret(self._afresh()))
        else:
            renewed = self._renewed(_decoded(secret))
            if renewed is not None:
                secret = await self._client.update({**secret, "data": _encoded(renewed)})
        data = self._known = _decoded(secret)
        return Served(KeyPair(data["tls.crt"], data["tls.key"]), data["bundle.crt"])

    def _secret(self, data: dict[str, bytes]) -> Object:
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "type": "kubernetes.io/tls",
            "data": _encoded(data),
        }

    def _afresh(self) -> dict[str, bytes]:
        """What is kept where nothing is: what was known goes on, for the API server trusts no other at once."""
        known = self._known
        if known is not None:
            return known if "next-ca.crt" in known else self._begun(known)
        ca = create_ca(f"{self._name} webhooks", self._ca_days)
        return {"ca.crt": ca.cert, "ca.key": ca.key, "bundle.crt": ca.cert, **self._leaf(ca)}

    def _begun(self, data: dict[str, bytes]) -> dict[str, bytes]:
        """The same with a new authority that is to be known, and signs nothing yet."""
        new = create_ca(f"{self._name} webhooks", self._ca_days)
        started = self._now().isoformat().encode()
        both = data["ca.crt"].rstrip() + b"\n" + new.cert
        return {**data, "next-ca.crt": new.cert, "next-ca.key": new.key, "next-since": started, "bundle.crt": both}

    def _renewed(self, data: dict[str, bytes]) -> dict[str, bytes] | None:
        """The Secret's content after the next step that is due; None if none is."""
        if not _is_complete(data):
            logger.warning("the Secret %s/%s holds no certificates: they are made anew", self._namespace, self._name)
            return self._afresh()
        if "next-ca.crt" in data:
            if self._now() < datetime.datetime.fromisoformat(data["next-since"].decode()) + self._settle:
                return None
            ca = KeyPair(data.pop("next-ca.crt"), data.pop("next-ca.key"))
            del data["next-since"]
            return {**data, "ca.crt": ca.cert, "ca.key": ca.key, **self._leaf(ca)}
        ca = KeyPair(data["ca.crt"], data["ca.key"])
        if self._is_old(ca.cert):
            return self._begun(data)
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

        try:
            names = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName)
        except x509.ExtensionNotFound:
            return False
        known = {str(name.value) for name in names.value}
        return set(self._hosts) <= known


def _unusable(cert: bytes, key: bytes) -> str | None:
    """Why a server cannot show a certificate (PEM); None if it can."""
    try:
        server_ssl_context(cert, key)
    except (ssl.SSLError, ValueError) as error:
        return getattr(error, "reason", None) or str(error)
    return None


def _is_complete(data: dict[str, bytes]) -> bool:
    """Whether a Secret's content is as it was written here: somebody may have edited it."""
    from cryptography import x509

    try:
        if _unusable(data["tls.crt"], data["tls.key"]) is not None or not x509.load_pem_x509_certificates(
            data["bundle.crt"]
        ):
            return False
        for prefix in ("ca", "next-ca") if "next-ca.crt" in data else ("ca",):
            x509.load_pem_x509_certificate(data[f"{prefix}.crt"])
            load_key(data[f"{prefix}.key"])
        if "next-ca.crt" in data:
            datetime.datetime.fromisoformat(data["next-since"].decode())
    except (KeyError, ValueError):
        return False
    return True


def _decoded(secret: Object) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}


def _encoded(data: dict[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(value).decode() for key, value in data.items()}
