"""A built-in object's way through decoding, defaults and rules, as the registry takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.kinds import BuiltinKind, builtin_kind


class Lifecycle:
    """Creates and updates objects of one kind; each answers the stored object and the errors as text."""

    def __init__(self, kind: BuiltinKind) -> None:
        self.kind = kind
        self.meta = {"name": "a", "uid": "u", "creationTimestamp": "2024-01-01T00:00:00Z"}
        if kind.namespaced:
            self.meta["namespace"] = "n"

    def create(self, **body: Any) -> tuple[dict[str, Any], list[str]]:
        obj = self._decoded(body)
        errors = self.kind.strategy.before_create(obj)
        return self._stored(obj), [str(error) for error in errors]

    def update(self, old: dict[str, Any], subresource: str = "", **body: Any) -> tuple[dict[str, Any], list[str]]:
        strategy = self.kind.strategy.subresource(subresource) if subresource else self.kind.strategy
        obj = self._decoded(body)
        obj["metadata"]["resourceVersion"] = "1"
        errors = strategy.before_update(obj, self.kind.decode(old)[0])
        return self._stored(obj), [str(error) for error in errors]

    def _decoded(self, body: dict[str, Any]) -> dict[str, Any]:
        obj, unknown = self.kind.decode({**body, "metadata": {**self.meta, **body.get("metadata", {})}})
        assert unknown == []
        self.kind.strategy.default(obj)
        return obj

    def _stored(self, obj: dict[str, Any]) -> dict[str, Any]:
        strategy = self.kind.strategy
        return strategy.from_storage(self.kind.storage_kind.stored_form(strategy.to_storage(obj)))


@pytest.fixture
def lifecycle() -> Callable[..., Lifecycle]:
    """`lifecycle(group, kind)`: a kind of version v1."""
    return lambda group, kind: Lifecycle(builtin_kind(group, "v1", kind))
