"""Who signs tokens that are good here, and whom they stand for.

Source: apiserver `pkg/apis/apiserver/v1/types.go` (AuthenticationConfiguration).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steersman.apiserver.authn.jws import ALGORITHMS

if TYPE_CHECKING:
    from steersman.api.authentication.claims import Expression


@dataclass(frozen=True, slots=True)
class Source:
    """Where a part of a user comes from: a claim and what is put before it, or an expression."""

    claim: str = ""
    prefix: str = ""
    expression: Expression | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """An expression that must be true, and what is said if it is not."""

    expression: Expression
    message: str = ""


@dataclass(frozen=True, slots=True)
class JwtSettings:
    """One issuer. `discovery_url` is where its configuration is, if not below `url`; `ca` is PEM (None: the system's
    authorities are trusted)."""

    url: str
    audiences: tuple[str, ...]
    username: Source
    groups: Source = field(default_factory=Source)
    uid: Source = field(default_factory=Source)
    extra: Sequence[tuple[str, Expression]] = ()
    required_claims: Mapping[str, str] = field(default_factory=dict)
    claim_rules: Sequence[Rule] = ()
    user_rules: Sequence[Rule] = ()
    discovery_url: str = ""
    ca: bytes | None = None
    algorithms: tuple[str, ...] = ALGORITHMS
