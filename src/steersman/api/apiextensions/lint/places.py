"""Every schema in a version's schema, with where it stands: in the definition, and in the objects that it describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Schema = Mapping[str, Any]
Role = Literal["root", "property", "item", "value"]
RULES_KEY, PRESERVE = "x-kubernetes-validations", "x-kubernetes-preserve-unknown-fields"


@dataclass(frozen=True, slots=True)
class Place:
    """A schema. `path` leads to it in the definition, `field` names what it describes: `spec.parts[].size`, or "".

    `role` says what it is of its parent: a property of that `name`, its items, or the values of its map.
    """

    schema: Schema
    path: str
    field: str
    role: Role = "root"
    name: str = ""
    parent: Place | None = None

    @property
    def required(self) -> bool:
        """Whether the parent must have it."""
        return self.parent is not None and self.name in (self.parent.schema.get("required") or ())

    def up(self) -> Iterator[Place]:
        """The place, its parent, and so on to the root."""
        place: Place | None = self
        while place is not None:
            yield place
            place = place.parent


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a definition: its JSON, where it stands, and the places of its schema."""

    raw: Mapping[str, Any]
    path: str
    places: tuple[Place, ...]

    @property
    def name(self) -> str:
        return str(self.raw.get("name") or "")

    @property
    def root(self) -> Schema:
        return self.places[0].schema

    def subject(self, field: str = "") -> str:
        return f"{self.name} {field}".rstrip()

    def at(self, path: str) -> Place | None:
        """The place of a field by its name as in `Place.field`."""
        return next((place for place in self.places if place.field == path), None)


def versions_of(crd: Mapping[str, Any]) -> list[Version]:
    """The versions of a definition that have a schema."""
    found = []
    for index, raw in enumerate((crd.get("spec") or {}).get("versions") or ()):
        path = f"spec.versions[{index}]"
        schema = (raw.get("schema") or {}).get("openAPIV3Schema")
        if schema is not None:
            places = tuple(walk(Place(schema, f"{path}.schema.openAPIV3Schema", "")))
            found.append(Version(raw, path, places))
    return found


def walk(place: Place) -> Iterator[Place]:
    """A place and all below it, parents first."""
    yield place
    for child in children(place):
        yield from walk(child)


def children(place: Place) -> Iterator[Place]:
    """The places directly below one."""
    schema, path, field = place.schema, place.path, place.field
    for name, child in (schema.get("properties") or {}).items():
        below = f"{field}.{name}" if field else name
        yield Place(child, f"{path}.properties[{name}]", below, "property", name, place)
    if isinstance(schema.get("items"), Mapping):
        yield Place(schema["items"], f"{path}.items", f"{field}[]", "item", "", place)
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield Place(schema["additionalProperties"], f"{path}.additionalProperties", f"{field}.*", "value", "", place)


def is_in_metadata(place: Place) -> bool:
    """Whether it is the object's metadata, or part of it: that is the server's own business."""
    return place.field.partition(".")[0] in ("metadata", "apiVersion", "kind")


def keeps_unknown(schema: Schema) -> bool:
    """Whether an object may have fields that its schema does not name."""
    return bool(
        schema.get(PRESERVE) or schema.get("additionalProperties") or schema.get("x-kubernetes-embedded-resource")
    )
