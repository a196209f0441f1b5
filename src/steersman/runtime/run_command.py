"""`steersman run`: an operator from a Python file."""

from __future__ import annotations

import argparse
import sys

from steersman._util.commandline import explain
from steersman.client import cluster_flags


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `run` to the subcommands."""
    parser = commands.add_parser(
        "run",
        help="run an operator",
        description="Run the Manager that a Python file or module makes, until SIGTERM or SIGINT: then running "
        "reconciles have time to end, and the leader's lock is given up. Options take the place of what the Manager "
        "says itself.",
    )
    parser.add_argument(
        "file", metavar="OPERATOR", help="FILE[:NAME] or MODULE[:NAME]: where the Manager is, and which if several"
    )
    cluster_flags.add_flags(parser)
    add = parser.add_argument_group("what it serves").add_argument
    add("--health", metavar="ADDRESS", help="serve /healthz and /readyz there (default: as the Manager says)")
    add("--metrics", metavar="ADDRESS", help="serve /metrics there (default: as the Manager says)")
    add("--webhooks", metavar="ADDRESS", help="serve the operator's webhooks there (default: as the Manager says)")
    add(
        "--webhook-service",
        metavar="NAMESPACE/NAME",
        help="the Service by which the API server reaches the webhooks (default: as the Manager says)",
    )
    add("--no-webhooks", action="store_true", help="serve none, whatever the Manager says: nobody could reach them")
    add = parser.add_argument_group("how it works").add_argument
    add("--no-leader-election", action="store_true", help="work alone, whatever the Manager says")
    add("--log-format", choices=("text", "json"), default="text", help="the form of log lines, on stderr")
    add("-v", "--verbosity", type=int, default=0, metavar="N", help="1 logs each reconcile, 4 libraries, too")
    explain(parser, _EXAMPLES, _STATUSES, files=cluster_flags.FILES, environment=cluster_flags.ENVIRONMENT)
    parser.set_defaults(run=run)


_EXAMPLES = (
    (
        "the only Manager of a file, on the cluster of a kubeconfig",
        "steersman run operator.py --kubeconfig cluster.kubeconfig",
    ),
    ("one of several, with probes and metrics", "steersman run shop.operator:manager --health :8081 --metrics :8080"),
)
_STATUSES = {0: "it was stopped by a signal", 1: "it cannot start, has failed, or has lost its leadership"}


def run(options: argparse.Namespace) -> int:
    """Run the operator. Returns the exit status."""
    from steersman._util.logs import configure

    configure(options.log_format, options.verbosity)
    from steersman.runtime.operator_file import OperatorFileError, load_manager

    try:
        _, manager = load_manager(options.file)
    except OperatorFileError as error:
        return _fail(str(error))
    from steersman.apimachinery.errors import ApiError
    from steersman.client.config.load import load
    from steersman.client.errors import ClientError
    from steersman.net.listen import ListenError
    from steersman.runtime.cache.cache import CacheSyncError
    from steersman.runtime.leaderelection import LeadershipLost
    from steersman.runtime.webhook.certificates import CertificateError

    try:
        if options.kubeconfig or options.context:
            manager.configure(config=load(options.context, options.kubeconfig))
        manager.configure(health=options.health, metrics=options.metrics)
        manager.configure(webhooks=options.webhooks, webhook_service=options.webhook_service)
        if options.no_webhooks:
            manager.without_webhooks()
        if options.no_leader_election:
            manager.election = None
        manager.run()
    except (ApiError, ClientError, CacheSyncError, CertificateError, ListenError, LeadershipLost, ValueError) as error:
        return _fail(str(error))
    return 0


def _fail(message: str) -> int:
    print(f"steersman run: {message}", file=sys.stderr)
    return 1
