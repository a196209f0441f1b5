"""Tokens of OpenID Connect issuers: found good by the keys that the issuer publishes.

Source: apiserver `plugin/pkg/authenticator/token/oidc/oidc.go`, go-oidc `{oidc,verify,jwks}.go`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import orjson
import re2

from steersman._util import clock
from steersman._util.gotext import quote
from steersman.apimachinery.errors import Unauthorized
from steersman.apimachinery.go_values import json_kind
from steersman.apiserver.authn.jws import Key, Token, any_verifies, parse, read_keys
from steersman.apiserver.authn.jwt_settings import JwtSettings
from steersman.apiserver.authn.jwt_user import user_of
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.config_files import NotYetError
from steersman.net.calls import Caller, CallError, Reply, Trust

log = logging.getLogger("steersman.apiserver")
WELL_KNOWN = "/.well-known/openid-configuration"
RETRY_SECONDS = 10.0
REPLACE_SECONDS = 60.0
LEEWAY = 60.0
_TIMEOUT = 30.0
_EARLY = 30.0
"""Keys are fetched again this many seconds before they expire."""
_TEXTS = ("iss", "sub", "nonce", "at_hash")
_GOOGLE, _GOOGLE_SHORT = "https://accounts.google.com", "accounts.google.com"
_max_age = re2.compile(r"(?i)(?:^|[,\s])max-age=([0-9]{1,9})")
_uncached = re2.compile(r"(?i)\bno-store\b|\bno-cache\b")


class Issuer:
    """One issuer: its configuration is fetched in the background, its keys when a token comes that none is known for.

    `now` gives seconds since the epoch.
    """

    def __init__(self, settings: JwtSettings, caller: Caller, now: Callable[[], float] = clock.now) -> None:
        self.settings = settings
        self.ready = asyncio.Event()
        self.problem = f"oidc: authenticator for issuer {quote(settings.url)} is not initialized"
        self._caller = caller
        self._now = now
        self._jwks_url = ""
        self._keys: Sequence[Key] = ()
        self._expire = 0.0
        self._fetching: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for the issuer's configuration until it is found."""
        self._starting = asyncio.get_running_loop().create_task(self._discover())

    async def close(self) -> None:
        for task in (self._starting, self._fetching):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, Unauthorized):
                    await task

    def issued(self, token: Token) -> bool:
        """Whether a token says that it is of this issuer."""
        stated = token.claims.get("iss")
        return (_GOOGLE if stated == _GOOGLE_SHORT else stated) == self.settings.url

    async def authenticate(self, token: Token) -> UserInfo:
        """The user of a token of this issuer. Raises Unauthorized."""
        if not self.ready.is_set():
            raise Unauthorized("oidc: authenticator not initialized")
        try:
            await self._verify(token)
        except Unauthorized as error:
            raise Unauthorized(f"oidc: verify token: {error.message}") from None
        return user_of(token.claims, self.settings)

    async def _verify(self, token: Token) -> None:
        allowed = self.settings.algorithms
        if token.algorithm not in allowed:
            listed = f"[{' '.join(map(quote, allowed))}]"
            why = f"oidc: id token signed with unsupported algorithm, expected {listed} got {quote(token.algorithm)}"
            raise Unauthorized(why)
        await self._verify_signature(token)
        _check_types(token)
        self._check_audience(token)
        self._check_times(token)

    async def _verify_signature(self, token: Token) -> None:
        if any_verifies(self._keys, token):
            return
        failed = "failed to verify signature: failed to verify id token signature"
        if self._now() + _EARLY <= self._expire:
            raise Unauthorized(failed)
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.get_running_loop().create_task(self._fetch_keys())
            self._fetching.add_done_callback(_retrieved)
        await asyncio.shield(self._fetching)
        if not any_verifies(self._keys, token):
            raise Unauthorized(failed)

    def _check_audience(self, token: Token) -> None:
        given = token.claims.get("aud")
        audiences = [given] if isinstance(given, str) else given
        made_for = [each for each in audiences if isinstance(each, str)] if isinstance(audiences, list) else []
        wanted = self.settings.audiences
        if set(wanted).isdisjoint(made_for):
            listed = f"[{' '.join(map(quote, made_for))}]"
            if len(wanted) == 1:
                raise Unauthorized(f"oidc: expected audience {quote(wanted[0])} got {listed}")
            raise Unauthorized(f"oidc: expected audience in [{' '.join(map(quote, sorted(wanted)))}] got {listed}")

    def _check_times(self, token: Token) -> None:
        now = self._now()
        ends, begins = _seconds(token, "exp"), _seconds(token, "nbf")
        if ends is None or ends < now:
            raise Unauthorized(f"oidc: token is expired (Token Expiry: {_go_time(ends)})")
        if begins is not None and now + LEEWAY < begins:
            where = "before the nbf (not before) time"
            raise Unauthorized(f"oidc: current time {_go_time(now)} {where}: {_go_time(begins)}")

    async def _discover(self) -> None:
        while True:
            try:
                self._jwks_url = await self._read_configuration()
            except (CallError, ValueError) as error:
                self.problem = str(error)
                log.error(
                    "an issuer of tokens cannot be reached", extra={"issuer": self.settings.url, "why": str(error)}
                )
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self.ready.set()
                return

    async def _read_configuration(self) -> str:
        """Where the issuer's keys are. Raises CallError, ValueError."""
        url = self.settings.discovery_url or self.settings.url.removesuffix("/") + WELL_KNOWN
        reply = await self._get(url)
        if reply.status != 200:
            raise ValueError(f"{reply.status}: {_shown(reply)}")
        content = orjson.loads(reply.body)
        if not isinstance(content, dict):
            raise ValueError("oidc: failed to decode provider discovery object")
        stated, keys = content.get("issuer"), content.get("jwks_uri")
        if stated != self.settings.url:
            expected = f"expected {quote(self.settings.url)} got {quote(str(stated or ''))}"
            raise ValueError(f"oidc: issuer did not match the issuer returned by provider, {expected}")
        if not isinstance(keys, str) or not keys:
            raise ValueError("provider did not return JWKS URL")
        return keys

    async def _fetch_keys(self) -> None:
        what = "failed to verify signature: fetching keys oidc:"
        try:
            reply = await self._get(self._jwks_url)
        except CallError as error:
            raise Unauthorized(f"{what} get keys failed Get {quote(self._jwks_url)}: {error}") from None
        if reply.status != 200:
            raise Unauthorized(f"{what} get keys failed: {reply.status} {_shown(reply)}")
        try:
            keys = read_keys(reply.body)
        except ValueError as error:
            raise Unauthorized(f"{what} failed to decode keys: {error}") from None
        self._keys, self._expire = keys, self._now() + _lifetime(reply.cache_control)

    async def _get(self, url: str) -> Reply:
        trust = Trust(self.settings.ca)
        return await self._caller.send("GET", url, trust=trust, timeout=_TIMEOUT, redirects=True)


class Issuers:
    """All issuers of a server. Tokens are good for the server's own `audiences`, once they are good at all."""

    def __init__(self, issuers: Sequence[Issuer], audiences: Sequence[str], caller: Caller) -> None:
        self.issuers = tuple(issuers)
        self._audiences = frozenset(audiences)
        self._caller = caller
        for issuer in self.issuers:
            issuer.start()

    async def authenticate_for(self, token: str, audiences: Sequence[str]) -> tuple[UserInfo, tuple[str, ...]] | None:
        """The user of a token, None for one of no known issuer. Raises Unauthorized."""
        shared = tuple(audience for audience in audiences if audience in self._audiences)
        parsed = parse(token) if shared and self.issuers else None
        if parsed is None:
            return None
        for issuer in self.issuers:
            if issuer.issued(parsed):
                return await issuer.authenticate(parsed), shared
        return None

    async def replace(self, settings: Sequence[JwtSettings]) -> None:
        """Know other issuers from now on; one whose settings are the same keeps its keys.

        Nothing changes until all of them are reached: raises NotYetError if that takes too long.
        """
        before = {issuer.settings.url: issuer for issuer in self.issuers}
        issuers = [_same(before.get(each.url), each) or Issuer(each, self._caller) for each in settings]
        made = [issuer for issuer in issuers if issuer not in self.issuers]
        for issuer in made:
            issuer.start()
        try:
            async with asyncio.timeout(REPLACE_SECONDS):
                for issuer in made:
                    await issuer.ready.wait()
        except BaseException as error:
            problems = [issuer.problem for issuer in made if not issuer.ready.is_set()]
            for issuer in made:
                await issuer.close()
            if isinstance(error, TimeoutError):
                raise NotYetError("; ".join(problems)) from None
            raise
        gone = [issuer for issuer in self.issuers if issuer not in issuers]
        self.issuers = tuple(issuers)
        for issuer in gone:
            await issuer.close()

    async def close(self) -> None:
        for issuer in self.issuers:
            await issuer.close()


def _same(issuer: Issuer | None, settings: JwtSettings) -> Issuer | None:
    """The issuer, if it is ready and its settings are still these."""
    return issuer if issuer is not None and issuer.ready.is_set() and issuer.settings == settings else None


def _retrieved(task: asyncio.Task[None]) -> None:
    """Nobody may be waiting any more for how it went."""
    if not task.cancelled():
        task.exception()


def _check_types(token: Token) -> None:
    """The registered claims are texts. Raises Unauthorized."""
    for name in _TEXTS:
        value = token.claims.get(name)
        if value is not None and not isinstance(value, str):
            why = f"json: cannot unmarshal {json_kind(value)} into Go struct field idToken.{name} of type string"
            raise Unauthorized(f"oidc: failed to unmarshal claims: {why}")


def _seconds(token: Token, name: str) -> float | None:
    """A time, which may be a number in a text. Raises Unauthorized."""
    value = token.claims.get(name)
    if value is None:
        return None
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if math.isfinite(seconds):
        return seconds
    why = f"json: cannot unmarshal {json_kind(value)} into Go value of type json.Number"
    raise Unauthorized(f"oidc: failed to unmarshal claims: {why}")


def _lifetime(cache_control: str) -> float:
    """For how many seconds an answer may be kept."""
    found = _max_age.search(cache_control)
    return float(found[1]) if found and not _uncached.search(cache_control) else 0.0


def _go_time(seconds: float | None) -> str:
    if seconds is None:
        return "0001-01-01 00:00:00 +0000 UTC"
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
    except (OverflowError, ValueError, OSError):
        return str(seconds)


def _shown(reply: Reply) -> str:
    return reply.body[:200].decode(errors="replace")
