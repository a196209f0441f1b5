"""Whether a write is one that a policy, or its binding, is about.

Source: apiserver `pkg/admission/plugin/policy/{matching/matching,generic/policy_matcher}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steersman.apimachinery.errors import ApiError
from steersman.apimachinery.selectors import LabelSelector, from_object
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.admission.matching import Equivalents, namespace_matches, object_matches, rule_matches
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.watchcache import ResourceCache

Rule = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Criteria:
    """A MatchResources object; without `rules` every resource matches. Selectors that are None select everything."""

    rules: Sequence[Rule]
    excluded: Sequence[Rule]
    equivalent: bool
    namespaces: LabelSelector | None
    objects: LabelSelector | None


def criteria(match: Mapping[str, Any]) -> Criteria:
    """Read a MatchResources object."""
    return Criteria(
        match.get("resourceRules") or (),
        match.get("excludeResourceRules") or (),
        match.get("matchPolicy") == "Equivalent",
        from_object(match.get("namespaceSelector") or {}) or None,
        from_object(match.get("objectSelector") or {}) or None,
    )


@dataclass(frozen=True, slots=True)
class Matcher:
    """What matching takes: the namespaces' labels, and in which other versions a resource is served."""

    namespaces: Callable[[], ResourceCache]
    equivalents: Equivalents

    def match(self, wanted: Criteria, attributes: Attributes) -> ResourceScope | None:
        """The scope in whose version the write is to be seen, None when it does not match.

        Raises NotFound for a namespace that is not there.
        """
        missing: ApiError | None = None
        try:
            if not namespace_matches(wanted.namespaces, attributes, self.namespaces()):
                return None
        except ApiError as error:
            missing = error
        if not object_matches(wanted.objects, attributes):
            return None
        if self._find(wanted.excluded, wanted.equivalent, attributes) is not None:
            return None
        scope = attributes.scope if not wanted.rules else self._find(wanted.rules, wanted.equivalent, attributes)
        if scope is not None and missing is not None:
            raise missing
        return scope

    def _find(self, rules: Sequence[Rule], equivalent: bool, attributes: Attributes) -> ResourceScope | None:
        scope = attributes.scope
        if any(_covers(rule, attributes, scope) for rule in rules):
            return scope
        if not rules or not equivalent:
            return None
        others = [other for other in self.equivalents(scope) if other.gvr != scope.gvr]
        return next((other for rule in rules for other in others if _covers(rule, attributes, other)), None)


def _covers(rule: Rule, attributes: Attributes, scope: ResourceScope) -> bool:
    names = rule.get("resourceNames")
    return rule_matches(rule, attributes, scope.gvr) and (not names or attributes.name in names)
