"""Reads kubeconfig files: merging several, choosing a context, and what its cluster and user mean.

Source: client-go `tools/clientcmd/loader.go` (merging), `client_config.go` (precedence), `api/v1/types.go` (fields).
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from steersman.client.config.credentials import (
    Anonymous,
    Certificate,
    CertificateFiles,
    Combined,
    Credentials,
    StaticCredentials,
    TokenFile,
)
from steersman.client.config.exec_plugin import API_VERSIONS, INTERACTIVE_MODES, ExecConfig, ExecCredentials
from steersman.client.config.model import Config, Impersonation, Tls
from steersman.client.errors import ConfigError

Entry = Mapping[str, Any]
_PATHS = {"cluster": ("certificate-authority",), "user": ("client-certificate", "client-key", "tokenFile")}
_PROXIES = ("http://", "https://")


class Kubeconfig:
    """One or several kubeconfig files as one: for every name, and for current-context, the first file wins."""

    def __init__(self, documents: Sequence[tuple[str, Entry]]) -> None:
        """`documents`: (where it came from, content); relative paths in the content are already absolute."""
        self.source = ", ".join(source for source, _ in documents)
        self.current_context = next((c for _, d in documents if (c := d.get("current-context"))), "")
        self.clusters = _named(documents, "clusters", "cluster")
        self.users = _named(documents, "users", "user")
        self.contexts = _named(documents, "contexts", "context")

    @classmethod
    def read(cls, paths: Sequence[str | Path]) -> Kubeconfig:
        """Read files; those that do not exist are skipped, but one must exist. Raises ConfigError."""
        found = [Path(path).expanduser() for path in paths]
        present = [path for path in found if path.exists()]
        if not present:
            names = ", ".join(str(path) for path in found)
            raise ConfigError(f"no kubeconfig at {names}: create it, or set KUBECONFIG to one that exists")
        return cls([(str(path), _parse(path)) for path in present])

    def config(self, context: str | None = None) -> Config:
        """What a context stands for; the current context by default. Raises ConfigError."""
        name = context or self.current_context
        if not name:
            choice = ", ".join(sorted(self.contexts)) or "there are none"
            raise ConfigError(f"{self.source}: current-context is not set; name a context ({choice})")
        chosen = self._entry(self.contexts, "context", name)
        cluster = self._entry(self.clusters, "cluster", chosen.get("cluster") or "")
        user = self._entry(self.users, "user", chosen["user"]) if chosen.get("user") else {}
        return Config(
            server=self._server(cluster, chosen["cluster"]),
            namespace=chosen.get("namespace") or "default",
            tls=self._tls(cluster),
            credentials=self._credentials(user, cluster),
            impersonate=self._impersonation(user),
            proxy_url=self._proxy(cluster),
            disable_compression=bool(cluster.get("disable-compression")),
        )

    def _entry(self, entries: Mapping[str, Entry], what: str, name: str) -> Entry:
        if name not in entries:
            choice = ", ".join(sorted(entries)) or "none"
            raise ConfigError(f'{self.source}: there is no {what} "{name}"; it has: {choice}')
        return entries[name]

    def _server(self, cluster: Entry, name: str) -> str:
        server = str(cluster.get("server") or "")
        if not server:
            raise ConfigError(f'{self.source}: cluster "{name}" has no server; set it to https://HOST:PORT')
        if "://" not in server:
            server = f"http://{server}"
        if not server.startswith(("http://", "https://")):
            raise ConfigError(f'{self.source}: server "{server}" is neither http:// nor https://')
        return server.rstrip("/")

    def _tls(self, cluster: Entry) -> Tls:
        insecure = bool(cluster.get("insecure-skip-tls-verify"))
        data = self._bytes(cluster, "certificate-authority")
        if insecure and data is not None:
            raise ConfigError(f"{self.source}: certificate-authority and insecure-skip-tls-verify exclude each other")
        return Tls(None if data is None else data.decode("latin-1"), insecure, cluster.get("tls-server-name") or None)

    def _proxy(self, cluster: Entry) -> str | None:
        proxy = cluster.get("proxy-url") or None
        if proxy and not proxy.startswith(_PROXIES):
            raise ConfigError(f'{self.source}: proxy-url "{proxy}" is not supported; use an http:// or https:// proxy')
        return proxy

    def _impersonation(self, user: Entry) -> Impersonation | None:
        name, groups = user.get("as"), user.get("as-groups") or ()
        uid, extra = user.get("as-uid") or "", user.get("as-user-extra") or {}
        if not name:
            if groups or uid or extra:
                raise ConfigError(f'{self.source}: as-groups, as-uid and as-user-extra need "as", the user to act as')
            return None
        return Impersonation(name, uid, tuple(groups), extra)

    def _credentials(self, user: Entry, cluster: Entry) -> Credentials:
        if user.get("auth-provider"):
            raise ConfigError(f"{self.source}: auth-provider is no longer part of kubeconfig; use an exec plugin")
        header = self._header(user)
        certificate = self._certificate(user)
        if header and certificate:
            return Combined(header, certificate)
        if header or certificate:
            return header or certificate or Anonymous()
        if user.get("exec"):
            return ExecCredentials(self._exec(user["exec"], cluster))
        return Anonymous()

    def _header(self, user: Entry) -> Credentials | None:
        if path := user.get("tokenFile"):
            return TokenFile(path)
        if token := user.get("token"):
            return StaticCredentials.bearer(token)
        if username := user.get("username"):
            return StaticCredentials.basic(username, str(user.get("password") or ""))
        return None

    def _certificate(self, user: Entry) -> Credentials | None:
        inline = [bool(user.get(f"client-{part}-data")) for part in ("certificate", "key")]
        present = [inline[i] or bool(user.get(f"client-{part}")) for i, part in enumerate(("certificate", "key"))]
        if not any(present):
            return None
        if not all(present):
            raise ConfigError(f"{self.source}: a user needs both client-certificate and client-key, or neither")
        if not any(inline):
            return CertificateFiles(Path(user["client-certificate"]), Path(user["client-key"]))
        certificate, key = self._bytes(user, "client-certificate"), self._bytes(user, "client-key")
        return StaticCredentials(certificate=Certificate(certificate or b"", key or b""))

    def _exec(self, plugin: Entry, cluster: Entry) -> ExecConfig:
        version = plugin.get("apiVersion") or ""
        if version not in API_VERSIONS:
            known = " or ".join(API_VERSIONS)
            raise ConfigError(f'{self.source}: exec plugin has apiVersion "{version}"; it must be {known}')
        mode = plugin.get("interactiveMode") or ("" if version == API_VERSIONS[0] else "IfAvailable")
        if mode not in INTERACTIVE_MODES:
            known = ", ".join(INTERACTIVE_MODES)
            raise ConfigError(f'{self.source}: exec plugin has interactiveMode "{mode}"; it must be one of {known}')
        if not plugin.get("command"):
            raise ConfigError(f"{self.source}: exec plugin has no command")
        return ExecConfig(
            command=plugin["command"],
            api_version=version,
            args=tuple(str(arg) for arg in plugin.get("args") or ()),
            env={entry["name"]: str(entry.get("value", "")) for entry in plugin.get("env") or ()},
            interactive_mode=mode,
            install_hint=plugin.get("installHint") or "",
            cluster=self._exec_cluster(cluster) if plugin.get("provideClusterInfo") else None,
        )

    def _exec_cluster(self, cluster: Entry) -> dict[str, Any]:
        same = ("server", "tls-server-name", "insecure-skip-tls-verify", "proxy-url", "disable-compression")
        info = {key: cluster[key] for key in same if cluster.get(key)}
        if (data := self._bytes(cluster, "certificate-authority")) is not None:
            info["certificate-authority-data"] = base64.b64encode(data).decode()
        for extension in cluster.get("extensions") or ():
            if extension.get("name") == "client.authentication.k8s.io/exec":
                info["config"] = extension.get("extension")
        return info

    def _bytes(self, entry: Entry, key: str) -> bytes | None:
        """The content of `key`-data, else of the file `key`."""
        if data := entry.get(f"{key}-data"):
            try:
                return base64.b64decode("".join(str(data).split()), validate=True)
            except (binascii.Error, ValueError, TypeError) as error:
                raise ConfigError(f"{self.source}: {key}-data is not valid base64: {error}") from error
        if path := entry.get(key):
            try:
                return Path(path).read_bytes()
            except OSError as error:
                raise ConfigError(f"{self.source}: cannot read {key} {path}: {error.strerror}") from error
        return None


def _parse(path: Path) -> Entry:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 -- a safe loader
    except OSError as error:
        raise ConfigError(f"cannot read the kubeconfig {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a kubeconfig: it must hold a mapping")
    return {**document, **absolute(document, path.absolute().parent)}


def absolute(document: Entry, base: Path) -> Entry:
    """The clusters and users with relative paths taken from `base`, the directory of the file that names them."""
    out: dict[str, Any] = {}
    for kind, keys in _PATHS.items():
        entries = []
        for entry in _entries(document, f"{kind}s"):
            body = dict(entry.get(kind) or {})
            for key in keys:
                if body.get(key):
                    body[key] = str(base / Path(body[key]).expanduser())
            plugin = body.get("exec")
            # As client-go: a bare command is looked up in PATH, one with a separator is a file beside the kubeconfig.
            if isinstance(plugin, dict) and os.sep in str(plugin.get("command") or ""):
                body["exec"] = {**plugin, "command": str(base / plugin["command"])}
            entries.append({**entry, kind: body})
        out[f"{kind}s"] = entries
    return out


def _entries(document: Entry, key: str) -> Iterator[Entry]:
    entries = document.get(key) or []
    if not isinstance(entries, list):
        raise ConfigError(f"a kubeconfig's {key} must be a list")
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise ConfigError(f"every entry of a kubeconfig's {key} needs a name")
        yield entry


def _named(documents: Sequence[tuple[str, Entry]], plural: str, key: str) -> dict[str, Entry]:
    out: dict[str, Entry] = {}
    for _, document in documents:
        for entry in _entries(document, plural):
            out.setdefault(entry["name"], entry.get(key) or {})
    return out
