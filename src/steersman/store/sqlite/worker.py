"""A thread that does a store's blocking work in order and reports to the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

# How often (seconds) the loop looks whether a thread may be starving, and how long it then steps aside for it.
_PATIENCE = 0.002
_ASIDE = 0.00025

T = TypeVar("T")
Job = Callable[[], Any]
Done = Callable[[Any, Exception | None], None]


class Worker:
    """One daemon thread with a queue of jobs; all methods but the jobs run on the event loop.

    `after` is run on the thread after each job, once its result is on its way.

    A busy event loop gives the GIL up for moments only, whenever it looks for I/O. Each time CPython wakes a thread
    that waits for the GIL, which finds it taken again and starts its waiting anew, for up to seconds. So while
    nothing is reported of a job for some time, the loop's thread sleeps now and then for an instant.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str, after: Callable[[], None] | None = None) -> None:
        self._loop = loop
        self._after = after
        self._jobs: queue.SimpleQueue[tuple[Job, Done] | None] = queue.SimpleQueue()
        self._submitted = self._reported = self._seen = 0
        self._watching = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Job, done: Done) -> None:
        """Run `job` on the thread, then `done(result, None)` or `done(None, exception)` on the event loop."""
        self._jobs.put((job, done))
        self._submitted += 1
        if not self._watching:
            self._watching = True
            self._seen = self._reported
            self._loop.call_later(_PATIENCE, self._step_aside)

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

    def _step_aside(self) -> None:
        if self._reported == self._submitted:
            self._watching = False
            return
        if self._reported == self._seen:
            time.sleep(_ASIDE)
        self._seen = self._reported
        self._loop.call_later(_PATIENCE, self._step_aside)

    def _report(self, done: Done, result: object, error: Exception | None) -> None:
        self._reported += 1
        done(result, error)

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
                self._loop.call_soon_threadsafe(self._report, done, result, error)
            del item, job, done, result, error
            if self._after is not None:
                self._after()
