"""Clients for Java, unmodified, each in a program that does with it what its users do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ..conftest import ServerFiles
from .go_programs import run
from .programs import HERE, made_once, steps_done
from .steps import JAVA

PROGRAMS = HERE / "java"


@pytest.fixture(scope="module")
def jars() -> Path:
    """A directory with the clients' jars."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
    return made_once("java", (PROGRAMS / "pom.xml").read_bytes(), _make)


async def _make(directory: Path) -> None:
    fetch = ("mvn", "-q", "-B", "-f", str(PROGRAMS / "pom.xml"), "dependency:copy-dependencies")
    code, out = await run(*fetch, f"-DoutputDirectory={directory}", cwd=directory)
    if code:
        pytest.skip(f"the clients cannot be had: {out.strip().splitlines()[0]}")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("program", JAVA)
async def test_a_client(program: str, jars: Path, certificates: ServerFiles, tmp_path: Path) -> None:
    # The program is compiled as it is started. It is short: thorough compilation costs more than it saves.
    java = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", PROGRAMS / f"{program}.java"]
    code, said, errors = await steps_done(java, certificates, tmp_path)
    assert (code, said) == (0, JAVA[program]), errors
