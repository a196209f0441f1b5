"""Where the stand-in for etcd says that data are kept, and whether a server stands by there."""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import NamedTuple
from urllib.parse import urlsplit

PATH = "/steersman/data-dir"
_TIMEOUT = 10.0
_MOST_BYTES = 65536


class Place(NamedTuple):
    """A directory for data, and the socket of a server of this installation that stands by."""

    directory: str
    standby: str | None


def installation() -> list[str]:
    """Which steersman this is, run by which Python."""
    return [sys.executable, os.path.dirname(__file__)]


def description(directory: str, standby: str | None) -> dict[str, object]:
    """What the stand-in for etcd answers."""
    return {"dataDir": directory, "standby": standby, "of": installation()}


def ask(servers: str) -> Place | None:
    """Ask the first of these URLs; None when it is no stand-in of ours."""
    try:
        url = urlsplit(servers.partition(",")[0])
        told = json.loads(_get(url.hostname or "localhost", url.port or 2379))
        same = told.get("of") == installation()
        return Place(told["dataDir"], told.get("standby") if same else None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _get(host: str, port: int) -> bytes:
    """The body of an answer that ends with its connection. Raises OSError, ValueError."""
    with socket.create_connection((host, port), timeout=_TIMEOUT) as connection:
        connection.sendall(f"GET {PATH} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        answer = bytearray()
        while (piece := connection.recv(4096)) and len(answer) < _MOST_BYTES:
            answer += piece
    head, _, body = bytes(answer).partition(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] != [b"200"]:
        raise ValueError("it has no such path")
    return body
