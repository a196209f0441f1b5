"""Single permissions, and the shortest rules that give just these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Grant:
    """One verb on one resource (or PLURAL/SUBRESOURCE); on objects of these names, in this namespace, if given."""

    group: str
    resource: str
    verb: str
    names: tuple[str, ...] = ()
    namespace: str | None = None

    def covers(self, other: Grant) -> bool:
        """Whether it permits all that the other one does."""
        return (
            (self.group, self.resource, self.verb) == (other.group, other.resource, other.verb)
            and self.namespace in (None, other.namespace)
            and (not self.names or (bool(other.names) and set(other.names) <= set(self.names)))
        )


def needed(grants: Iterable[Grant]) -> list[Grant]:
    """The grants that no other one covers."""
    unique = list(dict.fromkeys(grants))
    return [each for each in unique if not any(other is not each and other.covers(each) for other in unique)]


def rules(grants: Iterable[Grant]) -> list[dict[str, Any]]:
    """PolicyRules for the grants of one namespace: a verb stands in one of them for each resource."""
    verbs: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for grant in grants:
        verbs.setdefault((grant.group, grant.resource, grant.names), []).append(grant.verb)
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, resource, names), found in verbs.items():
        alike.setdefault((group, names, tuple(sorted(found, key=_rank))), []).append(resource)
    return list(_written(alike))


def _written(alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]]) -> Iterator[dict[str, Any]]:
    for (group, names, verbs), resources in sorted(alike.items(), key=lambda item: (item[0][0], sorted(item[1]))):
        rule: dict[str, Any] = {"apiGroups": [group], "resources": sorted(resources)}
        if names:
            rule["resourceNames"] = list(names)
        yield {**rule, "verbs": list(verbs)}


def _rank(verb: str) -> tuple[int, str]:
    return (VERBS.index(verb) if verb in VERBS else len(VERBS), verb)
