"""Looks for an interleaving that breaks a test, and makes it short."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from steersman.runtime import tracing
from steersman.testing.explore.loop import VirtualLoop, waits_at
from steersman.testing.explore.network import Network
from steersman.testing.explore.schedule import Chance, Decider, Schedule
from steersman.testing.explore.server import ExploredServer, Stage, Unprepared
from steersman.testing.explore.shrink import shortest
from steersman.testing.explore.story import Story
from steersman.testing.explore.transport import Wire

RUNS = 200
PATIENCE = 5.0
LONGEST = 3600.0
"""Seconds of its own time that a test may take."""
_SHRINKING = 400
_COLLECT_EVERY = 20
Test = Callable[[], Coroutine[Any, Any, object]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: the schedule that it followed, what happened, what the test raised, and how many messages were sent."""

    schedule: Schedule
    story: Story
    error: BaseException | None
    messages: int


@dataclass(frozen=True, slots=True)
class Finding:
    """The shortest failing run that was found, in run `number`, and whether its schedule fails each time."""

    outcome: Outcome
    number: int
    repeats: bool


@contextmanager
def _frozen_garbage() -> Iterator[None]:
    """Collect garbage now and then, that of the runs: all garbage after each run would take as long as the run."""
    collects = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if collects:
            gc.enable()


class Explorer:
    """Runs one test against one server.

    `patience` (in seconds) and `breaks`: see `Network`. `no_failures` are what a test raises that says nothing about
    it, such as that it is skipped. `before_run` is called before each run: what is logged and printed is of interest
    for the last one only.
    """

    def __init__(
        self,
        server: ExploredServer,
        test: Test,
        patience: float = PATIENCE,
        breaks: Collection[str] = (),
        no_failures: tuple[type[BaseException], ...] = (),
        before_run: Callable[[], None] = lambda: None,
    ) -> None:
        self._server = server
        self._test = test
        self._patience = patience
        self._breaks = breaks
        self._before_run = before_run
        self._runs = 0
        self._no_failures = (*no_failures, Unprepared, KeyboardInterrupt, SystemExit)

    def explore(self, runs: int = RUNS, seed: int = 0) -> Finding | None:
        """The first run keeps the order of sending, the others follow the seed. None if all runs pass."""
        with _frozen_garbage():
            for number in range(1, runs + 1):
                outcome = self.run(partial(Chance, f"{seed}/{number}") if number > 1 else Schedule().replay)
                if outcome.error is not None:
                    return self._shortest(outcome, number)
        return None

    def run(self, decide: Callable[[], Decider]) -> Outcome:
        """One run. Raises what is no failure of the test: that it is skipped, or interrupted."""
        while True:
            self._before_run()
            decider, story = decide(), Story()
            network = Network(decider, story, self._patience, self._breaks)
            try:
                error = self._run(story, network)
            except Unprepared as missing:
                self._server.prepare(missing.definition)
                continue
            self._runs += 1
            if self._runs % _COLLECT_EVERY == 0:
                gc.collect()
            return Outcome(Schedule(decider.holds), story, error, network.decided)

    def _shortest(self, found: Outcome, number: int) -> Finding:
        best, left = found, _SHRINKING

        def fails(schedule: Schedule) -> bool:
            nonlocal best, left
            if not left:
                return False
            left -= 1
            outcome = self.run(schedule.replay)
            if type(outcome.error) is not type(found.error):
                return False
            best = outcome
            return True

        if not fails(found.schedule):
            return Finding(found, number, repeats=False)
        schedule = shortest(found.schedule, fails)
        last = self.run(schedule.replay)
        return Finding(best if last.error is None else last, number, repeats=last.error is not None)

    def _run(self, story: Story, network: Network) -> BaseException | None:
        loop = VirtualLoop(network.idle)
        stage = Stage("run", loop)
        tracing.listeners.append(story.span)
        try:
            return stage.run(self._main(loop, story, network))
        finally:
            network.in_order = True
            stage.close()
            tracing.listeners.remove(story.span)

    async def _main(self, loop: VirtualLoop, story: Story, network: Network) -> BaseException | None:
        wire = Wire(network)
        async with self._server.running(wire):
            test: asyncio.Task[Any] = asyncio.create_task(self._test())
            stuck = loop.watch_over(LONGEST)
            await asyncio.wait([test, stuck], return_when=asyncio.FIRST_COMPLETED)
            story.over = network.in_order = True
            error = _error_of(test) if test.done() else stuck.exception()
            if error is not None and not test.done():
                error.add_note(f"The test waits here:\n{waits_at(test)}")
            stuck.cancel()
            test.cancel()
            await asyncio.wait([test])
        if error is not None and isinstance(error, self._no_failures):
            raise error
        return error


def _error_of(test: asyncio.Future[Any]) -> BaseException | None:
    return asyncio.CancelledError("the test has been cancelled") if test.cancelled() else test.exception()
