"""The policies and bindings of one kind, as they are now; each policy is compiled once.

Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from steersman.apiserver.admission.policies.criteria import Criteria, criteria
from steersman.apiserver.aside import patiently
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import Change, ResourceCache

Compiled = TypeVar("Compiled")


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a policy counts. `match` is None for all that the policy is about; `actions` are for validation only."""

    name: str
    match: Criteria | None
    param_ref: Mapping[str, Any] | None
    actions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Policy(Generic[Compiled]):
    """A policy with its bindings, by name."""

    name: str
    spec: Mapping[str, Any]
    match: Criteria
    compiled: Compiled
    bindings: Sequence[Binding]

    @property
    def ignores_failures(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"


class PolicySource(Generic[Compiled]):
    """Policies that are bound at all, by name. Changes count from the next request on."""

    def __init__(
        self, policies: ResourceCache, bindings: ResourceCache, compile_spec: Callable[[Mapping[str, Any]], Compiled]
    ) -> None:
        self._policies = policies
        self._bindings = bindings
        self._compile = compile_spec
        self._compiled: dict[str, tuple[int, Compiled]] = {}
        self._bound: dict[str, list[Binding]] | None = None
        self._current: list[Policy[Compiled]] | None = None
        self._reading = asyncio.Lock()
        policies.watchers.append(self._on_change)
        bindings.watchers.append(self._on_change)

    @property
    def active(self) -> bool:
        """Whether there is any policy that is bound."""
        return bool(self._policies.entries) and bool(self._bindings.entries) and bool(self._wanted())

    async def policies(self) -> list[Policy[Compiled]]:
        """The policies as they are when they are asked for, compiled."""
        async with self._reading:
            if self._current is not None:
                return self._current
            wanted = self._wanted()
            there = self._policies.entries
            found = [await self._policy(name, bindings) for name, bindings in wanted.items() if name in there]
            if self._bound is wanted:
                self._current = found
                self._compiled = {name: each for name, each in self._compiled.items() if name in wanted}
            return found

    def _wanted(self) -> dict[str, list[Binding]]:
        """The names of policies that are bound, with their bindings."""
        if self._bound is None:
            bound: dict[str, list[Binding]] = {}
            for key in self._bindings.keys:
                binding = self._bindings.entries[key].decode()
                bound.setdefault(binding["spec"].get("policyName") or "", []).append(_binding(binding))
            self._bound = {key: bound[key] for key in self._policies.keys if key in bound}
        return self._bound

    async def _policy(self, name: str, bindings: list[Binding]) -> Policy[Compiled]:
        entry = self._policies.entries[name]
        spec = entry.decode()["spec"]
        known = self._compiled.get(name)
        if known is None or known[0] != entry.revision:
            known = self._compiled[name] = entry.revision, await patiently(self._compile, spec)
        return Policy(name, spec, criteria(spec.get("matchConstraints") or {}), known[1], bindings)

    def _on_change(self, change: Change) -> None:
        self._bound = self._current = None


def _binding(binding: Object) -> Binding:
    spec = binding["spec"]
    match = spec.get("matchResources")
    return Binding(
        binding["metadata"]["name"],
        None if match is None else criteria(match),
        spec.get("paramRef"),
        spec.get("validationActions") or (),
    )
