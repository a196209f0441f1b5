"""`steersman run`: an operator from a Python file."""

from __future__ import annotations

import argparse
import sys


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `run` to the subcommands."""
    parser = commands.add_parser(
        "run",
        help="run an operator",
        description="Run the Manager that a Python file or module makes, until SIGTERM or SIGINT. Options take the "
        "place of what it says. Exit status: 0 after a signal, 1 if the operator cannot start or fails.",
    )
    add = parser.add_argument
    add("file", metavar="OPERATOR", help="FILE[:NAME] or MODULE[:NAME]: where the Manager is, and which if several")
    add("--kubeconfig", metavar="FILE", help="how to reach the cluster; found as kubectl finds it by default")
    add("--context", metavar="NAME", help="the context of the kubeconfig to use")
    add("--health", metavar="ADDRESS", help="serve /healthz and /readyz, as on 127.0.0.1:8081 or :8081")
    add("--metrics", metavar="ADDRESS", help="serve /metrics there")
    add("--webhooks", metavar="ADDRESS", help="serve the operator's webhooks there, as on :9443")
    add("--webhook-service", metavar="NAMESPACE/NAME", help="the Service by which the API server reaches them")
    add("--no-webhooks", action="store_true", help="serve none, whatever the file says: nobody could reach them")
    add("--no-leader-election", action="store_true", help="work alone, whatever the file says")
    add("--log-format", choices=("text", "json"), default="text", help="one line a message, as text (default) or JSON")
    add("-v", "--verbosity", type=int, default=0, metavar="LEVEL", help="1 shows each reconcile, 4 libraries, too")
    parser.set_defaults(run=run)


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
