"""Flags about who makes requests, and what they may do."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.apiserver.authn.settings import TokenSettings
from steersman.apiserver.authz.settings import RBAC, AuthorizerSettings
from steersman.controlplane import authentication_flags, authorization_flags

OWN = ("https://kubernetes.default.svc",)
OIDC = ("--oidc-issuer-url", "https://issuer.example.com", "--oidc-client-id", "me")
AUTHORIZATION: dict[str, Any] = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthorizationConfiguration",
    "authorizers": [{"type": "RBAC", "name": "rbac"}],
}
AUTHENTICATION: dict[str, Any] = {**AUTHORIZATION, "kind": "AuthenticationConfiguration"}
del AUTHENTICATION["authorizers"]


def written(path: Path, content: Any) -> str:
    path.write_text(yaml.safe_dump(content))
    return str(path)


def parsed(add_flags: Any, *arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_flags(parser)
    return parser.parse_args(arguments)


def authorizers(*arguments: str) -> tuple[tuple[AuthorizerSettings, ...], tuple[Path, bytes] | None]:
    return authorization_flags.configuration(parsed(authorization_flags.add_flags, *arguments))


def authentication(*arguments: str) -> tuple[TokenSettings, bool | tuple[str, ...]]:
    options = parsed(lambda parser: authentication_flags.add_flags(parser, lambda text: text == "true"), *arguments)
    return authentication_flags.configuration(options, OWN)


def test_without_flags_it_is_rbac_and_nobody_else_is_asked() -> None:
    assert authorizers() == (RBAC, None)
    assert authentication() == (TokenSettings(), True)
    assert not authentication()[0].remote


def test_modes_are_asked_in_their_order(tmp_path: Path) -> None:
    flags = ("--authorization-webhook-config-file", str(tmp_path / "kubeconfig"))
    found, _ = authorizers("--authorization-mode", "Webhook,RBAC", *flags)
    assert [(each.mode, each.name) for each in found] == [("Webhook", "default"), ("RBAC", "rbac")]
    webhook = found[0].webhook
    assert webhook is not None
    assert (webhook.version, webhook.timeout, webhook.rules.denies) == ("v1beta1", 30.0, False)
    assert (webhook.rules.authorized_seconds, webhook.rules.unauthorized_seconds) == (300.0, 30.0)
    never = ("--authorization-webhook-cache-authorized-ttl", "0s", "--authorization-webhook-version", "v1")
    webhook = authorizers("--authorization-mode", "Webhook", *flags, *never)[0][0].webhook
    assert webhook is not None
    assert (webhook.version, webhook.rules.authorized_seconds) == ("v1", 0.0)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--authorization-mode", ""), "at least one authorization-mode must be passed"),
        (("--authorization-mode", "Node"), 'authorization-mode "Node" is not a valid mode'),
        (("--authorization-mode", "Webhook"), "authorization-mode Webhook's authorization config file not passed"),
        (
            ("--authorization-webhook-config-file", "x"),
            "cannot specify --authorization-webhook-config-file without mode Webhook",
        ),
        (
            ("--authorization-mode", "RBAC,RBAC"),
            r'authorization-mode \["RBAC" "RBAC"\] has mode specified more than once',
        ),
        (("--authorization-config", "/no/such/file"), "--authorization-config /no/such/file: No such file"),
        (
            ("--authorization-config", "x", "--authorization-mode", "RBAC"),
            "--authorization-config can not be specified when --authorization-mode",
        ),
    ],
)
def test_modes_that_cannot_be(arguments: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        authorizers(*arguments)


def test_a_file_names_the_authorizers(tmp_path: Path) -> None:
    path = written(tmp_path / "authz.yaml", AUTHORIZATION)
    found, followed = authorizers("--authorization-config", path)
    assert (found, followed) == (RBAC, (Path(path), Path(path).read_bytes()))


def test_an_issuer_by_flags() -> None:
    settings, anonymous = authentication(*OIDC)
    (issuer,) = settings.issuers
    assert (issuer.url, issuer.audiences, issuer.algorithms, anonymous) == (OIDC[1], ("me",), ("RS256",), True)
    assert (issuer.username.claim, issuer.username.prefix) == ("sub", "https://issuer.example.com#")
    more = ("--oidc-username-claim", "email", "--oidc-groups-claim", "roles", "--oidc-groups-prefix", "g:",
            "--oidc-signing-algs", "ES256,PS512", "--oidc-required-claim", "hd=x", "--oidc-required-claim", "a=b=c",
            "--anonymous-auth", "false")  # fmt: skip
    settings, anonymous = authentication(*OIDC, *more)
    (issuer,) = settings.issuers
    assert (issuer.username.claim, issuer.username.prefix) == ("email", "")
    assert (issuer.groups.claim, issuer.groups.prefix) == ("roles", "g:")
    assert (issuer.required_claims, issuer.algorithms) == ({"hd": "x", "a": "b=c"}, ("ES256", "PS512"))
    assert anonymous is False
    (issuer,) = authentication(*OIDC, "--oidc-username-prefix", "-")[0].issuers
    assert issuer.username.prefix == ""


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (OIDC[:2], "oidc-issuer-url and oidc-client-id must be specified together"),
        ((*OIDC, "--oidc-signing-algs", "HS256"), 'oidc: unsupported signing alg: "HS256"'),
        (("--oidc-issuer-url", "http://x", *OIDC[2:]), "URL scheme must be https"),
        (("--oidc-issuer-url", OWN[0], *OIDC[2:]), "URL must not overlap with disallowed issuers"),
        ((*OIDC, "--oidc-ca-file", "/no/such/file"), "--oidc-ca-file /no/such/file cannot be read"),
        ((*OIDC, "--oidc-required-claim", "x"), "is not of the form KEY=VALUE"),
        ((*OIDC, "--authentication-config", "x"), "authentication-config file and oidc-. flags are mutually exclusive"),
        (("--authentication-config", "/no/such/file"), "--authentication-config /no/such/file: No such file"),
    ],
)
def test_issuers_that_cannot_be(arguments: tuple[str, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        authentication(*arguments)


def test_a_file_says_where_requests_may_be_anonymous(tmp_path: Path) -> None:
    conditions = [{"path": "/livez"}, {"path": "/version"}]
    for content, anonymous in (
        (None, True),
        ({"enabled": False}, False),
        ({"enabled": True}, True),
        ({"enabled": True, "conditions": conditions}, ("/livez", "/version")),
    ):
        config = AUTHENTICATION if content is None else {**AUTHENTICATION, "anonymous": content}
        path = written(tmp_path / "authn.yaml", config)
        assert authentication("--authentication-config", path)[1] == anonymous
    with pytest.raises(ValueError, match="--anonymous-auth flag cannot be set when anonymous field is configured"):
        authentication("--authentication-config", path, "--anonymous-auth", "false")


def test_a_webhook_for_tokens(tmp_path: Path) -> None:
    flag = "--authentication-token-webhook"
    settings, _ = authentication(f"{flag}-config-file", str(tmp_path / "kubeconfig"), f"{flag}-cache-ttl", "10s")
    assert settings.webhook is not None
    assert (settings.webhook.version, settings.webhook.kept_seconds) == ("v1beta1", 10.0)
    with pytest.raises(ValueError, match='unsupported authentication webhook version "v2"'):
        authentication(f"{flag}-config-file", "x", f"{flag}-version", "v2")
