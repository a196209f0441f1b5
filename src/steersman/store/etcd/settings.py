"""Where an etcd is, and how it is spoken to."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_FORM = "etcd://HOST:PORT,HOST:PORT/PREFIX"


@dataclass(frozen=True, slots=True)
class TLS:
    """PEM texts. `ca` is whom to trust (None: the system's authorities), `cert` and `key` who we are, if anybody."""

    ca: bytes | None = None
    cert: bytes | None = None
    key: bytes | None = None


@dataclass(frozen=True, slots=True)
class EtcdSettings:
    """`endpoints` are `host:port` of members of one cluster, tried in this order. Keys lie under `root` as they are:
    kube-apiserver's `--etcd-prefix=/registry` is the root "", its `--etcd-prefix=/a/registry` the root "/a".

    `user` and `password` are those of etcd's own authentication. `timeout` is how long a call may take in all, in
    seconds, other members and elections included; `attempt` how long one member has to answer.
    """

    endpoints: tuple[str, ...]
    root: str = ""
    tls: TLS | None = None
    user: str = ""
    password: str = ""
    timeout: float = 10.0
    attempt: float = 3.0


def parse_url(url: str, tls: TLS | None = None, user: str = "", password: str = "") -> EtcdSettings:
    """The settings that `etcd://host:port,host:port/prefix` stands for. Raises ValueError, in one line."""
    rest = url.removeprefix("etcd://")
    hosts, slash, path = rest.partition("/")
    if "@" in hosts:
        raise ValueError(f"an etcd URL names no user: {url.replace(hosts, '...')!r}; use --etcd-user")
    if "?" in rest or "#" in rest:
        raise ValueError(f"an etcd URL has no options: {url!r}; the form is {_FORM}")
    endpoints = tuple(_endpoint(host, url) for host in hosts.split(","))
    root = f"/{unquote(path).strip('/')}" if slash and path.strip("/") else ""
    return EtcdSettings(endpoints, root, tls, user, password)


def _endpoint(text: str, url: str) -> str:
    try:
        parts = urlsplit(f"//{text.strip()}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"not an etcd URL: {url!r} ({error}); the form is {_FORM}") from None
    if not host:
        raise ValueError(f"the host of an etcd member is missing: {url!r}; the form is {_FORM}")
    return f"[{host}]:{port or 2379}" if ":" in host else f"{host}:{port or 2379}"
