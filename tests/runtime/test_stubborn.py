"""An operator whose work does not end: the process does."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from tests.runtime.kit import SOON, Lab

PROGRAM = Path(__file__).with_name("stubborn_process.py")


@pytest.mark.parametrize("how", ["thread", "deaf", "blocking"])
async def test_what_does_not_end_ends_with_the_process(lab: Lab, how: str) -> None:
    """A thread, a coroutine that lets its cancellation pass, and one that holds up the event loop."""
    await lab.make("w")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), lab.url, lab.group, lab.namespace, how, stdout=PIPE, stderr=PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(SOON):
            assert await process.stdout.readline() == b"begin\n"
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SOON):
            _, told = await process.communicate()
        assert process.returncode == 1
        assert b"the process ends now" in told
        assert b"1 of widget" in told
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_a_second_signal_ends_it_even_if_the_loop_is_held_up(lab: Lab) -> None:
    await lab.make("w")
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(PROGRAM), lab.url, lab.group, lab.namespace, "blocking", "3600", stdout=PIPE, stderr=PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(SOON):
            assert await process.stdout.readline() == b"begin\n"
        ended = asyncio.ensure_future(process.wait())
        for _ in range(100):
            process.send_signal(signal.SIGTERM)
            await asyncio.wait([ended], timeout=0.3)  # two signals at the same time count as one
            if ended.done():
                break
        assert process.returncode == 1
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
