import asyncio
from collections.abc import Awaitable, Callable

import pytest

Until = Callable[..., Awaitable[dict | None]]


@pytest.fixture
def until(apiserver) -> Until:
    """`await until(resource, key, test)`: the object, once `test` holds of it (None: it is not there)."""

    async def wait(resource, key, test, group=""):
        scope = apiserver.plane.server.core.catalog.look_up(group, "v1", resource)
        changed = asyncio.Event()
        notify = lambda change: changed.set()  # noqa: E731
        scope.cache.watchers.append(notify)
        try:
            while True:
                changed.clear()
                entry = scope.cache.get(key)
                obj = entry.decode() if entry else None
                if test(obj):
                    return obj
                await asyncio.wait_for(changed.wait(), 5)
        finally:
            scope.cache.watchers.remove(notify)

    return wait


def gone(obj):
    return obj is None
