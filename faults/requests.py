"""One request, one answer: nothing is tried again, so that the history says what was asked for."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Self
from urllib.parse import urlencode

import orjson

from faults.cluster import TOKEN
from faults.processes import Serving
from steersman.client.config import load
from steersman.client.http_transport import HttpTransport
from steersman.client.transport import RawStream

GROUP = "faults.steersman.dev"
NAMESPACE = "campaign"
PATHS = {
    "configmaps": f"/api/v1/namespaces/{NAMESPACE}/configmaps",
    "registers": f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/registers",
    "parents": f"/apis/{GROUP}/v1/namespaces/{NAMESPACE}/parents",
}
KINDS = {
    "configmaps": ("v1", "ConfigMap"),
    "registers": (f"{GROUP}/v1", "Register"),
    "parents": (f"{GROUP}/v1", "Parent"),
}
DEADLINE = 8.0
"""Seconds that a client waits for an answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any

    @property
    def reason(self) -> str:
        reason: str = self.body.get("reason", "") if isinstance(self.body, dict) else ""
        return reason


class Connection:
    """To all servers: each request goes to one that `chance` chooses."""

    def __init__(self, kubeconfigs: Sequence[Path], chance: Random, serving: Serving) -> None:
        self._chance = chance
        self.serving = serving
        self._transports = [HttpTransport(load(kubeconfig=path)) for path in kubeconfigs]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for transport in self._transports:
            await transport.close()

    async def ask(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Any = None, form: str = "json"
    ) -> Answer:
        """Raises TransportError."""
        headers = [("Authorization", f"Bearer {TOKEN}"), ("Accept", "application/json")]
        if body is not None:
            headers.append(("Content-Type", f"application/{form}"))
        answer = await self._chance.choice(self._transports).request(
            method,
            path,
            urlencode(query or {}),
            headers,
            None if body is None else orjson.dumps(body),
            DEADLINE,
        )
        try:
            return Answer(answer.status, orjson.loads(answer.body))
        except ValueError:
            return Answer(answer.status, answer.body.decode(errors="replace"))

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[RawStream]:
        """Raises TransportError."""
        headers = [("Authorization", f"Bearer {TOKEN}"), ("Accept", "application/json")]
        transport = self._chance.choice(self._transports)
        async with transport.stream("GET", path, urlencode(query), headers, None, DEADLINE) as stream:
            yield stream


def now() -> float:
    """Seconds of the clock that all processes share."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)
