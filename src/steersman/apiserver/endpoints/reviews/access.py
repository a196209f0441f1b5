"""SubjectAccessReview in its three forms: may someone do something?

Source: kubernetes `pkg/registry/authorization/{localsubjectaccessreview,selfsubjectaccessreview,subjectaccessreview}`.
"""

from __future__ import annotations

from steersman.api.authorization.access_review import evaluation_error, validate
from steersman.apimachinery.errors import invalid
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import Attributes
from steersman.apiserver.core import Core
from steersman.apiserver.exchange import Exchange
from steersman.apiserver.strategy import Object


def access_review(core: Core, x: Exchange, review: Object) -> Object:
    """The review with whether it is allowed, and why. Raises Invalid."""
    meta = dict(review["metadata"])
    managed = meta.pop("managedFields", None)
    if errors := validate({**review, "metadata": meta}, managed):
        raise invalid("authorization.k8s.io", "", "", errors)
    spec = review["spec"]
    user = x.user if review["kind"] == "SelfSubjectAccessReview" else _subject(spec)
    resource = spec.get("resourceAttributes")
    decision = core.identity.authorizer.authorize(_attributes(user, spec))
    status: Object = {"allowed": decision.allowed, "reason": decision.reason}
    if resource is not None:
        status["evaluationError"] = evaluation_error(resource)
    return {**review, "status": status}


def _subject(spec: Object) -> UserInfo:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return UserInfo(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)


def _attributes(user: UserInfo, spec: Object) -> Attributes:
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = spec["nonResourceAttributes"]
        return Attributes(user, path.get("verb", ""), path=path.get("path", ""), resource_request=False)
    return Attributes(
        user,
        resource.get("verb", ""),
        resource.get("group", ""),
        resource.get("version") or "*",
        resource.get("resource", ""),
        resource.get("subresource", ""),
        resource.get("namespace", ""),
        resource.get("name", ""),
    )
