from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from steersman.net.pki import ServerFiles

from .. import etcd
from .stage import Stage, set_up, set_up_several


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(certificates: ServerFiles, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """One server for all scenarios of a process: they are independent of each other."""
    async with set_up(certificates, tmp_path_factory.mktemp("conformance")) as each:
        yield each


@pytest.fixture(scope="session")
def etcd_program() -> Path:
    return etcd.program()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def several(
    certificates: ServerFiles, tmp_path_factory: pytest.TempPathFactory, etcd_program: Path
) -> AsyncIterator[Stage]:
    """Two servers on one etcd."""
    async with set_up_several(certificates, tmp_path_factory.mktemp("several"), etcd_program) as each:
        yield each
