"""A process that wants to lead: `python -m faults.candidate KUBECONFIG FILE`. While it leads it says so in the file, a
line each time: its identity, the term's fencing token, and when it asked and had the answer that it does."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from faults.requests import NAMESPACE, now
from steersman.client.client import Client
from steersman.client.config import load
from steersman.runtime.leaderelection import LeaderElector, Leadership, LeadershipLost, LeaseLock

_PAUSE = 0.02
_TERM = 15.0
"""Seconds after which a leader gives up by itself."""


async def main(kubeconfig: str, file: str) -> None:
    claims = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    async with Client(load(kubeconfig=kubeconfig)) as client:
        lock = LeaseLock(NAMESPACE, "candidates")
        elector = LeaderElector(client, lock, lease_duration=4.0, renew_deadline=3.0, retry_period=0.5)

        async def work(leadership: Leadership) -> None:
            end = now() + _TERM
            while now() < end:
                before = now()
                leadership.check()
                line = f"{leadership.identity} {leadership.fencing_token} {before!r} {now()!r}\n"
                os.write(claims, line.encode())
                await asyncio.sleep(_PAUSE)

        while True:
            try:
                await elector.run(work)
            except LeadershipLost as error:
                print(f"lost: {error}", file=sys.stderr)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    asyncio.run(main(*sys.argv[1:]))
