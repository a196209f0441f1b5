"""Semantic versions.

Source: apiserver `pkg/cel/library/semverlib.go`; blang/semver `semver.go` (Parse).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steersman._util.gotext import quote
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.literals import INT_MAX, UINT_MAX
from steersman.apimachinery.schema.cel.values import Opaque

_DIGITS = frozenset("0123456789")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789")


@dataclass(frozen=True, slots=True)
class SemverValue(Opaque):
    """A version: three numbers, and what a pre-release is called."""

    numbers: tuple[int, int, int]
    pre: tuple[str, ...]
    build: tuple[str, ...]
    cel_type = t.SEMVER
    go_type = "cel.Semver"
    unhashable = True

    def equals(self, other: Any) -> bool:
        if not isinstance(other, SemverValue):
            return Opaque.equals(self, other)
        return _compare(self, other) == 0


def _number(text: str, what: str) -> int:
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if not set(text) <= _DIGITS:
        raise CelError(f"Invalid character(s) found in {what} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(f"{what.capitalize()} number must not contain leading zeroes {quote(text)}")
    value = int(text[:30])
    if value > UINT_MAX:
        raise CelError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return value


def _parse(text: str) -> SemverValue:
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    patch_text, plus, build_text = parts[2].partition("+")
    patch_text, dash, pre_text = patch_text.partition("-")
    patch = _number(patch_text, "patch")
    pre = tuple(map(_pre_release, pre_text.split("."))) if dash else ()
    build = tuple(map(_build, build_text.split("."))) if plus else ()
    return SemverValue((major, minor, patch), pre, build)


def _pre_release(text: str) -> str:
    if not text:
        raise CelError("Prerelease is empty")
    if set(text) <= _DIGITS:
        if len(text) > 1 and text[0] == "0":
            raise CelError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
    elif not set(text) <= _WORD:
        raise CelError(f"Invalid character(s) found in prerelease {quote(text)}")
    return text


def _build(text: str) -> str:
    if not text:
        raise CelError("Build meta data is empty")
    if not set(text) <= _WORD:
        raise CelError(f"Invalid character(s) found in build meta data {quote(text)}")
    return text


def _normalized(text: str) -> SemverValue:
    """Versions as people write them: with a `v`, with leading zeros, or without minor and patch."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1] in _DIGITS else "0" + stripped
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return _parse(".".join(parts))


def _from_text(text: str, normalize: bool = False) -> SemverValue:
    return _normalized(text) if normalize else _parse(text)


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        _from_text(text, normalize)
    except CelError:
        return False
    return True


def _sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _compare(left: SemverValue, right: SemverValue) -> int:
    if left.numbers != right.numbers:
        return _sign(left.numbers, right.numbers)
    if not left.pre or not right.pre:
        return bool(right.pre) - bool(left.pre)
    for mine, theirs in zip(left.pre, right.pre, strict=False):
        order = _compare_pre(mine, theirs)
        if order:
            return order
    return _sign(len(left.pre), len(right.pre))


def _compare_pre(left: str, right: str) -> int:
    numeric = set(left) <= _DIGITS, set(right) <= _DIGITS
    if all(numeric):
        return _sign((len(left), left), (len(right), right))
    if any(numeric):
        return -1 if numeric[0] else 1
    return _sign(left, right)


def _signed(value: int) -> int:
    """A 64-bit number read as a signed one."""
    return value - 2**64 if value > INT_MAX else value


OVERLOADS: dict[str, Function] = {
    "string_to_semver": _from_text,
    "string_bool_to_semver": _from_text,
    "is_semver_string": _is_semver,
    "is_semver_string_bool": _is_semver,
    "semver_is_greater_than": lambda left, right: _compare(left, right) == 1,
    "semver_is_less_than": lambda left, right: _compare(left, right) == -1,
    "semver_compare_to": _compare,
    "semver_major": lambda version: _signed(version.numbers[0]),
    "semver_minor": lambda version: _signed(version.numbers[1]),
    "semver_patch": lambda version: _signed(version.numbers[2]),
}
