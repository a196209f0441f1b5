"""What is downloaded when steersman or steersman-client is installed: wheels only, and how large they are.

    python -m tests.wheels.record

asks the package index for each version of Python and each platform, and writes recorded.json beside this file. It fails
if something is there as a source distribution only, or is too large. A test holds the record to what is required.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests/wheels/recorded.json"
PROJECTS = {"steersman": ROOT, "steersman[etcd]": ROOT, "steersman-client": ROOT / "packaging/client"}
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "Linux x86-64": [f"manylinux_2_{minor}_x86_64" for minor in range(28, 4, -1)],
    "Linux aarch64": [f"manylinux_2_{minor}_aarch64" for minor in range(28, 16, -1)],
    "macOS arm64": [f"macosx_{major}_0_arm64" for major in range(14, 10, -1)],
}
"""By name, the tags of wheels that work: on Linux with the glibc of 2018 (2.28), on macOS 14."""
LIMIT = 40_000_000
"""Bytes that may be downloaded."""


def requirements(project: str) -> list[str]:
    """What a project, with the extra in brackets, requires of others."""
    described = tomllib.loads((PROJECTS[project] / "pyproject.toml").read_text())["project"]
    extra = project.partition("[")[2].rstrip("]")
    return [*described["dependencies"], *(described["optional-dependencies"][extra] if extra else ())]


def downloaded(project: str, python: str, platform: str) -> dict[str, Any]:
    """The wheels, by file name with their sizes, and the bytes that they have unpacked. Raises CalledProcessError."""
    with tempfile.TemporaryDirectory() as directory:
        tags = [argument for tag in PLATFORMS[platform] for argument in ("--platform", tag)]
        target = ["--only-binary=:all:", "--implementation", "cp", "--python-version", python, *tags]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", directory, *target]
        subprocess.run([*command, *requirements(project)], check=True)
        wheels = sorted(Path(directory).iterdir())
        return {
            "wheels": {wheel.name: wheel.stat().st_size for wheel in wheels},
            "unpacked": sum(entry.file_size for wheel in wheels for entry in zipfile.ZipFile(wheel).infolist()),
        }


def main() -> int:
    """Ask, write the record and print it. Returns the exit status."""
    record: dict[str, Any] = {}
    status = 0
    for project in PROJECTS:
        for platform in PLATFORMS:
            for python in PYTHONS:
                found = downloaded(project, python, platform)
                record.setdefault(project, {}).setdefault(platform, {})[python] = found
                size = sum(found["wheels"].values())
                status |= size >= LIMIT
                print(
                    f"{project:<17} {platform:<14} {python}  {len(found['wheels'])} wheels, "
                    f"{size / 1e6:.1f} MB; unpacked {found['unpacked'] / 1e6:.1f} MB",
                    flush=True,
                )
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
