"""The `steersman` command: what it knows, and that it loads no more than it needs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import steersman
from steersman.cli import COMMANDS, main


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_tells_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: steersman {name} " in capsys.readouterr().out


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    listed = capsys.readouterr().out
    assert set(COMMANDS) <= set(re.findall(r"^    ([a-z-]+)", listed, re.M))


@pytest.mark.parametrize("arguments", [[], ["--store"], ["fly"], ["fly", "serve"]])
def test_what_is_no_command_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("steersman: ")
    assert said.endswith("; see steersman --help\n")


def test_tells_its_version() -> None:
    for program in (["-m", "steersman"], ["-m", "steersman.cli"]):
        done = subprocess.run([sys.executable, *program, "--version"], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == (f"steersman {steersman.__version__}\n", "")


def test_the_demonstration_starts_without_loading_either_half() -> None:
    halves = ("steersman.apiserver", "steersman.client", "aiohttp")
    code = f"import sys, steersman.demo.command; print([name for name in sys.modules if name.startswith({halves})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
