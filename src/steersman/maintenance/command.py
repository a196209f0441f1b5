"""`steersman store`: backups of a store, restoring, moving and shrinking it."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from steersman._util.commandline import explain
from steersman.controlplane import etcd_flags
from steersman.store.interface import StoreError

if TYPE_CHECKING:
    from steersman.store.interface import KeyValue

_STORE = "sqlite:///relative.db | sqlite:////absolute.db | etcd://HOST:PORT,HOST:PORT/PREFIX"
_STATUSES = {0: "it is done, and durable", 1: "it is not; stderr says why"}
_EXAMPLES = {
    "backup": [
        ("while the server runs", "steersman store backup sqlite:///cluster.db cluster.backup"),
        (
            "what a cluster has in its etcd",
            "steersman store backup etcd://10.0.0.1:2379 cluster.backup --etcd-cafile ca.crt "
            "--etcd-certfile client.crt --etcd-keyfile client.key",
        ),
    ],
    "restore": [
        ("into a new database", "steersman store restore cluster.backup sqlite:///cluster.db"),
        ("over what is there", "steersman store restore cluster.backup sqlite:///cluster.db --force"),
    ],
    "vacuum": [("after much was deleted", "steersman store vacuum sqlite:///cluster.db")],
    "move": [("out of one machine", "steersman store move sqlite:///cluster.db etcd://10.0.0.1:2379,10.0.0.2:2379")],
}

_SOURCE = f"{_STORE} | etcd-snapshot:///FILE"

Work = Callable[[argparse.Namespace], Awaitable[str]]


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `store` and its subcommands."""
    store = commands.add_parser(
        "store",
        help="back up, restore and move what a server stores",
        description="Back up what a server stores, restore it, move it from one kind of store to the other, and give "
        "back the space that it does not need.",
    )
    below = store.add_subparsers(dest="subcommand", required=True, metavar="SUBCOMMAND", title="commands")
    explain(store, [each for examples in _EXAMPLES.values() for each in examples], _STATUSES)
    _add_backup(below)
    _add_restore(below)
    _add_move(below)
    _add_vacuum(below)


def _add_backup(below: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = below.add_parser(
        "backup",
        help="write all that is stored to a file",
        description="Write what a store holds at its current revision to a file, whether a server runs on it or not. "
        "The file has the revision, the number of keys and a checksum, which restoring verifies. It is readable by its "
        "owner only: it has Secrets as they are stored. It has neither old revisions, nor the certificates and the key "
        "beside the database (see `steersman serve --help`).",
    )
    parser.add_argument("store", metavar="STORE", help=_STORE)
    parser.add_argument("file", metavar="FILE", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace the file if there is one")
    _finish(parser, "backup", _back_up)


def _add_restore(below: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = below.add_parser(
        "restore",
        help="have a store hold what a backup has",
        description="Have a store of either kind hold what a backup has, and nothing else. No server may run on it; "
        "with etcd, nobody checks that. Revisions go on above the backup's, so that to clients nothing goes back in "
        "time: whoever asks for what came before is told to read anew (410).",
    )
    parser.add_argument("file", metavar="FILE", help="what `steersman store backup` has written")
    parser.add_argument("store", metavar="STORE", help=_STORE)
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace what is there; a database file stays beside the new one, as FILE.replaced",
    )
    parser.add_argument(
        "--bump-revision",
        type=_revisions,
        default=None,
        metavar="N",
        help="how far above the backup's revision the store begins: more than was written since the backup was made "
        "(default: 1000000 in SQLite, 10000 in etcd, where each is a write)",
    )
    _finish(parser, "restore", _restore)


def _add_move(below: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = below.add_parser(
        "move",
        help="have another store hold what a store holds",
        description="Have one store hold what another holds, which stays as it is and should not be served any more. "
        "No server may run on either; with etcd, nobody checks that. The revisions of the new store are above all of "
        "the old one, in the same order. With two etcds, both are shown the same certificate and user.",
    )
    parser.add_argument("source", metavar="FROM", help=_SOURCE)
    parser.add_argument("target", metavar="TO", help=_STORE)
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace what is there; a database file stays beside the new one, as FILE.replaced",
    )
    _finish(parser, "move", _move)


def _add_vacuum(below: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = below.add_parser(
        "vacuum",
        help="make a database as small as what it holds",
        description="Give the free space of a SQLite database back to the disk. No server may run on it. A server uses "
        "the space again that compaction frees, but its file stays as large as it ever was "
        "(`apiserver_storage_size_bytes`, of which `steersman_store_used_bytes` are in use, at /metrics). It takes "
        "some seconds for each GB, and twice the room of what the database holds.",
    )
    parser.add_argument("store", metavar="STORE", help="sqlite:///relative.db | sqlite:////absolute.db")
    explain(parser, _EXAMPLES["vacuum"], _STATUSES)
    parser.set_defaults(run=lambda options: _run(options, "vacuum", _vacuum))


def _finish(parser: argparse.ArgumentParser, name: str, work: Work) -> None:
    etcd_flags.add_flags(parser)
    explain(parser, _EXAMPLES[name], _STATUSES)
    parser.set_defaults(run=lambda options: _run(options, name, work))


def _run(options: argparse.Namespace, name: str, work: Work) -> int:
    async def turn() -> str:
        return await work(options)

    try:
        if hasattr(options, "etcd_cafile"):
            options.credentials = etcd_flags.credentials(options)
        print(asyncio.run(turn()))
    except (StoreError, ValueError) as error:
        print(f"steersman store {name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


async def _back_up(options: argparse.Namespace) -> str:
    from steersman.store.transfer import back_up

    done = await back_up(options.store, options.file, options.credentials, force=options.force)
    return f"{options.file}: {done.keys} keys at revision {done.revision}"


async def _restore(options: argparse.Namespace) -> str:
    from steersman.store.transfer import restore

    done = await restore(
        options.file,
        options.store,
        options.credentials,
        force=options.force,
        bump=options.bump_revision,
        translate=_own_form,
    )
    kept = f"; what was there is {done.kept}" if done.kept is not None else ""
    return f"{options.store}: {done.keys} keys; the revision is {done.revision}{kept}"


async def _move(options: argparse.Namespace) -> str:
    from steersman.store.transfer import move

    done = await move(options.source, options.target, options.credentials, force=options.force, translate=_own_form)
    kept = f"; what was there is {done.kept}" if done.kept is not None else ""
    return f"{options.target}: {done.keys} keys; the revision is {done.revision}{kept}"


async def _vacuum(options: argparse.Namespace) -> str:
    from steersman.store.transfer import vacuum

    before, after = vacuum(options.store)
    return f"{options.store}: {before} bytes before, {after} now"


def _own_form(item: KeyValue) -> bytes:
    """What kube-apiserver wrote, as a server writes it that alone has its store; what is no object stays as it is."""
    from steersman.apiserver.foreign import UnreadableValue, canonical

    try:
        return canonical(item.value)
    except UnreadableValue:
        return item.value


def _revisions(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)
