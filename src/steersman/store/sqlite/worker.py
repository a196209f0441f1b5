"""A thread that does a store's blocking work in order and reports to the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
Job = Callable[[], Any]
Done = Callable[[Any, Exception | None], None]


class Worker:
    """One daemon thread with a queue of jobs; all methods but the jobs run on the event loop.

    `after` is run on the thread after each job, once its result is on its way.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, after: Callable[[], None] | None = None) -> None:
        self._loop = loop
        self._after = after
        self._jobs: queue.SimpleQueue[tuple[Job, Done] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Job, done: Done) -> None:
        """Run `job` on the thread, then `done(result, None)` or `done(None, exception)` on the event loop."""
        self._jobs.put((job, done))

    async def run(self, job: Callable[[], T]) -> T:
        """Run `job` on the thread and return or raise what it does. Cancelling the caller does not stop the job."""
        future: asyncio.Future[T] = self._loop.create_future()

        def done(result: T, error: Exception | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self.submit(job, done)
        return await future

    def stop(self) -> None:
        """Let the thread end when it has done all jobs that were submitted."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, done = item
            result, error = None, None
            try:
                result = job()
            except Exception as caught:
                error = caught
            # A loop that was closed without closing the store has nobody left to tell.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(done, result, error)
            del item, job, done, result, error
            if self._after is not None:
                self._after()
