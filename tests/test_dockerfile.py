"""The Dockerfile, as far as it can be tried without a container: its steps run on this machine, in directories."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from steersman.cli import parser_of

ROOT = Path(__file__).parents[1]
STEPS = re.findall(r"^([A-Z]+) (.*)$", (ROOT / "Dockerfile").read_text(), re.M)
[ENTRYPOINT] = [json.loads(rest) for step, rest in STEPS if step == "ENTRYPOINT"]
[COMMAND] = [json.loads(rest) for step, rest in STEPS if step == "CMD"]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of what the first stage has made.

    What it would download is what is installed here: `pip` finds it, and hatchling, among the modules of this Python.
    """
    root = tmp_path_factory.mktemp("image")
    (root / "bin").mkdir()
    (root / "bin/python").symlink_to(sys.executable)
    pip = root / "bin/pip"
    pip.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m pip "$@"\n')
    pip.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{root}/bin:{os.environ['PATH']}",
        "PYTHONPATH": sysconfig.get_path("purelib"),
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_IGNORE_INSTALLED": "1",
    }
    work = root / "src"
    work.mkdir()
    for step, rest in STEPS[: [index for index, each in enumerate(STEPS) if each[0] == "FROM"][1]]:
        words = shlex.split(rest)
        if step == "COPY":
            for source in words[:-1]:
                copied = ROOT / source
                if copied.is_dir():
                    shutil.copytree(copied, work / words[-1], ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(copied, work / words[-1])
        elif step == "RUN":
            run = [word.replace("/opt/steersman", f"{root}/opt/steersman") for word in words]
            subprocess.run(run, cwd=work, env=env, check=True)
    return root


async def test_what_it_builds_serves(image: Path, tmp_path: Path) -> None:
    [program] = ENTRYPOINT
    arguments = [word.replace("/data", str(tmp_path)) for word in COMMAND]
    process = await asyncio.create_subprocess_exec(
        f"{image}{program}",
        *(*arguments, "--secure-port=0"),
        env={**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        said = (await process.stdout.readline()).decode()
    finally:
        process.terminate()
        assert await process.wait() == 0
    assert re.fullmatch(r"serving on https://127\.0\.0\.1:\d+\n", said)
    assert {"cluster.db", "admin.kubeconfig"} <= set(os.listdir(tmp_path))


def test_what_it_serves_is_what_it_declares() -> None:
    options = parser_of(["serve"]).parse_args(COMMAND)
    assert ("EXPOSE", str(options.secure_port)) in STEPS
    [volume] = [rest for step, rest in STEPS if step == "VOLUME"]
    assert options.store.startswith(f"sqlite:///{volume}/")
    [user] = [rest for step, rest in STEPS if step == "USER"]
    assert user.partition(":")[0] != "0"
    assert any(f"--owner={user.partition(':')[0]} " in rest and volume in rest for step, rest in STEPS)


def test_what_is_copied_is_not_ignored() -> None:
    let_in = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {word.rstrip("/") for step, rest in STEPS if step == "COPY" for word in shlex.split(rest)[:-1]}
    assert let_in == {each for each in copied if not each.startswith(("/", "-"))}
