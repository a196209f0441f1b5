"""SelfSubjectReview: who am I?

Source: kubernetes `pkg/registry/authentication/selfsubjectreview/rest.go`.
"""

from __future__ import annotations

from steersman.apiserver.core import Core
from steersman.apiserver.exchange import Exchange
from steersman.apiserver.strategy import Object


async def self_subject_review(core: Core, x: Exchange, review: Object) -> Object:
    """The user who asks, as authentication and impersonation found them; nothing of the question is repeated."""
    return {"metadata": {"creationTimestamp": core.now()}, "status": {"userInfo": x.user.to_dict()}}
