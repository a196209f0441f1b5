"""Listening sockets."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import Any

from .sockets import bound

_TURN, _TURNS = 0.005, 200


class ListenError(Exception):
    """The server can't listen at this address: the port is taken, not allowed, or the host is not this machine's."""


async def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one. A name's IPv4 address goes first, "::" serves IPv4 too.

    Raises ListenError with a message of one line.
    """
    where = _where(host, port)
    if not 0 <= port <= 65535:  # getaddrinfo() would take it modulo 65536
        raise ListenError(f"cannot listen on {where}: no such port")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)[0]
        return bound(family, address)
    except socket.gaierror as error:
        raise ListenError(f"cannot listen on {where}: {error.strerror or error}") from error
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ListenError(f"cannot listen on {where}: {reason}") from error


async def reserve(family: int, address: tuple[Any, ...]) -> socket.socket:
    """A socket that holds an address which is just being given up, and does not listen yet: who connects is refused.

    Raises OSError.
    """
    for _ in range(_TURNS):
        try:
            return bound(family, address, listens=False)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        await asyncio.sleep(_TURN)
    return bound(family, address, listens=False)


def _where(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
