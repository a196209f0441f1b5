"""Levels and versions of the standards, and the labels by which a namespace chooses them.

Source: pod-security-admission `api/{constants,helpers}.go`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from steersman._util.lazily import lazily
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError

PREFIX = "pod-security.kubernetes.io/"
"""Of the labels, and of the keys of audit annotations."""
PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
STRICTNESS = {PRIVILEGED: 0, BASELINE: 1, RESTRICTED: 2}

_VERSION = lazily(re.compile, r"v1\.(0|[1-9][0-9]{0,18})")
_LARGEST = (1 << 63) - 1
_WRONG_LEVEL = f"must be one of {', '.join(STRICTNESS)}"
_WRONG_VERSION = 'must be "latest" or "v1.x"'


class LevelVersion(NamedTuple):
    """A level in a version: `minor` is that of v1.MINOR, None the latest."""

    level: str = PRIVILEGED
    minor: int | None = None

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor is None else f'v1.{self.minor}'}"


class Policy(NamedTuple):
    """What a namespace refuses, what it tells the audit log, and what it warns of."""

    enforce: LevelVersion = LevelVersion()
    audit: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()

    @property
    def privileged(self) -> bool:
        """Whether everything is allowed, in silence."""
        return self.enforce.level == self.audit.level == self.warn.level == PRIVILEGED


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[FieldError]]:
    """The policy of a namespace with these labels, and what is wrong with them.

    There is always a policy: a wrong level enforces the strictest one, and audits and warns of nothing; a wrong version
    is the latest. Who is told to enforce a level warns of it, too, unless the namespace says otherwise.
    """
    errors: list[FieldError] = []
    enforce = _chosen(labels, "enforce", RESTRICTED, errors)
    audit = _chosen(labels, "audit", PRIVILEGED, errors)
    warn = _chosen(labels, "warn", PRIVILEGED, errors)
    if f"{PREFIX}warn" not in labels and labels.get(f"{PREFIX}enforce") in (BASELINE, RESTRICTED):
        minor = warn.minor if f"{PREFIX}warn-version" in labels else enforce.minor
        warn = LevelVersion(enforce.level, minor)
    return Policy(enforce, audit, warn), errors


def _chosen(labels: Mapping[str, str], mode: str, instead: str, errors: list[FieldError]) -> LevelVersion:
    """The level and version of a mode; a wrong level is taken for `instead`."""
    level = labels.get(f"{PREFIX}{mode}", PRIVILEGED)
    if level not in STRICTNESS:
        errors.append(_wrong(f"{PREFIX}{mode}", level, _WRONG_LEVEL))
        level = instead
    version = labels.get(f"{PREFIX}{mode}-version", "latest")
    if version == "latest":
        return LevelVersion(level)
    found = _VERSION.fullmatch(version)
    if found and int(found[1]) <= _LARGEST:
        return LevelVersion(level, int(found[1]))
    errors.append(_wrong(f"{PREFIX}{mode}-version", version, _WRONG_VERSION))
    return LevelVersion(level)


def _wrong(label: str, value: str, why: str) -> FieldError:
    return fe.invalid(f"metadata.labels[{label}]", value, why)
