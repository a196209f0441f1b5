"""Flags of `steersman serve` about who may do what, named as kube-apiserver's.

Source: kubernetes `pkg/kubeapiserver/options/authorization.go`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from steersman._util.goduration import parse_nanoseconds
from steersman._util.gotext import quote
from steersman.apiserver.authz.settings import RBAC, AuthorizerSettings, WebhookRules, WebhookSettings
from steersman.apiserver.config_files import ConfigFileError

_SECOND = 1_000_000_000
_MODES = ("AlwaysAllow", "AlwaysDeny", "RBAC", "Webhook")
_WEBHOOK = "authorization_webhook_"
_LEGACY = (
    "authorization_mode",
    f"{_WEBHOOK}config_file",
    f"{_WEBHOOK}version",
    f"{_WEBHOOK}cache_authorized_ttl",
    f"{_WEBHOOK}cache_unauthorized_ttl",
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("who may do what").add_argument
    add(
        "--authorization-mode",
        metavar="MODES",
        help=f"who decides who may do what, in order: names of {', '.join(_MODES)} (default: RBAC)",
    )
    add(
        "--authorization-config",
        metavar="FILE",
        help="an AuthorizationConfiguration, read again when it changes (default: none)",
    )
    add(
        "--authorization-webhook-config-file",
        metavar="FILE",
        help="kubeconfig of the service that Webhook asks (default: none)",
    )
    add(
        "--authorization-webhook-version",
        metavar="NAME",
        help="the version of the SubjectAccessReview: v1 or v1beta1 (default: v1beta1)",
    )
    for answer, default in (("authorized", "5m"), ("unauthorized", "30s")):
        add(
            f"--authorization-webhook-cache-{answer}-ttl",
            type=seconds,
            metavar="TIME",
            help=f"how long the answer '{answer}' is kept (default: {default}); 0: not at all",
        )


def configuration(options: argparse.Namespace) -> tuple[tuple[AuthorizerSettings, ...], tuple[Path, bytes] | None]:
    """The authorizers, and the file that they are to follow with what it holds now.

    Raises ValueError with one line on what is wrong.
    """
    if options.authorization_config is None:
        return _of_modes(options), None
    if any(getattr(options, name) is not None for name in _LEGACY):
        raise ValueError(
            "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags "
            "are defined"
        )
    from steersman.apiserver.authz.configuration import read_configuration

    path = Path(options.authorization_config)
    try:
        raw = path.read_bytes()
        return tuple(read_configuration(raw)), (path, raw)
    except (OSError, ConfigFileError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"--authorization-config {path}: {why}") from None


def _of_modes(options: argparse.Namespace) -> tuple[AuthorizerSettings, ...]:
    if options.authorization_mode is None:
        modes = ["RBAC"]
    else:
        modes = [name.strip() for name in options.authorization_mode.split(",") if name.strip()]
    if not modes:
        raise ValueError("at least one authorization-mode must be passed")
    for mode in modes:
        if mode not in _MODES:
            raise ValueError(f"authorization-mode {quote(mode)} is not a valid mode; there are: {', '.join(_MODES)}")
    file = options.authorization_webhook_config_file
    if "Webhook" in modes and not file:
        raise ValueError("authorization-mode Webhook's authorization config file not passed")
    if file and "Webhook" not in modes:
        raise ValueError("cannot specify --authorization-webhook-config-file without mode Webhook")
    if len(set(modes)) < len(modes):
        listed = " ".join(map(quote, modes))
        raise ValueError(f"authorization-mode [{listed}] has mode specified more than once")
    if modes == ["RBAC"]:
        return RBAC
    return tuple(_settings(mode, options) for mode in modes)


def _settings(mode: str, options: argparse.Namespace) -> AuthorizerSettings:
    if mode != "Webhook":
        return AuthorizerSettings(mode, mode.lower())
    version = options.authorization_webhook_version or "v1beta1"
    if version not in ("v1", "v1beta1"):
        known = 'supported versions are "v1", "v1beta1"'
        raise ValueError(f"unsupported webhook authorizer version {quote(version)}, {known}")
    allowed, refused = (getattr(options, f"{_WEBHOOK}cache_{kind}_ttl") for kind in ("authorized", "unauthorized"))
    rules = WebhookRules(300.0 if allowed is None else allowed, 30.0 if refused is None else refused)
    where = Path(options.authorization_webhook_config_file)
    return AuthorizerSettings("Webhook", "default", WebhookSettings(where, version, rules=rules))


def seconds(text: str) -> float:
    """A flag's duration, such as 30s, in seconds."""
    nanoseconds = parse_nanoseconds(text)
    if nanoseconds is None or nanoseconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 30s")
    return nanoseconds / _SECOND
