"""Files of earlier formats, which become those of today when a server opens them.

A format is a number in the file's header. Whoever changes the tables adds one to `schema.FORMAT` and a step here, and
keeps a small file of the format before in the tests.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import apsw

from steersman._util.durable import open_beside, remove_unfinished, sync_directory
from steersman.store.sqlite.errors import OlderFormat

log = logging.getLogger("steersman.store.sqlite")

Step = Callable[[apsw.Connection], None]
"""Makes the next format of one, within a transaction that it does not end."""

STEPS: Mapping[int, Step] = {}
"""By the format that a step starts from."""


def upgrade(connection: apsw.Connection, path: str, version: int, to: int, steps: Mapping[int, Step] = STEPS) -> Path:
    """Bring the file at `path`, which nobody else has open, from one format to a later one, in one transaction.

    Before that, it is copied beside itself as it is: to `path` + `.format-N`, which is returned. Whatever happens
    meanwhile, the file has one of both formats, and the copy is whole or has another name. Raises OlderFormat, which
    changes nothing, OSError and apsw.Error.
    """
    if any(number not in steps for number in range(version, to)):
        raise OlderFormat(
            f"{path} has format {version}, from which this version cannot go on; use an earlier one first"
        )
    copy = Path(f"{path}.format-{version}")
    _copy(connection, copy)
    log.warning("%s is brought from format %d to %d; what it was is kept as %s", path, version, to, copy)
    with connection:
        for number in range(version, to):
            steps[number](connection)
        connection.execute(f"PRAGMA user_version = {to}")
    return copy


def _copy(connection: apsw.Connection, copy: Path) -> None:
    """A durable copy of the database; one that is left from an attempt that did not come to its end is replaced."""
    remove_unfinished(copy)
    descriptor, made = open_beside(copy)
    try:
        os.close(descriptor)
        connection.execute("VACUUM INTO ?", (made,))
        with open(made, "rb") as file:
            os.fsync(file.fileno())
        os.replace(made, copy)
        sync_directory(copy.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(made)
