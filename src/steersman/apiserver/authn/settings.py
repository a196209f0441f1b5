"""Who makes requests: what a server is told of it, beside certificates and static tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from steersman._util.dataclass import dataclass

if TYPE_CHECKING:
    from steersman.apiserver.authn.jwt_settings import JwtSettings


@dataclass(frozen=True, slots=True)
class TokenWebhook:
    """Where a webhook is that knows tokens. `version` is the TokenReview's; answers are kept for `kept_seconds`."""

    kubeconfig: Path
    version: str = "v1beta1"
    kept_seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """`issuers` of tokens follow `file` (its path, and what it held when they were read) if there is one."""

    issuers: Sequence[JwtSettings] = ()
    webhook: TokenWebhook | None = None
    file: tuple[Path, bytes] | None = None

    @property
    def remote(self) -> bool:
        """Whether anyone else is to be asked."""
        return bool(self.issuers or self.webhook or self.file)
