"""The chain of admission plugins that every write passes.

Source: apiserver `pkg/admission/{attributes,chain}.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object


@dataclass(slots=True)
class Attributes:
    """What a plugin may know of a write. `operation` is CREATE, UPDATE or DELETE; `name` is "" when it is generated."""

    operation: str
    scope: ResourceScope
    namespace: str
    name: str
    obj: Object | None
    old: Object | None
    user: UserInfo
    dry_run: bool = False
    subresource: str = ""


class Plugin(Protocol):
    """One plugin; `name` is what `--disable-admission-plugins` calls it. `admit` raises an ApiError to refuse."""

    name: str

    async def admit(self, attributes: Attributes) -> None: ...


class Admission:
    """Plugins in order. `mutates` says that one of them may change objects, or sees writes that will conflict."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = list(plugins)
        self.mutates = False

    async def admit(self, attributes: Attributes) -> None:
        for plugin in self.plugins:
            await plugin.admit(attributes)
