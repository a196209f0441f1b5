"""The default roles and bindings of RBAC, and their reconciliation at start.

`data/bootstrap_policy.json` states what kube-apiserver 1.37.2 creates, without the label and the annotation that all
of them carry.

Source: kubernetes `plugin/pkg/auth/authorizer/rbac/bootstrappolicy`, `pkg/registry/rbac/rest/storage_rbac.go`,
component-helpers `auth/rbac/reconciliation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import orjson

from steersman._util.dataclass import dataclass
from steersman.apiserver.authz.policy_rules import missing_rules
from steersman.apiserver.authz.rbac import GROUP

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
ANNOTATIONS = {AUTOUPDATE: "true"}
NAMESPACES = ("kube-system", "kube-public")
"""The namespaces of the default roles: to be created before them."""

_DATA = Path(__file__).with_name("data") / "bootstrap_policy.json"

Object = dict[str, Any]


def default_policy() -> list[Object]:
    """All default objects as clients would create them, in upstream's order of creation, roles before bindings."""
    policy: dict[str, list[Object]] = orjson.loads(_DATA.read_bytes())
    return [_object(kind, entry) for kind, entries in policy.items() for entry in entries]


def _object(kind: str, entry: Object) -> Object:
    metadata: Object = {"name": entry.pop("name")}
    if "namespace" in entry:
        metadata["namespace"] = entry.pop("namespace")
    metadata["labels"] = LABELS | entry.pop("labels", {})
    metadata["annotations"] = dict(ANNOTATIONS)
    return {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": metadata, **entry}


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What brings a stored object up to the default policy: `object` is what to write, None when there is nothing
    to do. To recreate is to delete the stored object and create this one, since a roleRef cannot change."""

    operation: Literal["none", "create", "update", "recreate"]
    object: Object | None = None


_NOTHING = Reconciliation("none")


def reconcile(expected: Object, existing: Object | None) -> Reconciliation:
    """What to do about one default object, given the stored one (None when there is none).

    Missing labels, annotations, rules, selectors and subjects are added; what others added stays, with the exception
    of an aggregationRule on a role that is not to have one. An object whose autoupdate annotation is "false" is left
    alone. Neither argument is changed; the result may share parts with them.
    """
    if existing is None:
        return Reconciliation("create", expected)
    if ((existing["metadata"].get("annotations")) or {}).get(AUTOUPDATE) == "false":
        return _NOTHING
    if existing.get("roleRef") != expected.get("roleRef"):
        return Reconciliation("recreate", expected)
    changes = _missing_subjects(expected, existing) if "roleRef" in expected else _missing_grants(expected, existing)
    metadata = _merged_metadata(expected["metadata"], existing["metadata"])
    if metadata != existing["metadata"]:
        changes["metadata"] = metadata
    if not changes:
        return _NOTHING
    merged = {**existing, **changes}
    return Reconciliation("update", {key: value for key, value in merged.items() if value is not _REMOVED})


_REMOVED: Any = object()


def _merged_metadata(expected: Mapping[str, Any], existing: Mapping[str, Any]) -> Object:
    merged = dict(existing)
    for key in ("annotations", "labels"):
        merged[key] = {**expected[key], **(existing.get(key) or {})}
    return merged


def _missing_subjects(expected: Object, existing: Object) -> Object:
    held = existing.get("subjects") or []
    missing = [subject for subject in expected.get("subjects") or () if subject not in held]
    return {"subjects": held + missing} if missing else {}


def _missing_grants(expected: Object, existing: Object) -> Object:
    changes: Object = {}
    held = existing.get("rules") or []
    missing = missing_rules(held, expected.get("rules") or ())
    if missing:
        changes["rules"] = held + missing
    wanted, aggregation = expected.get("aggregationRule"), existing.get("aggregationRule")
    if wanted is None:
        if aggregation is not None:
            changes["aggregationRule"] = _REMOVED
        return changes
    selectors = (aggregation or {}).get("clusterRoleSelectors") or []
    lacking = [selector for selector in wanted["clusterRoleSelectors"] if selector not in selectors]
    if lacking:
        changes["aggregationRule"] = {"clusterRoleSelectors": selectors + lacking}
    return changes
