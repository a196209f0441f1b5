"""Label selectors: parsed as kube-apiserver parses them, compiled to a predicate over a dict of labels.

Source: apimachinery `pkg/labels/selector.go`, `pkg/apis/meta/v1/helpers.go` and `pkg/apis/meta/v1/validation`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError, aggregate
from steersman.apimachinery.meta import validate_label_name, validate_labels

IN, NOT_IN, EXISTS, NOT_EXISTS = "in", "notin", "exists", "!"
EQUALS, DOUBLE_EQUALS, NOT_EQUALS = "=", "==", "!="
GREATER, LESS = "gt", "lt"

_BINARY = "in, notin, =, ==, !=, gt, lt"
_SPECIAL = "=!(),><"
_BLANK = " \t\r\n"
_TOKENS = frozenset({")", ",", "!", "==", "=", ">", "<", "!=", "(", "in", "notin"})
_OPERATORS = {
    "in": IN,
    "notin": NOT_IN,
    "=": EQUALS,
    "==": DOUBLE_EQUALS,
    "!=": NOT_EQUALS,
    ">": GREATER,
    "<": LESS,
}
_SIGNS = {EQUALS: "=", DOUBLE_EQUALS: "==", NOT_EQUALS: "!=", GREATER: ">", LESS: "<"}
_OBJECT_OPERATORS = {"In": IN, "NotIn": NOT_IN, "Exists": EXISTS, "DoesNotExist": NOT_EXISTS}
_INT64 = 1 << 63
_INT64_DIGITS = 19

Predicate = Callable[[Mapping[str, str]], bool]


class SelectorError(ValueError):
    """Text that is no selector; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label; `values` are sorted."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.operator == EXISTS:
            return self.key
        if self.operator == NOT_EXISTS:
            return f"!{self.key}"
        listed = ",".join(self.values)
        if self.operator in _SIGNS:
            return f"{self.key}{_SIGNS[self.operator]}{listed}"
        return f"{self.key} {self.operator} ({listed})"

    def predicate(self) -> Predicate:
        """The condition as a function of an object's labels."""
        key, values = self.key, frozenset(self.values)
        match self.operator:
            case "=" | "==":
                (value,) = self.values
                return lambda labels: labels.get(key) == value
            case "in":
                return lambda labels: labels.get(key) in values
            case "!=" | "notin":
                return lambda labels: labels.get(key) not in values
            case "exists":
                return lambda labels: key in labels
            case "!":
                return lambda labels: key not in labels
        bound = _integer(self.values[0]) or 0
        above = self.operator == GREATER

        def compare(labels: Mapping[str, str]) -> bool:
            number = _integer(labels.get(key))
            return number is not None and (number > bound if above else number < bound)

        return compare


class LabelSelector:
    """All of its requirements must hold; without any it selects everything. `str` gives the canonical text."""

    __slots__ = ("_predicates", "nothing", "requirements")

    def __init__(self, requirements: Sequence[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self.nothing = nothing
        self._predicates = tuple(requirement.predicate() for requirement in self.requirements)

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels is selected."""
        given = labels or {}
        return not self.nothing and all(predicate(given) for predicate in self._predicates)

    def __bool__(self) -> bool:
        """Whether it restricts anything."""
        return self.nothing or bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return self.requirements == other.requirements and self.nothing == other.nothing

    def __hash__(self) -> int:
        return hash((self.requirements, self.nothing))

    def exact(self, key: str) -> str | None:
        """The only value that it allows for the label, if it demands one."""
        for requirement in self.requirements:
            if requirement.key == key:
                one = requirement.operator in (EQUALS, DOUBLE_EQUALS, IN) and len(requirement.values) == 1
                return requirement.values[0] if one else None
        return None


EVERYTHING = LabelSelector()
NOTHING = LabelSelector(nothing=True)


def parse(text: str) -> LabelSelector:
    """The selector that `text` writes (`a=b,c in (d,e),!f`); SelectorError with upstream's words otherwise."""
    return LabelSelector(_Parser(text).parse()) if text else EVERYTHING


def from_labels(labels: Mapping[str, str] | None) -> LabelSelector:
    """Selects what carries all of these labels; the labels are not validated."""
    return LabelSelector([Requirement(key, EQUALS, (value,)) for key, value in (labels or {}).items()])


def from_object(selector: Mapping[str, Any] | None) -> LabelSelector:
    """A LabelSelector object (matchLabels, matchExpressions): None selects nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    requirements = [_requirement(key, EQUALS, [value]) for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        operator = _OBJECT_OPERATORS.get(expression.get("operator") or "")
        if operator is None:
            raise SelectorError(f"{quote(expression.get('operator') or '')} is not a valid label selector operator")
        requirements.append(_requirement(expression.get("key") or "", operator, expression.get("values") or []))
    return LabelSelector(requirements)


def go_text(selector: Mapping[str, Any]) -> str:
    """A LabelSelector object as Go prints a pointer to one."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key') or ''},Operator:{each.get('operator') or ''},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    maps = f"map[string]string{{{labels}}}"
    return f"&LabelSelector{{MatchLabels:{maps},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"


def quoted(selector: Mapping[str, Any] | None) -> fe.Struct | None:
    """A selector as errors quote it: labels first."""
    if selector is None:
        return None
    return fe.Struct({key: selector[key] for key in ("matchLabels", "matchExpressions") if key in selector})


def validate_object(
    selector: Mapping[str, Any] | None, field: str, *, allow_invalid_values: bool = False
) -> list[FieldError]:
    """What is wrong with a LabelSelector object."""
    if selector is None:
        return []
    errors = validate_labels(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        errors += _validate_expression(expression, f"{field}.matchExpressions[{index}]", allow_invalid_values)
    return errors


def _validate_expression(expression: Mapping[str, Any], field: str, allow_invalid_values: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    values = expression.get("values") or []
    operator = expression.get("operator") or ""
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(fe.required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(fe.forbidden(f"{field}.values", detail))
    else:
        errors.append(fe.invalid(f"{field}.operator", operator, "not a valid selector operator"))
    errors += validate_label_name(expression.get("key") or "", f"{field}.key")
    if not allow_invalid_values:
        for index, value in enumerate(values):
            errors += [fe.invalid(f"{field}.values[{index}]", value, text) for text in names.label_value(value)]
    return errors


def _integer(text: str | None) -> int | None:
    if not text:
        return None
    digits = text[1:] if text[0] in "+-" else text
    if not (digits.isascii() and digits.isdigit()) or len(digits.lstrip("0")) > _INT64_DIGITS:
        return None
    value = int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
    return value if -_INT64 <= value < _INT64 else None


def _requirement(key: str, operator: str, values: Sequence[str]) -> Requirement:
    errors: list[FieldError] = []
    if messages := names.qualified_name(key):
        errors.append(fe.invalid("key", key, "; ".join(messages)))
    if operator in (IN, NOT_IN) and not values:
        errors.append(fe.invalid("values", [], "for 'in', 'notin' operators, values set can't be empty"))
    if operator in (EXISTS, NOT_EXISTS) and values:
        errors.append(fe.invalid("values", list(values), "values set must be empty for exists and does not exist"))
    if operator in (GREATER, LESS):
        errors += [
            fe.invalid(f"values[{index}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")
            for index, value in enumerate(values)
            if _integer(value) is None
        ]
    for index, value in enumerate(values):
        if messages := names.label_value(value):
            errors.append(fe.invalid(f"values[{index}][{key}]", value, "; ".join(messages)))
    if errors:
        raise SelectorError(aggregate(errors))
    return Requirement(key, operator, tuple(sorted(values)))


def _tokens(text: str) -> list[tuple[str, str]]:
    """`(kind, text)` pairs that end with ("end", ""); a kind is a token's own text, "identifier" or "error"."""
    out: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        ch = text[position]
        if ch in _BLANK:
            position += 1
        elif ch == "\0":
            break
        elif ch in _SPECIAL:
            token, position = _special(text, position)
            out.append(token)
        else:
            start = position
            while position < len(text) and text[position] not in _SPECIAL + _BLANK + "\0":
                position += 1
            word = text[start:position]
            out.append((word if word in _TOKENS else "identifier", word))
    out.append(("end", ""))
    return out


def _special(text: str, start: int) -> tuple[tuple[str, str], int]:
    """The longest token of special characters; what cannot become longer ends it."""
    found = ""
    end = start
    while end < len(text) and text[end] in _SPECIAL:
        end += 1
        if text[start:end] in _TOKENS:
            found = text[start:end]
        elif found:
            end -= 1
            break
    return (found, found), end


class _Parser:
    """Recursive descent over the tokens, with upstream's messages."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.position = 0

    def _peek(self, *, value: bool = True) -> tuple[str, str]:
        kind, text = self.tokens[min(self.position, len(self.tokens) - 1)]
        return ("identifier" if value and kind in ("in", "notin") else kind), text

    def _next(self, *, value: bool = True) -> tuple[str, str]:
        token = self._peek(value=value)
        self.position += 1
        return token

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            kind, text = self._peek()
            if kind == "end":
                return requirements
            if kind not in ("identifier", "!"):
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, text = self._next()
            if kind == "end":
                return requirements
            if kind != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._peek()
            if kind not in ("identifier", "!"):
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        kind, key = self._next()
        absent = kind == "!"
        if absent:
            kind, key = self._next()
        if kind != "identifier":
            raise SelectorError(f"found '{key}', expected: identifier")
        if messages := names.qualified_name(key):
            raise SelectorError(f"<nil>: Invalid value: {quote(key)}: {'; '.join(messages)}")
        if absent or self._peek()[0] in ("end", ","):
            return _requirement(key, NOT_EXISTS if absent else EXISTS, ())
        kind, text = self._next(value=False)
        if kind not in _OPERATORS:
            raise SelectorError(f"found '{text}', expected: {_BINARY}")
        operator = _OPERATORS[kind]
        values = self._values() if operator in (IN, NOT_IN) else self._exact_value()
        return _requirement(key, operator, sorted(set(values)))

    def _values(self) -> list[str]:
        kind, text = self._next()
        if kind != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        kind, text = self._peek()
        if kind == ")":
            self.position += 1
            return [""]
        if kind not in ("identifier", ","):
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        values = self._listed()
        if self._next()[0] != ")":
            raise SelectorError(f"found '{text}', expected: ')'")
        return values

    def _listed(self) -> list[str]:
        """Values between the parentheses; a comma without a value beside it stands for the empty one."""
        values: list[str] = []
        while True:
            kind, text = self._next()
            following, next_text = self._peek()
            if kind == "identifier":
                values.append(text)
                if following == ")":
                    return values
                if following != ",":
                    raise SelectorError(f"found '{next_text}', expected: ',' or ')'")
            elif kind == ",":
                if not values:
                    values.append("")
                if following == ")":
                    return [*values, ""]
                if following == ",":
                    values.append("")
            else:
                raise SelectorError(f"found '{text}', expected: ',', or identifier")

    def _exact_value(self) -> list[str]:
        if self._peek()[0] in ("end", ","):
            return [""]
        kind, text = self._next()
        if kind != "identifier":
            raise SelectorError(f"found '{text}', expected: identifier")
        return [text]
