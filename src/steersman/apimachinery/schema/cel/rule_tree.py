"""All rules of a schema, evaluated on an object: where they stand, and what an update forgives.

Source: apiextensions `pkg/apiserver/schema/cel/validation.go`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.schema.cel.costs import OBJECT_LIMIT
from steersman.apimachinery.schema.cel.escaping import escape
from steersman.apimachinery.schema.cel.rules import Problem, Rule, RuleScope
from steersman.apimachinery.schema.cel.schema_types import Decl, declare
from steersman.apimachinery.schema.correlation import Correlation, map_list_key
from steersman.apimachinery.schema.structural import Node

ROOT = "<nil>"
"""The path of the whole object in errors."""


class _Trail(NamedTuple):
    """How the walk came to a place, from the root outwards."""

    parent: _Trail | None
    step: str | int


class RuleTree:
    """The rules of a schema and of all below it; expressions are compiled when data first comes by."""

    __slots__ = ("_root", "_schema", "_whole")

    def __init__(self, schema: Node, *, whole: bool = True) -> None:
        """`whole` says that it is the schema of whole objects, whose rules see their metadata."""
        self._schema = schema
        self._whole = whole
        self._root: _Place | None = None

    def check(self, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
        """What the rules find wrong with an object; `old` is the one that it replaces.

        Problems of rules that do not read oldSelf are forgiven where the value, or the nearest value around it that
        can be compared, is unchanged.
        """
        walk = _Walk(obj, old, self._schema)
        walk.visit(self._compiled(), obj, old, ROOT, None)
        return walk.errors

    def check_default(self, value: Any, path: str) -> list[FieldError]:
        """What the rules find wrong with a default at a path: as a value that stays, or else as a new one."""
        for old in (value, None):
            walk = _Walk(value, None, self._schema)
            walk.visit(self._compiled(), value, old, path, None)
            if walk.errors:
                return walk.errors
        return []

    def _compiled(self) -> _Place:
        if self._root is None:
            decl = declare(self._schema, root=self._whole)
            self._root = _build(self._schema, decl) or _Place([], None)
        return self._root


class _Place:
    """One schema with rules, or with rules below it."""

    __slots__ = ("additional", "items", "list_keys", "properties", "rules", "scope", "unready")

    def __init__(self, unready: list[dict[str, Any]], decl: Decl | None) -> None:
        self.unready = unready
        self.scope = decl
        self.rules: list[Rule] = []
        self.properties: dict[str, _Place] = {}
        self.additional: _Place | None = None
        self.items: _Place | None = None
        self.list_keys: list[str] = []

    def ready(self) -> list[Rule]:
        """The rules, compiled."""
        if self.unready:
            assert self.scope is not None
            scope = RuleScope(self.scope)
            self.rules = [Rule(raw, scope, self.scope.node) for raw in self.unready]
            self.unready = []
        return self.rules

    def is_empty(self) -> bool:
        return not (self.unready or self.properties or self.additional or self.items)


def _build(schema: Node, decl: Decl | None) -> _Place | None:
    place = _Place(list(schema.rules) if decl is not None and decl.type is not None else [], decl)
    element = decl.element if decl is not None else None
    if schema.items is not None:
        place.items = _build(schema.items, element)
        place.list_keys = schema.list_keys if schema.list_type == "map" and schema.type == "array" else []
    for name, child in schema.properties.items():
        found = _child_decl(decl, child, name)
        built = _build(child, found) if found is not None else None
        if built is not None:
            place.properties[name] = built
    if schema.additional_schema is not None:
        place.additional = _build(schema.additional_schema, element)
    return None if place.is_empty() else place


def _child_decl(decl: Decl | None, schema: Node, name: str) -> Decl | None:
    """The declaration of a property; None for one that expressions cannot see, where no rule is evaluated."""
    identifier = escape(name)
    if identifier is not None:
        field = decl.fields.get(identifier) if decl is not None else None
        return field.decl if field is not None else None
    found = declare(schema, root=schema.embedded)
    return found if found.type is not None else None


class _Walk:
    """One evaluation of all rules."""

    __slots__ = ("budget", "errors", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: Node) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self.budget = OBJECT_LIMIT
        self.errors: list[FieldError] = []

    def visit(self, place: _Place, data: Any, old: Any, path: str, trail: _Trail | None) -> bool:
        """Evaluate the rules of a place and below; False when the budget is spent."""
        if data is None:
            return True
        if (place.unready or place.rules) and not self.evaluate(place, data, old, path, trail):
            return False
        if data.__class__ is dict:
            return self.visit_object(place, data, old if old.__class__ is dict else {}, path, trail)
        if place.items is not None and data.__class__ is list:
            return self.visit_list(place, place.items, data, old if old.__class__ is list else [], path, trail)
        return True

    def visit_object(
        self, place: _Place, data: dict[str, Any], old: dict[str, Any], path: str, trail: _Trail | None
    ) -> bool:
        if place.additional is not None:
            for key, item in data.items():
                here = f"{'' if path == ROOT else path}[{key}]"
                if not self.visit(place.additional, item, old.get(key), here, _Trail(trail, key)):
                    return False
        for name, child in place.properties.items():
            item = data.get(name)
            if item is not None:
                here = name if path == ROOT else f"{path}.{name}"
                if not self.visit(child, item, old.get(name), here, _Trail(trail, name)):
                    return False
        return True

    def visit_list(
        self, place: _Place, items: _Place, data: list[Any], old: list[Any], path: str, trail: _Trail | None
    ) -> bool:
        keys = place.list_keys
        known: dict[Any, Any] = {}
        if keys:
            for item in old:
                key = map_list_key(item, keys)
                if key:
                    known.setdefault(key, item)
        for index, item in enumerate(data):
            key = map_list_key(item, keys) if known else ()
            before = known.get(key) if key else None
            if not self.visit(items, item, before, f"{path}[{index}]", _Trail(trail, index)):
                return False
        return True

    def evaluate(self, place: _Place, data: Any, old: Any, path: str, trail: _Trail | None) -> bool:
        for rule in place.ready():
            if self.budget <= 0:
                detail = "validation failed due to running out of cost budget, no further validation rules will be run"
                self.errors.append(fe.invalid(path, rule.decl.node.type, detail))
                return False
            problem, self.budget = rule.evaluate(data, old, self.budget)
            if problem is None:
                continue
            if not (problem.forgivable and self.old is not None and self.is_unchanged(trail)):
                self.errors.append(_error(problem, rule, data, path))
            if problem.ends:
                return False
        return True

    def is_unchanged(self, trail: _Trail | None) -> bool:
        """Whether the value at the end of a trail, or else the nearest around it with a counterpart, is as before."""
        steps: list[str | int] = []
        while trail is not None:
            steps.append(trail.step)
            trail = trail.parent
        current: Correlation | None = Correlation(self.new, self.old, self.schema)
        around: Correlation | None = None
        for step in reversed(steps):
            if current is None:
                continue
            if around is None and step in ("apiVersion", "kind"):
                # both objects were converted to one version, so a change of these cannot be seen
                return False
            current, around = current.index(step) if isinstance(step, int) else current.key(step), current
        judged = current if current is not None else around
        return judged is not None and judged.equal()


def _error(problem: Problem, rule: Rule, data: Any, path: str) -> FieldError:
    kind = rule.decl.node.type
    if problem.path:
        path = problem.path if path == ROOT else f"{path}.{problem.path}"
    if problem.kind:
        return fe.invalid(path, kind, problem.detail)
    value = fe.OMIT if kind in ("object", "array") else data
    if problem.reason == fe.FORBIDDEN:
        return fe.forbidden(path, problem.detail)
    if problem.reason == fe.REQUIRED:
        return fe.required(path, problem.detail)
    if problem.reason == fe.DUPLICATE:
        return fe.duplicate(path, value)
    return fe.invalid(path, value, problem.detail)
