"""Tokens of OpenID Connect issuers, over HTTP. The expected answers are a kube-apiserver's to the same tokens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.apiserver.authn.issuing import TestIssuer, issuing, new_key, sign
from tests.conftest import RunningServer, running

from steersman.apiserver.authn.configuration import read_configuration
from steersman.apiserver.authn.oidc import Issuers
from steersman.apiserver.authn.settings import TokenSettings
from steersman.net.pki import ServerFiles
from steersman.net.tls import server_ssl_context

REVIEWS = "/apis/authentication.k8s.io/v1"
GOOD = {"hd": "example.com", "uid": "u1"}
USERNAME = "'x:' + (has(claims.email) && claims.email_verified ? claims.email : claims.sub)"
VERIFY = "oidc: verify token: "
SIGNATURE = f"{VERIFY}failed to verify signature: failed to verify id token signature"
ALGORITHMS = '["ES256" "ES384" "ES512" "PS256" "PS384" "PS512" "RS256" "RS384" "RS512"]'
RULE = "oidc: error evaluating claim validation expression"
USER_RULE = "oidc: error evaluating user info validation rule"
NEITHER = "expression must return a string or a list of strings"


def configured(issuer: TestIssuer, ca: bytes) -> dict[str, Any]:
    """An AuthenticationConfiguration for the issuer, with some of everything."""
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {
                    "url": issuer.url,
                    "audiences": ["me", "you"],
                    "audienceMatchPolicy": "MatchAny",
                    "certificateAuthority": ca.decode(),
                },
                "claimValidationRules": [
                    {"expression": "claims.?level.orValue(1) < 5", "message": "level too high"},
                    {"claim": "hd", "requiredValue": "example.com"},
                ],
                "claimMappings": {
                    "username": {"expression": USERNAME},
                    "groups": {"expression": "claims.?roles.orValue([])"},
                    "uid": {"claim": "uid"},
                    "extra": [
                        {
                            "key": "example.com/tenant",
                            "valueExpression": "claims.?nested.?tenant__dot__id.orValue('')",
                        }
                    ],
                },
                "userValidationRules": [
                    {"expression": "!user.username.startsWith('x:system:')", "message": "no system users"},
                    {"expression": "user.groups.all(g, g != 'bad')"},
                ],
            }
        ],
    }


def settings(config: dict[str, Any], file: Path | None = None) -> TokenSettings:
    raw = yaml.safe_dump(config).encode()
    if file is not None:
        file.write_bytes(raw)
    return TokenSettings(read_configuration(raw).issuers, file=None if file is None else (file, raw))


@asynccontextmanager
async def serving(
    certificates: ServerFiles, directory: Path, *, file: Path | None = None
) -> AsyncIterator[tuple[RunningServer, TestIssuer]]:
    async with issuing(server_ssl_context(certificates.cert, certificates.key)) as issuer:
        config = settings(configured(issuer, certificates.ca.cert), file)
        async with running(certificates, directory, token_settings=config) as server:
            await asyncio.wait_for(known(server).issuers[0].ready.wait(), 10)
            yield server, issuer


def known(server: RunningServer) -> Issuers:
    (found,) = server.plane.server.core.identity.tokens.remote
    assert isinstance(found, Issuers)
    return found


async def review(server: RunningServer, token: str) -> Any:
    answer = await server.request("POST", f"{REVIEWS}/tokenreviews", {"spec": {"token": token}})
    assert answer.status == 201
    return answer.body["status"]


async def myself(server: RunningServer, token: str) -> Any:
    answer = await server.request("POST", f"{REVIEWS}/selfsubjectreviews", {}, token=token)
    return answer.status, answer.body.get("status", {}).get("userInfo") if answer.status == 201 else answer.body


def user(name: str = "x:ann", *groups: str, uid: str = "u1", **extra: list[str]) -> dict[str, Any]:
    more = {"extra": {f"{'authentication.kubernetes.io' if key == 'credential-id' else 'example.com'}/{key}": value
                      for key, value in extra.items()}} if extra else {}  # fmt: skip
    return {"username": name, "uid": uid, "groups": [*groups, "system:authenticated"], **more}


def cases(issuer: TestIssuer) -> dict[str, tuple[str, Any]]:
    """Tokens by what is special about them, each with its user, or with what is wrong."""
    now, one = int(time.time()), issuer.keys["one"][0]

    def made(key_id: str = "one", **more: Any) -> str:
        return issuer.token(key_id, **{**GOOD, **more})

    def signed(key: Any, algorithm: str, *key_id: str, **header: Any) -> str:
        return sign(key, issuer.claims(**GOOD), algorithm, *key_id, **header)

    def other_audience(*given: str) -> str:
        listed = " ".join(f'"{each}"' for each in given)
        return f'{VERIFY}oidc: expected audience in ["me" "you"] got [{listed}]'

    good = {
        "plain": (made(), user()),
        "verified e-mail": (made(email="a@b.c", email_verified=True), user("x:a@b.c")),
        "unverified e-mail": (made(email="a@b.c", email_verified=False), user()),
        **{name: (made(name), user()) for name in ("es", "es5", "ps", "rs5")},
        "not yet, but soon": (made(nbf=now + 30), user()),
        "fractions of a second": (made(exp=now + 100.5), user()),
        "a number in a text": (made(exp=str(now + 100)), user()),
        "for the second audience": (made(aud="you"), user()),
        "for several": (made(aud=["x", "you"]), user()),
        "one group": (made(roles="r1"), user("x:ann", "r1")),
        "groups": (made(roles=["a", "", "b"]), user("x:ann", "a", "b")),
        "an escaped name": (made(nested={"tenant.id": "t1"}), user(tenant=["t1"])),
        "an id": (made(jti="j1"), user(**{"credential-id": ["JTI=j1"]})),
        "no subject, but an empty one": (made(sub=""), user("x:")),
        "no key id": (signed(one, "RS256"), user()),
        "padded otherwise": (signed(one, "PS256", "one"), user()),
    }
    bad = {
        "no uid": (issuer.token(hd="example.com"), 'oidc: parse uid claim "uid": claim not present'),
        "an unknown key": (signed(one, "RS256", "zzz"), SIGNATURE),
        "another's key": (signed(new_key("RS256"), "RS256", "one"), SIGNATURE),
        "an unknown extension": (signed(one, "RS256", "one", crit=["x"]), SIGNATURE),
        "changed": (f"{made()[:-6]}AAAAAA", SIGNATURE),
        "unsigned": (
            signed(None, "none"),
            f'{VERIFY}oidc: id token signed with unsupported algorithm, expected {ALGORITHMS} got "none"',
        ),
        "not for us": (made(aud="x"), other_audience("x")),
        "for nobody": (made(aud=None), other_audience()),
        "later": (made(nbf=now + 300), f"{VERIFY}oidc: current time "),
        "expired": (made(exp=now - 5), f"{VERIFY}oidc: token is expired (Token Expiry: "),
        "without an end": (made(exp=None), f"{VERIFY}oidc: token is expired (Token Expiry: 0001-01-01 00:00:00"),
        "a level too high": (
            made(level=7),
            f"{RULE}: validation expression 'claims.?level.orValue(1) < 5' failed: level too high",
        ),
        "another domain": (
            made(hd="x"),
            "oidc: required claim hd value does not match. Got = x, want = example.com",
        ),
        "no domain": (made(hd=None), "oidc: required claim hd not present in ID token"),
        "a number as domain": (
            made(hd=1),
            "oidc: parse claim hd: json: cannot unmarshal number into Go value of type string",
        ),
        "numbers as groups": (made(roles=[1]), f"oidc: error evaluating group claim expression: {NEITHER}"),
        "an object as groups": (made(roles={"a": 1}), f"oidc: error evaluating group claim expression: {NEITHER}"),
        "a system user": (
            made(sub="system:x"),
            f"{USER_RULE}: validation expression '!user.username.startsWith('x:system:')' failed: no system users",
        ),
        "a bad group": (
            made(roles=["bad"]),
            f"{USER_RULE}: validation expression 'user.groups.all(g, g != 'bad')' failed: ",
        ),
        "a number as subject": (
            made(sub=5),
            f"{VERIFY}oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field "
            "idToken.sub of type string",
        ),
        "another issuer": (made(iss="https://x.example.com"), ""),
        "four parts": (f"{made()}.x", ""),
        "nonsense": ("a.b.c", ""),
    }
    return {**good, **bad}


async def test_tokens_are_good_and_bad_as_for_a_kube_apiserver(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, issuer):
        for name, algorithm in (("es", "ES256"), ("es5", "ES512"), ("ps", "PS384"), ("rs5", "RS512")):
            issuer.add_key(name, algorithm)
        for name, (token, expected) in cases(issuer).items():
            status, (code, found) = await review(server, token), await myself(server, token)
            if isinstance(expected, dict):
                assert (status["user"], code, found) == (expected, 201, expected), name
                assert status["audiences"] == ["https://kubernetes.default.svc"], name
                continue
            said = f"[invalid bearer token, {expected}" if expected else "invalid bearer token"
            assert "authenticated" not in status, name
            assert status["error"].startswith(said), name
            assert (code, found["message"], found["reason"]) == (401, "Unauthorized", "Unauthorized"), name


async def test_a_token_is_reviewed_for_the_servers_audiences_only(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, issuer):
        body = {"spec": {"token": issuer.token(**GOOD), "audiences": ["me"]}}
        answer = await server.request("POST", f"{REVIEWS}/tokenreviews", body)
        assert answer.body["status"] == {"user": {}, "error": "invalid bearer token"}


async def test_keys_are_fetched_when_one_is_missing(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, issuer):
        assert issuer.asked == {"configuration": 1, "keys": 0}
        for _ in range(3):
            assert (await myself(server, issuer.token(**GOOD)))[0] == 201
        assert issuer.asked == {"configuration": 1, "keys": 1}
        issuer.add_key("two", "ES384")
        assert (await myself(server, issuer.token("two", **GOOD)))[0] == 201
        assert issuer.asked["keys"] == 2
        gone = issuer.keys.pop("one")
        old = sign(gone[0], issuer.claims(**GOOD), "RS256", "one")
        assert (await myself(server, old))[0] == 201, "nobody has said that the key is no more"
        forged = sign(new_key("RS256"), issuer.claims(**GOOD), "RS256", "one")
        assert (await myself(server, forged))[0] == 401
        assert (await myself(server, old))[0] == 401, "the keys were read again for the forged one"


async def test_keys_are_kept_as_long_as_the_issuer_says(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, issuer):
        issuer.cache_control = "public, max-age=3600"
        assert (await myself(server, issuer.token(**GOOD)))[0] == 201
        issuer.add_key("two")
        assert (await myself(server, issuer.token("two", **GOOD)))[0] == 401
        assert issuer.asked["keys"] == 1


async def test_many_at_a_time_fetch_the_keys_once(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, issuer):
        token = issuer.token(**GOOD)
        answers = await asyncio.gather(*(myself(server, token) for _ in range(8)))
        assert {code for code, _ in answers} == {201}
        assert issuer.asked["keys"] == 1


async def test_a_file_that_changes_is_followed(certificates: ServerFiles, tmp_path: Path) -> None:
    file = tmp_path / "authentication.yaml"
    async with serving(certificates, tmp_path, file=file) as (server, issuer):
        (followed,) = server.plane.server.core.identity.followed
        token = issuer.token(**GOOD)
        assert (await myself(server, token))[1]["username"] == "x:ann"
        config = configured(issuer, certificates.ca.cert)
        config["jwt"][0]["claimMappings"]["username"] = {"claim": "sub", "prefix": "y:"}
        file.write_text(yaml.safe_dump(config))
        await followed.look()
        assert (await myself(server, token))[1]["username"] == "y:ann"
        for broken in ("jwt: 5", yaml.safe_dump({**config, "anonymous": {"enabled": True}}), "{"):
            file.write_text(broken)
            await followed.look()
            assert (await myself(server, token))[1]["username"] == "y:ann"
        file.write_text(yaml.safe_dump({**config, "jwt": []}))
        await followed.look()
        assert (await myself(server, token))[0] == 401


async def test_until_the_issuer_is_found_its_tokens_are_refused(certificates: ServerFiles, tmp_path: Path) -> None:
    async with issuing(server_ssl_context(certificates.cert, certificates.key)) as issuer:
        issuer.broken = True
        config = settings(configured(issuer, certificates.ca.cert))
        async with running(certificates, tmp_path, token_settings=config) as server:
            status = await review(server, issuer.token(**GOOD))
            assert status["error"] == "[invalid bearer token, oidc: authenticator not initialized]"


async def test_the_configuration_may_be_elsewhere(certificates: ServerFiles, tmp_path: Path) -> None:
    async with issuing(server_ssl_context(certificates.cert, certificates.key)) as issuer:
        where, issuer.url = issuer.url, "https://issuer.example.com/nowhere"
        config = configured(issuer, certificates.ca.cert)
        config["jwt"][0]["issuer"]["discoveryURL"] = f"{where}/elsewhere"
        issuer.keys_url = f"{where}/keys"
        async with running(certificates, tmp_path, token_settings=settings(config)) as server:
            await asyncio.wait_for(known(server).issuers[0].ready.wait(), 10)
            assert (await myself(server, issuer.token(**GOOD)))[1]["username"] == "x:ann"
