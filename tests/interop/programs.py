"""What the tests of clients share: how a client is fetched once, and how a program that uses it is run."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

from ..conftest import ServerFiles, running

HERE = Path(__file__).parent


def made_once(name: str, made_of: bytes, make: Callable[[Path], Awaitable[None]]) -> Path:
    """A directory that `make` has filled, once for a user of this machine and for what it is made of.

    `make` gets a directory; what it leaves in there is kept unless it raises, or skips the test.
    """
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "steersman-tests"
    directory = caches / f"{name}-{hashlib.sha256(made_of).hexdigest()[:16]}"
    caches.mkdir(parents=True, exist_ok=True)
    with open(caches / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not directory.exists():
            with tempfile.TemporaryDirectory(dir=caches) as new:
                made = Path(new) / "made"
                made.mkdir()
                asyncio.run(make(made))
                os.rename(made, directory)
    return directory


async def steps_done(
    command: list[str | Path], certificates: ServerFiles, directory: Path
) -> tuple[int, list[str], str]:
    """Run a program against a server of its own: its exit status, the lines it has printed, and its errors.

    `KUBECONFIG` names its kubeconfig, `WRITTEN` the directory of the objects that it may send. When it prints
    `compact`, the server forgets all revisions but the current one; then it can read `compacted`.
    """
    store = f"sqlite:///{directory}/store.db"
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running(certificates, directory, store))
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=directory,
            env={**os.environ, "KUBECONFIG": str(server.kubeconfig), "WRITTEN": str(HERE / "objects")},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stdin and process.stdout and process.stderr
        errors = asyncio.create_task(process.stderr.read())
        try:
            said = []
            async for line in process.stdout:
                said.append(line.decode().strip())
                if said[-1] == "compact":
                    # What a server has seen happen it remembers for longer: it forgets when it starts again.
                    port = urlsplit(server.url).port
                    await server.plane.store.compact(server.plane.store.revision)
                    await stack.aclose()
                    await stack.enter_async_context(running(certificates, directory, store, port=port))
                    process.stdin.write(b"compacted\n")
                    await process.stdin.drain()
            return await process.wait(), said, (await errors).decode()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            await errors
