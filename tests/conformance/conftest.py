from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from steersman.net.pki import ServerFiles

from .stage import Stage, set_up


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def stage(certificates: ServerFiles, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """One server for all scenarios of a process: they are independent of each other."""
    async with set_up(certificates, tmp_path_factory.mktemp("conformance")) as each:
        yield each
