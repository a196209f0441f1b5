"""What an operator may be allowed beyond what follows from its controllers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steersman.client.resources import Resource


@dataclass(frozen=True, slots=True)
class Permission:
    """Verbs on a kind, or on one of its subresources; on objects of these `names` only, if there are any."""

    resource: Resource
    verbs: Sequence[str]
    subresource: str = ""
    names: Sequence[str] = ()
    namespace: str | None = None
    """In this namespace only; None for all of them."""
