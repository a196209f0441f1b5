"""A webhook that knows users by their bearer tokens: it is asked with TokenReviews.

Source: apiserver `plugin/pkg/authenticator/token/webhook/webhook.go`,
`pkg/authentication/token/cache/cached_token_authenticator.go`.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steersman._util import clock
from steersman.apimachinery.errors import Unauthorized
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.webhooks.reviews import Reviewer, ReviewError

log = logging.getLogger("steersman.apiserver")
_MAX_KEPT = 4096

Found = tuple[UserInfo, tuple[str, ...]] | None


class WebhookTokens:
    """Asks a webhook whose a token is. Its answers, that it does not know a token too, are kept for `kept_seconds`.

    `audiences` are the server's own, for webhooks that know of none. `now` gives monotonic seconds.
    """

    def __init__(
        self,
        reviewer: Reviewer,
        audiences: Sequence[str],
        kept_seconds: float = 120.0,
        now: Callable[[], float] = clock.steady,
    ) -> None:
        self._reviewer = reviewer
        self._audiences = tuple(audiences)
        self._kept_seconds = kept_seconds
        self._now = now
        # Tokens are not kept as they are: what is found in memory is of no use elsewhere.
        self._secret = secrets.token_bytes(32)
        self._kept: OrderedDict[bytes, tuple[float, Found]] = OrderedDict()

    async def authenticate_for(self, token: str, audiences: Sequence[str]) -> Found:
        """The token's user and for whom it is good, None when the webhook knows neither. Raises Unauthorized."""
        key = hashlib.blake2b(
            "\0".join((token, *audiences)).encode("utf-8", "surrogateescape"), key=self._secret, digest_size=32
        ).digest()
        until, found = self._kept.get(key, (0.0, None))
        if self._now() < until:
            self._kept.move_to_end(key)
            return found
        self._kept.pop(key, None)
        found = await self._ask(token, audiences)
        if self._kept_seconds:
            if len(self._kept) >= _MAX_KEPT:
                self._kept.popitem(last=False)
            self._kept[key] = (self._now() + self._kept_seconds, found)
        return found

    async def close(self) -> None:
        """Nothing is open."""

    async def _ask(self, token: str, audiences: Sequence[str]) -> Found:
        spec: dict[str, Any] = {"token": token, "audiences": list(audiences)}
        try:
            status = await self._reviewer.review(spec, {"user": {}})
        except ReviewError as error:
            log.error("a webhook could not be asked for a token's user", extra={"why": str(error)})
            raise Unauthorized(str(error)) from None
        stated = _texts(status.get("audiences")) or self._audiences
        shared = tuple(audience for audience in audiences if audience in stated)
        if not shared:
            return None
        if status.get("authenticated") is not True:
            problem = status.get("error")
            if isinstance(problem, str) and problem:
                raise Unauthorized(problem)
            return None
        return _user(status.get("user") or {}), shared


def _user(given: Mapping[str, Any]) -> UserInfo:
    extra = given.get("extra")
    texts = {str(key): _texts(values) for key, values in extra.items()} if isinstance(extra, dict) else {}
    name, uid = (value if isinstance(value := given.get(key), str) else "" for key in ("username", "uid"))
    return UserInfo(name, uid, _texts(given.get("groups")), texts)


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
