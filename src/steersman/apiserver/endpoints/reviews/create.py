"""POST of a review: decoded and admitted like any object, then answered.

Source: apiserver `pkg/endpoints/handlers/create.go`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from steersman.apimachinery.options import write_options
from steersman.apiserver import rest
from steersman.apiserver.admission import Attributes
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, bodies, large, transform
from steersman.apiserver.endpoints.reviews import access, rules, subject, token
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object

Judge = Callable[[Core, Exchange, Object], Awaitable[Object]]
"""Gives the answer to a review, whose metadata may have managedFields."""

_JUDGES: Mapping[tuple[str, str], Judge] = {
    ("authentication.k8s.io", "SelfSubjectReview"): subject.self_subject_review,
    ("authentication.k8s.io", "TokenReview"): token.token_review,
    ("authorization.k8s.io", "LocalSubjectAccessReview"): access.access_review,
    ("authorization.k8s.io", "SelfSubjectAccessReview"): access.access_review,
    ("authorization.k8s.io", "SelfSubjectRulesReview"): rules.self_subject_rules_review,
    ("authorization.k8s.io", "SubjectAccessReview"): access.access_review,
}


async def create(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    """Answer a review with 201."""
    answers.accepted(x, answers.ONE, scope)
    choice = answers.accepted(x, frozenset({"PartialObjectMetadata"}))
    options = write_options(x.info, "CreateOptions")
    review = await large.read(x, bodies.decode, x, scope, scope.strategy, options.field_validation)
    meta = review["metadata"]
    version = meta.get("resourceVersion")
    rest.wipe_system_metadata(meta)
    if version is not None:
        meta["resourceVersion"] = version
    rest.match_namespace(meta, x.info.namespace, namespaced=scope.namespaced)
    ctx = core.write_context(x, options.field_manager, dry_run=options.dry_run)
    if managed := scope.strategy.track(None, review, ctx.writer, ctx.now):
        meta["managedFields"] = managed
    await core.registry.admission.admit(
        Attributes(
            "CREATE",
            scope,
            x.info.namespace,
            meta.get("name", ""),
            review,
            None,
            x.user,
            options.dry_run,
            warn=ctx.warn,
            annotate=ctx.annotate,
        )
    )
    in_order, _ = scope.strategy.decode(review)
    answer, _ = scope.strategy.decode(await _JUDGES[scope.group, scope.kind](core, x, in_order))
    return answers.value(201, choice, transform.partial(answer) if choice.transform else answer)
