"""Sockets that listen, without what waits for them: a program may open its port before it loads the rest of itself."""

from __future__ import annotations

import socket
from typing import Any

BACKLOG = 2048


def bound(family: int, address: tuple[Any, ...], *, listens: bool = True) -> socket.socket:
    """A TCP socket that holds an address, and listens there. Raises OSError."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit these two; keep-alive finds watchers whose machine has gone.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        if listens:
            listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
