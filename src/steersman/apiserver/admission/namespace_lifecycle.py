"""NamespaceLifecycle: objects are created in namespaces that exist and stay; some namespaces are never deleted.

Source: apiserver `pkg/admission/plugin/namespace/lifecycle/admission.go`.
"""

from __future__ import annotations

from collections.abc import Callable

from steersman.apimachinery.errors import Forbidden, forbidden, not_found
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.watchcache import ResourceCache

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
_ALLOWED_WHILE_TERMINATING = frozenset({("authorization.k8s.io", "localsubjectaccessreviews")})


class NamespaceLifecycle:
    name = "NamespaceLifecycle"

    def __init__(self, namespaces: Callable[[], ResourceCache]) -> None:
        self._namespaces = namespaces

    async def admit(self, attributes: Attributes) -> None:
        scope = attributes.scope
        if attributes.operation == "DELETE" and scope.group == "" and scope.resource == "namespaces":
            if attributes.name in IMMORTAL:
                raise forbidden("", "namespaces", attributes.name, "this namespace may not be deleted")
            return
        if attributes.operation != "CREATE" or not scope.namespaced:
            return
        if (scope.group, scope.resource) in _ALLOWED_WHILE_TERMINATING:
            return
        entry = self._namespaces().get(attributes.namespace)
        if entry is None:
            raise not_found("", "namespaces", attributes.namespace)
        if b'"deletionTimestamp"' in entry.stored:
            namespace = entry.decode()
            if "deletionTimestamp" in namespace["metadata"]:
                raise self._terminating(attributes)

    @staticmethod
    def _terminating(attributes: Attributes) -> Forbidden:
        scope, namespace = attributes.scope, attributes.namespace
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        error = forbidden(scope.group, scope.resource, attributes.name, why)
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        error.details = {**(error.details or {}), "causes": [cause]}
        return error
