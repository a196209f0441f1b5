"""What the expressions of webhooks and policies read of a write, and their match conditions.

    conditions = compile_conditions(webhook.get("matchConditions") or ())
    variables = admission_variables(attributes, gvk, gvr, authorizer)
    outcome = conditions.match(variables)    # .matches, or .error for the failure policy, or .failed: who said no

Source: apiserver `pkg/admission/plugin/cel/{condition,activation}.go` (CreateAdmissionRequest, newActivation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steersman.api.admissionregistration.expressions import AdmissionVariables
from steersman.api.admissionregistration.matching import Conditions, Outcome, compile_conditions
from steersman.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from steersman.apimachinery.schema.cel.library.authorization import (
    Authorizer,
    Decision,
    Question,
    ResourceCheck,
)
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.admission.matching import request_namespace
from steersman.apiserver.authn.user import UserInfo, service_account_groups, service_account_name
from steersman.apiserver.authz import attributes as authz
from steersman.apiserver.authz.narrowing import fields, labels
from steersman.apiserver.strategy import Object

__all__ = [
    "AdmissionVariables",
    "Conditions",
    "Outcome",
    "admission_variables",
    "compile_conditions",
]

_NAMESPACE_META = frozenset(
    {
        "name",
        "generateName",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    }
)


def admission_variables(
    attributes: Attributes,
    kind: GroupVersionKind,
    resource: GroupVersionResource,
    authorizer: authz.Authorizer,
    *,
    objects: tuple[Object | None, Object | None] | None = None,
    namespace: Object | None = None,
    params: Object | None = None,
) -> AdmissionVariables:
    """The variables for a webhook or policy that matched a write as `kind` and `resource`.

    `objects` are the new and the old one in that kind's version, where it is another than the request's. `namespace`
    is the Namespace that the object is in, for expressions that see it.
    """
    new, old = objects if objects is not None else (attributes.obj, attributes.old)
    ask = _Asker(authorizer, attributes.user)
    return AdmissionVariables(
        object=new,
        old_object=old,
        request=_request(attributes, kind, resource),
        namespace_object=namespace_object(namespace),
        params=params,
        authorizer=Authorizer(ask),
        request_resource=ResourceCheck(ask, _own_question(attributes)),
    )


def namespace_object(namespace: Object | None) -> Object | None:
    """The parts of a Namespace that expressions see."""
    if namespace is None:
        return None
    meta = {key: value for key, value in namespace["metadata"].items() if key in _NAMESPACE_META}
    return {"metadata": meta, "spec": namespace.get("spec") or {}, "status": namespace.get("status") or {}}


def _own_question(attributes: Attributes) -> Question:
    return Question(
        group=attributes.scope.group,
        resource=attributes.scope.resource,
        subresource=attributes.subresource,
        namespace=request_namespace(attributes),
        name=attributes.name,
    )


def _request(attributes: Attributes, kind: GroupVersionKind, resource: GroupVersionResource) -> Mapping[str, Any]:
    """The AdmissionRequest, with what is empty left out as its JSON has it."""
    out: dict[str, Any] = {
        "uid": "",
        "kind": kind._asdict(),
        "resource": resource._asdict(),
        "requestKind": attributes.gvk._asdict(),
        "requestResource": attributes.scope.gvr._asdict(),
        "operation": attributes.operation,
        "userInfo": attributes.user.to_dict(),
        "object": None,
        "oldObject": None,
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    optional = {
        "subResource": attributes.subresource,
        "requestSubResource": attributes.subresource,
        "name": attributes.name,
        "namespace": request_namespace(attributes),
    }
    return {**out, **{key: value for key, value in optional.items() if value}}


class _Asker:
    """Puts an expression's question to the server's authorizer."""

    def __init__(self, authorizer: authz.Authorizer, user: UserInfo) -> None:
        self._authorizer = authorizer
        self._user = user

    def __call__(self, question: Question) -> Decision:
        user = self._user
        if question.service_account is not None:
            namespace, name = question.service_account
            user = UserInfo(service_account_name(namespace, name), groups=service_account_groups(namespace))
        if question.path:
            asked = authz.Attributes(user, question.verb, path=question.path, resource_request=False)
        else:
            asked = authz.Attributes(
                user,
                question.verb,
                question.group,
                "*",
                question.resource,
                question.subresource,
                question.namespace,
                question.name,
                fields=fields(question.field_selector),
                labels=labels(question.label_selector),
            )
        found = self._authorizer.authorize(asked)
        return Decision(found.allowed, found.reason, found.error)
