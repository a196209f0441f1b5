"""The webhook server: hooks by path, over HTTPS, and the same as an ASGI application.

Source: controller-runtime `pkg/webhook/server.go`, `pkg/webhook/admission/http.go` (the limits).
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from steersman._util.metric_types import Counter, Gauge, Histogram, Metric
from steersman._util.tasks import end
from steersman.net.context import Limits
from steersman.net.http import Request, Response
from steersman.net.server import Server
from steersman.net.tls import load_pair, server_ssl_context
from steersman.runtime.webhook.certificates import Certificates, Served
from steersman.runtime.webhook.hooks import Hook
from steersman.runtime.webhook.reviews import ReviewError

MAX_BODY = 7 * 1024 * 1024
"""Bytes of a review (controller-runtime: 7 MiB)."""

_JSON = (("Content-Type", "application/json"),)
_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class WebhookMetrics:
    """Under controller-runtime's names."""

    def __init__(self) -> None:
        self.requests = Counter("controller_runtime_webhook_requests_total", "Requests by code", ("webhook", "code"))
        self.in_flight = Gauge("controller_runtime_webhook_requests_in_flight", "Requests under way", ("webhook",))
        self.seconds = Histogram(
            "controller_runtime_webhook_latency_seconds", "How long they take", ("webhook",), _SECONDS
        )

    def all(self) -> list[Metric]:
        return [self.requests, self.in_flight, self.seconds]


class WebhookServer:
    """Serves hooks; `add` them before it starts, or at any time."""

    def __init__(self, metrics: WebhookMetrics | None = None) -> None:
        self.metrics = metrics or WebhookMetrics()
        self._hooks: dict[str, Hook] = {}
        self._server: Server | None = None
        self._context: ssl.SSLContext | None = None
        self._following: list[asyncio.Task[None]] = []

    def add(self, path: str, hook: Hook) -> None:
        """Raises ValueError for a path that is taken."""
        if path in self._hooks:
            raise ValueError(f"there is a webhook at {path} already")
        self._hooks[path] = hook

    @property
    def is_serving(self) -> bool:
        """Whether reviews are answered."""
        return self._server is not None

    @property
    def port(self) -> int:
        """Raises RuntimeError before the start."""
        if self._server is None:
            raise RuntimeError("the webhook server has not started")
        return self._server.port

    async def start(
        self, host: str, port: int, certificates: Certificates, changed: Callable[[Served], None] | None = None
    ) -> Served:
        """Serve on an address, port 0 being a free one; gives what is served first, and tells `changed` of what comes
        later. Connections that are open keep their certificate. Raises CertificateError, ListenError, ssl.SSLError."""
        served = await certificates.current()
        context = self._context = server_ssl_context(served.pair.cert, served.pair.key)

        def renew(found: Served) -> None:
            load_pair(context, found.pair.cert, found.pair.key)
            if changed is not None:
                changed(found)

        limits = Limits(max_body=MAX_BODY)
        self._server = await Server.start(self._handle, host=host, port=port, ssl=context, limits=limits)
        self._following = [asyncio.create_task(certificates.follow(renew), name="webhook certificates")]
        return served

    async def stop(self, grace: float = 10.0) -> None:
        """Answer what was asked, and end."""
        await end(self._following)
        if self._server is not None:
            await self._server.stop(grace)

    async def _handle(self, request: Request) -> Response:
        if request.method != "POST":
            return Response(405, _TEXT, b"a webhook is asked by POST\n")
        if request.too_large:
            return Response(413, _TEXT, b"the review is too large\n")
        status, body = await self.answer(request.path, request.body)
        return Response(status, _JSON if status == 200 else _TEXT, body)

    async def answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        """The HTTP status and body for a review that was sent to a path."""
        hook = self._hooks.get(path)
        if hook is None:
            return 404, f"there is no webhook at {path}\n".encode()
        began, flying = time.perf_counter(), self.metrics.in_flight.cell((hook.name,))
        flying[0] += 1
        code = 200
        try:
            return code, await hook.answer(body)
        except ReviewError as error:
            code = 400
            return code, f"{error}\n".encode()
        finally:
            flying[0] -= 1
            self.metrics.requests.inc(hook.name, str(code))
            self.metrics.seconds.observe(time.perf_counter() - began, (hook.name,))

    async def asgi(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """An ASGI application of the same hooks, to be mounted elsewhere: pass this method to the server."""
        if scope["type"] != "http":
            raise RuntimeError(f"webhooks do not speak {scope['type']}")
        body, more = b"", True
        while more and len(body) <= MAX_BODY:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if scope["method"] != "POST":
            status, answer = 405, b"a webhook is asked by POST\n"
        elif len(body) > MAX_BODY:
            status, answer = 413, b"the review is too large\n"
        else:
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            status, answer = await self.answer(path, body)
        kind = b"application/json" if status == 200 else b"text/plain; charset=utf-8"
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})
        await send({"type": "http.response.body", "body": answer})
