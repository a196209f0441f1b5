"""Expressions of JWT authenticators: CEL over the claims of a token, or over the user that they make.

Source: apiserver `pkg/authentication/cel/{compile,mapper,interface}.go`,
`plugin/pkg/authenticator/token/oidc/oidc.go` (newClaimsValue, convertCELValueToStringList).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from steersman.api.admissionregistration.declared import declare_object
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.ast import Call, Expr, Ident, Literal, Select, walk
from steersman.apimachinery.schema.cel.errors import CelError, CompileError, CostLimitExceeded, EvaluationPanic
from steersman.apimachinery.schema.cel.escaping import unescape
from steersman.apimachinery.schema.cel.operators import equal
from steersman.apimachinery.schema.cel.program import Program, ProgramError, Variable, compile_expression, object_types
from steersman.apimachinery.schema.cel.values import MISSING, MapLike, is_list

_TEXTS: Final = t.list_of(t.STRING)
_USER: Final = declare_object(
    "kubernetes.UserInfo",
    {"username": t.STRING, "uid": t.STRING, "groups": _TEXTS, "extra": t.map_of(t.STRING, _TEXTS)},
)
_OBJECTS: Final = object_types(_USER)
_CLAIMS_VARIABLE: Final = (Variable("claims", t.map_of(t.STRING, t.DYN)),)
_USER_VARIABLE: Final = (Variable("user", t.object_type("kubernetes.UserInfo")),)
_FAILURES = (CelError, CostLimitExceeded, EvaluationPanic)
_OPTIONAL_SELECT = "_?._"
_NEITHER = "expression must return a string or a list of strings"


class ExpressionError(ValueError):
    """An expression cannot be used, or failed; `internal` tells what is no fault of its text."""

    def __init__(self, message: str, *, internal: bool = False) -> None:
        super().__init__(message)
        self.internal = internal


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression; `email` and `email_verified` say whether it reads these claims."""

    source: str
    program: Program
    email: bool = False
    email_verified: bool = False

    def evaluate(self, value: Any) -> Any:
        """What it gives for the claims (see `claims_value`), or for a user. Raises ExpressionError."""
        result, _ = self.program.evaluate(value)
        if isinstance(result, _FAILURES):
            raise ExpressionError(f"expression '{self.source}' resulted in error: {result}")
        return result


def compile_claims(source: str, *, rule: bool = False) -> Expression:
    """Compile an expression over `claims`; a `rule` must give a bool. Raises ExpressionError."""
    return _compile(source, _CLAIMS_VARIABLE, rule)


def compile_user(source: str) -> Expression:
    """Compile a rule over `user`. Raises ExpressionError."""
    return _compile(source, _USER_VARIABLE, True)


def _compile(source: str, variables: tuple[Variable, ...], rule: bool) -> Expression:
    try:
        checked = compile_expression(source, variables, _OBJECTS)
    except CompileError as error:
        raise ExpressionError(f"compilation failed: {error}") from None
    if rule and (checked.type != t.BOOL or checked.type.nullable):
        raise ExpressionError("must evaluate to bool")
    email, verified = (_reads(checked.expr, name) for name in ("email", "email_verified"))
    try:
        return Expression(source, checked.program(), email, verified)
    except ProgramError as error:
        raise ExpressionError(f"program instantiation failed: {error}", internal=True) from None


def _reads(expr: Expr, claim: str) -> bool:
    for node in walk(expr):
        if isinstance(node, Select) and node.field == claim and _is_claims(node.operand):
            return True
        if isinstance(node, Call) and node.function == _OPTIONAL_SELECT and len(node.args) == 2:
            name = node.args[1]
            if isinstance(name, Literal) and name.value == claim and _is_claims(node.args[0]):
                return True
    return False


def _is_claims(expr: Expr) -> bool:
    return isinstance(expr, Ident) and expr.name == "claims"


class _Claims(MapLike):
    """An object in a token. Names that CEL cannot write are found escaped, too: `example__dot__com`."""

    __slots__ = ("_raw",)
    go_type = "*oidc.unescapeMapper"

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._raw = raw

    def find(self, key: Any) -> Any:
        if key.__class__ is not str:
            return MISSING
        name = unescape(key)
        found = self._raw.get(key if name is None else name, MISSING)
        return found if found is MISSING else claims_value(found)

    def keys(self) -> list[Any]:
        return list(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def equals(self, other: Any) -> bool:
        return equal({key: claims_value(value) for key, value in self._raw.items()}, other)


def claims_value(raw: Any) -> Any:
    """A claim as expressions see it: all numbers are doubles, as Go decodes JSON."""
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, int):
        return float(raw)
    if isinstance(raw, dict):
        return _Claims(raw)
    return [claims_value(item) for item in raw] if isinstance(raw, list) else raw


def texts(value: Any) -> list[str]:
    """What an expression for groups or extra gave: a text, a list of texts (empty ones left out), or null.

    Raises ExpressionError for anything else.
    """
    if value is None:
        return []
    if isinstance(value, str):
        return [value] if value else []
    if not is_list(value):
        raise ExpressionError(_NEITHER)
    items = value if isinstance(value, list) else value.items()
    if not all(isinstance(item, str) for item in items):
        raise ExpressionError(_NEITHER)
    return [item for item in items if item]
