"""Python modules with models of the kinds that CustomResourceDefinitions define.

What a model takes is what the server takes, or more: a schema's CEL rules, and what stands in anyOf and the like, are
left to the server.
"""

from __future__ import annotations

import keyword
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from steersman.client.models import KubernetesObject
from steersman.crdgen.errors import SchemaError
from steersman.crdgen.model_types import ANY, Namer, TypeWriter, without
from steersman.crdgen.python_text import INDENT, WIDTH, docstring, field_lines, quoted, snake

_IMPORTED = frozenset({"Any", "Annotated", "Field", "Literal", "Part", "TypeAlias", "st"})
_PLAIN = frozenset({"bool", "dict", "float", "int", "list", "object", "str", "type"})
_WORDS = frozenset(keyword.kwlist)
_TAKEN = frozenset({*dir(KubernetesObject), *dir(type(KubernetesObject))}) | _IMPORTED | _PLAIN
_MADE = "made by `steersman generate models`."
_TOP = ("apiVersion", "kind", "metadata")


def module_for(crds: Sequence[Mapping[str, Any]], *, versions: Sequence[str] = ()) -> str:
    """The source of a module with a model class for each definition's storage version, or for all `versions` of it.

    Its models read all objects that the server takes, and write them back unchanged. Raises SchemaError for what is no
    definition of apiextensions.k8s.io/v1, or has none of the versions.
    """
    writer = _Module()
    for crd in crds:
        for version in _chosen(crd, versions):
            writer.kind(crd, version)
    return writer.source([str(crd["metadata"]["name"]) for crd in crds])


def is_generated(model: type[KubernetesObject]) -> bool:
    """Whether a model class stands in a module that `module_for` has made: its definition is somebody else's."""
    module = sys.modules.get(model.__module__)
    return " ".join(((module and module.__doc__) or "").split()).endswith(_MADE)


def _chosen(crd: Mapping[str, Any], wanted: Sequence[str]) -> list[Mapping[str, Any]]:
    name = str((crd.get("metadata") or {}).get("name") or "the definition")
    if crd.get("apiVersion") != "apiextensions.k8s.io/v1" or crd.get("kind") != "CustomResourceDefinition":
        raise SchemaError(name, "this is no CustomResourceDefinition of apiextensions.k8s.io/v1")
    versions = [each for each in (crd.get("spec") or {}).get("versions") or () if isinstance(each, Mapping)]
    chosen = [each for each in versions if (each.get("name") in wanted if wanted else each.get("storage"))]
    if not chosen:
        raise SchemaError(name, f"there is no version {', '.join(wanted) or 'that is stored'}")
    return chosen


@dataclass(frozen=True, slots=True)
class _Class:
    name: str
    description: str


class _Module:
    """Collects classes and aliases; what is alike is written once."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names = Namer(_IMPORTED | _WORDS)
        self._classes: dict[str, _Class] = {}
        self._optional: dict[str, bool] = {}
        self._kinds: set[str] = set()
        self._types = TypeWriter(self._names, self._lines, self._class)

    def kind(self, crd: Mapping[str, Any], version: Mapping[str, Any]) -> None:
        """Write the class of a kind in one version, and what it needs."""
        spec = crd["spec"]
        kind = spec["names"]["kind"]
        api_version = f"{spec['group']}/{version['name']}"
        base = kind if kind not in self._kinds else f"{kind}{str(version['name']).capitalize()}"
        self._kinds.add(base)
        name = self._names.take((base,))
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        properties = {key: node for key, node in (schema.get("properties") or {}).items() if key not in _TOP}
        body = self._fields(properties, schema.get("required") or (), (name,))
        head = [
            f"{INDENT}{quoted(api_version)},",
            *([f"{INDENT}kind={quoted(kind)},"] if name != kind else []),
            f"{INDENT}plural={quoted(spec['names']['plural'])},",
            f"{INDENT}namespaced={spec.get('scope') != 'Cluster'},",
        ]
        self._lines += ["", "", "@st.custom_resource(", *head, ")", f"class {name}(st.KubernetesObject):"]
        self._body(str(schema.get("description") or ""), body)

    def source(self, names: Sequence[str]) -> str:
        """The whole module."""
        body = "\n".join(self._lines)
        used = [
            name for name in ("Annotated", "Any", "Literal", "TypeAlias") if f"{name}[" in body or f" {name}" in body
        ]
        used = [name for name in used if name != "Any" or _uses_any(body)]
        about = f"Models of {', '.join(names)}, {_MADE}"
        lines = [*docstring(about, ""), "", "from __future__ import annotations", ""]
        if used:
            lines += [f"from typing import {', '.join(used)}", ""]
        if " Field(" in body:
            lines += ["from pydantic import Field", ""]
        lines += ["import steersman as st", "", "", "class Part(st.Model):"]
        lines += [f'{INDENT}"""A part of an object; defaults that were not set are not sent."""', ""]
        lines += [f"{INDENT}omit_defaults = True", body]
        return "\n".join(lines) + "\n"

    def _class(self, node: Mapping[str, Any], path: tuple[str, ...]) -> _Class:
        """The class of objects with these fields."""
        description = str(node.get("description") or "")
        key = without(node, ("description", "default", "nullable"))
        known = self._classes.get(key)
        if known is not None:
            return known
        name = self._names.take(path)
        required = node.get("required") or ()
        body = self._fields(node["properties"], required, path)
        marks = [f"@st.schema({mark})" for mark in _marks(node)]
        self._lines += ["", "", *marks, f"class {name}(Part):"]
        self._body(description, body)
        optional = not any(
            field in node["properties"] and "default" not in node["properties"][field] for field in required
        )
        self._optional[name] = optional
        found = self._classes[key] = _Class(name, description)
        return found

    def _body(self, description: str, fields: list[str]) -> None:
        if description.strip():
            self._lines += docstring(description)
            if fields:
                self._lines.append("")
        if fields:
            self._lines += fields
        elif not description.strip():
            self._lines.append(f"{INDENT}pass")

    def _fields(self, properties: Mapping[str, Any], required: Sequence[str], path: tuple[str, ...]) -> list[str]:
        lines: list[str] = []
        taken = set(_TAKEN)
        for key, node in properties.items():
            name = snake(key, taken)
            taken.add(name)
            lines += self._field(name, key, node, key in required, path)
        return lines

    def _field(
        self, name: str, key: str, node: Mapping[str, Any], is_required: bool, path: tuple[str, ...]
    ) -> list[str]:
        found = self._types.of(node, (*path, key))
        annotation, description = found.annotation, str(node.get("description") or "").strip()
        default, factory = self._default(node, annotation, is_top=len(path) == 1 and not is_required)
        if default is None and factory is None and (not is_required or node.get("nullable")):
            default = "None"
            annotation += "" if annotation == ANY or annotation.endswith(" | None") else " | None"
        if len(INDENT) * 2 + len(annotation) > WIDTH:
            annotation = self._types.alias(annotation, (*path, key))
        arguments = [f"{each.name}={each.text}" for each in found.constraints]
        if to_camel(name) != key:
            arguments.insert(0, f"alias={quoted(key)}")
        if factory is not None:
            arguments.insert(0, f"default_factory={factory}")
        return field_lines(
            name, annotation, arguments, default or "", "" if found.about == description else description
        )

    def _default(self, node: Mapping[str, Any], annotation: str, *, is_top: bool) -> tuple[str | None, str | None]:
        """A default as Python writes it, or what makes one; neither where there is none, or no simple one."""
        known = self._optional.get(annotation)
        if "default" not in node:
            return None, annotation if known and is_top else None
        value = node["default"]
        if isinstance(value, str | int | float):
            return quoted(value) if isinstance(value, str) else repr(value), None
        if value == {}:
            return ("{}", None) if annotation.startswith("dict[") else (None, annotation if known else None)
        if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
            inner = ", ".join(quoted(each) if isinstance(each, str) else repr(each) for each in value)
            return f"[{inner}]", None
        return None, None


def _marks(node: Mapping[str, Any]) -> list[str]:
    marks = []
    if node.get("x-kubernetes-preserve-unknown-fields"):
        marks.append("st.preserve_unknown")
    if node.get("x-kubernetes-map-type") == "atomic":
        marks.append("st.atomic")
    return marks


def _uses_any(body: str) -> bool:
    return any(mark in body for mark in (": Any", "[Any", ", Any]", "Any ="))
