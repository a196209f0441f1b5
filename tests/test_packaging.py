"""What is shipped, and what development installs."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import steersman

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements-dev.lock").read_text()


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=ROOT, check=True)
    return out


def sources() -> set[str]:
    found = (path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(ROOT / "src").as_posix() for path in found}


def test_the_wheel_has_all_of_the_package_and_nothing_else(distributions: Path) -> None:
    [wheel] = distributions.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == sources()
    assert {"steersman/py.typed", "steersman/api/data/kinds.json"} <= names


def test_the_source_distribution_has_what_it_is_built_from(distributions: Path) -> None:
    [archive] = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {name.removeprefix("src/") for name in names if name.startswith("src/")} == sources()
    others = {name for name in names if not name.startswith("src/")}
    assert others == {"CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "PKG-INFO", ".gitignore"}


def test_versions_agree() -> None:
    assert steersman.__version__ == PROJECT["project"]["version"]
    assert re.search(rf"^## \[{re.escape(steersman.__version__)}\]", (ROOT / "CHANGELOG.md").read_text(), re.M)


@pytest.mark.parametrize("text", [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]])
def test_every_requirement_is_pinned_as_it_is_asked_for(text: str) -> None:
    wanted = Requirement(text)
    pinned = dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", LOCK, re.M))
    assert pinned.get(canonicalize_name(wanted.name), "") in wanted.specifier, "run `make lock`"


def test_pins_have_hashes_and_no_address() -> None:
    entries = re.split(r"^(?=[a-z])", LOCK, flags=re.M)[1:]
    assert entries
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in LOCK
