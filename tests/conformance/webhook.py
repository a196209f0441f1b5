"""A scripted webhook over HTTPS: each path answers as its script says and keeps what it was asked."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from steersman.net.pki import create_ca, create_server_certificate
from steersman.net.tls import server_ssl_context


class Webhook:
    """`scripts` by path: `delay` (seconds), `status`, and `raw` (text), `response` (of a review) or `convert`."""

    def __init__(self, ca: bytes) -> None:
        self.url = ""
        self.ca_bundle = base64.b64encode(ca).decode()
        self.scripts: dict[str, dict[str, Any]] = {}
        self._calls: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)

    def take_calls(self, path: str) -> list[dict[str, Any]]:
        """What `path` was asked since the last look."""
        return self._calls.pop(path, [])

    async def answer(self, request: web.Request) -> web.Response:
        review = json.loads(await request.read())
        self._calls[request.path].append({"query": request.query_string, "review": review})
        script = self.scripts.get(request.path, {})
        await asyncio.sleep(script.get("delay", 0))
        body = script["raw"] if "raw" in script else json.dumps(answered(review, script))
        return web.Response(status=script.get("status", 200), body=body.encode(), content_type="application/json")


def answered(review: dict[str, Any], script: dict[str, Any]) -> dict[str, Any]:
    request = review.get("request", {})
    if "convert" in script:
        objects = [_converted(each, request["desiredAPIVersion"], script["convert"]) for each in request["objects"]]
        response = {"convertedObjects": objects, "result": {"status": "Success"}}
    else:
        response = dict(script.get("response", {"allowed": True}))
        if isinstance(patch := response.get("patch"), list):
            response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
            response.setdefault("patchType", "JSONPatch")
    return {
        "apiVersion": review["apiVersion"],
        "kind": review["kind"],
        "response": {"uid": request.get("uid"), **response},
    }


def _converted(item: dict[str, Any], version: str, renames: list[dict[str, str]]) -> dict[str, Any]:
    """`item` in `version`, with the fields of `spec` renamed whose rules are for that version."""
    spec = dict(item.get("spec", {}))
    for rule in renames:
        if version.endswith("/" + rule["to"]) and rule["from"] in spec:
            spec[rule["rename"]] = spec.pop(rule["from"])
    return {**item, "apiVersion": version, **({"spec": spec} if "spec" in item else {})}


@asynccontextmanager
async def serving() -> AsyncIterator[Webhook]:
    """A webhook on a free port of 127.0.0.1, with a certificate of its own."""
    ca = create_ca("webhook")
    pair = create_server_certificate(ca, ["127.0.0.1", "localhost"])
    webhook = Webhook(ca.cert)
    app = web.Application(client_max_size=16 << 20)
    app.router.add_post("/{path:.*}", webhook.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=server_ssl_context(pair.cert, pair.key))
        await site.start()
        webhook.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
        yield webhook
    finally:
        await runner.cleanup()
