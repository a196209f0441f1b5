"""The stand-in for etcd: it is healthy, and says in which directory an API server may keep its data.

There is no database in it: the API server's stand-in has its own, in that directory, so that data live as long as
envtest means them to. It is made of little, for it starts once for each test suite and has nothing to do but keep a
server loaded that the API server's stand-in can become at once.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn
from urllib.parse import urlsplit

from steersman.envtest import place
from steersman.envtest.flags import FlagError, flags, known_flags
from steersman.envtest.standby import Standby

VERSION = "3.7.3"

_MOST_BYTES = 65536


def main(arguments: Sequence[str]) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit status."""
    upstream = known_flags("etcd")
    if {"-version", "--version"} & {*arguments}:
        print(f"etcd Version: {VERSION}")
        return 0
    try:
        given = dict(flags(arguments, upstream.names, upstream.switches))
    except FlagError as error:
        print(f"etcd: {error}", file=sys.stderr)
        return 1
    directory = os.path.realpath(given.get("data-dir", "default.etcd"))
    address = urlsplit(given.get("listen-client-urls", "http://localhost:2379").partition(",")[0])
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        listener = socket.create_server((address.hostname or "", address.port or 2379), reuse_port=False)
    except OSError as error:
        print(f"etcd: cannot serve {address.geturl()} from {directory}: {error.strerror or error}", file=sys.stderr)
        return 1
    with listener:
        standby = _standby(directory)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _stop)
        print(f"ready to serve client requests on {address.geturl()}", file=sys.stderr, flush=True)
        try:
            _serve(listener, directory, standby)
        except _Stopped:
            return 0
        finally:
            if standby is not None:
                standby.close()


class _Stopped(BaseException):
    """A signal has come."""


def _stop(number: int, frame: object) -> None:
    raise _Stopped


def _standby(directory: str) -> Standby | None:
    """None where there can be none: the API server's stand-in then serves by itself."""
    if not hasattr(os, "fork") or not hasattr(socket, "send_fds"):
        return None
    try:
        standby = Standby(directory)
    except OSError:
        return None
    with suppress(OSError):
        standby.load()
    return standby


def _serve(listener: socket.socket, directory: str, standby: Standby | None) -> NoReturn:
    """Answer requests, one on each connection; nobody who is slow keeps others waiting."""
    selector = selectors.DefaultSelector()
    listener.setblocking(False)
    selector.register(listener, selectors.EVENT_READ, None)
    if standby is not None:
        selector.register(standby.listener, selectors.EVENT_READ, None)
    told = place.description(directory, standby.path if standby is not None else None)
    while True:
        for key, _ in selector.select():
            known = key.fileobj
            assert isinstance(known, socket.socket)
            if standby is not None and known is standby.listener:
                standby.hand_over()
            elif known is listener:
                connection, _ = listener.accept()
                connection.setblocking(False)
                selector.register(connection, selectors.EVENT_READ, bytearray())
            elif _read(known, key.data, told):
                selector.unregister(known)
                known.close()


def _read(connection: socket.socket, received: bytearray, told: dict[str, object]) -> bool:
    """Whether the connection is done with."""
    try:
        piece = connection.recv(4096)
    except BlockingIOError:
        return False
    except OSError:
        return True
    received += piece
    if b"\r\n\r\n" not in received:
        return not piece or len(received) > _MOST_BYTES
    with suppress(OSError):
        connection.sendall(_answer(bytes(received).split(b" ", 2)[1].decode("latin-1"), told))
    return True


def _answer(path: str, told: dict[str, object]) -> bytes:
    known: dict[str, dict[str, object]] = {
        "/health": {"health": "true", "reason": ""},
        "/version": {"etcdserver": VERSION, "etcdcluster": VERSION.rpartition(".")[0] + ".0"},
        place.PATH: told,
    }
    found = known.get(path)
    body = json.dumps(
        found or {"error": "this stand-in for etcd holds no data: kube-apiserver's keeps its own"}
    ).encode()
    head = f"HTTP/1.1 {'200 OK' if found else '404 Not Found'}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
