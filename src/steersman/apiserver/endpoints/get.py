"""GET of one object.

Source: apiserver `pkg/endpoints/handlers/get.go`.
"""

from __future__ import annotations

from steersman._util import clock
from steersman.apimachinery.errors import Timeout, not_found
from steersman.apiserver import rest
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope


async def get(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    info = x.info
    if info.query and (text := info.first("resourceVersion")):
        not_older_than(core, rest.parse_option(text))
    found = scope.cache.get(scope.key(info.namespace, info.name))
    if found is None:
        answers.accepted(x, answers.ONE, scope)  # 406 comes before 404
        raise not_found(scope.group, scope.resource, info.name)
    if scope.view.remote:
        await scope.view.prepare([found], again=True)
    return answers.entry(x, scope, found, clock.now())


def not_older_than(core: Core, revision: int) -> None:
    """Refuse a read of a state that has not happened yet (504 with a retry hint)."""
    current = core.cache.revision
    if revision > current:
        message = f"Too large resource version: {revision}, current: {current}"
        cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
        raise Timeout(
            f"Timeout: {message}", details={"causes": [cause], "retryAfterSeconds": 1}, headers=(("Retry-After", "1"),)
        )
