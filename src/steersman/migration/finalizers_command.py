"""`steersman finalizers`: its options, and what it prints."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from steersman._util.commandline import explain
from steersman.client import cluster_flags

if TYPE_CHECKING:
    from steersman.client.client import Client

USAGE_STATUS = 2


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `finalizers` to the subcommands."""
    parser = commands.add_parser(
        "finalizers",
        help="find objects whose deletion is held up, and let them go",
        description="List the objects that are being deleted but wait for the owners of their finalizers, such as "
        "those that keep a namespace Terminating; or, with `strip`, take their finalizers off. What an owner would "
        "have cleaned up stays then.",
    )
    add = parser.add_argument
    add("action", choices=("list", "strip"), nargs="?", default="list", help="what to do (default: list)")
    add("kinds", nargs="*", metavar="KIND", help="only objects of these kinds, such as widgets.example.com")
    add("-n", "--namespace", metavar="NAME", help="only objects in this namespace (default: in all)")
    add(
        "-l",
        "--selector",
        metavar="SELECTOR",
        help="only objects with these labels, such as app=web,tier!=db (default: all)",
    )
    add(
        "--finalizer",
        action="append",
        default=[],
        metavar="NAME",
        help="strip only this one; may be repeated (default: all)",
    )
    add("--dry-run", action="store_true", help="have the server check every write, but store nothing")
    cluster_flags.add_flags(parser)
    explain(parser, _EXAMPLES, _STATUSES, files=cluster_flags.FILES, environment=cluster_flags.ENVIRONMENT)
    parser.set_defaults(run=run)


_EXAMPLES = (
    ("all that is held up", "steersman finalizers list"),
    ("why a namespace stays Terminating", "steersman finalizers list -n shop"),
    (
        "let the objects of an operator go that is gone",
        "steersman finalizers strip widgets.example.com --finalizer example.com/cleanup --dry-run",
    ),
)
_STATUSES = {0: "nothing is held up, any more", 1: "something is, or has failed", 2: "the arguments are wrong"}


def run(options: argparse.Namespace) -> int:
    """List or strip. Returns the exit status."""
    if options.action == "strip" and not (options.namespace or options.selector or options.kinds):
        return _fail("say what to strip: a kind, --namespace or --selector", USAGE_STATUS)
    # Loaded here: the client takes a third of a second.
    from steersman.apimachinery.errors import ApiError
    from steersman.client.client import Client
    from steersman.client.config.load import load
    from steersman.client.errors import ClientError

    async def work() -> int:
        config, name = load(options.context, options.kubeconfig), "steersman-finalizers"
        # All kinds are looked at: that some are deprecated is not the user's doing.
        async with Client(config, field_manager=name, on_warning=lambda text: None) as client:
            return await (_strip if options.action == "strip" else _list)(client, options)

    try:
        return asyncio.run(work())
    except (ApiError, ClientError) as error:
        return _fail(str(error), 1)


async def _list(client: Client, options: argparse.Namespace) -> int:
    from steersman.migration.finalizers import held

    count = 0
    async for found in held(client, options.namespace, options.selector, options.kinds):
        count += 1
        print(f"{found}: deleted at {found.since}, held by {', '.join(found.finalizers)}")
    return 1 if count else 0


async def _strip(client: Client, options: argparse.Namespace) -> int:
    from steersman.migration.finalizers import held, strip

    left = 0
    async for found in held(client, options.namespace, options.selector, options.kinds):
        taken = await strip(client, found, options.finalizer, dry_run=options.dry_run)
        left += len(set(found.finalizers) - set(taken)) > 0
        if taken:
            print(f"{found}: {'would be ' if options.dry_run else ''}freed of {', '.join(taken)}")
    return 1 if left else 0


def _fail(message: str, status: int) -> int:
    print(f"steersman finalizers: {message}", file=sys.stderr)
    return status
