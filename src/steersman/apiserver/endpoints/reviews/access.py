"""SubjectAccessReview in its three forms: may someone do something?

Source: kubernetes `pkg/registry/authorization/{localsubjectaccessreview,selfsubjectaccessreview,subjectaccessreview}`.
"""

from __future__ import annotations

from functools import partial

from steersman.api.authorization.access_review import evaluation_error, validate
from steersman.apimachinery.errors import invalid
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import Attributes
from steersman.apiserver.authz.narrowing import reviewed_fields, reviewed_labels
from steersman.apiserver.authz.waiting import settle
from steersman.apiserver.core import Core
from steersman.apiserver.exchange import Exchange
from steersman.apiserver.strategy import Object


async def access_review(core: Core, x: Exchange, review: Object) -> Object:
    """The review with whether it is allowed, and why. Raises Invalid."""
    meta = dict(review["metadata"])
    managed = meta.pop("managedFields", None)
    if errors := validate({**review, "metadata": meta}, managed):
        raise invalid("authorization.k8s.io", "", "", errors)
    spec = review["spec"]
    user = x.user if review["kind"] == "SelfSubjectAccessReview" else _subject(spec)
    resource = spec.get("resourceAttributes")
    asked = _attributes(user, spec)
    decision = await settle(partial(core.identity.authorizer.authorize, asked))
    problems = [decision.error, evaluation_error(resource) if resource is not None else ""]
    status: Object = {"allowed": decision.allowed, "reason": decision.reason}
    if decision.denied:
        status["denied"] = True
    status["evaluationError"] = "; ".join(error for error in problems if error)
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
        fields=reviewed_fields(resource.get("fieldSelector")),
        labels=reviewed_labels(resource.get("labelSelector")),
    )
