"""The stand-in for kubectl: the one that is installed."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Becomes the first kubectl on the PATH that is no stand-in. Returns the exit status if there is none."""
    places = os.environ.get("PATH", os.defpath).split(os.pathsep)
    for place in places:
        found = shutil.which("kubectl", path=place)
        if found and not _is_stand_in(found):
            os.execv(found, [found, *arguments])  # noqa: S606 -- this is what it is for
    print("kubectl: this is a stand-in, and there is no kubectl on the PATH: install it", file=sys.stderr)
    return 127


def _is_stand_in(path: str) -> bool:
    with open(path, "rb") as file:
        return b"steersman.envtest" in file.read(512)
