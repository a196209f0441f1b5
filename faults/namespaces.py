"""The network as one of Linux: each party has a network namespace, all are on one bridge. Needs root and iproute2.

What is lost is lost as in a real network: TCP sends it again when it likes, and a connection attempt hears nothing. A
party sends to another at a link address that nobody has while it is held back; a route says that there is no way while
two are cut off from each other. There are no delays: they need a scheduler that few kernels have.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Self

from faults.network import Place

_NOBODY = "02:00:00:00:00:02"
_DEVICE = "eth0"


class Namespaces:
    """See `Network`. Who has no place, runs where the campaign does."""

    delays = False

    def __init__(self) -> None:
        self._id = os.getpid()
        self._net = f"198.18.{self._id % 250}"
        self._bridge = f"fb{self._id}"
        self._hosts: dict[str, str] = {}

    @staticmethod
    def usable() -> bool:
        """Whether this process may make them."""
        if os.geteuid() or shutil.which("ip") is None:
            return False
        probe = f"faults-{os.getpid()}"
        made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode == 0
        if made:
            subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
        return made

    async def __aenter__(self) -> Self:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self._net}.1/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for party in self._hosts:
            _ip("netns", "del", self._namespace(party), check=False)
        _ip("link", "del", self._bridge, check=False)

    async def place(self, party: str, peer_port: int = 0) -> Place:
        number = len(self._hosts) + 2
        host, space, outside = f"{self._net}.{number}", self._namespace(party), f"f{number}-{self._id}"
        self._hosts[party] = host
        _ip("netns", "add", space)
        _ip("link", "add", outside, "type", "veth", "peer", "name", _DEVICE, "netns", space)
        _ip("link", "set", outside, "master", self._bridge, "up")
        _ip("-n", space, "addr", "add", f"{host}/24", "dev", _DEVICE)
        for device in ("lo", _DEVICE):
            _ip("-n", space, "link", "set", device, "up")
        return Place(host, host, ("ip", "netns", "exec", space))

    async def way(self, source: str, target: str, port: int) -> str:
        return f"{self._hosts[target]}:{port}"

    def cut(self, one: str, other: str) -> None:
        for source, target in ((one, other), (other, one)):
            _ip(*self._in(source), "route", "replace", "unreachable", f"{self._address(target)}/32")

    def hold(self, source: str, target: str) -> None:
        device = _DEVICE if source in self._hosts else self._bridge
        to = self._address(target)
        _ip(*self._in(source), "neigh", "replace", to, "lladdr", _NOBODY, "dev", device, "nud", "permanent")

    def delay(self, one: str, other: str, seconds: float) -> None:
        raise NotImplementedError

    def heal(self, one: str, other: str) -> None:
        for source, target in ((one, other), (other, one)):
            device = _DEVICE if source in self._hosts else self._bridge
            to = self._address(target)
            _ip(*self._in(source), "route", "del", "unreachable", f"{to}/32", check=False)
            _ip(*self._in(source), "neigh", "del", to, "dev", device, check=False)

    def _namespace(self, party: str) -> str:
        return f"faults-{self._id}-{party}"

    def _in(self, party: str) -> tuple[str, ...]:
        return ("-n", self._namespace(party)) if party in self._hosts else ()

    def _address(self, party: str) -> str:
        return self._hosts.get(party, f"{self._net}.1")


def _ip(*words: str, check: bool = True) -> None:
    subprocess.run(["ip", *words], capture_output=True, check=check)
