"""How pytest runs a test under many interleavings."""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import Any, TypedDict, cast

import pytest
from _pytest.logging import LogCaptureHandler

from steersman.testing.explore.explorer import PATIENCE, RUNS, Explorer, Finding, Outcome
from steersman.testing.explore.schedule import Schedule
from steersman.testing.explore.server import ExploredServer
from steersman.testing.plugin import STORY


class _Wanted(TypedDict, total=False):
    runs: int
    seed: int
    delay: float
    breaks: Collection[str]


def take_over(item: pytest.Item) -> None:
    """Have a test that is marked for it explored. Raises UsageError for one that cannot be."""
    mark = item.get_closest_marker("explore")
    if mark is None:
        return
    if not isinstance(item, pytest.Function) or not inspect.iscoroutinefunction(item.obj):
        raise pytest.UsageError(f"{item.nodeid}: only async tests have interleavings to explore")
    if mark.args or (unknown := {*mark.kwargs} - {"runs", "seed", "delay", "breaks"}):
        what = "arguments without names" if mark.args else min(unknown)
        raise pytest.UsageError(f"{item.nodeid}: explore takes runs, seed, delay and breaks, not {what}")
    if problem := _problem(mark.kwargs):
        raise pytest.UsageError(f"{item.nodeid}: {problem}")
    item.runtest = partial(_explored, item, item.obj, cast("_Wanted", mark.kwargs))  # type: ignore[method-assign]


def _problem(wanted: Mapping[str, Any]) -> str | None:
    """What is wrong with the mark's values."""
    runs, seed, delay, breaks = (wanted.get(name) for name in ("runs", "seed", "delay", "breaks"))
    if runs is not None and (type(runs) is not int or runs < 1):
        return f"explore's runs is an integer, at least 1, not {runs!r}"
    if seed is not None and type(seed) is not int:
        return f"explore's seed is an integer, not {seed!r}"
    if delay is not None and (type(delay) not in (int, float) or not 0 <= delay < math.inf):
        return f"explore's delay is a number of seconds, 0 or more, not {delay!r}"
    if breaks is not None and (isinstance(breaks, str) or not _are_names(breaks)):
        return f"explore's breaks is a list of user agents, not {breaks!r}"
    return None


def _are_names(value: Any) -> bool:
    return isinstance(value, Collection) and all(isinstance(part, str) for part in value)


def _explored(item: pytest.Function, function: Callable[..., Coroutine[Any, Any, object]], wanted: _Wanted) -> None:
    arguments = {name: item.funcargs[name] for name in inspect.signature(function).parameters}
    test = partial(function, **arguments)
    server = item.funcargs.get("apiserver")
    if not isinstance(server, ExploredServer):
        if server is None:
            pytest.fail("there is nothing to explore in a test without the fixture `apiserver`", pytrace=False)
        asyncio.run(test())  # on a real cluster, which has interleavings of its own
        return
    server.prepared()
    option = item.config.getoption
    no_failures = (pytest.skip.Exception, pytest.exit.Exception)
    forget = partial(_forget_output, item.config)
    explorer = Explorer(server, test, wanted.get("delay", PATIENCE), wanted.get("breaks", ()), no_failures, forget)
    replay = option("--explore-replay")
    if replay is not None:
        schedule = parsed(replay)
        outcome = explorer.run(schedule.replay)
        _tell(item, outcome, "")
        if missing := [number for number in schedule.holds if not 1 <= number <= outcome.messages]:
            pytest.fail(
                f"this schedule does not fit the test any more: it names message {min(missing)}, and the test sends "
                f"{outcome.messages}",
                pytrace=False,
            )
        return
    runs = _chosen(option("--explore-runs"), wanted.get("runs", RUNS))
    seed = _chosen(option("--explore-seed"), wanted.get("seed", 0))
    finding = explorer.explore(runs, seed)
    if finding is not None:
        _tell(item, finding.outcome, _found(finding, runs, seed, item.nodeid))


def _forget_output(config: pytest.Config) -> None:
    """Drop what pytest has captured of earlier runs."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LogCaptureHandler):
            handler.reset()
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.read_global_capture()


def parsed(text: str) -> Schedule:
    """The schedule that `--explore-replay` names. Raises UsageError."""
    try:
        return Schedule.parse(text)
    except ValueError as error:
        raise pytest.UsageError(f"--explore-replay: {error}") from None


def _chosen(option: int | None, marked: int) -> int:
    return marked if option is None else option


def _found(finding: Finding, runs: int, seed: int, test: str) -> str:
    schedule = finding.outcome.schedule
    if not finding.repeats:
        return (
            f"\n\nRun {finding.number} of {runs} (seed {seed}) failed, but not again when it was repeated: the test "
            "depends on something that is not held still, such as real time, threads, or what an earlier run has left."
        )
    held = len(schedule.holds)
    short = "in the order of sending" if not held else f"with {held} message{'s' * (held > 1)} held back or lost"
    return (
        f"\n\nRun {finding.number} of {runs} (seed {seed}) failed; this is the shortest that was found, {short}.\n"
        f"To run it again: pytest '{test}' --explore-replay='{schedule}'"
    )


def _tell(item: pytest.Function, outcome: Outcome, found: str) -> None:
    """Report a run; raise what its test has raised."""
    if outcome.error is not None or item.config.getoption("--explore-replay") is not None:
        item.stash[STORY] = outcome.story.text() + found
    if outcome.error is not None:
        raise outcome.error
