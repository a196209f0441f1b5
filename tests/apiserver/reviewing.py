"""A service that answers reviews (SubjectAccessReview, TokenReview) over HTTPS, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from ssl import SSLContext
from typing import Any

import yaml
from aiohttp import web

Answer = dict[str, Any] | tuple[int, str]
"""A review's status, or an HTTP status with a body."""


class Reviews:
    """`answer` gives what is answered to a review's spec. `asked` has the reviews, `headers` those of the last."""

    def __init__(self, answer: Callable[[dict[str, Any]], Answer]) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.headers: dict[str, str] = {}
        self.query = ""
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        review = json.loads(await request.read())
        self.asked.append(review)
        self.headers, self.query = dict(request.headers), request.query_string
        answer = self.answer(review["spec"])
        if isinstance(answer, tuple):
            return web.Response(status=answer[0], text=answer[1])
        return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "status": answer})

    def kubeconfig(self, path: Path, ca: bytes, **user: str) -> Path:
        """Write a kubeconfig of the service, with a CA file beside it."""
        (path.parent / "service-ca.crt").write_bytes(ca)
        cluster = {"server": f"{self.url}/review", "certificate-authority": "service-ca.crt"}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "service", "cluster": cluster}],
            "users": [{"name": "server", "user": user}],
            "contexts": [{"name": "webhook", "context": {"cluster": "service", "user": "server"}}],
            "current-context": "webhook",
        }
        path.write_text(yaml.safe_dump(content))
        return path


@asynccontextmanager
async def reviewing(tls: SSLContext, answer: Callable[[dict[str, Any]], Answer]) -> AsyncIterator[Reviews]:
    """Serve reviews on loopback."""
    reviews = Reviews(answer)
    app = web.Application()
    app.router.add_post("/review", reviews.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    reviews.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield reviews
    finally:
        await runner.cleanup()
