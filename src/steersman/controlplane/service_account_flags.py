"""Flags of `steersman serve` about service-account tokens, named as kube-apiserver's.

Source: kubernetes `pkg/kubeapiserver/options/authentication.go`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from steersman._util.goduration import parse_nanoseconds
from steersman.apiserver.authn.authenticator import DEFAULT_AUDIENCES
from steersman.apiserver.authn.service_accounts import ServiceAccountConfig

if TYPE_CHECKING:
    from steersman.apiserver.authn.signing_keys import KeySet

_T = TypeVar("_T")
_KEY_FILE = "sa.key"
_SIGNING, _VERIFYING = "--service-account-signing-key-file", "--service-account-key-file"
_HOUR, _LONGEST = 3600, 1 << 32


def add_flags(parser: argparse.ArgumentParser, boolean: Callable[[str], bool]) -> None:
    """The flags; `boolean` reads true and false."""
    add = parser.add_argument_group("tokens of service accounts").add_argument
    add(
        "--service-account-issuer",
        action="append",
        metavar="URL",
        help="the issuer of tokens; may be repeated: the first signs, all are accepted "
        "(default: https://kubernetes.default.svc)",
    )
    add(
        _SIGNING,
        metavar="FILE",
        help="the key (PEM) that signs tokens (default: a self-made one)",
    )
    add(
        _VERIFYING,
        action="append",
        metavar="FILE",
        help="a key (PEM) that tokens may be of, too; may be repeated",
    )
    add(
        "--service-account-jwks-uri",
        default="",
        metavar="URL",
        help="where clients are told to find the keys (default: at the server)",
    )
    add(
        "--service-account-max-token-expiration",
        type=_seconds,
        default=0,
        metavar="TIME",
        help="how long tokens last at most (default: no limit)",
    )
    add(
        "--service-account-extend-token-expiration",
        type=boolean,
        default=True,
        metavar="BOOL",
        help="let pods' tokens outlive what kubelets ask for",
    )
    add("--api-audiences", default="", metavar="NAMES", help="whom tokens must be made for (default: the issuers)")


def configuration(options: argparse.Namespace, directory: Path) -> ServiceAccountConfig:
    """What the flags say; a self-made key is kept in `directory`, from its first use on.

    Raises ValueError with one line on what is wrong.
    """
    return ServiceAccountConfig(
        issuers=tuple(options.service_account_issuer or DEFAULT_AUDIENCES),
        audiences=tuple(name.strip() for name in options.api_audiences.split(",") if name.strip()),
        keys=_keys(options.service_account_signing_key_file, options.service_account_key_file or [], directory),
        max_seconds=options.service_account_max_token_expiration,
        extend=options.service_account_extend_token_expiration,
        jwks_uri=options.service_account_jwks_uri,
    )


def _keys(signing: str | None, verifying: list[str], directory: Path) -> Callable[[], KeySet]:
    """Files that were named are read now, so that the server does not start without them.

    A key and its certificate, which envtest names, are checked by what is loaded anyway.
    """
    if signing is None and not verifying:
        return partial(_kept, directory / _KEY_FILE)
    from steersman.apiserver.authn import signing_keys

    own = None if signing is None else _content(_SIGNING, signing)
    others = [_content(_VERIFYING, path) for path in verifying]
    paired = [own is not None and signing_keys.is_pair(own, other) for other in others]
    for path, content, seen in zip(verifying, others, paired, strict=True):
        if not seen:
            _check(_VERIFYING, path, partial(signing_keys.public_keys, content))
    if own is None or signing is None:
        return partial(signing_keys.kept, directory / _KEY_FILE, others)
    if not any(paired):
        _check(_SIGNING, signing, partial(signing_keys.key_set, own))
    return partial(signing_keys.key_set, own, others)


def _kept(path: Path) -> KeySet:
    from steersman.apiserver.authn import signing_keys  # deferred: a server starts without a key

    return signing_keys.kept(path)


def _content(flag: str, path: str) -> bytes:
    return _check(flag, path, Path(path).read_bytes)


def _check(flag: str, path: str, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{flag} {path} cannot be used: {why}") from None


def _seconds(text: str) -> int:
    nanoseconds = parse_nanoseconds(text)
    if nanoseconds is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 24h")
    seconds = nanoseconds // 1_000_000_000
    if seconds and not _HOUR <= seconds <= _LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not between an hour and 2^32 seconds")
    return seconds
