"""An operator that does not end as it should: `python stubborn_process.py URL GROUP NAMESPACE HOW [GRACE]`.

It says "begin" when its reconcile has begun.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from typing import Any

from steersman.client import Config, Resource
from steersman.runtime import manager as manager_module
from steersman.runtime.manager import Manager

AN_HOUR = 3600


async def deaf(ctx: Any, widget: Any) -> None:
    print("begin", flush=True)
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(AN_HOUR)


def threaded(ctx: Any, widget: Any) -> None:
    print("begin", flush=True)
    time.sleep(AN_HOUR)


async def blocking(ctx: Any, widget: Any) -> None:
    print("begin", flush=True)
    time.sleep(AN_HOUR)  # noqa: ASYNC251 -- that is what it is about


def main() -> None:
    url, group, namespace, how, *grace = sys.argv[1:]
    logging.basicConfig()
    manager_module.LAST_SECONDS = 0.5
    manager = Manager(Config(server=url, namespace=namespace), name="stubborn", grace=float(grace[0]) if grace else 0.1)
    reconcile = {"thread": threaded, "deaf": deaf, "blocking": blocking}[how]
    manager.controller(Resource(f"{group}/v1", "Widget"), reconcile, concurrency=1)
    manager.run()


main()
