"""The webhooks that are configured now.

Source: apiserver `pkg/admission/configuration/{mutating,validating}_webhook_manager.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steersman.apimachinery.selectors import LabelSelector, SelectorError, from_object
from steersman.apiserver.aside import patiently
from steersman.apiserver.watchcache import Change, ResourceCache
from steersman.apiserver.webhooks.caller import ClientConfig

if TYPE_CHECKING:
    from steersman.apiserver.admission.conditions import Conditions

DEFAULT_TIMEOUT = 10


@dataclass(frozen=True, slots=True, eq=False)
class Hook:
    """One webhook of a configuration; a selector that is None selects everything."""

    name: str
    configuration: str
    client: ClientConfig
    rules: Sequence[Mapping[str, Any]]
    ignores_failures: bool
    equivalent: bool
    namespaces: LabelSelector | None
    objects: LabelSelector | None
    side_effects: str
    timeout: int
    review_versions: Sequence[str]
    reinvoked: bool
    conditions: Conditions | None

    @property
    def uid(self) -> str:
        return f"{self.configuration}/{self.name}"


class HookSource:
    """The hooks of all configurations of one kind, by name of the configuration, then in its order."""

    def __init__(self, cache: ResourceCache) -> None:
        self._cache = cache
        self._items: list[tuple[str, Mapping[str, Any]]] | None = None
        self._hooks: list[Hook] | None = None
        self._reading = asyncio.Lock()
        cache.watchers.append(self._on_change)

    @property
    def active(self) -> bool:
        """Whether there is any hook."""
        return bool(self._configured())

    async def hooks(self) -> list[Hook]:
        """The hooks as they are when they are asked for, compiled."""
        async with self._reading:
            if self._hooks is not None:
                return self._hooks
            items = self._configured()
            found = [await patiently(hook, *each) for each in items]
            if self._items is items:
                self._hooks = found
            return found

    def _configured(self) -> list[tuple[str, Mapping[str, Any]]]:
        """The entries of all configurations, each with the name of its own."""
        if self._items is None:
            found = [self._cache.entries[key].decode() for key in self._cache.keys]
            self._items = [
                (config["metadata"]["name"], each) for config in found for each in config.get("webhooks") or ()
            ]
        return self._items

    def _on_change(self, change: Change) -> None:
        self._items = self._hooks = None


def hook(configuration: str, item: Mapping[str, Any]) -> Hook:
    """One entry of `webhooks`."""
    conditions = item.get("matchConditions")
    return Hook(
        name=item["name"],
        configuration=configuration,
        client=ClientConfig.of(item["clientConfig"]),
        rules=item.get("rules") or (),
        ignores_failures=item.get("failurePolicy") == "Ignore",
        equivalent=item.get("matchPolicy", "Equivalent") == "Equivalent",
        namespaces=_selector(item.get("namespaceSelector")),
        objects=_selector(item.get("objectSelector")),
        side_effects=item.get("sideEffects") or "",
        timeout=item.get("timeoutSeconds") or DEFAULT_TIMEOUT,
        review_versions=item.get("admissionReviewVersions") or (),
        reinvoked=item.get("reinvocationPolicy") == "IfNeeded",
        conditions=_compiled(conditions) if conditions else None,
    )


def _compiled(conditions: Sequence[Mapping[str, Any]]) -> Conditions:
    from steersman.apiserver.admission.conditions import compile_conditions  # deferred: few hooks have conditions

    return compile_conditions(conditions)


def _selector(selector: Mapping[str, Any] | None) -> LabelSelector | None:
    try:
        return from_object(selector) or None if selector else None
    except SelectorError:
        return None
