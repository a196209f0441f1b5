"""From a request to its user: the authenticators in order, then the anonymous user.

Source: apiserver `pkg/authentication/request/{union,bearertoken,anonymous}`, kubernetes
`pkg/kubeapiserver/authenticator/config.go` for their order.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable
from urllib.parse import unquote

from steersman.apimachinery.errors import ApiError, Unauthorized
from steersman.apiserver.authn.user import ANONYMOUS_USER, UserInfo, with_authenticated_group
from steersman.net.http import Request

logger = logging.getLogger(__name__)

DEFAULT_AUDIENCES = ("https://kubernetes.default.svc",)
_INVALID = "invalid bearer token"
EXTRA_SPACE_WARNING = "the provided Authorization header contains extra space before the bearer token, and is ignored"


class RequestAuthenticator(Protocol):
    """Knows users by something in the request."""

    async def authenticate(self, request: Request) -> UserInfo | None:
        """The user; None when the request carries no credential of this kind.

        Raises Unauthorized for a credential that is not good.
        """
        ...


class TokenAuthenticator(Protocol):
    """Knows users by a bearer token."""

    def authenticate_token(self, token: str) -> UserInfo | None:
        """The user; None when the token is not of this kind or not known.

        Raises Unauthorized for a token of this kind that is not good.
        """
        ...


@runtime_checkable
class AudienceAuthenticator(TokenAuthenticator, Protocol):
    """Knows users by bearer tokens that are made for certain audiences."""

    def authenticate_for(self, token: str, audiences: Sequence[str]) -> tuple[UserInfo, tuple[str, ...]] | None:
        """As `authenticate_token`, for others than this server: the user, and the audiences of both."""
        ...


class RemoteAuthenticator(Protocol):
    """Knows users by bearer tokens, and may have to ask someone else."""

    async def authenticate_for(self, token: str, audiences: Sequence[str]) -> tuple[UserInfo, tuple[str, ...]] | None:
        """The user, and for which of `audiences` the token is good; None when it is not of this kind or not known.

        Raises Unauthorized for a token of this kind that is not good, or that nothing could be found out about.
        """
        ...

    async def close(self) -> None: ...


class BearerTokens:
    """`Authorization: Bearer TOKEN`, tried with each token authenticator in turn, those that are `remote` last.

    `audiences` are those that the server itself answers to.
    """

    def __init__(
        self,
        authenticators: Sequence[TokenAuthenticator],
        audiences: Sequence[str] = DEFAULT_AUDIENCES,
        remote: Sequence[RemoteAuthenticator] = (),
    ) -> None:
        self._authenticators = tuple(authenticators)
        self.remote = tuple(remote)
        self.audiences = tuple(audiences)

    async def authenticate(self, request: Request) -> UserInfo | None:
        """The token's user; None without a bearer token (also with another scheme, or an empty token).

        Raises Unauthorized when no authenticator accepts the token, with what the last of them had to say.
        """
        header = request.headers.get("authorization")
        token = bearer_token(header) if header else None
        if token is None:
            return None
        refusal: Unauthorized | None = None
        for authenticator in self._authenticators:
            try:
                user = authenticator.authenticate_token(token)
            except Unauthorized as error:
                refusal = error
                continue
            if user is not None:
                return user
        for remote in self.remote:
            try:
                found = await remote.authenticate_for(token, self.audiences)
            except Unauthorized as error:
                refusal = error
                continue
            if found is not None:
                return found[0]
        raise refusal or Unauthorized(_INVALID)

    async def review(self, token: str, audiences: Sequence[str] = ()) -> tuple[UserInfo, tuple[str, ...]]:
        """A token's user, and for which of `audiences` (none: the server's own) it is good.

        Raises Unauthorized with all that the authenticators had to say.
        """
        wanted = tuple(audiences) or self.audiences
        said = []
        asked: list[Callable[..., Awaitable[Any]]] = [
            partial(self._review_locally, each) for each in self._authenticators
        ]
        asked += [each.authenticate_for for each in self.remote]
        for ask in asked:
            try:
                found = await ask(token, wanted)
            except Unauthorized as error:
                said.append(error.message)
                continue
            if found is not None:
                return with_authenticated_group(found[0]), found[1]
        raise Unauthorized(f"[{', '.join((_INVALID, *said))}]" if said else _INVALID)

    async def close(self) -> None:
        for remote in self.remote:
            await remote.close()

    async def _review_locally(
        self, authenticator: TokenAuthenticator, token: str, wanted: Sequence[str]
    ) -> tuple[UserInfo, tuple[str, ...]] | None:
        if isinstance(authenticator, AudienceAuthenticator):
            return authenticator.authenticate_for(token, wanted)
        shared = tuple(audience for audience in wanted if audience in self.audiences)
        user = authenticator.authenticate_token(token) if shared else None
        return None if user is None else (user, shared)


class Authenticator:
    """All authenticators of a server.

    The first that knows the request's user decides; a failure of one does not keep a later one from succeeding. A
    request without any credential is anonymous, if that is allowed: `anonymous` is True for every path, False for
    none, else the paths for which it is (`/readyz`). A bad credential is never anonymous.
    """

    def __init__(
        self, authenticators: Sequence[RequestAuthenticator], *, anonymous: bool | Collection[str] = False
    ) -> None:
        self._authenticators = tuple(authenticators)
        self._anonymous = anonymous if isinstance(anonymous, bool) else frozenset(anonymous)
        # Static users are few and shared, so each is extended by system:authenticated once.
        self._extended: dict[UserInfo, UserInfo] = {}

    async def authenticate(self, request: Request) -> UserInfo:
        """The request's user, in system:authenticated unless anonymous; raises Unauthorized (401, "Unauthorized")."""
        failed = False
        for authenticator in self._authenticators:
            try:
                user = await authenticator.authenticate(request)
            except Unauthorized as error:
                logger.debug("a credential was refused", extra={"why": error.message, "peer": request.peer})
                failed = True
                continue
            if user is not None:
                return self._with_authenticated_group(user)
        if not failed and (self._anonymous is True or (self._anonymous and unquote(request.path) in self._anonymous)):
            return ANONYMOUS_USER
        raise unauthorized()

    def _with_authenticated_group(self, user: UserInfo) -> UserInfo:
        if user.extra:
            return with_authenticated_group(user)
        extended = self._extended.get(user)
        if extended is None:
            if len(self._extended) >= 1024:
                self._extended.clear()
            extended = self._extended[user] = with_authenticated_group(user)
        return extended


def unauthorized() -> ApiError:
    """The 401 of every failed authentication: it does not tell why."""
    return Unauthorized("Unauthorized")


def bearer_token(header: str) -> str | None:
    """The token in an Authorization header; None for another scheme, and for an empty token."""
    parts = header.strip().split(" ", 2)
    if len(parts) < 2 or parts[0].lower() != "bearer":
        return None
    return parts[1] or None


def header_warning(header: str) -> str | None:
    """What to tell the client (a Warning header) about an Authorization header that is ignored."""
    if "  " not in header:
        return None
    parts = header.strip().split(" ", 2)
    if len(parts) == 3 and parts[0].lower() == "bearer" and not parts[1]:
        return EXTRA_SPACE_WARNING
    return None
