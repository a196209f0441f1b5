"""The network between all parties, as a campaign sees it: it can be cut, be silent in one direction, or be slow.

`relays` makes it in user space, which works everywhere; `namespaces` of Linux' network namespaces, where packets are
lost as they are in real networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self


@dataclass(frozen=True, slots=True)
class Place:
    """Where a program runs: the address that it listens on, what is put before its command line, and its environment.

    `name` is how a member of etcd is known to the others, with the port 2380.
    """

    host: str
    name: str
    prefix: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


class Network(Protocol):
    """An async context manager that takes everything away in the end. Parties are known by their names. `delays` says
    whether it can be slow."""

    @property
    def delays(self) -> bool: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    async def place(self, party: str, peer_port: int = 0) -> Place:
        """Where a party runs; a member of etcd listens to the others on `peer_port` of that host."""
        ...

    async def way(self, source: str, target: str, port: int) -> str:
        """The `host:port` at which `source` reaches what `target` listens on."""
        ...

    def cut(self, one: str, other: str) -> None:
        """Nothing passes between two, and both are told when they try."""
        ...

    def hold(self, source: str, target: str) -> None:
        """Nothing arrives that `source` sends to `target`, and nobody is told."""
        ...

    def delay(self, one: str, other: str, seconds: float) -> None:
        """Everything between two takes longer, where there are delays."""
        ...

    def heal(self, one: str, other: str) -> None:
        """All is well again between two."""
        ...
