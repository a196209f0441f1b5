"""Which requests a webhook or a policy is about: rules, namespaces, labels, and the same resource in other versions.

Source: apiserver `pkg/admission/plugin/webhook/predicates/{rules,namespace,object}`, `.../generic/webhook.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from steersman.api.admissionregistration.webhook_configuration import UNSEEN
from steersman.apimachinery.errors import not_found
from steersman.apimachinery.gvk import GroupVersionResource
from steersman.apimachinery.selectors import LabelSelector
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import ResourceCache

_EXEMPT = frozenset(
    {
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    }
)
Equivalents = Callable[[ResourceScope], Iterable[ResourceScope]]
"""The scopes that serve the objects of a scope, in any version and group."""


def request_namespace(attributes: Attributes) -> str:
    """A write's namespace; a Namespace is in itself."""
    if attributes.namespace:
        return attributes.namespace
    return attributes.name if attributes.scope.gvr == ("", "v1", "namespaces") else ""


def is_exempt(scope: ResourceScope) -> bool:
    """What configures admission is never itself subject to what it configures, so it can always be repaired; and
    nobody stands between a review and its answer."""
    named = scope.group, scope.resource
    return named in UNSEEN or (scope.group == "admissionregistration.k8s.io" and scope.resource in _EXEMPT)


def rule_matches(rule: Mapping[str, Any], attributes: Attributes, resource: GroupVersionResource) -> bool:
    """Whether a RuleWithOperations covers a request, were it made on `resource`."""
    return (
        _scope_matches(rule.get("scope") or "*", attributes)
        and _has(rule.get("operations"), attributes.operation)
        and _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), resource.version)
        and any(
            _resource_matches(item, resource.resource, attributes.subresource) for item in rule.get("resources") or ()
        )
    )


def matched_scope(
    rules: Sequence[Mapping[str, Any]], attributes: Attributes, equivalents: Equivalents | None
) -> ResourceScope | None:
    """The scope in whose version the request is to be shown, None if no rule covers it.

    With `equivalents`, a rule may also name the resource in another version; earlier rules count first.
    """
    scope = attributes.scope
    if any(rule_matches(rule, attributes, scope.gvr) for rule in rules):
        return scope
    if equivalents is None:
        return None
    others = [other for other in equivalents(scope) if other.gvr != scope.gvr]
    for rule in rules:
        for other in others:
            if rule_matches(rule, attributes, other.gvr):
                return other
    return None


def namespace_matches(selector: LabelSelector | None, attributes: Attributes, namespaces: ResourceCache) -> bool:
    """Whether the object's namespace has the labels; cluster-scoped objects always match, namespaces by their own.

    Raises NotFound for a namespace that is not there.
    """
    scope = attributes.scope
    is_namespace = scope.group == "" and scope.resource == "namespaces"
    if selector is None or (not attributes.namespace and not is_namespace):
        return True
    if is_namespace and not attributes.subresource and attributes.operation in ("CREATE", "UPDATE"):
        assert attributes.obj is not None
        return selector.matches(attributes.obj["metadata"].get("labels"))
    name = attributes.name if is_namespace else attributes.namespace
    entry = namespaces.get(name)
    if entry is None:
        raise not_found("", "namespaces", name)
    return selector.matches(entry.labels)


def object_matches(selector: LabelSelector | None, attributes: Attributes) -> bool:
    """Whether the new or the old object has the labels."""
    if selector is None:
        return True
    return any(_labelled(selector, obj) for obj in (attributes.obj, attributes.old))


def _labelled(selector: LabelSelector, obj: Object | None) -> bool:
    return obj is not None and selector.matches((obj.get("metadata") or {}).get("labels"))


def _has(items: Sequence[str] | None, wanted: str) -> bool:
    return items is not None and ("*" in items or wanted in items)


def _scope_matches(scope: str, attributes: Attributes) -> bool:
    if scope == "*":
        return True
    return scope == ("Namespaced" if attributes.scope.namespaced else "Cluster")


def _resource_matches(item: str, resource: str, subresource: str) -> bool:
    main, _, sub = item.partition("/")
    return main in ("*", resource) and sub in ("*", subresource)
