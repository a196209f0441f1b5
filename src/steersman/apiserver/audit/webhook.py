"""Events to a webhook: lists of events, posted as JSON, and again until they are taken.

Source: apiserver `plugin/pkg/audit/webhook/webhook.go`, `pkg/util/webhook/webhook.go`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence

from steersman.apiserver.webhooks.kubeconfig import RemoteService
from steersman.net.calls import Caller, CallError

log = logging.getLogger("steersman.apiserver.audit")

_HEAD = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":['
_TRIES = 5
_GROWTH = 1.5
_JITTER = 0.2
_SECONDS = 30.0
_OK = range(200, 207)


class AuditWebhook:
    """Posts events. What fails is tried five times in all, after `backoff` seconds first, then ever later."""

    def __init__(self, target: RemoteService, *, backoff: float = 10.0) -> None:
        self._target = target
        self._backoff = backoff
        self._caller = Caller()
        self._closing = asyncio.Event()

    async def deliver(self, events: Sequence[bytes]) -> bool:
        body = b"".join((_HEAD, b",".join(events), b"]}"))
        delay = self._backoff
        why = ""
        for attempt in range(_TRIES):
            if attempt and not await self._wait(delay * (1 + random.random() * _JITTER)):  # noqa: S311 - no secret
                break
            if attempt:
                delay *= _GROWTH
            why = await self._post(body)
            if not why:
                return True
        log.error("audit events could not be delivered", extra={"events": len(events), "error": why})
        return False

    async def _post(self, body: bytes) -> str:
        """What went wrong, "" for nothing."""
        target = self._target
        try:
            reply = await self._caller.send(
                "POST", target.url, body, trust=target.trust, timeout=_SECONDS, headers=target.headers()
            )
        except (CallError, OSError) as error:
            return f"Post {target.url}: {error}"
        return "" if reply.status in _OK else f"the webhook answered {reply.status}"

    async def _wait(self, seconds: float) -> bool:
        """False when the server stops meanwhile."""
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return True
        return False

    async def close(self) -> None:
        self._closing.set()
        await self._caller.close()
