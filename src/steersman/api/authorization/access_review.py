"""Rules of the access reviews of authorization.k8s.io.

Source: kubernetes `pkg/apis/authorization/validation/validation.go`, `pkg/registry/authorization/util/helpers.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import field_selectors, names, selectors
from steersman.apimachinery.field_errors import FieldError, Struct
from steersman.apimachinery.meta import validate_label_name

Object = Mapping[str, Any]
_RESOURCE = "spec.resourceAttributes"
_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_LABEL_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


def validate(review: Object, managed_fields: list[Any] | None) -> list[FieldError]:
    """What is wrong with a SelfSubjectAccessReview, SubjectAccessReview or LocalSubjectAccessReview.

    `review` comes without managedFields; `managed_fields` are those that errors quote with its metadata.
    """
    spec = review.get("spec") or {}
    resource, path = spec.get("resourceAttributes"), _go_path(spec.get("nonResourceAttributes"))
    errors: list[FieldError] = []
    if (resource is None) == (path is None):
        errors.append(fe.invalid("spec", path, _ONE_OF))
    if review["kind"] != "SelfSubjectAccessReview" and not spec.get("user") and not spec.get("groups"):
        errors.append(fe.invalid("spec.user", "", "at least one of user or group must be specified"))
    if resource is not None:
        for name, key_errors in (("fieldSelector", _field_key), ("labelSelector", validate_label_name)):
            errors += _selector_errors(resource.get(name), f"{_RESOURCE}.{name}", key_errors)
    return errors + _meta_errors(review, managed_fields) + _local_errors(review, resource, path)


def _go_path(path: Object | None) -> Struct | None:
    """nonResourceAttributes as errors quote them: the internal type's fields have no JSON names."""
    return None if path is None else Struct(Path=path.get("path", ""), Verb=path.get("verb", ""))


def _meta_errors(review: Object, managed_fields: list[Any] | None) -> list[FieldError]:
    local = review["kind"] == "LocalSubjectAccessReview"
    meta = dict(review["metadata"])
    if not {key for key in meta if not (local and key == "namespace")}:
        return []
    if managed_fields:
        meta["managedFields"] = [Struct(entry) for entry in managed_fields]
    why = "must be empty except for namespace" if local else "must be empty"
    return [fe.invalid("metadata", Struct(meta), why)]


def _local_errors(review: Object, resource: Object | None, path: Struct | None) -> list[FieldError]:
    if review["kind"] != "LocalSubjectAccessReview":
        return []
    errors: list[FieldError] = []
    if resource is not None and resource.get("namespace", "") != review["metadata"].get("namespace", ""):
        namespace = resource.get("namespace", "")
        errors.append(fe.invalid(f"{_RESOURCE}.namespace", namespace, "must match metadata.namespace"))
    if path is not None:
        errors.append(fe.invalid("spec.nonResourceAttributes", path, "disallowed on this kind of request"))
    return errors


def _field_key(key: str, field: str) -> list[FieldError]:
    return [] if key else [fe.required(field, "must be specified")]


def _selector_errors(selector: Object | None, field: str, key_errors: Any) -> list[FieldError]:
    """Operators that are not known are for newer servers to judge: they are no errors."""
    if selector is None:
        return []
    raw, requirements = selector.get("rawSelector"), selector.get("requirements") or []
    errors: list[FieldError] = []
    if raw and requirements:
        errors.append(fe.invalid(f"{field}.rawSelector", raw, "may not specified at the same time as requirements"))
    if not raw and not requirements:
        why = f"when {field} is specified, requirements or rawSelector is required"
        errors.append(fe.required(f"{field}.requirements", why))
    for index, requirement in enumerate(requirements):
        errors += _requirement_errors(requirement, f"{field}.requirements[{index}]", key_errors)
    return errors


def _requirement_errors(requirement: Object, field: str, key_errors: Any) -> list[FieldError]:
    of_key: list[FieldError] = key_errors(requirement.get("key", ""), f"{field}.key")
    operator, values = requirement.get("operator"), requirement.get("values") or []
    of_values: list[FieldError] = []
    if operator in ("In", "NotIn") and not values:
        of_values.append(fe.required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist") and values:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        of_values.append(fe.forbidden(f"{field}.values", why))
    if key_errors is _field_key:
        return of_key + of_values
    of_labels = [
        fe.invalid(f"{field}.values[{index}]", value, text)
        for index, value in enumerate(values)
        for text in names.label_value(value)
    ]
    return of_values + of_key + of_labels


def evaluation_error(resource: Object) -> str:
    """What the answer says of selectors that could not be read, "" when they could."""
    found = []
    for name, usable in (("fieldSelector", _usable_fields), ("labelSelector", _usable_labels)):
        selector = resource.get(name)
        if selector is None:
            continue
        total, good = usable(selector)
        if good < total:
            how = "partially ignored" if good else "ignored"
            found.append(f"{_RESOURCE}.{name} {how} due to parse error")
    return "; ".join(found)


def _usable_fields(selector: Object) -> tuple[int, int]:
    """How many requirements there are, and how many can be read; raw text counts as one."""
    requirements = selector.get("requirements") or []
    if not requirements:
        return 1, int(_parses(field_selectors.parse, selector.get("rawSelector", "")))
    good = [
        each for each in requirements if each.get("operator") in ("In", "NotIn") and len(each.get("values") or ()) == 1
    ]
    return len(requirements), len(good)


def _usable_labels(selector: Object) -> tuple[int, int]:
    requirements = selector.get("requirements") or []
    if not requirements:
        return 1, int(_parses(selectors.parse, selector.get("rawSelector", "")))
    good = [each for each in requirements if each.get("operator") in _LABEL_OPERATORS]
    return len(requirements), len(good)


def _parses(parse: Any, text: str) -> bool:
    try:
        parse(text)
    except selectors.SelectorError:
        return False
    return True
