"""The workflow for GitHub Actions: its steps are run, as a runner would, on a suite of envtest's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .blocks import blocks

SUITE = Path(__file__).parents[1] / "interop" / "controller_runtime"
[TEXT] = [block.code for block in blocks("docs/how-to/envtest.md") if block.title == "envtest.yaml"]
WORKFLOW: dict[Any, Any] = yaml.safe_load(TEXT)
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["test"]["steps"]


def test_it_is_a_workflow() -> None:
    assert set(WORKFLOW) == {"name", True, "permissions", "jobs"}  # YAML takes `on` for true, and so does GitHub's
    assert WORKFLOW["permissions"] == {"contents": "read"}
    for step in STEPS:
        assert ("uses" in step) != ("run" in step)
        assert set(step) <= {"name", "uses", "with", "run"}
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/checkout@v1"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_its_steps_run(tmp_path: Path) -> None:
    project, tools = tmp_path / "project", tmp_path / "bin"
    shutil.copytree(SUITE, project)
    tools.mkdir()
    (tools / "pip").write_text("#!/bin/sh\n# What it installs is installed here already.\n")
    (tools / "pip").chmod(0o755)
    if shutil.which("go") is None or subprocess.run(["go", "mod", "download"], cwd=project, check=False).returncode:
        pytest.skip("there is no Go here, or its modules cannot be had")
    variables = tmp_path / "variables"
    path = os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "RUNNER_TEMP": str(tmp_path), "GITHUB_ENV": str(variables)}
    for step in STEPS:
        if "run" not in step:
            continue
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        if variables.exists():
            environment |= dict(line.split("=", 1) for line in variables.read_text().splitlines())
    assert re.search(r"^ok\s+interop/suite", done.stdout, re.M)
