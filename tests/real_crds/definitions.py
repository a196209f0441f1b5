"""CustomResourceDefinitions that people use, with the examples that their projects publish: `definitions.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .modules import Module, Package

_SEPARATOR = re.compile(r"^---.*$", re.MULTILINE)
_GENERATED = re.compile(r"^  generateName:", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """A file of a module."""

    module: Module
    file: str


@dataclass(frozen=True)
class Definition:
    """A CRD: its name, the file that has it (perhaps among others), and files with objects of its kind."""

    name: str
    project: str
    place: Place
    examples: tuple[Place, ...]

    @property
    def modules(self) -> set[Module]:
        return {self.place.module, *(example.module for example in self.examples)}


@dataclass(frozen=True)
class Document:
    """One document of a YAML file, as it is written there. `key` tells it from all others of a definition."""

    key: str
    text: str

    def top(self, field: str) -> str:
        """A text at the top level, or below `metadata`, by its name; empty when there is none."""
        found = re.search(rf"^{field}: *[\"']?([^\s\"']+)", self.text, re.MULTILINE)
        return found[1] if found else ""

    def meta(self, field: str) -> str:
        found = re.search(rf"^metadata:\n(?:[ #].*\n)*?  {field}: *[\"']?([^\s\"']+)", self.text, re.MULTILINE)
        return found[1] if found else ""


def load() -> list[Definition]:
    """All definitions of the table."""
    table = tomllib.loads(Path(__file__).with_name("definitions.toml").read_text())
    modules = {each["path"]: Module(each["path"], each["version"], each["sum"]) for each in table["module"]}
    return [
        Definition(
            crd["name"],
            each["project"],
            Place(modules[each["path"]], crd["file"]),
            tuple(Place(modules[crd.get("examples_in", each["path"])], file) for file in crd["examples"]),
        )
        for each in table["module"]
        for crd in each.get("crd", ())
    ]


def definition_text(definition: Definition, packages: Mapping[Module, Package]) -> str:
    """The CRD's document."""
    for document in _documents(definition.place, packages):
        if document.top("kind") == "CustomResourceDefinition" and document.meta("name") == definition.name:
            return document.text
    raise LookupError(f"{definition.place.file} does not define {definition.name}")


def examples(definition: Definition, group: str, kind: str, packages: Mapping[Module, Package]) -> list[Document]:
    """All documents of a kind in the example files of a definition."""
    return [
        document
        for place in definition.examples
        for document in _documents(place, packages)
        if document.top("kind") == kind and document.top("apiVersion").partition("/")[0] == group
    ]


def _documents(place: Place, packages: Mapping[Module, Package]) -> Iterator[Document]:
    for number, text in enumerate(_SEPARATOR.split(packages[place.module].text(place.file))):
        if text.strip():
            yield Document(f"{place.file}#{number}", text)
