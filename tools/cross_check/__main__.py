"""steersman and kube-apiserver on one etcd: a random sequence of operations, each at one or the other, and what must
hold of it.

    python -m tools.cross_check --server https://127.0.0.1:6443 --other https://127.0.0.1:7443 --token TOKEN

Both must serve the same etcd with the same prefix. It exits with 1 if something differs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path

from tools.cross_check.campaign import Campaign
from tools.cross_check.servers import Server


async def _run(options: argparse.Namespace) -> int:
    servers = [Server(url, options.token) for url in (options.server, options.other)]
    try:
        campaign = Campaign(servers, options.seed, options.operations, options.workers)
        report = await campaign.run()
    finally:
        for server in servers:
            await server.close()
    print(json.dumps(report.figures(), indent=2))
    for line in report.violations[:50]:
        print(f"VIOLATION: {line}", file=sys.stderr)
    if options.history:
        Path(options.history).write_text("\n".join(report.history))  # noqa: ASYNC240 - nothing else runs any more
    return 1 if report.violations else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.cross_check", description=__doc__)
    parser.add_argument("--server", required=True, help="one server's URL")
    parser.add_argument("--other", required=True, help="the other's")
    parser.add_argument("--token", default="admintoken", help="an administrator's token at both")
    parser.add_argument("--operations", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--history", help="write all that was done into this file")
    return asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
