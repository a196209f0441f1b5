"""The annotations that stand for schemas, and the names of classes and aliases."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from pydantic import Field, TypeAdapter
from pydantic_core import SchemaError as UnusablePattern

from steersman.crdgen.markers import QUANTITY_PATTERN
from steersman.crdgen.python_text import alias_lines, pascal, quoted

ANY = "Any"
_LONG = 60
_LIST_TYPES = {"set": "st.list_set", "atomic": "st.atomic"}


class Made(Protocol):
    """A class that was written."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Constraint:
    """An argument of Field(...)."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """An annotation, what the field is to say besides, and the docstring of its class, if it is one."""

    annotation: str
    constraints: tuple[Constraint, ...] = ()
    about: str | None = None


class Namer:
    """Names for classes and aliases: short ones, as long as no other has them."""

    def __init__(self, taken: Collection[str]) -> None:
        self._taken = set(taken)

    def take(self, path: tuple[str, ...]) -> str:
        """A new name for what stands at a path: KIND, KINDSpec, or the last steps of it."""
        steps = [pascal(step) for step in path]
        first = len(steps) if len(steps) <= 2 else 1
        names = ["".join(steps[-count:]) for count in range(first, len(steps) + 1)]
        name = next((name for name in names if name not in self._taken), names[-1])
        number = 2
        while name in self._taken:
            name = f"{names[-1]}{number}"
            number += 1
        self._taken.add(name)
        return name


class TypeWriter:
    """Writes annotations; what they need is put into `lines` before."""

    def __init__(
        self, names: Namer, lines: list[str], make: Callable[[Mapping[str, Any], tuple[str, ...]], Made]
    ) -> None:
        self._names = names
        self._lines = lines
        self._make = make
        self._aliases: dict[str, str] = {}

    def of(self, node: Mapping[str, Any], path: tuple[str, ...]) -> Written:
        """What stands for a schema."""
        if node.get("x-kubernetes-int-or-string"):
            return Written("st.Quantity" if node.get("pattern") == QUANTITY_PATTERN else "st.IntOrString")
        kind = node.get("type")
        if kind == "object":
            return self._object(node, path)
        if kind == "array":
            return self._array(node, path)
        if node.get("enum"):
            return Written(self._enumeration(node["enum"], path))
        if kind == "string":
            return self._string(node)
        if kind == "integer":
            name = "Annotated[int, st.int32]" if node.get("format") == "int32" else "int"
            return Written(name, _numbers(node))
        if kind == "number":
            return Written("int | float", _numbers(node))
        return Written("bool" if kind == "boolean" else ANY)

    def alias(self, annotation: str, path: tuple[str, ...]) -> str:
        """A name for an annotation that is too long to stand in a field."""
        optional = annotation.endswith(" | None")
        value = annotation.removesuffix(" | None")
        name = self._aliases.get(value)
        if name is None:
            name = self._aliases[value] = self._names.take((*path[:-1], f"{path[-1]}Value"))
            self._lines += ["", "", *alias_lines(name, value)]
        return f"{name} | None" if optional else name

    def _object(self, node: Mapping[str, Any], path: tuple[str, ...]) -> Written:
        if node.get("properties"):
            made = self._make(node, path)
            return Written(made.name, about=made.description.strip())
        values = node.get("additionalProperties")
        if isinstance(values, Mapping):
            inner = self._inner(values, path)
        else:
            inner = ANY
        annotation = f"dict[str, {inner}]"
        if node.get("x-kubernetes-embedded-resource"):
            annotation = f"Annotated[{annotation}, st.embedded]"
        elif node.get("x-kubernetes-preserve-unknown-fields"):
            annotation = f"Annotated[{annotation}, st.preserve_unknown]"
        elif node.get("x-kubernetes-map-type") == "atomic":
            annotation = f"Annotated[{annotation}, st.atomic]"
        return Written(annotation, _lengths(node, "Properties"))

    def _array(self, node: Mapping[str, Any], path: tuple[str, ...]) -> Written:
        inner = self._inner(node.get("items") or {}, path)
        annotation = f"list[{inner}]"
        list_type = node.get("x-kubernetes-list-type")
        if list_type == "map":
            keys = ", ".join(map(quoted, node.get("x-kubernetes-list-map-keys") or ()))
            annotation = f"Annotated[{annotation}, st.list_map({keys})]"
        elif list_type in _LIST_TYPES:
            annotation = f"Annotated[{annotation}, {_LIST_TYPES[list_type]}]"
        return Written(annotation, _lengths(node, "Items"))

    def _inner(self, node: Mapping[str, Any], path: tuple[str, ...]) -> str:
        """The annotation of items or values."""
        found = self.of(node, path)
        annotation = found.annotation
        if found.constraints:
            said = ", ".join(f"{each.name}={each.text}" for each in found.constraints)
            annotation = f"Annotated[{annotation}, Field({said})]"
        if len(annotation) > _LONG and "[" in annotation:
            annotation = self.alias(annotation, (*path[:-1], f"{path[-1]}Item"))
        return f"{annotation} | None" if node.get("nullable") and annotation != ANY else annotation

    def _enumeration(self, values: list[Any], path: tuple[str, ...]) -> str:
        if not all(each is None or isinstance(each, str | int | bool) for each in values):
            return ANY
        inner = ", ".join(quoted(each) if isinstance(each, str) else repr(each) for each in dict.fromkeys(values))
        annotation = f"Literal[{inner}]"
        return annotation if len(annotation) <= _LONG else self.alias(annotation, path)

    @staticmethod
    def _string(node: Mapping[str, Any]) -> Written:
        annotation, constraints = "str", list(_lengths(node, "Length"))
        said = []
        if node.get("format"):
            name = str(node["format"])
            said.append("st.duration" if name == "duration" else f"st.text_format({quoted(name)})")
        if node.get("pattern"):
            if _is_usable(node["pattern"]):
                constraints.append(Constraint("pattern", quoted(node["pattern"])))
            else:
                said.append(f"st.pattern({quoted(node['pattern'])})")
        if said:
            annotation = f"Annotated[str, {', '.join(said)}]"
        return Written(annotation, tuple(constraints))


def without(node: Any, keys: Collection[str]) -> str:
    """A schema as a text, without some of its keywords."""
    return json.dumps({key: value for key, value in node.items() if key not in keys}, sort_keys=True)


def _numbers(node: Mapping[str, Any]) -> tuple[Constraint, ...]:
    found = []
    for keyword, name, exclusive in (("minimum", "ge", "gt"), ("maximum", "le", "lt")):
        if node.get(keyword) is not None:
            strict = node.get("exclusiveMinimum" if keyword == "minimum" else "exclusiveMaximum")
            found.append(Constraint(exclusive if strict else name, repr(node[keyword])))
    if node.get("multipleOf") is not None:
        found.append(Constraint("multiple_of", repr(node["multipleOf"])))
    return tuple(found)


def _lengths(node: Mapping[str, Any], noun: str) -> tuple[Constraint, ...]:
    wanted = (("min_length", f"min{noun}"), ("max_length", f"max{noun}"))
    return tuple(Constraint(name, repr(node[key])) for name, key in wanted if node.get(key) is not None)


def _is_usable(pattern: str) -> bool:
    """Whether pydantic can run a pattern, too."""
    try:
        TypeAdapter(Annotated[str, Field(pattern=pattern)])
    except UnusablePattern:
        return False
    return True
