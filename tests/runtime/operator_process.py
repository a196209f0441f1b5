"""An operator as a program: `python operator_process.py URL GROUP NAMESPACE SECONDS`.

It says "ready" once it leads, "begin" and "end" around each reconcile, which takes so many seconds.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from steersman.client import Config, Resource
from steersman.runtime.manager import Manager


def main() -> None:
    url, group, namespace, seconds = sys.argv[1:]
    manager = Manager(Config(server=url, namespace=namespace), name="program", leader_election="program")

    async def reconcile(ctx: Any, widget: Any) -> None:
        print("begin", flush=True)
        await asyncio.sleep(float(seconds))
        print("end", flush=True)

    async def tell(manager: Manager) -> None:
        print("ready", flush=True)

    manager.controller(Resource(f"{group}/v1", "Widget"), reconcile)
    manager.add(tell)
    manager.run()


main()
