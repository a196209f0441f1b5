"""Flags of `steersman serve` about encryption at rest, named as kube-apiserver's.

Source: apiserver `pkg/server/options/etcd.go`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from steersman.apiserver.config_files import ConfigFileError
from steersman.apiserver.server import Encryption

_FILE = "--encryption-provider-config"


def add_flags(parser: argparse.ArgumentParser, boolean: Callable[[str], bool]) -> None:
    add = parser.add_argument_group("encryption at rest").add_argument
    add(
        _FILE,
        metavar="FILE",
        help="an EncryptionConfiguration: which resources are stored encrypted, and with which keys (default: none)",
    )
    add(
        f"{_FILE}-automatic-reload",
        type=boolean,
        default=False,
        metavar="BOOL",
        help="read the file again when it changes",
    )


def configuration(options: argparse.Namespace, root: str) -> Encryption | None:
    """How values are encrypted; `root` is what the store has before its keys. Raises ValueError, in one line."""
    file = options.encryption_provider_config
    follow = options.encryption_provider_config_automatic_reload
    if file is None:
        if follow:
            raise ValueError(f"{_FILE}-automatic-reload must be set with {_FILE}")
        return None
    from steersman.apiserver.encryption.configuration import read_configuration

    path = Path(file)
    try:
        raw = path.read_bytes()
        return Encryption(read_configuration(raw, file), root, (path, raw) if follow else None)
    except (OSError, ConfigFileError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{_FILE} {path}: {why}") from None
