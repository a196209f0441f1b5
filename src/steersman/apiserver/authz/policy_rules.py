"""PolicyRules: what one allows, and whether some cover others.

Source: kubernetes `pkg/apis/rbac/v1/evaluation_helpers.go`,
component-helpers `auth/rbac/validation/policy_comparator.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steersman.apiserver.authz.attributes import Attributes

Rule = Mapping[str, Any]


class CompiledRule:
    """A PolicyRule prepared for many questions. A set that is None matches everything."""

    __slots__ = ("_exact_urls", "_groups", "_names", "_resources", "_url_prefixes", "_verbs", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._verbs = _wildcard(rule.get("verbs"))
        self._groups = _wildcard(rule.get("apiGroups"))
        self._resources = _wildcard(rule.get("resources"))
        names = rule.get("resourceNames")
        self._names = frozenset(names) if names else None
        urls = rule.get("nonResourceURLs") or ()
        self._exact_urls = frozenset(urls)
        self._url_prefixes = tuple(url.rstrip("*") for url in urls if url.endswith("*"))

    @property
    def by_name(self) -> bool:
        """Whether the answer depends on the request's object name."""
        return self._names is not None

    def allows(self, attributes: Attributes) -> bool:
        """Whether this rule allows the request. The user and the namespace are the binding's matter."""
        if self._verbs is not None and attributes.verb not in self._verbs:
            return False
        if not attributes.resource_request:
            return attributes.path in self._exact_urls or attributes.path.startswith(self._url_prefixes)
        return (
            (self._groups is None or attributes.group in self._groups)
            and self._has_resource(attributes.resource, attributes.subresource)
            and (self._names is None or attributes.name in self._names)
        )

    def _has_resource(self, resource: str, subresource: str) -> bool:
        if self._resources is None:
            return True
        if not subresource:
            return resource in self._resources
        return f"{resource}/{subresource}" in self._resources or f"*/{subresource}" in self._resources


def _wildcard(values: Sequence[str] | None) -> frozenset[str] | None:
    found = frozenset(values or ())
    return None if "*" in found else found


def missing_rules(owner: Sequence[Rule], wanted: Sequence[Rule]) -> list[dict[str, list[str]]]:
    """What of `wanted` the `owner` rules do not cover, broken down to one verb, resource and name (or URL) each.

    Empty when everything is covered. Each piece must be covered by one single owner rule, as upstream has it.
    """
    return [
        piece
        for rule in wanted
        if rule not in owner  # a rule covers itself
        for piece in _pieces(rule)
        if not any(_covers(held, piece) for held in owner)
    ]


def _pieces(rule: Rule) -> Iterator[dict[str, list[str]]]:
    verbs = rule.get("verbs") or ()
    names = rule.get("resourceNames") or ()
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in verbs:
                base = {"verbs": [verb], "apiGroups": [group], "resources": [resource]}
                if names:
                    yield from ({**base, "resourceNames": [name]} for name in names)
                else:
                    yield base
    for url in rule.get("nonResourceURLs") or ():
        yield from ({"verbs": [verb], "nonResourceURLs": [url]} for verb in verbs)


def _covers(held: Rule, piece: Rule) -> bool:
    held_names = held.get("resourceNames") or ()
    names = piece.get("resourceNames") or ()
    if held_names and not (names and set(names) <= set(held_names)):
        return False
    return (
        _has_all(held.get("verbs"), piece["verbs"])
        and _has_all(held.get("apiGroups"), piece.get("apiGroups") or ())
        and _resources_cover(held.get("resources") or (), piece.get("resources") or ())
        and all(
            any(_url_covers(owned, url) for owned in held.get("nonResourceURLs") or ())
            for url in piece.get("nonResourceURLs") or ()
        )
    )


def _has_all(held: Sequence[str] | None, wanted: Sequence[str]) -> bool:
    return "*" in (held or ()) or set(wanted) <= set(held or ())


def _resources_cover(held: Sequence[str], wanted: Sequence[str]) -> bool:
    if "*" in held:
        return True
    for resource in wanted:
        _, slash, subresource = resource.partition("/")
        if resource not in held and not (slash and f"*/{subresource}" in held):
            return False
    return True


def _url_covers(owned: str, url: str) -> bool:
    return owned == url or (owned.endswith("*") and url.startswith(owned.rstrip("*")))
