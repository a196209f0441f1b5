"""Flags of `steersman serve` about who makes requests, named as kube-apiserver's.

Source: kubernetes `pkg/kubeapiserver/options/authentication.go`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from steersman.apiserver.authn.settings import TokenSettings, TokenWebhook
from steersman.apiserver.config_files import ConfigFileError
from steersman.controlplane.authorization_flags import seconds

if TYPE_CHECKING:
    from steersman.apiserver.authn.jwt_settings import JwtSettings

Anonymous = bool | tuple[str, ...]
_WEBHOOK = "--authentication-token-webhook"


def add_flags(parser: argparse.ArgumentParser, boolean: Callable[[str], bool]) -> None:
    """The flags; `boolean` reads true and false."""
    add = parser.add_argument_group("who is who").add_argument
    add("--client-ca-file", metavar="FILE", help="CA of client certificates: CN = user, O = groups (default: none)")
    add(
        "--token-auth-file",
        metavar="FILE",
        help="static tokens, a CSV line each: token,user,uid,groups (default: none)",
    )
    add("--anonymous-auth", type=boolean, metavar="BOOL", help="allow requests without credentials (default: true)")
    add(
        "--authentication-config",
        metavar="FILE",
        help="an AuthenticationConfiguration, read again when it changes (default: none)",
    )
    add(
        f"{_WEBHOOK}-config-file",
        metavar="FILE",
        help="kubeconfig of a service that knows whose tokens are (default: none)",
    )
    add(f"{_WEBHOOK}-version", default="v1beta1", metavar="NAME", help="the version of the TokenReview: v1 or v1beta1")
    add(f"{_WEBHOOK}-cache-ttl", type=seconds, default="2m", metavar="TIME", help="how long its answers are kept")
    add("--oidc-issuer-url", metavar="URL", help="whose tokens (JWT) are good, beside our own (default: nobody's)")
    add("--oidc-client-id", metavar="NAME", help="whom the issuer's tokens must be made for")
    add("--oidc-ca-file", metavar="FILE", help="authorities of the issuer's certificate, PEM (default: the system's)")
    add("--oidc-username-claim", metavar="NAME", help="the claim that is the user's name (default: sub)")
    add("--oidc-username-prefix", metavar="TEXT", help="put before names; - for nothing (default: the issuer and #)")
    add("--oidc-groups-claim", metavar="NAME", help="the claim that is the user's groups (default: none)")
    add("--oidc-groups-prefix", metavar="TEXT", help="put before groups (default: nothing)")
    add("--oidc-signing-algs", metavar="NAMES", help="how tokens may be signed (default: RS256)")
    add(
        "--oidc-required-claim",
        action="append",
        metavar="KEY=VALUE",
        help="what a token must also say; may be repeated",
    )


def configuration(options: argparse.Namespace, own_issuers: Collection[str]) -> tuple[TokenSettings, Anonymous]:
    """Who is asked about tokens, and where requests may be anonymous.

    Raises ValueError with one line on what is wrong.
    """
    webhook = _webhook(options)
    allowed = options.anonymous_auth is not False
    oidc = {name for name, value in vars(options).items() if name.startswith("oidc_") and value is not None}
    if options.authentication_config is None:
        return TokenSettings(_of_flags(options, own_issuers) if oidc else (), webhook), allowed
    if oidc:
        raise ValueError("authentication-config file and oidc-* flags are mutually exclusive")
    from steersman.apiserver.authn.configuration import read_configuration

    path = Path(options.authentication_config)
    try:
        raw = path.read_bytes()
        config = read_configuration(raw, own_issuers)
    except (OSError, ConfigFileError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"--authentication-config {path}: {why}") from None
    if config.anonymous is not None and options.anonymous_auth is not None:
        why = "cannot be set when anonymous field is configured in authentication configuration file"
        raise ValueError(f"anonymous: Forbidden: --anonymous-auth flag {why}")
    return TokenSettings(
        config.issuers, webhook, (path, raw)
    ), allowed if config.anonymous is None else config.anonymous


def _webhook(options: argparse.Namespace) -> TokenWebhook | None:
    if not options.authentication_token_webhook_config_file:
        return None
    version = options.authentication_token_webhook_version
    if version not in ("v1", "v1beta1"):
        known = 'supported versions are "v1", "v1beta1"'
        raise ValueError(f'unsupported authentication webhook version "{version}", {known}')
    path = Path(options.authentication_token_webhook_config_file)
    return TokenWebhook(path, version, options.authentication_token_webhook_cache_ttl)


def _of_flags(options: argparse.Namespace, own_issuers: Collection[str]) -> tuple[JwtSettings, ...]:
    from steersman.apiserver.authn.configuration import issuer_errors
    from steersman.apiserver.authn.jws import ALGORITHMS
    from steersman.apiserver.authn.jwt_settings import JwtSettings, Source

    url, client = options.oidc_issuer_url or "", options.oidc_client_id or ""
    if not url or not client:
        raise ValueError("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")
    claim, prefix = options.oidc_username_claim or "sub", options.oidc_username_prefix or ""
    if not prefix and claim != "email":
        prefix = f"{url}#"
    algorithms = tuple(name.strip() for name in (options.oidc_signing_algs or "RS256").split(","))
    for algorithm in algorithms:
        if algorithm not in ALGORITHMS:
            raise ValueError(f'oidc: unsupported signing alg: "{algorithm}"')
    ca = _read(options.oidc_ca_file)
    if why := issuer_errors(url, client, "" if ca is None else ca.decode("ascii", "replace"), own_issuers):
        raise ValueError(why)
    groups = Source(options.oidc_groups_claim or "", options.oidc_groups_prefix or "")
    username = Source(claim, "" if prefix == "-" else prefix)
    required = dict(_pair(text) for text in options.oidc_required_claim or ())
    return (JwtSettings(url, (client,), username, groups, required_claims=required, ca=ca, algorithms=algorithms),)


def _read(path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"--oidc-ca-file {path} cannot be read: {error.strerror}") from None


def _pair(text: str) -> tuple[str, str]:
    key, found, value = text.partition("=")
    if not found:
        raise ValueError(f"--oidc-required-claim {text!r} is not of the form KEY=VALUE")
    return key, value
