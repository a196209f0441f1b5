"""Value validation with all causes, in upstream's words and order.

This is the exact judge. `fastpath` answers "nothing is wrong" for nearly every object before it is asked.

Source: kube-openapi `pkg/validation/validate` and `pkg/validation/errors/schema.go`; apiextensions
`pkg/apiserver/validation/{validation,ratcheting}.go`.
"""

from __future__ import annotations

from typing import Any

from steersman._util.gotext import quote
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.schema import numbers
from steersman.apimachinery.schema.correlation import Correlation, deep_equal
from steersman.apimachinery.schema.structural import INT64_MAX, INT64_MIN, Node

NO_FIELD = "<nil>"


class Result:
    """Errors by upstream's full text (equal texts are one error), and how many checks passed (for anyOf and oneOf)."""

    __slots__ = ("errors", "matches")

    def __init__(self) -> None:
        self.errors: dict[str, FieldError] = {}
        self.matches = 0

    def add(self, text: str, error: FieldError) -> None:
        self.errors.setdefault(text, error)

    def merge(self, other: Result) -> None:
        for text, error in other.errors.items():
            self.errors.setdefault(text, error)
        self.matches += other.matches


class Checker:
    """Checks values against nodes; `prefix` is put before every field path (not before paths in texts)."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix

    def check(self, node: Node, value: Any, path: str = "", correlation: Correlation | None = None) -> Result:
        """The verdict on `value`. With `correlation`, errors in a value that an update leaves alone do not count."""
        result = self._check(node, value, path, correlation)
        if result.errors and correlation is not None and correlation.equal():
            result.errors = {}
        return result

    def _check(self, node: Node, value: Any, path: str, correlation: Correlation | None) -> Result:
        result = Result()
        if value is None:
            if node.types and not node.nullable and "null" not in node.types:
                self._type_error(result, path, ",".join(node.types), "null")
            else:
                result.matches += 1
            self._check_enum(result, node, value, path)
            return result
        if isinstance(value, int) and not INT64_MIN <= value <= INT64_MAX:
            value = float(value)
        if node.types or node.format:
            result.matches += 1
            self._check_type(result, node, value, path)
        self._check_junctors(result, node, value, path)
        if isinstance(value, str):
            self._check_string(result, node, value, path)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            self._check_number(result, node, value, path)
        elif isinstance(value, list):
            self._check_list(result, node, value, path, correlation)
        self._check_enum(result, node, value, path)
        result.matches += 1
        if isinstance(value, dict):
            self._check_object(result, node, value, path, correlation)
        result.matches += 1
        return result

    def _field(self, path: str) -> str:
        path = path.removeprefix(".")
        if self._prefix and path:
            return f"{self._prefix}.{path}"
        return path or self._prefix or NO_FIELD

    def _plain(self, result: Result, text: str) -> None:
        """An error that upstream does not tie to a field."""
        result.add(text, fe.invalid(self._prefix or NO_FIELD, "", text))

    def _invalid(self, result: Result, path: str, value: Any, text: str) -> None:
        result.add(text, fe.invalid(self._field(path), value, text))

    def _type_error(self, result: Result, path: str, wanted: str, found: str) -> None:
        text = f"{path} in body must be of type {wanted}: {quote(found)}"
        result.add(text, fe.type_invalid(self._field(path), found, text))

    def _check_type(self, result: Result, node: Node, value: Any, path: str) -> None:
        found, number_format = _kind(value)
        types = node.types
        fits = found in types or (
            (found == "number" and "integer" in types and numbers.is_json_integer(value))
            or (found == "integer" and "number" in types)
        )
        textual = isinstance(value, (str, list))
        if not textual and node.format and not fits and number_format != node.format:
            self._type_error(result, path, node.format, number_format)
        elif textual and node.format and "number" not in types and "integer" not in types:
            result.matches += 1  # the format's own check decides
        elif not fits:
            self._type_error(result, path, ",".join(types), found)
        else:
            result.matches += 1

    def _check_string(self, result: Result, node: Node, value: str, path: str) -> None:
        result.matches += 1
        if node.max_length is not None and len(value) > node.max_length:
            text = f"{path} in body should be at most {node.max_length} chars long"
            result.add(text, fe.too_long(self._field(path), node.max_length))
        elif node.min_length is not None and len(value) < node.min_length:
            self._invalid(result, path, value, f"{path} in body should be at least {node.min_length} chars long")
        elif node.regex is not None and not node.regex(value):
            self._invalid(result, path, value, f"{path} in body should match '{node.pattern}'")
        elif node.pattern_error:
            shown = f"{node.pattern}, but pattern is invalid: {node.pattern_error}"
            self._invalid(result, path, value, f"{path} in body should match '{shown}'")
        if node.format_check is not None:
            result.matches += 1
            if not node.format_check(value):
                text = f"{path} in body must be of type {node.format}: {quote(value)}"
                result.add(text, fe.type_invalid(self._field(path), value, text))

    def _check_number(self, result: Result, node: Node, value: float, path: str) -> None:
        result.matches += 2
        for problem in numbers.problems(node, value, path):
            if problem.value is numbers.NO_VALUE:
                self._plain(result, problem.text)
            else:
                self._invalid(result, path, problem.value, problem.text)

    def _check_list(
        self, result: Result, node: Node, value: list[Any], path: str, correlation: Correlation | None
    ) -> None:
        result.matches += 2
        if node.items is not None:
            for position, item in enumerate(value):
                child = correlation.index(position) if correlation is not None else None
                result.merge(self.check(node.items, item, f"{path}[{position}]", child))
        size = len(value)
        if node.min_items is not None and size < node.min_items:
            self._invalid(result, path, size, f"{path} in body should have at least {node.min_items} items")
        if node.max_items is not None and size > node.max_items:
            text = f"{path} in body should have at most {node.max_items} items"
            result.add(text, fe.too_many(self._field(path), size, node.max_items))
        if node.unique_items and _has_duplicates(value):
            self._invalid(result, path, "", f"{path} in body shouldn't contain duplicates")

    def _check_enum(self, result: Result, node: Node, value: Any, path: str) -> None:
        if not node.enum or any(_in_enum(value, allowed) for allowed in node.enum):
            return
        supported = [allowed if isinstance(allowed, str) else fe.format_json(allowed) for allowed in node.enum]
        text = f"{path} in body should be one of [{' '.join(supported)}]"
        result.add(text, fe.not_supported(self._field(path), value, supported))

    def _check_object(
        self, result: Result, node: Node, value: dict[str, Any], path: str, correlation: Correlation | None
    ) -> None:
        result.matches += 1
        size = len(value)
        if node.min_properties is not None and size < node.min_properties:
            text = f"{path} in body should have at least {node.min_properties} properties"
            self._invalid(result, path, size, text)
        if node.max_properties is not None and size > node.max_properties:
            text = f"{path} in body should have at most {node.max_properties} properties"
            result.add(text, fe.too_many(self._field(path), size, node.max_properties))
        self._check_additional(result, node, value, path, correlation)
        for name, child in node.properties.items():
            if name in value:
                here = f"{path}.{name}" if path else name
                result.merge(self._check_field(child, name, value[name], here, path, correlation))
        for name in node.required:
            if name not in value:
                text = f"{path}.{name} in body is required"
                result.add(text, fe.required(self._field(f"{path}.{name}")))

    def _check_additional(
        self, result: Result, node: Node, value: dict[str, Any], path: str, correlation: Correlation | None
    ) -> None:
        if node.additional is None or node.additional is True:
            return
        for name, item in value.items():
            if name in node.properties:
                continue
            if isinstance(node.additional, Node):
                here = f"{path}.{name}"
                result.merge(self._check_field(node.additional, name, item, here, path, correlation))
            else:
                self._invalid(result, path, name, f"{path}.{name} in body is a forbidden property")

    def _check_field(
        self, node: Node, name: str, value: Any, here: str, parent: str, correlation: Correlation | None
    ) -> Result:
        # both versions of the object were converted to one type, so a change of apiVersion cannot be seen
        if correlation is None or (not parent and name in ("apiVersion", "kind")):
            return self.check(node, value, here)
        return self.check(node, value, here, correlation.key(name))

    def _check_junctors(self, result: Result, node: Node, value: Any, path: str) -> None:
        """anyOf, oneOf, allOf and not; ratcheting does not reach into them."""
        result.matches += 2
        if node.any_of:
            self._check_any_of(result, node.any_of, value, path)
        if node.one_of:
            self._check_one_of(result, node.one_of, value, path)
        if node.all_of:
            verdicts = [self.check(branch, value, path) for branch in node.all_of]
            for verdict in verdicts:
                result.merge(verdict)
            valid = sum(not verdict.errors for verdict in verdicts)
            if valid != len(verdicts):
                none = "" if valid else ". None validated"
                self._plain(result, f"{quote(path)} must validate all the schemas (allOf){none}")
        if node.negated is not None and not self.check(node.negated, value, path).errors:
            self._plain(result, f"{quote(path)} must not validate the schema (not)")

    def _check_any_of(self, result: Result, branches: list[Node], value: Any, path: str) -> None:
        best: Result | None = None
        for branch in branches:
            verdict = self.check(branch, value, path)
            if not verdict.errors:
                result.merge(verdict)
                return
            if best is None or verdict.matches > best.matches:
                best = verdict
        self._plain(result, f"{quote(path)} must validate at least one schema (anyOf)")
        if best is not None:
            result.merge(best)

    def _check_one_of(self, result: Result, branches: list[Node], value: Any, path: str) -> None:
        best: Result | None = None
        first: Result | None = None
        valid = 0
        for branch in branches:
            verdict = self.check(branch, value, path)
            if not verdict.errors:
                valid += 1
                first = first or verdict
                best = None
            elif not valid and (best is None or verdict.matches > best.matches):
                best = verdict
        if valid == 1 and first is not None:
            result.merge(first)
            return
        found = "Found none valid" if not valid else f"Found {valid} valid alternatives"
        self._plain(result, f"{quote(path)} must validate one and only one schema (oneOf). {found}")
        if best is not None:
            result.merge(best)


def _kind(value: Any) -> tuple[str, str]:
    """(JSON type, number format) of a value."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int):
        return "integer", "int64"
    if isinstance(value, float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


def _in_enum(value: Any, allowed: Any) -> bool:
    """Equality after Go's conversion of the value to the type of the enum's member."""
    if allowed is None or value is None:
        return False
    if type(value) is float and type(allowed) is int:
        return numbers.to_int64(value) == allowed
    if type(value) is int and type(allowed) is float:
        return float(value) == allowed
    if type(value) is int and type(allowed) is str:
        return (chr(value) if 0 <= value < 0x110000 and not 0xD800 <= value < 0xE000 else "\ufffd") == allowed
    return deep_equal(value, allowed)


def _has_duplicates(items: list[Any]) -> bool:
    return any(deep_equal(item, other) for index, item in enumerate(items) for other in items[:index])
