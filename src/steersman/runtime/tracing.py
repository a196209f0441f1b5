"""OpenTelemetry spans, where opentelemetry-api is installed; nothing otherwise."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any


@cache
def _tracer() -> Any:
    try:
        trace = importlib.import_module("opentelemetry.trace")
    except ImportError:
        return None
    return trace.get_tracer("steersman.runtime")


@contextmanager
def span(name: str, attributes: Mapping[str, str | int]) -> Iterator[None]:
    """A span around a block; an exception that leaves the block is recorded in it."""
    tracer = _tracer()
    if tracer is None:
        yield
        return
    with tracer.start_as_current_span(name, attributes=dict(attributes)):
        yield
