"""Which authorizers a server has.

Source: apiserver `pkg/apis/apiserver/v1/types.go` (AuthorizationConfiguration).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steersman._util.dataclass import dataclass

if TYPE_CHECKING:
    from steersman.api.authorization.match_conditions import Condition


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """How a webhook's answers are used; times in seconds (0: not kept). `denies` is the failure policy Deny."""

    authorized_seconds: float = 300.0
    unauthorized_seconds: float = 30.0
    denies: bool = False
    conditions: Sequence[Condition] = ()


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Where a webhook is, and how it is asked: `timeout` in seconds, `version` of the review."""

    kubeconfig: Path
    version: str = "v1"
    timeout: float = 30.0
    rules: WebhookRules = field(default_factory=WebhookRules)


@dataclass(frozen=True, slots=True)
class AuthorizerSettings:
    """One authorizer: its mode, the name that refusals tell, and for a webhook where it is."""

    mode: str
    name: str
    webhook: WebhookSettings | None = None


RBAC: Final = (AuthorizerSettings("RBAC", "rbac"),)
"""What is asked if nothing else is said."""
