"""Whether a policy's expressions fit the types of what it matches: warnings, for its status.

Source: apiserver `pkg/admission/plugin/policy/validating/typechecking.go`, `pkg/cel/openapi/resolver/refs.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steersman.api.admissionregistration.declared import (
    NAMESPACE,
    OBJECTS,
    REQUEST,
    VARIABLES,
    declare_field,
    declare_object,
    variable_type,
)
from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CompileError
from steersman.apimachinery.schema.cel.program import Variable, compile_expression, object_types
from steersman.apimachinery.schema.cel.schema_types import Decl, declare
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.structural import read_schema

_MAX_TYPES = 10
_REFERENCE = "#/components/schemas/"
Resolve = Callable[[str, str, str], Sequence[GroupVersionKind]]
"""The kinds that a group, version and resource stand for; "" is any group, as discovery's clients have it."""


class Typed(NamedTuple):
    """A kind and its declaration, None where expressions can see nothing of it."""

    kind: GroupVersionKind
    decl: Decl | None


def kind_declaration(schema: Mapping[str, Any], schemas: Mapping[str, Any], kind: str) -> Decl | None:
    """What expressions see of a kind, from its OpenAPI schema; `$ref`s lead to `schemas`."""
    decl = declare(read_schema(_resolved(schema, schemas, ())), kind, root=True)
    return None if decl.type is None else decl


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any], visited: tuple[str, ...]) -> dict[str, Any]:
    """A schema with what it refers to in place; a type inside of itself is an object without fields."""
    reference = _reference(schema)
    if reference is not None:
        if reference in visited:
            return {"type": "object"}
        visited = (*visited, reference)
        schema = schemas[reference]
    out = dict(schema)
    if out.get("format") == "int-or-string":
        out["x-kubernetes-int-or-string"] = True
    if out.get("properties"):
        out["properties"] = {key: _resolved(each, schemas, visited) for key, each in out["properties"].items()}
    for key in ("additionalProperties", "items"):
        if isinstance(out.get(key), Mapping):
            out[key] = _resolved(out[key], schemas, visited)
    return out


def _reference(schema: Mapping[str, Any]) -> str | None:
    for each in (schema, *(schema.get("allOf") or ())):
        if each.get("$ref"):
            return str(each["$ref"]).removeprefix(_REFERENCE)
    return None


def types_to_check(spec: Mapping[str, Any], resolve: Resolve) -> list[GroupVersionKind]:
    """The kinds that a policy's rules name, without wildcards: at most ten of a rule, in order."""
    found: set[GroupVersionKind] = set()
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        kinds: list[GroupVersionKind] = []
        for coordinates in _named(rule):
            kinds += resolve(*coordinates)
            if len(kinds) >= _MAX_TYPES:
                return sorted(found.union(kinds[:_MAX_TYPES]))
        found.update(kinds)
    return sorted(found)


def _named(rule: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    groups, versions = sorted(rule.get("apiGroups") or ()), sorted(rule.get("apiVersions") or ())
    if any("*" in text for text in (*groups, *versions)):
        return
    resources = sorted(text for text in rule.get("resources") or () if "*" not in text and "/" not in text)
    for group in groups:
        for version in versions:
            for resource in resources:
                yield group, version, resource


def expression_warnings(spec: Mapping[str, Any], kinds: Sequence[Typed], params: Decl | None) -> list[dict[str, str]]:
    """The `expressionWarnings` of a policy: what does not fit one of the kinds, or its parameters' type."""
    checkers = [_Checker(spec, typed, params) for typed in kinds]
    warnings = []
    for index, validation in enumerate(spec.get("validations") or ()):
        for key in ("expression", "messageExpression"):
            source = validation.get(key) or ""
            texts = [text for checker in checkers if source and (text := checker.check(source))]
            if texts:
                field = f"spec.validations[{index}].{key}"
                warnings.append({"fieldRef": field, "warning": "\n".join(texts)})
    return warnings


class _Checker:
    """Checks expressions against one kind; the policy's variables have the types that they get with it."""

    def __init__(self, spec: Mapping[str, Any], typed: Typed, params: Decl | None) -> None:
        self._kind = typed.kind
        seen = t.DYN if typed.decl is None else _type(typed.decl)
        variables = [
            Variable("namespaceObject", NAMESPACE),
            Variable("request", REQUEST),
            Variable("object", seen),
            Variable("oldObject", seen),
            Variable("authorizer", t.AUTHORIZER),
            Variable("variables", VARIABLES),
        ]
        if spec.get("paramKind") is not None:
            variables.append(Variable("params", t.DYN if params is None else _type(params)))
        self._variables = tuple(variables)
        composed = declare_object(VARIABLES.name, {})
        self._objects = {**OBJECTS, VARIABLES.name: composed}
        for decl in (typed.decl, params):
            if decl is not None:
                self._objects |= object_types(decl)
        for variable in spec.get("variables") or ():
            found, _ = self._compile(variable.get("expression") or "")
            declare_field(composed, variable.get("name") or "", variable_type(found))

    def check(self, source: str) -> str:
        """What is wrong with an expression, "" for nothing."""
        _, problem = self._compile(source)
        kind = self._kind
        return f"{kind.group}/{kind.version}, Kind={kind.kind}: {problem}\n" if problem else ""

    def _compile(self, source: str) -> tuple[Type | None, str]:
        try:
            return compile_expression(source, self._variables, self._objects).type, ""
        except CompileError as error:
            return None, str(error)


def _type(decl: Decl) -> Type:
    assert decl.type is not None
    return decl.type
