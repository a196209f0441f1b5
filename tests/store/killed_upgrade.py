"""Bring a file from format 90 to 92 and say so, until killed: for test_upgrade.

python killed_upgrade.py PATH
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import apsw

from steersman.store.sqlite.upgrade import Step, upgrade

OLDEST, NEWEST = 90, 92


def add_column(connection: apsw.Connection) -> None:
    connection.execute("ALTER TABLE things ADD COLUMN doubled INTEGER")
    connection.execute("UPDATE things SET doubled = 2 * number")


def move_table(connection: apsw.Connection) -> None:
    connection.execute("CREATE TABLE others (number INTEGER PRIMARY KEY, doubled INTEGER, text BLOB)")
    connection.execute("INSERT INTO others SELECT number, doubled, text FROM things")
    connection.execute("DROP TABLE things")


STEPS: Mapping[int, Step] = {90: add_column, 91: move_table}


def main(path: str) -> None:
    connection = apsw.Connection(path)
    connection.setbusytimeout(5000)
    version = connection.pragma("user_version")
    if version < NEWEST:
        upgrade(connection, path, version, NEWEST, STEPS)
    print("done", flush=True)
    connection.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
