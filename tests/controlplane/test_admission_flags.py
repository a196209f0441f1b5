"""Plugins that installed packages offer, and the flags that name plugins."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.controlplane import admission_flags

MODULE = """
from steersman.apiserver.admission import Denied, mutating, validating

@mutating("offered-labels", resources=["configmaps"])
def label(write):
    write.object["metadata"]["labels"] = {"by": "a-package"}

@validating("offered-refusals")
def refuse(write):
    raise Denied("no")

nothing = 7
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package whose entry points are written to the file that is returned."""
    (tmp_path / "offered_plugins.py").write_text(MODULE)
    info = tmp_path / "offered_plugins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: offered-plugins\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return info / "entry_points.txt"


def offer(package: Path, *values: str) -> None:
    lines = [f"{value.rpartition(':')[2]} = {value}" for value in values]
    package.write_text("\n".join(["[steersman.admission]", *lines, ""]))


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    admission_flags.add_flags(parser)
    return parser.parse_args(arguments)


def test_plugins_of_packages_are_found_and_named(package: Path) -> None:
    offer(package, "offered_plugins:label", "offered_plugins:refuse")
    found = admission_flags.configuration(parsed("--disable-admission-plugins=offered-refusals,Priority"))
    assert [plugin.name for plugin in found.own] == ["offered-labels", "offered-refusals"]
    assert found.disabled == {"offered-refusals", "Priority"}
    assert found.enabled == set()


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("offered_plugins:nothing", "offered_plugins:nothing (steersman.admission: nothing) is no admission plugin"),
        ("offered_plugins:absent", "the admission plugin absent (offered_plugins:absent) cannot be loaded: "),
        ("no_such_module:x", "the admission plugin x (no_such_module:x) cannot be loaded: No module named"),
    ],
)
def test_what_is_no_plugin_is_told(package: Path, value: str, why: str) -> None:
    offer(package, value)
    with pytest.raises(ValueError, match="plugin") as refused:
        admission_flags.configuration(parsed())
    assert str(refused.value).startswith(why)


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("--enable-admission-plugins=Nope", 'enable-admission-plugins plugin "Nope" is unknown'),
        ("--controllers=nope", '"nope" is not in the list of known controllers'),
    ],
)
def test_the_server_does_not_start_with_unknown_names(flag: str, why: str) -> None:
    command = [sys.executable, "-m", "steersman", "serve", "--secure-port", "0", flag]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, f"steersman serve: {why}\n")
