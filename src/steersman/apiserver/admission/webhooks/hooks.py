"""The webhooks that are configured now.

Source: apiserver `pkg/admission/configuration/{mutating,validating}_webhook_manager.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steersman.apimachinery.selectors import LabelSelector, SelectorError, from_object
from steersman.apiserver.admission.conditions import Conditions, compile_conditions
from steersman.apiserver.watchcache import Change, ResourceCache
from steersman.apiserver.webhooks.caller import ClientConfig

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
        self._hooks: list[Hook] | None = None
        cache.watchers.append(self._on_change)

    @property
    def hooks(self) -> list[Hook]:
        if self._hooks is None:
            found = [self._cache.entries[key].decode() for key in self._cache.keys]
            self._hooks = [
                hook(config["metadata"]["name"], item) for config in found for item in config.get("webhooks") or ()
            ]
        return self._hooks

    def _on_change(self, change: Change) -> None:
        self._hooks = None


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
        conditions=compile_conditions(conditions) if conditions else None,
    )


def _selector(selector: Mapping[str, Any] | None) -> LabelSelector | None:
    try:
        return from_object(selector) or None if selector else None
    except SelectorError:
        return None
