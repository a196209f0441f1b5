"""Clients in Python, unmodified, each in a program that does with it what its users do."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ..conftest import ServerFiles, running
from .go_programs import run
from .steps import PYTHON

PROGRAMS = Path(__file__).parent / "python"


@pytest.fixture(scope="module")
def python() -> Path:
    """An interpreter that has the clients; the environment is made once for a user of this machine."""
    wanted = (PROGRAMS / "requirements.txt").read_bytes() + sys.version.encode()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steersman-tests"
    environment = caches / f"clients-{hashlib.sha256(wanted).hexdigest()[:16]}"
    caches.mkdir(parents=True, exist_ok=True)
    with open(caches / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not environment.exists():
            asyncio.run(_make(environment, caches))
    return environment / "bin" / "python"


async def _make(environment: Path, caches: Path) -> None:
    with tempfile.TemporaryDirectory(dir=caches) as directory:
        code, out = await run(sys.executable, "-m", "venv", f"{directory}/new", cwd=caches)
        assert code == 0, out
        install = (f"{directory}/new/bin/python", "-m", "pip", "install", "-q", "-r")
        code, out = await run(*install, str(PROGRAMS / "requirements.txt"), cwd=caches)
        if code:
            pytest.skip(f"the clients cannot be had: {out.strip().splitlines()[-1]}")
        os.rename(f"{directory}/new", environment)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("client", PYTHON)
async def test_a_client(client: str, python: Path, certificates: ServerFiles, tmp_path: Path) -> None:
    store, errors = f"sqlite:///{tmp_path}/store.db", tmp_path / "stderr"
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running(certificates, tmp_path, store))
        process = await asyncio.create_subprocess_shell(
            f'exec "{python}" "{PROGRAMS}/with_{client}.py" 2>"{errors}"',
            cwd=tmp_path,
            env={**os.environ, "KUBECONFIG": str(server.kubeconfig)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        said = []
        async for line in process.stdout:
            said.append(line.decode().strip())
            if said[-1] == "compact":
                # What a server has seen happen it remembers for longer: it forgets when it starts again.
                port = urlsplit(server.url).port
                await server.plane.store.compact(server.plane.store.revision)
                await stack.aclose()
                await stack.enter_async_context(running(certificates, tmp_path, store, port=port))
                process.stdin.write(b"compacted\n")
                await process.stdin.drain()
        code = await process.wait()
    assert (code, said) == (0, PYTHON[client]), errors.read_text()
