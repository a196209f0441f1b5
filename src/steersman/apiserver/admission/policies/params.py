"""The objects that a binding gives to its policy.

Source: apiserver `pkg/admission/plugin/policy/generic/policy_dispatcher.go` (CollectParams).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steersman.apimachinery.gvk import split_api_version
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
    for scope in catalog.in_version(group, version):
        if scope.kind == kind.get("kind") and scope.stored:
            return scope
    shown = f"{group}/{version}, Kind={kind.get('kind')}"
    raise ParamError(f"failed to find resource referenced by paramKind: '{shown}'")


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
