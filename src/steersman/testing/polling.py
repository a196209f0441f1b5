"""Assertions that become true."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

from steersman.apimachinery.errors import NotFound

T = TypeVar("T")

TIMEOUT = 10.0
_FIRST, _LONGEST = 0.005, 0.25
_NOT_YET = (AssertionError, NotFound, LookupError, TypeError, AttributeError)


def eventually(check: Callable[[], T], *, timeout: float = TIMEOUT) -> T:
    """Call `check` until it no longer fails, and give its result.

    `check` is to assert; one that returns False, or is async, is refused with a TypeError at once, since it would
    always pass. It fails by an assertion, NotFound, or by reaching into what is not there yet (a missing key, None).
    After `timeout` seconds its last failure is raised, with a note that says how often it was tried. The waits between
    two tries grow from 5 to 250 ms.
    """
    began, tries, wait = time.monotonic(), 0, _FIRST
    while True:
        tries += 1
        try:
            outcome = check()
        except _NOT_YET as error:
            if time.monotonic() - began > timeout:
                raise _noted(error, tries, timeout) from None
        else:
            if inspect.isawaitable(outcome):
                if inspect.iscoroutine(outcome):
                    outcome.close()
                raise TypeError("the check is async: use `await eventually_async(...)`")
            return _checked(outcome)
        time.sleep(wait)
        wait = min(wait * 1.5, _LONGEST)


@overload
async def eventually_async(check: Callable[[], Awaitable[T]], *, timeout: float = TIMEOUT) -> T: ...
@overload
async def eventually_async(check: Callable[[], T], *, timeout: float = TIMEOUT) -> T: ...
async def eventually_async(check: Callable[[], Any], *, timeout: float = TIMEOUT) -> Any:
    """As `eventually`, for async code; `check` may be async or not."""
    clock = asyncio.get_running_loop().time
    began, tries, wait = clock(), 0, _FIRST
    while True:
        tries += 1
        try:
            outcome = check()
            if inspect.isawaitable(outcome):
                outcome = await outcome
        except _NOT_YET as error:
            if clock() - began > timeout:
                raise _noted(error, tries, timeout) from None
        else:
            return _checked(outcome)
        await asyncio.sleep(wait)
        wait = min(wait * 1.5, _LONGEST)


def _checked(outcome: T) -> T:
    if outcome is False:
        raise TypeError("the check has returned False, which is no failure: have it assert or raise")
    return outcome


def _noted(error: Exception, tries: int, timeout: float) -> Exception:
    error.add_note(f"still so after {timeout:g} s and {tries} tries")
    return error
