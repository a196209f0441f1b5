"""The selectors of a request, as authorizers see them: what cannot be read does not narrow.

Source: apiserver `pkg/endpoints/{request/requestinfo.go,filters/authorization.go}`,
`plugin/pkg/authorizer/webhook/webhook.go`; kubernetes `pkg/registry/authorization/util/helpers.go`; KEP-4601.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steersman.apimachinery import field_selectors, selectors
from steersman.apimachinery.request_info import RequestInfo
from steersman.apiserver.authz.attributes import Attributes, SelectorRequirement

_VERBS = frozenset({"list", "watch", "deletecollection"})
_OPERATORS = {
    selectors.IN: "In",
    selectors.EQUALS: "In",
    selectors.DOUBLE_EQUALS: "In",
    selectors.NOT_IN: "NotIn",
    selectors.NOT_EQUALS: "NotIn",
    selectors.EXISTS: "Exists",
    selectors.NOT_EXISTS: "DoesNotExist",
}
_LABEL_OPERATORS = frozenset(_OPERATORS.values())

Found = tuple[SelectorRequirement, ...]


def with_selectors(attributes: Attributes, info: RequestInfo) -> Attributes:
    """The attributes of a request with its selectors, where its verb is one that honours them."""
    if info.verb not in _VERBS or not info.query:
        return attributes
    return attributes._replace(fields=fields(info.first("fieldSelector")), labels=labels(info.first("labelSelector")))


def fields(text: str) -> Found:
    """The requirements of a field selector's text."""
    try:
        terms = field_selectors.parse(text).terms if text else ()
    except selectors.SelectorError:
        return ()
    return tuple(SelectorRequirement(term.field, "NotIn" if term.negated else "In", (term.value,)) for term in terms)


def labels(text: str) -> Found:
    """The requirements of a label selector's text; comparisons of numbers have no form here."""
    try:
        requirements = selectors.parse(text).requirements if text else ()
    except selectors.SelectorError:
        return ()
    return tuple(
        SelectorRequirement(each.key, _OPERATORS[each.operator], each.values)
        for each in requirements
        if each.operator in _OPERATORS
    )


def reviewed_fields(selector: Mapping[str, Any] | None) -> Found:
    """The requirements of an access review's fieldSelector."""
    if not selector:
        return ()
    if raw := selector.get("rawSelector"):
        return fields(raw)
    return tuple(each for each in _stated(selector) if each.operator in ("In", "NotIn") and len(each.values) == 1)


def reviewed_labels(selector: Mapping[str, Any] | None) -> Found:
    """The requirements of an access review's labelSelector."""
    if not selector:
        return ()
    if raw := selector.get("rawSelector"):
        return labels(raw)
    return tuple(each for each in _stated(selector) if each.operator in _LABEL_OPERATORS)


def _stated(selector: Mapping[str, Any]) -> Sequence[SelectorRequirement]:
    return [
        SelectorRequirement(each.get("key", ""), each.get("operator", ""), tuple(each.get("values") or ()))
        for each in selector.get("requirements") or ()
    ]
