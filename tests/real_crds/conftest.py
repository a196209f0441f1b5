from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from .definitions import load
from .modules import Module, Package, fetch


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Module, Package | str]:
    """The modules of the table, fetched once for all processes of a run."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    return fetch({module for each in load() for module in each.modules}, shared)
