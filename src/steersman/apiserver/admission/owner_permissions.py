"""OwnerReferencesPermissionEnforcement: owners are changed by those who may delete the object, and an owner's deletion
is held up by those who may change its finalizers. Off unless it is enabled.

Source: kubernetes `plugin/pkg/admission/gc/gc_admission.go`.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman._util.gotext import quote
from steersman.apimachinery.errors import Forbidden, forbidden
from steersman.apimachinery.gvk import GroupVersionKind, split_api_version
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.admission.policies.params import scope_of_kind
from steersman.apiserver.authz import attributes as authz
from steersman.apiserver.authz.waiting import settle
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.strategy import Object


class OwnerReferencesPermissionEnforcement:
    name = "OwnerReferencesPermissionEnforcement"
    active = True

    def __init__(self, catalog: Catalog, authorizer: authz.Authorizer) -> None:
        self._catalog = catalog
        self._authorizer = authorizer

    async def validate(self, attributes: Attributes) -> None:
        """Raises Forbidden for owners that the user may not give."""
        scope = attributes.scope
        if attributes.obj is None or (scope.group, scope.resource, attributes.subresource) == ("", "pods", "status"):
            return
        new, old = _owners(attributes.obj), _owners(attributes.old)
        if new == old:
            return
        if attributes.operation != "CREATE":
            decision = await self._decision(_deletion(attributes))
            if not decision.allowed:
                why = f"cannot set an ownerRef on a resource you can't delete: {_reasons(decision)}"
                raise _refused(attributes, why)
        blocking = _newly_blocking(new, old)
        if blocking and not (await self._decision(_finalizing_all(attributes))).allowed:
            for reference in blocking:
                await self._check_finalizers(reference, attributes)

    async def _check_finalizers(self, reference: Object, attributes: Attributes) -> None:
        api_version, kind = reference.get("apiVersion") or "", reference.get("kind") or ""
        try:
            group, version = split_api_version(api_version)
            scope = scope_of_kind(self._catalog, GroupVersionKind(group, version, kind))
            problem = f"no matches for kind {quote(kind)} in version {quote(api_version)}"
        except ValueError as error:
            scope, problem = None, str(error)
        if scope is None:
            what = f"cannot find RESTMapping for APIVersion {api_version} Kind {kind}: {problem}"
            raise _refused(attributes, f"cannot set blockOwnerDeletion in this case because {what}")
        asked = authz.Attributes(
            attributes.user,
            "update",
            scope.group,
            scope.gvr.version,
            scope.resource,
            "finalizers",
            attributes.namespace if scope.namespaced else "",
            reference.get("name") or "",
        )
        decision = await self._decision(asked)
        if not decision.allowed:
            what = f"refers to a resource you can't set finalizers on: {_reasons(decision)}"
            raise _refused(attributes, f"cannot set blockOwnerDeletion if an ownerReference {what}")

    async def _decision(self, asked: authz.Attributes) -> authz.Decision:
        return await settle(lambda: self._authorizer.authorize(asked))


def _owners(obj: Object | None) -> Sequence[Object]:
    return ((obj or {}).get("metadata") or {}).get("ownerReferences") or []


def _newly_blocking(new: Sequence[Object], old: Sequence[Object]) -> list[Object]:
    blocked = {reference.get("uid") for reference in old if reference.get("blockOwnerDeletion")}
    return [each for each in new if each.get("blockOwnerDeletion") and each.get("uid") not in blocked]


def _deletion(attributes: Attributes) -> authz.Attributes:
    scope = attributes.scope
    return authz.Attributes(
        attributes.user,
        "delete",
        scope.group,
        scope.gvr.version,
        scope.resource,
        attributes.subresource,
        attributes.namespace,
        attributes.name,
    )


def _finalizing_all(attributes: Attributes) -> authz.Attributes:
    return authz.Attributes(attributes.user, "update", "*", "*", "*", "finalizers", "", "*")


def _reasons(decision: authz.Decision) -> str:
    """As Go prints a reason and an error."""
    return f"{decision.reason}, {decision.error or '<nil>'}"


def _refused(attributes: Attributes, why: str) -> Forbidden:
    scope = attributes.scope
    return forbidden(scope.group, scope.resource, attributes.name_shown, why)
