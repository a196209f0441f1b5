"""CEL types, as the checker works on them, and how messages print them.

Source: cel-go `common/types/types.go`, `checker/format.go`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import is_
from typing import Final

PARAM: Final = "param"
OBJECT: Final = "object"
OPAQUE: Final = "opaque"


@dataclass(frozen=True, slots=True)
class Type:
    """A type: `kind` groups types, `name` tells types of one kind apart, `params` are the types inside.

    A `nullable` type is what a protobuf wrapper has: the same type, but null fits it, too.
    """

    kind: str
    name: str
    params: tuple[Type, ...] = ()
    nullable: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        if self.nullable:
            return f"wrapper({self.name})"
        shown = _SHOWN.get(self.kind, self.name)
        if not self.params:
            return shown
        return f"{shown}({', '.join(map(str, self.params))})"


def _simple(name: str) -> Type:
    return Type(name, name)


BOOL: Final = _simple("bool")
BYTES: Final = _simple("bytes")
DOUBLE: Final = _simple("double")
INT: Final = _simple("int")
STRING: Final = _simple("string")
UINT: Final = _simple("uint")
NULL: Final = _simple("null_type")
DYN: Final = _simple("dyn")
ERROR: Final = _simple("error")
DURATION: Final = Type("duration", "google.protobuf.Duration")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")
TYPE: Final = _simple("type")
QUANTITY: Final = Type(OBJECT, "kubernetes.Quantity")
URL: Final = Type(OBJECT, "kubernetes.URL")
NAMED_FORMAT: Final = Type(OBJECT, "kubernetes.NamedFormat")
SEMVER: Final = Type(OBJECT, "kubernetes.Semver")
AUTHORIZER: Final = Type(OBJECT, "kubernetes.authorization.Authorizer")
PATH_CHECK: Final = Type(OBJECT, "kubernetes.authorization.PathCheck")
GROUP_CHECK: Final = Type(OBJECT, "kubernetes.authorization.GroupCheck")
RESOURCE_CHECK: Final = Type(OBJECT, "kubernetes.authorization.ResourceCheck")
DECISION: Final = Type(OBJECT, "kubernetes.authorization.Decision")
IP: Final = Type(OPAQUE, "net.IP")
CIDR: Final = Type(OPAQUE, "net.CIDR")

_SHOWN = {"null_type": "null", "error": "!error!", "duration": "duration", "timestamp": "timestamp"}
_NULLABLE = frozenset({OPAQUE, OBJECT, "duration", "timestamp", "null_type"})


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    return Type(OPAQUE, "optional_type", (value,))


def type_of_type(value: Type) -> Type:
    return Type("type", "type", (value,))


def type_param(name: str) -> Type:
    return Type(PARAM, name)


def object_type(name: str) -> Type:
    return Type(OBJECT, name)


def nullable(value: Type) -> Type:
    return Type(value.kind, value.name, nullable=True)


def is_optional(t: Type) -> bool:
    return t.kind == OPAQUE and t.name == "optional_type"


def unwrap_optional(t: Type) -> tuple[Type, bool]:
    """The type inside an optional, and whether it was one."""
    return (t.params[0], True) if is_optional(t) else (t, False)


def is_dyn_or_error(t: Type) -> bool:
    return t is DYN or t is ERROR or t.kind in ("dyn", "error")


class Bindings:
    """What type variables stand for, found out while an expression is checked."""

    __slots__ = ("known",)

    def __init__(self, known: dict[str, Type] | None = None) -> None:
        self.known: dict[str, Type] = {} if known is None else known

    def assignable(self, left: list[Type] | tuple[Type, ...], right: list[Type] | tuple[Type, ...]) -> bool:
        """Whether each left type fits its right one; only then are variables bound."""
        if len(left) != len(right):
            return False
        if left == right and not any(map(_has_param, left)):
            return True
        trial = Bindings(dict(self.known))
        if all(map(trial._fits, left, right)):
            self.known = trial.known
            return True
        return False

    def resolve(self, t: Type, *, free_to_dyn: bool = False) -> Type:
        """The type with its variables replaced; unbound ones stay, or become dyn."""
        if t.kind == PARAM:
            bound = self.known.get(t.name)
            if bound is not None:
                return self.resolve(bound, free_to_dyn=free_to_dyn)
            return DYN if free_to_dyn else t
        params = tuple([self.resolve(each, free_to_dyn=free_to_dyn) for each in t.params])
        if all(map(is_, params, t.params)):
            return t
        return Type(t.kind, t.name, params)

    def _fits(self, left: Type, right: Type) -> bool:
        if right.kind == PARAM:
            valid, bound = self._binds(left, right)
            if valid:
                return True
            if bound:
                return False
        if left.kind == PARAM:
            return self._binds(right, left)[0]
        if is_dyn_or_error(left) or is_dyn_or_error(right):
            return True
        if left.kind == "null_type":
            return right.nullable or right.kind in _NULLABLE
        if right.kind == "null_type":
            return left.nullable or left.kind in _NULLABLE
        if left.kind != right.kind:
            return False
        if left.kind == "type":
            return True
        if left.name != right.name or len(left.params) != len(right.params):
            return False
        return all(map(self._fits, left.params, right.params))

    def _binds(self, t: Type, variable: Type) -> tuple[bool, bool]:
        """(the variable may stand for `t`, it stood for something already)."""
        if t == variable:
            return True, True
        bound = self.known.get(variable.name)
        if bound is not None:
            if t == bound:
                return True, True
            if self._fits(t, bound):
                general = t if _at_most_as_specific(t, bound) else bound
                if self._absent_in(variable, general):
                    self.known[variable.name] = general
                return True, True
            return False, True
        if self._absent_in(variable, t):
            self.known[variable.name] = t
            return True, False
        return False, False

    def _absent_in(self, variable: Type, within: Type) -> bool:
        if variable == within:
            return False
        if within.kind == PARAM:
            bound = self.known.get(within.name)
            return bound is None or self._absent_in(variable, bound)
        return all(self._absent_in(variable, each) for each in within.params)


def most_general(left: Type, right: Type) -> Type:
    """The less specific of two types that unify."""
    return left if _at_most_as_specific(left, right) else right


def _has_param(t: Type) -> bool:
    return t.kind == PARAM or any(map(_has_param, t.params))


def _at_most_as_specific(left: Type, right: Type) -> bool:
    if left.kind in ("dyn", PARAM):
        return True
    if right.kind in ("dyn", PARAM) or left.kind != right.kind:
        return False
    if left.kind == "type":
        return True
    if left.name != right.name or len(left.params) != len(right.params):
        return False
    return all(map(_at_most_as_specific, left.params, right.params))
