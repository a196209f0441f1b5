"""`steersman migrate`: its options, and what it prints."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from steersman._util.commandline import explain
from steersman.client import cluster_flags

if TYPE_CHECKING:
    from steersman.client.client import Client

USAGE_STATUS = 2


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `migrate` to the subcommands."""
    parser = commands.add_parser(
        "migrate",
        help="rewrite custom resources that are stored in an old version",
        description="For each CustomResourceDefinition whose objects may be stored in another version than its storage "
        "version: write every object back as it is, so that the server stores it in today's form, then take the old "
        "versions out of status.storedVersions; only then they can be removed from the definition. It can be stopped "
        "and run again at any time.",
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="CRD", help="a definition by its name, such as widgets.example.com")
    add("--all", action="store_true", help="all definitions")
    add("--dry-run", action="store_true", help="have the server check every write, but store nothing")
    cluster_flags.add_flags(parser)
    explain(parser, _EXAMPLES, _STATUSES, files=cluster_flags.FILES, environment=cluster_flags.ENVIRONMENT)
    parser.set_defaults(run=run)


_EXAMPLES = (
    ("what would be done, and whether the server takes it", "steersman migrate --all --dry-run"),
    ("one definition, on the cluster of a context", "steersman migrate widgets.example.com --context production"),
)
_STATUSES = {0: "nothing is left to do", 1: "something is left, or has failed", 2: "the arguments are wrong"}


def run(options: argparse.Namespace) -> int:
    """Migrate. Returns the exit status."""
    if bool(options.names) == options.all:
        return _fail("name definitions, or say --all; see steersman migrate --help", USAGE_STATUS)
    # Loaded here: the client takes a third of a second.
    from steersman.apimachinery.errors import ApiError
    from steersman.client.client import Client
    from steersman.client.config.load import load
    from steersman.client.errors import ClientError
    from steersman.client.transport import TransportError

    async def migrate() -> int:
        async with Client(load(options.context, options.kubeconfig), field_manager="steersman-migrate") as client:
            return await _migrate(client, options)

    try:
        return asyncio.run(migrate())
    except (ApiError, ClientError, TransportError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


async def _migrate(client: Client, options: argparse.Namespace) -> int:
    from steersman.apimachinery.errors import NotFound
    from steersman.migration.storage import CRD, MigrationError, migrate, outdated

    names = list(dict.fromkeys(options.names))
    if options.all:
        crds = await client.list(CRD).collect()
        names = [crd["metadata"]["name"] for crd in crds if outdated(crd)]
        print(f"{len(names)} of {len(crds)} definitions have objects that may be stored in an old version", flush=True)
    status = 0
    for name in names:
        try:
            outcome = await migrate(client, name, lambda line: print(line, flush=True), dry_run=options.dry_run)
            status = status or int(bool(outcome.refused))
        except (MigrationError, NotFound) as error:
            status = _fail(str(error))
    return status


def _fail(message: str, status: int = 1) -> int:
    print(f"steersman migrate: {message}", file=sys.stderr)
    return status
