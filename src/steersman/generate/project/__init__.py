"""A new operator's project: the files beside this one, with its own names in them."""

from __future__ import annotations

import keyword
import re
import sys
from dataclasses import dataclass
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path

from steersman.crdgen.definition import is_custom, plural_of
from steersman.generate.errors import GenerateError

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_TAKEN = frozenset({"steersman", "test", "tests", "manifests", "examples", "wheels"})
_IMPORTED = frozenset({"Annotated", "ApiServer", "AsyncIterator", "Field", "Name"})
"""What the modules of a project call by the names of classes."""
_PLACES = {
    "gitignore": ".gitignore",
    "dockerignore": ".dockerignore",
    "examples/object.yaml": "examples/{singular}.yaml",
}


@dataclass(frozen=True, slots=True)
class Project:
    """The names in a project."""

    name: str
    package: str
    kind: str
    singular: str
    plural: str
    group: str
    steersman: str

    @classmethod
    def named(cls, name: str, kind: str | None, group: str | None, steersman: str) -> Project:
        """The names that follow from the given ones. Raises GenerateError for what cannot be one."""
        if not _NAME.fullmatch(name):
            raise GenerateError(f"{name!r} cannot be a name: at most 40 of a-z, 0-9 and -, a letter first")
        package = name.replace("-", "_")
        if keyword.iskeyword(package) or package in sys.stdlib_module_names or package in _TAKEN or _is_needed(package):
            raise GenerateError(f"{package} is a module's name already: choose another one")
        chosen = kind or "".join(part.capitalize() for part in name.split("-"))
        if not re.fullmatch(r"[A-Z][A-Za-z0-9]{0,40}", chosen) or keyword.iskeyword(chosen):
            raise GenerateError(f"{chosen!r} cannot be a kind: write it as MyApp")
        if chosen in _IMPORTED:
            raise GenerateError(f"{chosen} is called so already in the project's modules: choose another --kind")
        where = group or f"{name}.example.com"
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+", where):
            raise GenerateError(f"{where!r} cannot be a group: write it as shop.example.com")
        if not is_custom(where):
            raise GenerateError(f"{where!r} is one of Kubernetes' own groups: use one of a domain of yours")
        return cls(name, package, chosen, chosen.lower(), plural_of(chosen), where, _requirement(steersman))

    def write(self, directory: Path) -> list[Path]:
        """Write all files into a new directory; gives their paths. Raises GenerateError if there is one."""
        if directory.exists():
            raise GenerateError(f"{directory} exists already")
        found = []
        for place, text in sorted(self._files().items()):
            path = directory / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            found.append(path)
        return found

    def _files(self) -> dict[str, str]:
        return {
            self._place(name): self._filled(file.read_text(encoding="utf-8"))
            for name, file in _templates(resources.files(__name__))
        }

    def _place(self, name: str) -> str:
        place = _PLACES.get(name, name).replace("{singular}", self.singular)
        return place.replace("package/", f"{self.package}/", 1) if place.startswith("package/") else place

    def _filled(self, text: str) -> str:
        for word in self.__slots__:
            text = text.replace(f"{{{{{word}}}}}", getattr(self, word))
        return text


def _templates(directory: Traversable, under: str = "") -> list[tuple[str, Traversable]]:
    found = []
    for each in directory.iterdir():
        if each.is_dir():
            found += _templates(each, f"{under}{each.name}/")
        elif each.name.endswith(".tmpl"):
            found.append((f"{under}{each.name.removesuffix('.tmpl')}", each))
    return found


def _requirement(text: str) -> str:
    """A requirement as a Makefile has it, between quotes: what exists here as a file is named by its whole path."""
    path = Path(text)
    chosen = str(path.resolve()) if path.exists() and (path.is_file() or "/" in text or text == ".") else text
    if not chosen.strip():
        raise GenerateError("steersman comes from nowhere: name a requirement, a directory or a URL")
    if set(chosen) & set("'$#\\\n\r"):
        raise GenerateError(f"{text!r} cannot stand in a Makefile")
    return chosen


def _is_needed(package: str) -> bool:
    """Whether a package of that name comes with steersman or pytest, and would be hidden by the project's own."""
    found, waiting = {"pytest", "pytest_asyncio"}, ["steersman"]
    while waiting:
        try:
            requirements = metadata.requires(waiting.pop()) or []
        except metadata.PackageNotFoundError:  # it is not installed here: an extra
            continue
        names = {re.split(r"[^-\w.]", each, maxsplit=1)[0].lower().replace("-", "_") for each in requirements}
        waiting += names - found
        found |= names
    brought = {each.lower().replace("-", "_") for each in metadata.packages_distributions().get(package, ())}
    return package in found or not found.isdisjoint(brought)
