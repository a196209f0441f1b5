"""Spans of OpenTelemetry: what is told to its API, where that is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest
from tests.runtime.kit import Lab, Log, started

from steersman.runtime import tracing


class Api(ModuleType):
    """Stands in for `opentelemetry.trace`, which need not be installed: this much of it is used."""

    def __init__(self) -> None:
        super().__init__("opentelemetry.trace")
        self.spans: list[tuple[str, dict[str, Any], bool]] = []

    def get_tracer(self, name: str) -> Api:
        assert name == "steersman.runtime"
        return self

    @contextmanager
    def start_as_current_span(self, name: str, *, attributes: dict[str, Any]) -> Iterator[None]:
        failed = True
        try:
            yield
            failed = False
        finally:
            self.spans.append((name, attributes, failed))


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    api = Api()
    monkeypatch.setitem(sys.modules, "opentelemetry", ModuleType("opentelemetry"))
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", api)
    tracing._tracer.cache_clear()
    yield api
    tracing._tracer.cache_clear()


async def test_each_reconcile_is_a_span(lab: Lab, api: Api) -> None:
    runs = Log()

    async def reconcile(ctx: Any, widget: Any) -> None:
        await runs.add(ctx.attempt)
        if ctx.attempt == 0:
            raise ValueError("not yet")

    manager, _ = lab.manager()
    manager.controller(lab.typed, reconcile)
    async with started(manager):
        await lab.make("w")
        await runs.until(2)
    (first, second) = api.spans
    assert [name for name, _, _ in api.spans] == ["reconcile widget", "reconcile widget"]
    assert first[1]["key"] == f"{lab.namespace}/w"
    assert first[1]["reasons"].startswith("created (Widget ")
    assert (first[2], second[2]) == (True, False)
