"""A page's blocks, run one after the other as a reader would: in one directory, in one shell's environment."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Self

import yaml

from .blocks import ROOT, Block, pattern

TIMEOUT = 180.0
_BIN = Path(sys.executable).parent
_STEERSMAN = """#!/bin/sh
# steersman as it is under test: on free ports, with Python's warnings as errors.
case $1 in serve) set -- "$@" --secure-port 0;; esac
exec {python} -W error -m steersman.cli "$@"
"""
_PATIENCE = '''"""The suite runs on machines that do much else."""

from steersman.testing import eventually, eventually_async

for check in (eventually, eventually_async):
    check.__kwdefaults__["timeout"] = 120.0
'''
_PIP = """#!/bin/sh
# What a page installs is installed here already.
case "$*" in install*) exit 0;; *) exec {python} -m pip "$@";; esac
"""


class Session:
    """Runs blocks; a context manager that ends what they have left running, in order and without an error."""

    def __init__(self, directory: Path, kubectl: Path) -> None:
        self._directory = self._cwd = directory / "page"
        self._cwd.mkdir()
        (self._cwd / "examples").symlink_to(ROOT / "examples")
        self._state = directory / "state"
        self._background: list[tuple[Block | None, subprocess.Popen[bytes], Path]] = []
        self._tests: list[str] = []
        self._printed = ""
        self._environment = _environment(directory, kubectl)
        for place in (directory, self._cwd):
            (place / "conftest.py").write_text(_PATIENCE)

    def run(self, block: Block) -> None:
        """Run one block; AssertionError if it does not do what the page says."""
        if block.told("not run"):
            return
        code = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:0", block.code)
        if block.has("output"):
            self._expect(block, block.code)
        elif block.title:
            self._write(block, code)
        else:
            _RUNNERS[block.language](self, block, code)
        for expected in block.told("prints"):
            self._expect(block, expected)

    def run_tests(self) -> None:
        """The tests without a name of a file: all at once."""
        if self._tests:
            options = ["-c", os.devnull, "-q", "-W", "error", "-o", "asyncio_default_fixture_loop_scope=function"]
            out = self._call("tests", [sys.executable, "-m", "pytest", *options, *self._tests], self._directory)
            assert f"{len(self._tests)} passed" in out, out

    def _write(self, block: Block, code: str) -> None:
        path = self._cwd / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        if block.language != "python":
            _PARSERS[block.language](code)

    def _python(self, block: Block, code: str) -> None:
        name = f"{'test' if block.is_test else 'block'}_{block.line}.py"
        (self._directory / name).write_text(code)
        if block.is_test:
            self._tests.append(name)
        elif block.is_operator:
            self._call(str(block), ["steersman", "generate", "rbac", str(self._directory / name)], self._cwd)
        else:
            if "KUBECONFIG" not in self._environment:
                self._serve()
            self._printed = self._call(str(block), [sys.executable, "-W", "error", str(self._directory / name)])

    def _shell(self, block: Block, code: str) -> None:
        told = block.told("background")
        if not told:
            self._printed = self._script(block, code)
            return
        *first, last = code.rstrip("\n").split("\n")
        self._printed = self._script(block, "\n".join(first))
        self._start(block, ["bash", "-c", f"exec {last}"], told[0])

    def _console(self, block: Block, code: str) -> None:
        """Commands after `$ `, continued after `> `, and what they print."""
        steps: list[list[str]] = []
        for line in code.splitlines():
            if line.startswith("$ "):
                steps.append([line[2:], ""])
            elif line.startswith("> ") and steps and not steps[-1][1]:
                steps[-1][0] += f"\n{line[2:]}"
            else:
                steps[-1][1] += f"{line}\n"
        assert not block.told("background") or len(steps) == 1, f"{block}: one command goes on in the background"
        for number, (command, expected) in enumerate(steps, 1):
            fails = number == len(steps) and block.has("fails")
            self._shell(block, _failing(command) if fails else command)
            if expected.strip():
                self._expect(block, expected)

    def _parse(self, block: Block, code: str) -> None:
        _PARSERS[block.language](code)

    def _expect(self, block: Block, expected: str) -> None:
        assert pattern(expected).search(self._printed), (
            f"{block}: expected\n{expected}\nin what was printed:\n{self._printed}"
        )

    def _script(self, block: Block, script: str) -> str:
        """Run lines in a shell; the next one goes on in its directory, with its variables."""
        whole = f'set -eo pipefail\n{script}\n{{ pwd; env -0; }} > "$STATE"\n'
        out = self._call(str(block), ["bash", "-c", whole])
        state = self._state.read_text()
        cwd, _, variables = state.partition("\n")
        self._cwd = Path(cwd)
        self._environment = dict(each.split("=", 1) for each in variables.split("\0") if "=" in each)
        return out

    def _call(self, what: str, command: list[str], cwd: Path | None = None) -> str:
        """What a command prints on both streams; it must succeed."""
        done = subprocess.run(
            command,
            cwd=cwd or self._cwd,
            env=self._environment | {"STATE": str(self._state)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, f"{what}: status {done.returncode}\n{done.stdout}\n{self._logs()}"
        return done.stdout

    def _serve(self) -> None:
        """A server for programs on a page that starts none, with the objects that the examples are about."""
        kubeconfig = self._directory.parent / "kubeconfig"
        self._start(None, ["steersman", "serve", "--kubeconfig", str(kubeconfig)], "serving on")
        self._environment["KUBECONFIG"] = str(kubeconfig)
        examples = ROOT / "examples"
        self._call("a server", ["kubectl", "apply", "-f", str(examples / "myapp-crd.yaml")])
        self._call("a server", ["kubectl", "wait", "--for=condition=Established", "crd/myapps.myorg.io"])
        self._call("a server", ["kubectl", "apply", "-f", str(examples / "example-myapp.yaml")])

    def _start(self, block: Block | None, command: list[str], ready: str) -> None:
        """Start what goes on, and wait until it says that it is ready."""
        log = self._directory.parent / f"background-{len(self._background)}.log"
        with log.open("wb") as stream:
            process = subprocess.Popen(
                command, cwd=self._cwd, env=self._environment, stdout=stream, stderr=subprocess.STDOUT
            )
        self._background.append((block, process, log))
        until = time.monotonic() + TIMEOUT
        while not pattern(f"...{ready}...").search(log.read_text()):
            assert process.poll() is None, f"{block}: ended\n{log.read_text()}"
            assert time.monotonic() < until, f"{block}: not ready\n{log.read_text()}"
            time.sleep(0.02)
        self._printed = log.read_text()

    def _logs(self) -> str:
        return "\n".join(f"-- {block}\n{log.read_text()}" for block, _, log in self._background)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for block, process, log in reversed(self._background):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                status = process.wait(TIMEOUT)
            finally:
                process.kill()
            if exc_info[0] is None:
                assert status == 0, f"{block}: status {status}\n{log.read_text()}"


def _failing(command: str) -> str:
    return f"if {command}\nthen echo 'it did not fail' >&2; exit 1; fi"


def _environment(directory: Path, kubectl: Path) -> dict[str, str]:
    """What a reader has: python, pytest, steersman, pip and kubectl on the PATH, and a home directory."""
    tools = directory / "bin"
    tools.mkdir()
    (tools / "kubectl").symlink_to(kubectl)
    for name, text in (("steersman", _STEERSMAN), ("pip", _PIP)):
        (tools / name).write_text(text.format(python=sys.executable))
        (tools / name).chmod(0o755)
    path = os.pathsep.join([str(tools), str(_BIN), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(directory), "LANG": "C.UTF-8"}


_RUNNERS: dict[str, Callable[[Session, Block, str], None]] = {
    "python": Session._python,
    "sh": Session._shell,
    "console": Session._console,
    "yaml": Session._parse,
    "toml": Session._parse,
}
_PARSERS: dict[str, Callable[[str], object]] = {
    "yaml": lambda code: list(yaml.safe_load_all(code)),
    "toml": tomllib.loads,
}
LANGUAGES = frozenset(_RUNNERS)
"""The kinds of blocks that are run. Others have to be marked, as output or with the reason why they are not run."""
