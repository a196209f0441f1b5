"""The shell commands of README.md, as they are written there, but for the port and the installation."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
OFFLINE = [block for block in BLOCKS if block.startswith(("steersman validate", "steersman crd", "steersman cel"))]
MIGRATE = [block for block in BLOCKS if block.startswith("steersman migrate")]
GENERATE = [block for block in BLOCKS if block.startswith("steersman generate")]
SERVE, *KUBECTL, OPERATOR = [block for block in BLOCKS if block not in (*OFFLINE, *MIGRATE, *GENERATE)]


@pytest.fixture
def environment(kubectl_binary: Path, tmp_path: Path) -> dict[str, str]:
    """In `tmp_path` are the examples; kubectl, steersman and python are on the PATH."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(kubectl_binary)
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(tmp_path)}


@asynccontextmanager
async def running(
    command: str, directory: Path, environment: dict[str, str]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command that goes on until it is told to end."""
    process = await asyncio.create_subprocess_exec(
        *shlex.split(command),
        cwd=directory,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.terminate()
        await process.communicate()
    assert process.returncode == 0


async def shell(script: str, directory: Path, environment: dict[str, str]) -> tuple[str, str]:
    """What a script prints on stdout and stderr; it ends at the first command that fails."""
    process = await asyncio.create_subprocess_exec(
        *("bash", "-euo", "pipefail", "-c", script),
        cwd=directory,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = (stream.decode() for stream in await process.communicate())
    assert process.returncode == 0, out + err
    return out, err


async def test_commands_run(environment: dict[str, str], tmp_path: Path) -> None:
    install, serve = SERVE.splitlines()
    assert install == "pip install ."
    async with running(f"{serve} --secure-port 0", tmp_path, environment) as server:
        assert server.stdout is not None
        assert (await server.stdout.readline()).startswith(b"serving on https://127.0.0.1:")
        out, err = await shell("".join(KUBECTL), tmp_path, environment)
        assert re.search(r"^example-myapp +1\.0 +2", out, re.M)
        assert re.search(r"^myapp.myorg.io/example-myapp scaled$", out, re.M)
        assert "the object has been modified; please apply your changes to the latest version" in err
        out, _ = await shell("".join(MIGRATE), tmp_path, environment)
        assert out == "0 of 1 definitions have objects that may be stored in an old version\n"
        setting, operator = OPERATOR.splitlines()
        name, _, value = setting.removeprefix("export ").partition("=")
        async with running(operator, tmp_path, {**environment, name: value}):
            wait = "kubectl wait myapp/example-myapp --for=condition=Ready --timeout=20s"
            await shell(f"{setting}\n{wait}", tmp_path, environment)


async def test_commands_without_a_server_run(environment: dict[str, str], tmp_path: Path) -> None:
    assert len(OFFLINE) == 3
    out, err = await shell("".join(OFFLINE), tmp_path, environment)
    assert (out.splitlines()[0], err) == ("1 manifest: 1 valid", "")
    assert re.search(r"^1 definition: 0 errors, 0 warnings", out, re.M)
    assert re.search(r"^result:  true$", out, re.M)


async def test_manifests_are_made_of_the_example(environment: dict[str, str], tmp_path: Path) -> None:
    out, err = await shell("".join(GENERATE), tmp_path, environment)
    assert (out.splitlines()[-1], err) == ("9 manifests: 9 valid", "")
    assert "class MyApp(st.KubernetesObject):" in (tmp_path / "myapp_models.py").read_text()
