"""Takes the client half's sources from where they are: in the repository, or in a source distribution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PARTS = (
    "__init__.py",
    "__main__.py",
    "_util",
    "api",
    "apimachinery",
    "cel.py",
    "cli.py",
    "client",
    "completion",
    "crdgen",
    "generate",
    "migration",
    "net",
    "py.typed",
    "runtime",
)
LEFT_OUT = ("net/grpc.py", "net/http2")
"""What only a store in etcd needs."""


class ClientSources(BuildHookInterface[Any]):
    """Adds the packages of the client half, and what they stand on."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Put the sources among the files of what is built."""
        here = Path(self.root)
        root = next(place for place in (here, here.parents[1]) if (place / "src/steersman").is_dir())
        below = "src/steersman" if self.target_name == "sdist" else "steersman"
        included = build_data["force_include"]
        source = root / "src/steersman"
        parents = {Path(each).parent for each in LEFT_OUT}
        parts = [part for part in map(Path, PARTS) if part not in parents]
        inside = [path.relative_to(source) for parent in parents for path in (source / parent).iterdir()]
        kept = [part for part in inside if part.name != "__pycache__" and part.as_posix() not in LEFT_OUT]
        for part in parts + kept:
            included[str(source / part)] = f"{below}/{part.as_posix()}"
