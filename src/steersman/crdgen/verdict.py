"""The server's own verdict on a definition that was made, in the words of the models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from steersman.api.apiextensions.lint import lint
from steersman.api.kinds import builtin_kind
from steersman.apimachinery.errors import ApiError
from steersman.crdgen.errors import SchemaError

_SCHEMA = re.compile(r"^spec\.versions\[(\d+)\]\.schema\.openAPIV3Schema")
_SHARED = re.compile(r"^spec\.validation\.openAPIV3Schema")
_STEP = re.compile(r"\.properties\[([^\]]*)\]|\.(items|additionalProperties)\b")


def check(crd: Mapping[str, Any], classes: Mapping[str, str]) -> None:
    """Raises SchemaError for the first thing that the server would refuse, or warn of.

    `classes` has the name of the model class of each version.
    """
    kind = builtin_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    try:
        obj, unknown = kind.decode(_copy(crd))
    except ApiError as error:
        raise SchemaError(next(iter(classes.values())), error.message) from None
    if unknown:
        raise SchemaError(next(iter(classes.values())), f"the definition has unknown fields: {unknown}")
    plain, strategy = _copy(obj), kind.strategy
    strategy.default(obj)
    strategy.prepare_for_create(obj)
    errors = strategy.validate_create(obj)
    if errors:
        first = errors[0]
        where = _where(first.field, obj, classes)
        raise SchemaError(where, f"{first.body()}{_hint(first.body(), plain)}")
    warnings = strategy.warnings(obj)
    if warnings:
        raise SchemaError(next(iter(classes.values())), warnings[0])


def _copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copy(each) for key, each in value.items()}
    return [_copy(each) for each in value] if isinstance(value, list | tuple) else value


def _where(path: str, crd: Mapping[str, Any], classes: Mapping[str, str]) -> str:
    """The path in a model of what a field of the definition says."""
    found = _SCHEMA.match(path) or _SHARED.match(path)
    if found is None:
        return path
    versions = crd["spec"]["versions"]
    version = versions[int(found[1])] if found.re is _SCHEMA else versions[0]
    parts = [classes[version["name"]]]
    rest = path[found.end() :]
    at = 0
    while step := _STEP.match(rest, at):
        parts.append(f".{step[1]}" if step[1] is not None else "[]" if step[2] == "items" else ".*")
        at = step.end()
    keyword = rest[at:].lstrip(".")
    return "".join(parts) + (f" ({keyword})" if keyword else "")


def _hint(message: str, crd: Mapping[str, Any]) -> str:
    """Which lists, maps and texts have no bounds, when a rule costs too much by them."""
    if "cost" not in message:
        return ""
    names = list(dict.fromkeys(_unbounded(crd)))
    if not names:
        return ""
    return f"; without bounds (max_length) are {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}"


def _unbounded(crd: Mapping[str, Any]) -> Iterator[str]:
    for each in lint(crd):
        if each.rule.startswith("unbounded-") and each.severity == "warning":
            yield each.subject
