"""Credentials from an external program (a client-go credential plugin).

Source: client-go `plugin/pkg/client/auth/exec/exec.go` and the client.authentication.k8s.io API; KEP-541.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

from steersman._util import clock
from steersman.client.config.credentials import Certificate
from steersman.client.errors import CredentialsError

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


@dataclass(frozen=True, slots=True)
class ExecConfig:
    """The `exec` section of a kubeconfig user. `cluster` is told to the plugin when it is not None."""

    command: str
    api_version: str
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = field(default=None, repr=False)


def _now() -> datetime:
    return clock.utc_now()


class ExecCredentials:
    """Runs the plugin when there are no credentials, when they have expired, and after a 401; one run at a time."""

    def __init__(self, config: ExecConfig, now: Callable[[], datetime] = _now) -> None:
        self.config = config
        self._now = now
        self._lock = asyncio.Lock()
        self._authorization: str | None = None
        self._certificate: Certificate | None = None
        self._expires: datetime | None = None
        self._loaded = False

    async def authorization(self) -> str | None:
        await self._ensure()
        return self._authorization

    async def certificate(self) -> Certificate | None:
        await self._ensure()
        return self._certificate

    async def refused(self, authorization: str | None, certificate: Certificate | None = None) -> bool:
        async with self._lock:
            # Another request that was refused at the same time may have run the plugin already.
            used = (authorization, certificate)
            if self._loaded and used == (self._authorization, self._certificate):
                before = (self._authorization, self._certificate)
                await self._run()
                return (self._authorization, self._certificate) != before
        return True

    async def _ensure(self) -> None:
        if self._valid():
            return
        async with self._lock:
            if not self._valid():
                await self._run()

    def _valid(self) -> bool:
        return self._loaded and (self._expires is None or self._now() <= self._expires)

    async def _run(self) -> None:
        config = self.config
        interactive = _interactive(config)
        spec: dict[str, Any] = {"interactive": interactive}
        if config.cluster is not None:
            spec["cluster"] = config.cluster
        info = {"kind": "ExecCredential", "apiVersion": config.api_version, "spec": spec}
        env = {**os.environ, **config.env, "KUBERNETES_EXEC_INFO": orjson.dumps(info).decode()}
        output = await asyncio.to_thread(_call, config, env, interactive)
        status = _status(config, output)
        token = status.get("token")
        self._authorization = f"Bearer {token}" if token else None
        pair = (status.get("clientCertificateData"), status.get("clientKeyData"))
        fresh = Certificate(pair[0].encode(), pair[1].encode()) if pair[0] and pair[1] else None
        self._certificate = self._certificate if fresh == self._certificate else fresh
        self._expires = _timestamp(config, status.get("expirationTimestamp"))
        self._loaded = True


def _interactive(config: ExecConfig) -> bool:
    if config.interactive_mode == "Never":
        return False
    available = sys.stdin is not None and sys.stdin.isatty()
    if config.interactive_mode == "Always" and not available:
        raise CredentialsError(f"exec plugin {config.command} needs a terminal, and standard input is none")
    return available


def _call(config: ExecConfig, env: Mapping[str, str], interactive: bool) -> bytes:
    command = [config.command, *config.args]
    stdin = None if interactive else subprocess.DEVNULL
    try:
        done = subprocess.run(command, env=env, stdin=stdin, stdout=subprocess.PIPE, check=False)  # noqa: S603
    except OSError as error:
        hint = f"; {config.install_hint.strip()}" if config.install_hint else ""
        raise CredentialsError(f"cannot run the exec plugin {config.command}: {error.strerror}{hint}") from error
    if done.returncode:
        raise CredentialsError(f"exec plugin {config.command} failed with exit code {done.returncode}")
    return done.stdout


def _status(config: ExecConfig, output: bytes) -> dict[str, Any]:
    try:
        answer = orjson.loads(output)
    except orjson.JSONDecodeError as error:
        raise CredentialsError(f"exec plugin {config.command} did not print JSON: {error}") from error
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise CredentialsError(f"exec plugin {config.command} did not print an ExecCredential")
    version = answer.get("apiVersion")
    if version != config.api_version:
        wanted = config.api_version
        raise CredentialsError(f"exec plugin {config.command} is configured for {wanted}, but returned {version}")
    status = answer.get("status")
    if not isinstance(status, dict):
        raise CredentialsError(f"exec plugin {config.command} did not return a status field")
    certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
    if bool(certificate) != bool(key):
        raise CredentialsError(f"exec plugin {config.command} returned only certificate or key, not both")
    if not status.get("token") and not certificate:
        raise CredentialsError(f"exec plugin {config.command} did not return a token or cert/key pair")
    return status


def _timestamp(config: ExecConfig, text: Any) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise CredentialsError(
            f"exec plugin {config.command}: expirationTimestamp {text!r} is no RFC 3339 time"
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
