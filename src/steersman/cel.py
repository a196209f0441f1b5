"""CEL, the expression language of Kubernetes, for everyone: compile an expression once, evaluate it as often as needed.

    >>> from steersman import cel
    >>> replicas = {"type": "object", "properties": {"replicas": {"type": "integer"}}}
    >>> expression = cel.compile("self.replicas > 1", replicas)
    >>> expression.evaluate({"replicas": 3}).value
    True

Expressions have the types, functions, errors and costs that they have in `x-kubernetes-validations` of Kubernetes 1.37.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.costs import CALL_LIMIT
from steersman.apimachinery.schema.cel.errors import CelError, CompileError, EvaluationPanic, Issue
from steersman.apimachinery.schema.cel.errors import CostLimitExceeded as _LimitPassed
from steersman.apimachinery.schema.cel.library.formats import NamedFormat
from steersman.apimachinery.schema.cel.library.network import Cidr, Ip, Url
from steersman.apimachinery.schema.cel.library.quantities import QuantityValue
from steersman.apimachinery.schema.cel.library.semver import SemverValue
from steersman.apimachinery.schema.cel.library.standard import to_text
from steersman.apimachinery.schema.cel.objects import ListValue, ObjectValue, convert
from steersman.apimachinery.schema.cel.program import Checked, ProgramError, Variable, compile_expression, object_types
from steersman.apimachinery.schema.cel.schema_types import Decl, declare
from steersman.apimachinery.schema.cel.values import (
    MISSING,
    NONE,
    Optional,
    find,
    is_list,
    is_map,
    items_of,
    key_value,
    type_of,
)
from steersman.apimachinery.schema.structural import read_schema

__all__ = ["CompileError", "CostLimitExceeded", "Evaluation", "EvaluationError", "Expression", "compile"]

_RAW = frozenset({"object", "map", "list"})


class EvaluationError(Exception):
    """The expression failed while it ran; the message is the API server's."""


class CostLimitExceeded(EvaluationError):
    """The expression was stopped: it had cost more than the limit."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an expression came to, and what that cost in CEL's units.

    Lists and maps are lists and dicts, and an absent optional is None; durations, times, quantities, addresses and the
    like are texts, as `string()` gives them.
    """

    value: Any
    cost: int


class Expression:
    """A compiled expression: made by `compile`, and safe to share between threads.

    `type` is the result's type as CEL writes it (`bool`, `list(string)`), `least_cost` and `most_cost` are what
    evaluating it can cost by the bounds of the schema (`maxItems`, `maxLength`, ...). `reads_self` says whether it
    reads `self` or `oldSelf` at all, `needs_old` whether it cannot be evaluated without an old value.
    """

    __slots__ = (
        "_decl",
        "_optional_old",
        "_program",
        "least_cost",
        "most_cost",
        "needs_old",
        "reads_self",
        "source",
        "type",
    )

    def __init__(self, checked: Checked, decl: Decl | None, *, optional_old: bool) -> None:
        self.source: str = checked.source
        self.type = str(checked.type)
        self.reads_self = checked.uses("self") or checked.uses("oldSelf")
        self.needs_old = checked.uses("oldSelf") and not optional_old
        self.least_cost, self.most_cost = checked.cost()
        self._program = checked.program()
        self._decl = decl
        self._optional_old = optional_old

    def evaluate(self, value: Any, old: Any = None, *, limit: int = CALL_LIMIT) -> Evaluation:
        """The result for `self` = `value` and `oldSelf` = `old`, both as JSON has them.

        Without an `old` that the expression needs there is no result: Kubernetes passes such a rule over. Raises
        EvaluationError, and CostLimitExceeded beyond `limit` (default: what Kubernetes allows one rule).
        """
        if self.needs_old and old is None:
            raise EvaluationError("oldSelf is read, but there is no old value")
        try:
            new = self._value(value)
            before = NONE if old is None else self._old(old)
            result, cost = self._program.evaluate(new, before, limit=limit)
            if isinstance(result, _LimitPassed):
                raise CostLimitExceeded(str(result))
            if isinstance(result, (CelError, EvaluationPanic)):
                raise EvaluationError(str(result))
            return Evaluation(_plain(result), cost)
        except CelError as error:
            raise EvaluationError(str(error)) from None
        except RecursionError:
            raise EvaluationError("the data nests too deeply") from None

    def _value(self, value: Any) -> Any:
        decl = self._decl
        if decl is None or (decl.kind in _RAW and isinstance(value, (dict, list))):
            return value
        return convert(decl, value)

    def _old(self, old: Any) -> Any:
        value = self._value(old)
        if not self._optional_old:
            return value
        if self._decl is not None and isinstance(value, dict):
            value = ObjectValue(value, self._decl)
        elif self._decl is not None and isinstance(value, list):
            value = ListValue(value, self._decl)
        return Optional(value)


def compile(  # noqa: A001 (cel.compile is what it does)
    expression: str, schema: Mapping[str, Any] | None = None, *, root: bool = False, optional_old: bool = False
) -> Expression:
    """Compile an expression over `self`, and `oldSelf`, which have a structural OpenAPI v3 schema.

    Without a schema, `self` is of no known type. `root` says that the schema is one of whole objects, whose
    apiVersion, kind and metadata.name expressions may read. With `optional_old`, `oldSelf` is an optional, as under
    `optionalOldSelf` of a rule. Raises CompileError, whose text shows where with a caret, and ValueError for a schema
    that is none, or of which expressions can see nothing.
    """
    if not isinstance(expression, str):
        raise TypeError(f"an expression is a str, not {type(expression).__name__}")
    decl = None if schema is None else _declared(schema, root=root)
    seen = t.DYN if decl is None or decl.type is None else decl.type
    variables = (Variable("self", seen, decl), Variable("oldSelf", seen, decl, optional_old))
    checked = compile_expression(expression, variables, object_types(decl) if decl is not None else {})
    try:
        return Expression(checked, decl, optional_old=optional_old)
    except ProgramError as error:
        raise CompileError(expression, [Issue(-1, str(error))]) from None


def _declared(schema: Mapping[str, Any], *, root: bool) -> Decl:
    if not isinstance(schema, Mapping):
        raise TypeError(f"a schema is a mapping, not {type(schema).__name__}")
    try:
        node = read_schema(schema)
        decl = declare(node, root=root or node.embedded)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"this is no structural schema: {error}") from error
    if decl.type is None:
        raise ValueError("expressions can see nothing of data with this schema: it has no type")
    return decl


def _plain(value: Any) -> Any:
    """A value as JSON would have it, where it can."""
    if value is None or value.__class__ in (bool, str, float, bytes):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Optional):
        return None if value.item is MISSING else _plain(value.item)
    if is_list(value):
        return [_plain(item) for item in items_of(value)]
    if is_map(value):
        keys = value.keys()
        return {_key(key): _plain(find(value, key_value(key))) for key in keys}
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, QuantityValue):
        return str(value.amount)
    if isinstance(value, SemverValue):
        pre, build = "-" * bool(value.pre) + ".".join(value.pre), "+" * bool(value.build) + ".".join(value.build)
        return ".".join(map(str, value.numbers)) + pre + build
    if isinstance(value, Ip):
        return str(value.address)
    if isinstance(value, Cidr):
        return f"{value.address}/{value.bits}"
    if isinstance(value, Url):
        return str(value.url)
    if isinstance(value, NamedFormat):
        return value.name
    try:
        return to_text(value)
    except CelError:
        return str(type_of(value))


def _key(key: Any) -> Any:
    return _plain(key_value(key))
