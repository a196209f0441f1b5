"""TokenReview: whose token is this?

Source: kubernetes `pkg/registry/authentication/tokenreview/storage.go`.
"""

from __future__ import annotations

from steersman.apimachinery.errors import BadRequest, Unauthorized
from steersman.apiserver.core import Core
from steersman.apiserver.exchange import Exchange
from steersman.apiserver.strategy import Object


async def token_review(core: Core, x: Exchange, review: Object) -> Object:
    """The review with the token's user, or with what is wrong with the token. Raises BadRequest without a token."""
    spec = review.get("spec") or {}
    token = spec.get("token")
    if not token:
        raise BadRequest("token is required for TokenReview in authentication")
    try:
        user, audiences = await core.identity.tokens.review(token, spec.get("audiences") or ())
    except Unauthorized as error:
        return {**review, "status": {"error": error.message}}
    return {
        **review,
        "status": {"authenticated": True, "user": user.to_dict(), "audiences": list(audiences)},
    }
