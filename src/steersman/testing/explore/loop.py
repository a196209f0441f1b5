"""An event loop whose time jumps to the next thing that happens, and where nothing comes from outside."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol, cast

BEGIN = 1000.0
"""The loop's time at its start, in seconds."""
MAX_TURNS = 100_000


class Stuck(AssertionError):
    """Nothing can happen any more, or things go on happening for ever."""


def waits_at(task: asyncio.Task[Any]) -> str:
    """Where a task waits, from its beginning to what it awaits, a line each."""
    lines, awaited = [], cast("Any", task.get_coro())
    while awaited is not None:
        kind = next((kind for kind in ("cr", "gi", "ag") if hasattr(awaited, f"{kind}_frame")), None)
        frame = None if kind is None else getattr(awaited, f"{kind}_frame")
        if frame is None:
            break
        lines.append(f"  {frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_qualname}")
        awaited = getattr(awaited, "gi_yieldfrom" if kind == "gi" else f"{kind}_await")
    return "\n".join(lines)


class Idle(Protocol):
    """What happens when no task can go on by itself."""

    def __call__(self, wait: float | None) -> bool:
        """Make one thing happen; False if time is to pass, for `wait` seconds (None: nothing waits for a time)."""
        ...


class VirtualLoop(asyncio.SelectorEventLoop):
    """Asyncio's own loop over a selector that watches no files: `idle` is asked instead."""

    def __init__(self, idle: Idle) -> None:
        self._now = BEGIN
        self._inline = False
        self._watched: asyncio.Future[None] | None = None
        self._end = 0.0
        super().__init__(_Nothing(self, idle))

    def time(self) -> float:
        """Seconds; moved by nothing but what is waited for."""
        return self._now

    def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds
        if self._watched is not None and self._now > self._end:
            self.stuck(Stuck(f"the test has not come to an end at {self._end - BEGIN:g} s of its own time"))

    def watch_over(self, seconds: float) -> asyncio.Future[None]:
        """What fails with `Stuck` when nothing can happen any more, or things go on for longer than some seconds."""
        self._watched, self._end = self.create_future(), self._now + seconds
        return self._watched

    def stuck(self, error: Stuck) -> None:
        """Tell who watches over this; if that has not helped either, raise it."""
        watched, self._watched = self._watched, None
        if watched is None or watched.done():
            raise error
        watched.set_exception(error)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run it here and now: threads would make each run another one."""
        future = self.create_future()
        self._inline = True
        try:
            future.set_result(func(*args))
        except StopIteration:
            raise
        except Exception as error:
            future.set_exception(error)
        finally:
            self._inline = False
        return future

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:  # type: ignore[override]
        """Raises RuntimeError for what would wait for itself."""
        if self._inline:
            raise RuntimeError(
                "code that blocks cannot wait for the event loop while interleavings are explored: make it async"
            )
        return super().call_soon_threadsafe(*args, **kwargs)

    async def create_connection(self, *args: Any, **kwargs: Any) -> NoReturn:
        _no_sockets()

    async def create_server(self, *args: Any, **kwargs: Any) -> NoReturn:
        _no_sockets()

    async def getaddrinfo(self, *args: Any, **kwargs: Any) -> NoReturn:
        _no_sockets()


def _no_sockets() -> NoReturn:
    raise RuntimeError(
        "there are no sockets while interleavings are explored: reach the server by `apiserver.config`, "
        "`apiserver.client()` or `kube_client()`, and leave webhooks, --health and --metrics out"
    )


class _Nothing(selectors.BaseSelector):
    """Instead of waiting for files, lets `idle` decide; files are only counted in and out."""

    def __init__(self, loop: VirtualLoop, idle: Idle) -> None:
        self._loop = loop
        self._idle = idle
        self._files: dict[int, selectors.SelectorKey] = {}
        self._turns = 0

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        number = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        key = self._files[number] = selectors.SelectorKey(fileobj, number, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._files.pop(fileobj if isinstance(fileobj, int) else fileobj.fileno())

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._turns += 1
        if self._turns > MAX_TURNS:
            self._turns = 0
            self._loop.stuck(Stuck(f"the test has not come to an end after {MAX_TURNS} turns of its event loop"))
        if timeout is not None and timeout <= 0:
            return []
        if not self._idle(timeout):
            if timeout is None:
                self._loop.stuck(Stuck("nothing can happen any more: everything waits for something else"))
            else:
                self._loop.pass_time(timeout)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._files

    def close(self) -> None:
        self._files.clear()
