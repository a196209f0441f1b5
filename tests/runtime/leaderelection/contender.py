"""A process that competes for a lock and works while it leads: `python contender.py URL IDENTITY FILE SKEW EXIT`.

What it does is in FILE, a line of JSON each, with the time of CLOCK_MONOTONIC, which is one for all processes:

- `begin`: the work has begun;
- `step`: something was done, and `check()` had said after the time `t` that it may be done;
- `after`: something was done without a check: after the cancellation, or in a loop that holds up the event loop;
- `end`: the work has ended.

SIGTERM ends it in good order, SIGUSR1 makes the work hold up the event loop, SIGUSR2 sets the wall clock by an hour.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from steersman import Client, LeaderElector, Leadership, LeadershipLost, LeaseLock
from steersman.client import Config

LEASE, DEADLINE, RETRY = 1.0, 0.7, 0.15
ENDING = 0.2
STEP = 0.005
NAME = "campaign"


class Contender:
    def __init__(self, url: str, identity: str, file: str, skew: float, exits: bool) -> None:
        self.client = Client(Config(url))
        self.identity = identity
        self.skew = timedelta(hours=skew)
        self.blocked = False
        self._file = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.elector = LeaderElector(
            self.client,
            LeaseLock("default", NAME),
            identity=identity,
            lease_duration=LEASE,
            renew_deadline=DEADLINE,
            retry_period=RETRY,
            exit_on_overrun=exits,
            wall_clock=lambda: datetime.now(UTC) + self.skew,
        )

    def block(self) -> None:
        self.blocked = True

    def jump(self) -> None:
        self.skew += timedelta(hours=random.choice([-1, 1]))

    async def live(self) -> None:
        """Compete for ever."""
        while True:
            with contextlib.suppress(LeadershipLost):
                await self.elector.run(self.work)

    async def work(self, leadership: Leadership) -> None:
        self._note("begin", time.monotonic(), leadership)
        print(json.dumps({"who": self.identity, "token": leadership.fencing_token}), flush=True)
        try:
            while True:
                now = time.monotonic()
                leadership.check()
                self._note("step", now, leadership)
                await asyncio.sleep(STEP)
                while self.blocked:
                    self._note("after", time.monotonic(), leadership)
                    time.sleep(STEP)  # noqa: ASYNC251 -- this is the fault
        finally:
            until = time.monotonic() + random.uniform(0, ENDING)
            while (now := time.monotonic()) < until:
                self._note("after", now, leadership)
                await asyncio.sleep(STEP)
            self._note("end", time.monotonic(), leadership)

    def _note(self, what: str, at: float, leadership: Leadership) -> None:
        line: dict[str, Any] = {"who": self.identity, "pid": os.getpid(), "token": leadership.fencing_token}
        os.write(self._file, json.dumps({**line, "what": what, "t": at}).encode() + b"\n")


async def main(url: str, identity: str, file: str, skew: str, exits: str) -> None:
    contender = Contender(url, identity, file, float(skew), exits == "exit")
    task = asyncio.ensure_future(contender.live())
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    loop.add_signal_handler(signal.SIGUSR1, contender.block)
    loop.add_signal_handler(signal.SIGUSR2, contender.jump)
    async with contender.client:
        with contextlib.suppress(asyncio.CancelledError):
            await task


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
