"""Whatever the server's own OpenAPI description offers can be asked without a failure of the server.

`python -m tests.security.openapi` does the same for longer, over HTTPS, and beside a kube-apiserver.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.apiserver.server import APIServer, ServerConfig
from steersman.net.http import Request
from steersman.store.memory import MemoryStore

from .operations import Operation, draw, operations

REQUESTS = 400


async def document(server: APIServer, path: str) -> Any:
    answer = await server.filters.handle(Request("GET", path, "", {"host": "x"}))
    body = answer.body  # type: ignore[union-attr]
    return json.loads(body if isinstance(body, bytes) else b"".join(body))


async def offered(server: APIServer) -> list[Operation]:
    index = await document(server, "/openapi/v3")
    documents = [await document(server, f"/openapi/v3/{path}") for path in sorted(index["paths"])]
    return [operation for found in documents for operation in operations(found)]


async def ask(seed: int) -> list[str]:
    """The failures of some random requests to a new server."""
    server = await APIServer.start(MemoryStore(), ServerConfig(insecure=True), listen=False)
    failed = []
    try:
        found = await offered(server)
        rng = random.Random(seed)
        for operation in rng.choices(found, k=REQUESTS):
            drawn = draw(operation, rng)
            request = Request(drawn.method, drawn.path, drawn.query, {"host": "x", **drawn.headers}, drawn.body)
            answer = await server.filters.handle(request)
            body = answer.body if hasattr(answer, "body") else b""
            text = body if isinstance(body, bytes) else b"".join(body)
            if answer.status >= 500 and b"InternalError" in text:
                failed.append(f"{drawn}: {text[:200]!r}")
    finally:
        await server.stop(0)
    return failed


@pytest.mark.slow
@given(seed=st.integers(min_value=0, max_value=2**32))
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_that_is_offered_fails(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.clear()
    assert asyncio.run(ask(seed)) == []
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
