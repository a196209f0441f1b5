"""The objects that a binding gives to its policy.

Source: apiserver `pkg/admission/plugin/policy/generic/policy_dispatcher.go` (CollectParams).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steersman.api import kinds
from steersman.apimachinery.gvk import GroupVersionKind, split_api_version
from steersman.apimachinery.selectors import from_object
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.unreadable import Unreadable
from steersman.apiserver.watchcache import Entry

_NO_NAMESPACE = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
_NO_PARAMS = "no params found for policy binding with `Deny` parameterNotFoundAction"
_NAMESPACE_GIVEN = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"


class ParamError(Exception):
    """The parameters cannot be had: the policy's failure policy decides. The message is upstream's."""


def param_scope(catalog: Catalog, kind: Mapping[str, str]) -> ResourceScope:
    """The resource that a paramKind names. Raises ParamError for one that is not served."""
    group, version = split_api_version(kind.get("apiVersion") or "")
    gvk = GroupVersionKind(group, version, kind.get("kind") or "")
    scope = scope_of_kind(catalog, gvk)
    if scope is None or not scope.stored:
        shown = f"{group}/{version}, Kind={gvk.kind}"
        raise ParamError(f"failed to find resource referenced by paramKind: '{shown}'")
    return scope


def scope_of_kind(catalog: Catalog, gvk: GroupVersionKind) -> ResourceScope | None:
    """The resource that serves a kind, None if there is none."""
    try:
        plural = kinds.builtin_kind(*gvk).plural
    except KeyError:
        return next((scope for scope in catalog.made() if scope.kind == gvk.kind and scope.gvk == gvk), None)
    return catalog.look_up(gvk.group, gvk.version, plural)


async def collect_params(
    scope: ResourceScope | None, reference: Mapping[str, Any] | None, namespace: str
) -> Sequence[Object | None]:
    """The objects to evaluate a policy with, one after another: [None] for a policy or binding that has none.

    `scope` is the paramKind's resource, `namespace` that of the write. Raises ParamError.
    """
    if scope is None or reference is None:
        return [None]
    if scope.namespaced:
        namespace = reference.get("namespace") or namespace
        if not namespace:
            raise ParamError(_NO_NAMESPACE)
    elif reference.get("namespace"):
        raise ParamError(_NAMESPACE_GIVEN)
    else:
        namespace = ""
    found = _entries(scope, reference, namespace)
    if not found and reference.get("parameterNotFoundAction") == "Deny":
        raise ParamError(_NO_PARAMS)
    try:
        await scope.view.prepare(found)
        return [scope.view.tree(entry) for entry in found]
    except Unreadable as error:
        raise ParamError(str(error)) from None


def _entries(scope: ResourceScope, reference: Mapping[str, Any], namespace: str) -> list[Entry]:
    name = reference.get("name")
    if name:
        entry = scope.cache.get(f"{namespace}/{name}" if scope.namespaced else name)
        return [] if entry is None else [entry]
    selector = from_object(reference.get("selector") or {})
    entries = (scope.cache.entries[key] for key in scope.cache.select(namespace))
    return [entry for entry in entries if selector.matches(entry.labels)]
