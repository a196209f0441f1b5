"""Files of Go modules: fetched with the `go` command into its own cache, which keeps them."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

ATTEMPTS = 2
TIMEOUT = 45.0


@dataclass(frozen=True)
class Module:
    """One version of a Go module. `sum` is what go.sum would say of it."""

    path: str
    version: str
    sum: str

    @property
    def query(self) -> str:
        return f"{self.path}@{self.version}"


class Package:
    """The files of a module, in the archive that `go` keeps of it."""

    def __init__(self, module: Module, archive: Path) -> None:
        self._prefix = f"{module.query}/"
        self._archive = archive

    def text(self, name: str) -> str:
        """One file's text; `name` is its path in the module. Raises KeyError when there is none."""
        return self._files.read(self._prefix + name).decode()

    @cached_property
    def _files(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self._archive)


@dataclass(frozen=True)
class Fetched:
    """What `go` says of a module: its archive and the sum of it, or why there is none."""

    archive: str = ""
    sum: str = ""
    error: str = ""


def fetch(modules: Iterable[Module], directory: Path) -> Mapping[Module, Package | str]:
    """All modules, each as a package, or why it is not to be had.

    Processes that share `directory` fetch only once. A module with another sum is an error, not a reason.
    """
    wanted = list(modules)
    found = _once([module.query for module in wanted], directory)
    return {module: _package(module, found[module.query]) for module in wanted}


def _package(module: Module, found: Fetched) -> Package | str:
    if not found.archive:
        return f"{module.query}: {found.error}"
    if found.sum != module.sum:
        raise ValueError(f"{module.query} has the sum {found.sum}, not {module.sum}")
    return Package(module, Path(found.archive))


def _once(queries: list[str], directory: Path) -> dict[str, Fetched]:
    with (directory / "modules.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = directory / "modules.json"
        if kept.exists():
            return {query: Fetched(**each) for query, each in json.loads(kept.read_text()).items()}
        found = _download(queries, directory)
        kept.write_text(json.dumps({query: asdict(each) for query, each in found.items()}))
        return found


def _download(queries: list[str], directory: Path) -> dict[str, Fetched]:
    found: dict[str, Fetched] = {}
    for _ in range(ATTEMPTS):
        missing = [query for query in queries if query not in found or not found[query].archive]
        if missing:
            found |= _ask_go(missing, directory)
    return found


def _ask_go(queries: list[str], directory: Path) -> dict[str, Fetched]:
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GO111MODULE": "on", "GOWORK": "off"}
    try:
        done = subprocess.run(
            ["go", "mod", "download", "-json", *queries],
            cwd=directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except FileNotFoundError:
        return dict.fromkeys(queries, Fetched(error="there is no go command to fetch it with"))
    except subprocess.TimeoutExpired:
        return dict.fromkeys(queries, Fetched(error="fetching it took too long"))
    # a module that asks for a newer go is an error, too, but it has been fetched
    found = dict.fromkeys(queries, Fetched(error=done.stderr.strip()))
    for each in _objects(done.stdout):
        found[f"{each['Path']}@{each['Version']}"] = Fetched(
            each.get("Zip", ""), each.get("Sum", ""), each.get("Error", "")
        )
    return found


def _objects(text: str) -> Iterator[dict[str, str]]:
    """JSON objects, one after another."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        value, end = decoder.raw_decode(text, at)
        yield value
        at = text.find("{", end)
