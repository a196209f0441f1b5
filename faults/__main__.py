"""The command: `python -m faults sqlite|etcd`."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from faults.campaign import Campaign, Load, Result
from faults.catalog import CATALOG, ON_ETCD, ON_SQLITE
from faults.cluster import Shape
from faults.namespaces import Namespaces
from faults.plan import make_plan
from faults.relays import Relays
from faults.report import summary, write_history
from steersman.net.loop import new_event_loop


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m faults", description=__doc__)
    parser.add_argument("store", choices=("sqlite", "etcd"))
    parser.add_argument("--faults", type=int, default=20, metavar="N", help="how many (default: 20)")
    parser.add_argument("--only", nargs="+", choices=sorted(CATALOG), metavar="NAME", help="kinds of faults")
    parser.add_argument("--longest", type=float, default=3.0, metavar="S", help="seconds a fault lasts (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="of the plan and of all clients (default: 1)")
    parser.add_argument("--members", type=int, default=3, help="of etcd (default: 3)")
    parser.add_argument("--servers", type=int, default=2, help="on etcd (default: 2)")
    parser.add_argument("--etcd", default="etcd", metavar="PROGRAM", help="etcd's program (default: etcd)")
    parser.add_argument(
        "--network",
        choices=("relays", "namespaces"),
        default="relays",
        help="in user space, or in network namespaces, as root (default: relays)",
    )
    parser.add_argument("--competitors", type=int, default=8, metavar="N", help="clients that compete (default: 8)")
    parser.add_argument(
        "--history",
        type=Path,
        default=Path("faults-history"),
        metavar="DIRECTORY",
        help="where a history that is not right goes, with all logs (default: faults-history)",
    )
    return parser


def main() -> int:
    arguments = parser().parse_args()
    on_etcd = arguments.store == "etcd"
    network = Namespaces if arguments.network == "namespaces" else Relays
    shape = Shape(arguments.members, arguments.servers, etcd=arguments.etcd) if on_etcd else Shape()
    shape = replace(shape, network=network)
    weights = ON_ETCD if on_etcd else ON_SQLITE
    if arguments.only:
        weights = dict.fromkeys(arguments.only, 1)
    plan = make_plan(arguments.seed, arguments.faults, weights, arguments.longest)
    with tempfile.TemporaryDirectory(prefix="faults-") as directory:
        load = Load(arguments.competitors)
        campaign = Campaign(shape, plan, arguments.seed, Path(directory), load, say=_say)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            try:
                result = runner.run(_run(campaign))
            except BaseException:
                _keep(campaign, arguments.history)
                raise
        print(f"{arguments.store}, seed {arguments.seed}, {len(plan)} steps")
        print(summary(result))
        if result.violations:
            campaign.history.violations = result.violations
            _keep(campaign, arguments.history)
            print(f"the history is in {arguments.history}")
    return 1 if result.violations else 0


async def _run(campaign: Campaign) -> Result:
    """A signal ends it in order: no process is left behind."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    return await campaign.run()


def _keep(campaign: Campaign, directory: Path) -> None:
    write_history(campaign.history, directory)
    for log in campaign.directory.glob("*.log"):
        shutil.copy(log, directory)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
