"""Tokens of service accounts: which are good, and for how long."""

import base64
from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from steersman._util.base64url import encode
from steersman.apimachinery.errors import Unauthorized
from steersman.apiserver.authn.service_accounts import (
    LEEWAY,
    Bound,
    ServiceAccountConfig,
    ServiceAccountTokens,
)
from steersman.apiserver.authn.signing_keys import generated
from steersman.apiserver.authn.user import CREDENTIAL_ID, NODE_NAME, NODE_UID, POD_NAME, POD_UID

NOW = 1_800_000_000
KEYS = generated()
OWN = ("https://kubernetes.default.svc",)


def obj(name: str, uid: str, namespace: str = "team", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "uid": uid, **meta}}


class World:
    """Objects that may go, and a clock that is set."""

    def __init__(self, **config: Any) -> None:
        self.now = float(NOW)
        self.objects: dict[tuple[str, str, str], Mapping[str, Any]] = {}
        self.bot = self.put("serviceaccounts", obj("bot", "u-1"))
        self.tokens = ServiceAccountTokens(
            ServiceAccountConfig(keys=lambda: KEYS, **config),
            lambda *place: self.objects.get(place),
            lambda: self.now,
        )

    def put(self, resource: str, found: dict[str, Any]) -> dict[str, Any]:
        meta = found["metadata"]
        self.objects[resource, "" if resource == "nodes" else meta["namespace"], meta["name"]] = found
        return found

    def issue(self, bound: Bound | None = None, audiences: tuple[str, ...] = OWN, seconds: int = 600) -> str:
        return self.tokens.issue(self.bot, audiences, bound or Bound(), now=NOW, seconds=seconds)

    def refusal(self, token: str) -> str:
        with pytest.raises(Unauthorized) as caught:
            self.tokens.authenticate_token(token)
        return caught.value.message


def parts(token: str) -> list[dict[str, Any]]:
    return [orjson.loads(base64.urlsafe_b64decode(part + "==")) for part in token.split(".")[:2]]


def test_a_token_tells_whose_it_is() -> None:
    world = World()
    token = world.issue()
    header, claims = parts(token)
    user = world.tokens.authenticate_token(token)
    assert user is not None
    assert (user.name, user.uid) == ("system:serviceaccount:team:bot", "u-1")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:team")
    assert user.extra == {CREDENTIAL_ID: (f"JTI={claims['jti']}",)}
    assert header == {"alg": "ES256", "kid": KEYS.signing.id}
    assert (claims["sub"], claims["aud"], claims["iat"], claims["exp"]) == (user.name, [*OWN], NOW, NOW + 600)


def test_tokens_end() -> None:
    world = World()
    token = world.issue()
    for now, why in (
        (NOW + 600 + LEEWAY, None),
        (NOW + 601 + LEEWAY, "service account token has expired"),
        (NOW - LEEWAY, None),
        (NOW - LEEWAY - 1, "service account token is not valid yet"),
    ):
        world.now = now
        if why is None:
            assert world.tokens.authenticate_token(token) is not None
        else:
            assert world.refusal(token) == why


def test_a_token_dies_with_its_account() -> None:
    world = World()
    token = world.issue()
    assert world.tokens.authenticate_token(token) is not None
    world.put("serviceaccounts", obj("bot", "u-2"))
    assert world.refusal(token) == "service account UID (u-2) does not match claim (u-1)"
    world.objects.clear()
    assert world.refusal(token) == 'serviceaccounts "bot" not found'


@pytest.mark.parametrize("resource", ["pods", "secrets", "nodes"])
def test_a_token_dies_with_what_it_is_bound_to(resource: str) -> None:
    world = World()
    kind = resource.removesuffix("s")
    bound = world.put(resource, obj("thing", "t-1"))
    token = world.issue(Bound(**{kind: bound}))
    assert world.tokens.authenticate_token(token) is not None
    world.put(resource, obj("thing", "t-1", deletionTimestamp="2027-01-15T07:58:59Z"))
    assert world.refusal(token) == "service account token has been invalidated"
    world.put(resource, obj("thing", "t-2"))
    assert world.refusal(token) == f"{kind} UID (t-2) does not match service account {kind} ref claim (t-1)"
    del world.objects[resource, "" if resource == "nodes" else "team", "thing"]
    assert world.refusal(token) == "service account token has been invalidated"


def test_a_pods_token_tells_of_pod_and_node() -> None:
    world = World()
    pod = world.put("pods", obj("p", "p-1"))
    token = world.issue(Bound(pod=pod, node=obj("n", "n-1")))
    user = world.tokens.authenticate_token(token)
    assert user is not None
    wanted = {POD_NAME: ("p",), POD_UID: ("p-1",), NODE_NAME: ("n",), NODE_UID: ("n-1",)}
    assert {key: user.extra[key] for key in wanted} == wanted


def test_a_token_is_for_its_audiences() -> None:
    world = World()
    foreign, both = world.issue(audiences=("x",)), world.issue(audiences=("x", *OWN))
    assert world.refusal(foreign) == (
        'token audiences ["x"] is invalid for the target audiences ["https://kubernetes.default.svc"]'
    )
    assert world.tokens.authenticate_token(both) is not None
    for token in (foreign, both):
        found = world.tokens.authenticate_for(token, ("x", "y"))
        assert found is not None
        assert found[1] == ("x",)


def test_what_is_no_token_of_ours_is_left_to_others() -> None:
    world, other = World(), World(issuers=("https://other",))
    for token in ("", "a.b", "a.b.c", "é.é.é", "....", other.issue(), f"{encode(b'[]')}.{encode(b'1')}.x"):
        assert world.tokens.authenticate_token(token) is None


def test_a_changed_token_is_refused() -> None:
    world = World()
    header, claims, signature = world.issue().split(".")
    forged = encode(orjson.dumps({**parts(f"{header}.{claims}.")[1], "sub": "system:admin"}))
    unsigned = encode(b'{"alg":"none"}')
    for token in (
        f"{header}.{forged}.{signature}",
        f"{unsigned}.{claims}.",
        f"{unsigned}.{claims}.{signature}",
        f"{header}.{claims}.{encode(b'x' * 64)}",
        f"{encode(orjson.dumps({'alg': 'HS256', 'kid': KEYS.signing.id}))}.{claims}.{signature}",
    ):
        assert world.refusal(token) == "go-jose/go-jose: error in cryptographic primitive"
    stranger = ServiceAccountTokens(ServiceAccountConfig(), lambda *_: world.bot)
    token = stranger.issue(world.bot, OWN, Bound(), now=NOW, seconds=600)
    assert world.refusal(token) == "invalid signature, no keys found"


NUMERIC = "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate"
AUDIENCE = "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience"
EMPTY = "resource name may not be empty"
ACCOUNT = {"namespace": "team", "serviceaccount": {"name": "bot", "uid": "u-1"}}


def test_a_token_has_one_spelling() -> None:
    world = World()
    token = next(each for each in (world.issue() for _ in range(1000)) if "-" in each and "_" in each)
    assert world.tokens.authenticate_token(token) is not None
    for other in (f"{token}=", f"{token}==", token.replace("-", "+"), token.replace("_", "/")):
        assert world.tokens.authenticate_token(other) is None


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"exp": "x"}, NUMERIC),
        ({"nbf": True}, NUMERIC),
        ({"aud": 5}, AUDIENCE),
        ({"aud": [5]}, AUDIENCE),
        ({"aud": None}, AUDIENCE),
        ({"exp": 0}, "service account token has expired"),
        ({"exp": 1e300}, "go-jose/go-jose/jwt: number is out of the range of NumericDate"),
        ({"kubernetes.io": {**ACCOUNT, "pod": {}}}, "service account token has been invalidated"),
        ({"kubernetes.io": {**ACCOUNT, "secret": {}}}, "service account token has been invalidated"),
        ({"kubernetes.io": []}, "json: cannot unmarshal array into Go value of type serviceaccount.kubernetes"),
        ({"kubernetes.io": None}, EMPTY),
        ({"kubernetes.io": {"namespace": "team"}}, EMPTY),
        ({"kubernetes.io": {"serviceaccount": {"name": "bot", "uid": "u-1"}}}, EMPTY),
        (
            {"kubernetes.io": {"namespace": "team", "serviceaccount": {"name": "bot"}}},
            "service account UID (u-1) does not match claim ()",
        ),
    ],
)
def test_claims_that_are_none_are_refused_even_from_our_own_key(changed: dict[str, Any], why: str) -> None:
    world = World()
    header, claims, _ = world.issue().split(".")
    signed = f"{header}.{encode(orjson.dumps({**parts(f'{header}.{claims}.')[1], **changed}))}"
    assert world.refusal(f"{signed}.{encode(KEYS.sign(signed.encode()))}") == why


def test_older_issuers_are_accepted() -> None:
    old, new = (
        World(issuers=("https://old",)),
        World(issuers=("https://new", "https://old"), audiences=("https://old",)),
    )
    assert new.tokens.authenticate_token(old.issue(audiences=("https://old",))) is not None
    assert parts(new.issue())[1]["iss"] == "https://new"
