"""Wakes a candidate when the lock changes, so that one that is given up is taken at once."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from steersman._util.tasks import end
from steersman.apimachinery.errors import ApiError
from steersman.client.client import Client
from steersman.client.errors import ClientError
from steersman.runtime.leaderelection.locks import Lock, Place

logger = logging.getLogger("steersman.runtime.leaderelection")


class Hints:
    """An async context manager that watches a lock's objects. Where that is not allowed, there are no hints.

    Nothing is concluded from an event: it makes the candidate look by itself, which it also does without one.
    """

    def __init__(self, client: Client, lock: Lock, watch: bool) -> None:
        self._client = client
        self._places = lock.places() if watch else ()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Hints:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._watch(place), name="leader-hints") for place in self._places]
        return self

    async def __aexit__(self, *exc: object) -> None:
        await end(self._tasks)

    async def wait(self, seconds: float) -> None:
        """Until something has changed since the last wait, but at most so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    async def _watch(self, place: Place) -> None:
        namespace = place.namespace or self._client.namespace
        watch = self._client.watch(place.kind, namespace=namespace, name=place.name, on_error=_note)
        try:
            async with watch:
                async for _ in watch:
                    self._changed.set()
        except (ApiError, ClientError) as error:
            _note(error)


def _note(error: Exception) -> None:
    logger.debug("the lock cannot be watched, it is only looked at: %s", error)
