"""The expressions of `x-kubernetes-validations` in a CRD: they compile, and their estimated cost is bounded.

Source: apiextensions `pkg/apis/apiextensions/validation/{validation,cel_validation}.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from steersman.api.apiextensions.quoting import quote_rule
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.schema.cel.escaping import escape
from steersman.apimachinery.schema.cel.rules import Expression, RuleScope
from steersman.apimachinery.schema.cel.schema_types import Decl, declare
from steersman.apimachinery.schema.cel.types import BOOL, STRING
from steersman.apimachinery.schema.structural import Node, read_schema

EXPRESSION_LIMIT = 10_000_000
"""Most that one expression may cost by estimate."""
SCHEMA_LIMIT = 100_000_000
"""Most that all expressions of a schema may cost by estimate."""
_MOST = 2**64 - 1
_HINT = (
    "try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared"
)


def rule_errors(
    schema: Mapping[str, Any], path: str, *, faulty: Collection[str] = (), unchanged: bool = False
) -> list[FieldError]:
    """What is wrong with the expressions of a structural root schema at a path.

    `faulty` are the paths of schemas with other errors: rules of these and of all around them are passed over. The
    expressions of an `unchanged` schema may each cost more than the limit.
    """
    check = _Check(faulty, unchanged)
    check.visit(_Context(read_schema(schema), path, declares_root=True))
    return check.errors + check.total_errors(path)


@dataclass(slots=True)
class _Context:
    """A schema and where it stands; `cardinality` is how often data of it can occur, None without a bound."""

    node: Node
    path: str
    declares_root: bool = False
    parent_decl: Decl | None = None
    accessor: str = ""
    cardinality: int | None = 1
    uncorrelatable: str = ""
    _decl: Decl | None = field(default=None, init=False)

    def decl(self) -> Decl | None:
        """The declaration: part of the one around it, or made anew."""
        if self._decl is None:
            found = _part(self.parent_decl, self.accessor) if self.parent_decl is not None else None
            self._decl = found or declare(self.node, root=self.declares_root or self.node.embedded)
        return self._decl if self._decl.type is not None else None


def _part(decl: Decl, accessor: str) -> Decl | None:
    if accessor in ("@items", "@values"):
        return decl.element
    identifier = escape(accessor)
    found = decl.fields.get(identifier) if identifier is not None else None
    return found.decl if found is not None else None


class _Check:
    def __init__(self, faulty: Collection[str], unchanged: bool) -> None:
        self.faulty = faulty
        self.unchanged = unchanged
        self.errors: list[FieldError] = []
        self.total = 0
        self.expensive: list[tuple[int, str]] = []

    def visit(self, context: _Context) -> None:
        """Judge the rules below a schema, then its own."""
        in_scope = bool(context.node.rules) or context.parent_decl is not None
        for child in _children(context, context.decl() if in_scope else None):
            self.visit(child)
        faulty = any(place.startswith(context.path) for place in self.faulty)
        if context.node.rules and not faulty:
            self.judge(context)

    def judge(self, context: _Context) -> None:
        path = f"{context.path}.x-kubernetes-validations"
        decl = context.decl()
        if decl is None:
            reason = "unable to convert structural schema to CEL declarations"
            words = "internal error: failed to construct type information for x-kubernetes-validations rules"
            self.errors.append(fe.internal(path, f"{words}: {reason}"))
            return
        scope = RuleScope(decl)
        times = context.cardinality if context.cardinality is not None else scope.max_cardinality
        for index, rule in enumerate(context.node.rules):
            self.judge_rule(rule, scope, times, f"{path}[{index}]", context.uncorrelatable)

    def judge_rule(self, rule: Mapping[str, Any], scope: RuleScope, times: int, path: str, uncorrelatable: str) -> None:
        text = rule.get("rule") or ""
        optional_old = bool(rule.get("optionalOldSelf"))
        compiled = scope.compile(text, BOOL, "", optional_old=optional_old) if text.strip() else Expression()
        cost = min(compiled.max_cost * times, _MOST)
        self.observe(cost, f"{path}.rule", "estimated rule cost")
        if compiled.error:
            self.errors.append(fe.invalid(f"{path}.rule", quote_rule(rule), compiled.error))
        message = rule.get("messageExpression") or ""
        if message and compiled.program is not None:
            self.judge_message(
                rule, scope.compile(message, STRING, "messageExpression ", optional_old=optional_old), path
            )
        if compiled.uses_old and uncorrelatable:
            words = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
            self.errors.append(fe.invalid(f"{path}.rule", text, words))
        elif not compiled.uses_old and rule.get("optionalOldSelf") is not None:
            words = "may not be set if oldSelf is not used in rule"
            self.errors.append(fe.invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], words))

    def judge_message(self, rule: Mapping[str, Any], compiled: Expression, path: str) -> None:
        path = f"{path}.messageExpression"
        if compiled.error:
            self.errors.append(fe.invalid(path, quote_rule(rule), compiled.error))
        else:
            self.observe(compiled.max_cost, path, "estimated messageExpression cost")

    def observe(self, cost: int, path: str, name: str) -> None:
        if cost > EXPRESSION_LIMIT and not self.unchanged:
            self.errors.append(fe.forbidden(path, _too_expensive(name, cost, EXPRESSION_LIMIT)))
        self.total = min(self.total + cost, _MOST)
        if cost >= SCHEMA_LIMIT // 100:
            self.expensive.append((cost, path))

    def total_errors(self, path: str) -> list[FieldError]:
        """When all expressions together are too expensive: which four contribute most."""
        if self.total <= SCHEMA_LIMIT:
            return []
        words = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        worst = sorted(self.expensive, key=lambda each: -each[0])[:4]
        errors = [fe.forbidden(place, words) for _, place in worst]
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        return [*errors, fe.forbidden(path, _too_expensive(name, self.total, SCHEMA_LIMIT))]


def _children(context: _Context, decl: Decl | None) -> Iterator[_Context]:
    node, path = context.node, context.path
    below = _cardinality(context)
    apart = context.uncorrelatable

    def child(schema: Node, place: str, accessor: str, uncorrelatable: str = apart) -> _Context:
        return _Context(schema, f"{path}.{place}", False, decl, accessor, below, uncorrelatable)

    if node.additional_schema is not None:
        yield child(node.additional_schema, "additionalProperties", "@values")
    for name, schema in node.properties.items():
        yield child(schema, f"properties[{name}]", name)
    if node.items is not None:
        yield child(node.items, "items", "@items", apart or ("" if node.list_type == "map" else path))


def _cardinality(context: _Context) -> int | None:
    """How often data of the schemas directly below can occur."""
    node = context.node
    bound: int | None = 1
    if node.type == "object" and node.additional is not None:
        bound = node.max_properties
    elif node.type == "array":
        bound = node.max_items
    if context.cardinality is None or bound is None:
        return None
    return min(context.cardinality * max(bound, 0), _MOST)


def _too_expensive(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {shown} ({_HINT})"
