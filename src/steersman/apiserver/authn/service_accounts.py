"""Tokens of service accounts: JWTs that the server signs, and that live as long as what they are bound to.

Source: kubernetes `pkg/serviceaccount/{claims,jwt}.go`, apiserver `pkg/authentication/serviceaccount/util.go`;
KEP-1205 (bound tokens).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from steersman._util import clock
from steersman._util.base64url import encode
from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman.apimachinery import times
from steersman.apimachinery.errors import Unauthorized
from steersman.apimachinery.go_types import TypeTable
from steersman.apimachinery.go_values import DecodeError
from steersman.apiserver.authn.authenticator import DEFAULT_AUDIENCES
from steersman.apiserver.authn.jws import parse
from steersman.apiserver.authn.user import (
    CREDENTIAL_ID,
    NODE_NAME,
    NODE_UID,
    POD_NAME,
    POD_UID,
    UserInfo,
    service_account_groups,
    service_account_name,
)

if TYPE_CHECKING:
    from steersman.apiserver.authn.signing_keys import KeySet

Object = Mapping[str, Any]
Find = Callable[[str, str, str], Object | None]
"""An object of the core group by resource, namespace ("" at the cluster scope) and name."""

LEEWAY = 60.0
_PRIVATE = "kubernetes.io"
_MAX_CACHED = 1024
_MAX_TIME = 2.0**63
_TIMES, _TEXTS = ("exp", "iat", "nbf"), ("iss", "jti", "sub")
_REFERENCE = "pkg/serviceaccount.ref"
_PRIVATE_TYPES = TypeTable(
    {
        "pkg/serviceaccount.kubernetes": [
            ["namespace", 1, "string"],
            ["node", 1, f"*{_REFERENCE}"],
            ["pod", 1, f"*{_REFERENCE}"],
            ["serviceaccount", 1, _REFERENCE],
            ["secret", 1, f"*{_REFERENCE}"],
            ["warnafter", 1, "float64"],
        ],
        _REFERENCE: [["name", 1, "string"], ["uid", 1, "string"]],
    }
)
_INVALIDATED = "service account token has been invalidated"


def _generated() -> KeySet:
    from steersman.apiserver.authn.signing_keys import generated  # deferred: a server starts without a key

    return generated()


@dataclass(frozen=True, slots=True)
class ServiceAccountConfig:
    """`issuers`: the first signs, all are accepted. `keys` is called when a key is first needed.

    `audiences` are the server's own (none: the issuers); `max_seconds` bounds how long tokens live (0: unbounded);
    `extend` lets tokens of pods outlive what was asked for, as clients that do not reload them need; `jwks_uri` is
    where clients find the public keys ("": at this server).
    """

    issuers: tuple[str, ...] = DEFAULT_AUDIENCES
    audiences: tuple[str, ...] = ()
    keys: Callable[[], KeySet] = _generated
    max_seconds: int = 0
    extend: bool = True
    jwks_uri: str = ""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a token is bound to beside its account; a pod's token also tells of the pod's node."""

    pod: Object | None = None
    secret: Object | None = None
    node: Object | None = None


class ServiceAccountTokens:
    """Makes tokens, and knows service accounts by them. `now` gives seconds since the epoch."""

    def __init__(self, config: ServiceAccountConfig, find: Find, now: Callable[[], float] = clock.now) -> None:
        self.config = config
        self.audiences = config.audiences or config.issuers
        self.find = find
        self._now = now
        self._keys: KeySet | None = None
        self._verified: dict[bytes, dict[str, Any]] = {}

    @property
    def keys(self) -> KeySet:
        """The keys, read or made at the first call. Raises OSError, ValueError."""
        if self._keys is None:
            self._keys = self.config.keys()
        return self._keys

    def issue(
        self, account: Object, audiences: Sequence[str], bound: Bound, *, now: int, seconds: int, warn_after: int = 0
    ) -> str:
        """A token for an account that is good from `now` (epoch seconds) for some seconds."""
        meta = account["metadata"]
        private: dict[str, Any] = {"namespace": meta["namespace"], "serviceaccount": _reference(account)}
        for name, obj in (("pod", bound.pod), ("secret", bound.secret), ("node", bound.node)):
            if obj is not None:
                private[name] = _reference(obj)
        if warn_after:
            private["warnafter"] = now + warn_after
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": self.config.issuers[0],
            "jti": str(uuid.uuid4()),
            _PRIVATE: private,
            "nbf": now,
            "sub": service_account_name(meta["namespace"], meta["name"]),
        }
        header = {"alg": self.keys.signing.algorithm, "kid": self.keys.signing.id}
        signed = f"{encode(orjson.dumps(header))}.{encode(orjson.dumps(claims, option=orjson.OPT_SORT_KEYS))}"
        return f"{signed}.{encode(self.keys.sign(signed.encode()))}"

    def authenticate_token(self, token: str) -> UserInfo | None:
        """The account that a token for this server was made for; None for what is no token of its issuers.

        Raises Unauthorized for a token that is forged, expired, not yet good, made for others, or whose account or
        bound object is gone.
        """
        found = self.authenticate_for(token, self.audiences)
        return None if found is None else found[0]

    def authenticate_for(self, token: str, audiences: Sequence[str]) -> tuple[UserInfo, tuple[str, ...]] | None:
        """As `authenticate_token`, for other audiences; also those of them that the token was made for."""
        claims = self._claims(token)
        if claims is None:
            return None
        given = claims.get("aud") or list(self.audiences)
        made_for = [given] if isinstance(given, str) else given
        shared = tuple(audience for audience in made_for if audience in audiences)
        if not shared:
            listed = [f"[{' '.join(map(quote, names))}]" for names in (made_for, audiences)]
            raise Unauthorized(f"token audiences {listed[0]} is invalid for the target audiences {listed[1]}")
        self._check_times(claims)
        return self._user(claims), shared

    def _claims(self, token: str) -> dict[str, Any] | None:
        """The claims of a token, once its signature is found to be good; None for one of another issuer."""
        digest = hashlib.blake2b(token.encode("utf-8", "surrogateescape"), digest_size=32).digest()
        known = self._verified.get(digest)
        if known is not None:
            return known
        parsed = parse(token)
        if parsed is None or parsed.claims.get("iss") not in self.config.issuers:
            return None
        keys = self.keys.for_token(parsed)
        if not keys:
            raise Unauthorized("invalid signature, no keys found")
        if not any(key.verifies(parsed) for key in keys):
            raise Unauthorized("go-jose/go-jose: error in cryptographic primitive")
        claims = _decoded(parsed.claims)
        if len(self._verified) >= _MAX_CACHED:
            self._verified.clear()
        self._verified[digest] = claims
        return claims

    def _check_times(self, claims: Mapping[str, Any]) -> None:
        now = self._now()
        if claims.get("nbf") and now + LEEWAY < claims["nbf"]:
            raise Unauthorized("service account token is not valid yet")
        expiry = claims.get("exp")
        if expiry is not None and now - LEEWAY > expiry:
            raise Unauthorized("service account token has expired")
        if claims.get("iat") and now + LEEWAY < claims["iat"]:
            raise Unauthorized("service account token is issued in the future")

    def _user(self, claims: Mapping[str, Any]) -> UserInfo:
        private = claims.get(_PRIVATE) or {}
        namespace, account = private.get("namespace") or "", private.get("serviceaccount") or {}
        name = account.get("name") or ""
        if not name or not namespace:
            raise Unauthorized("resource name may not be empty")
        found = self.find("serviceaccounts", namespace, name)
        if found is None:
            raise Unauthorized(f"serviceaccounts {quote(name)} not found")
        uid = found["metadata"]["uid"]
        if uid != account.get("uid"):
            raise Unauthorized(f"service account UID ({uid}) does not match claim ({account.get('uid', '')})")
        if self._is_gone(found):
            raise Unauthorized(f"service account {namespace}/{name} has been deleted")
        extra: dict[str, tuple[str, ...]] = {}
        secret, pod, node = private.get("secret"), private.get("pod"), private.get("node")
        if secret is not None:
            self._check_bound("secrets", namespace, secret)
        if pod is not None:
            self._check_bound("pods", namespace, pod)
            extra |= {POD_NAME: (pod.get("name", ""),), POD_UID: (pod.get("uid", ""),)}
        if claims.get("jti"):
            extra[CREDENTIAL_ID] = (f"JTI={claims['jti']}",)
        if node is not None:
            if pod is None:
                self._check_bound("nodes", "", node)
            extra[NODE_NAME] = (node.get("name", ""),)
            if node.get("uid"):
                extra[NODE_UID] = (node["uid"],)
        return UserInfo(service_account_name(namespace, name), uid, service_account_groups(namespace), extra)

    def _check_bound(self, resource: str, namespace: str, claim: Mapping[str, Any]) -> None:
        found = self.find(resource, namespace, claim.get("name") or "")
        if found is None:
            raise Unauthorized(_INVALIDATED)
        uid = found["metadata"]["uid"]
        if uid != claim.get("uid"):
            kind, claimed = resource.removesuffix("s"), claim.get("uid", "")
            raise Unauthorized(f"{kind} UID ({uid}) does not match service account {kind} ref claim ({claimed})")
        if self._is_gone(found):
            raise Unauthorized(_INVALIDATED)

    def _is_gone(self, obj: Object) -> bool:
        """Whether the object's end has come, be it still there."""
        ended = obj["metadata"].get("deletionTimestamp")
        return ended is not None and times.parse_time(ended).timestamp() < self._now() - LEEWAY


def _reference(obj: Object) -> dict[str, str]:
    meta = obj["metadata"]
    return {key: meta[key] for key in ("name", "uid") if meta.get(key)}


def _decoded(claims: Mapping[str, Any]) -> dict[str, Any]:
    """The claims, once they are found to have their types. Raises Unauthorized with Go's words."""
    for name in _TIMES:
        value = claims.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise Unauthorized("go-jose/go-jose/jwt: expected number value to unmarshal NumericDate")
        if value is not None and not -_MAX_TIME < value < _MAX_TIME:
            raise Unauthorized("go-jose/go-jose/jwt: number is out of the range of NumericDate")
    audiences = claims.get("aud", "")
    listed = audiences if isinstance(audiences, list) else [audiences]
    if not all(isinstance(each, str) for each in listed):
        raise Unauthorized("go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience")
    try:
        for name in _TEXTS:
            _PRIVATE_TYPES.decode("string", claims.get(name))
        private, _ = _PRIVATE_TYPES.decode("pkg/serviceaccount.kubernetes", claims.get(_PRIVATE))
    except DecodeError as error:
        raise Unauthorized(str(error)) from None
    return {**claims, _PRIVATE: private}
