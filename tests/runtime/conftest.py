"""A real control plane for all tests of a process, and for each test a group of its own in it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.client.conftest import Answer, Peer, serving
from tests.runtime.kit import Lab

from steersman.client import Client, Config
from steersman.testing import ThreadedControlPlane, control_plane

_groups = itertools.count()


@pytest.fixture(scope="session")
def plane() -> Iterator[ThreadedControlPlane]:
    with control_plane() as plane:
        yield plane


@pytest.fixture
async def lab(plane: ThreadedControlPlane) -> AsyncIterator[Lab]:
    """With a namespace and the kind Widget of its own."""
    number = next(_groups)
    async with Client(Config(server=plane.url), namespace=f"ns{number}", field_manager="outside") as outside:
        lab = Lab(plane.url, f"g{number}.runtime.example.com", f"ns{number}", outside)
        await outside.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": lab.namespace}})
        await lab.define()
        yield lab
        for client in lab.clients:
            await client.close()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A scripted server."""
    async with serving() as peer:
        yield peer


@pytest.fixture
def answer() -> type[Answer]:
    return Answer


@pytest.fixture
async def client(peer: Peer) -> AsyncIterator[Any]:
    """A client of the scripted server."""
    async with peer.client() as client:
        yield client
