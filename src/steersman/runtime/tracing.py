"""Spans of work: for OpenTelemetry, where opentelemetry-api is installed, and for who listens in this process."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from typing import Any

Attributes = Mapping[str, str | int]
listeners: list[Callable[[str, Attributes], AbstractContextManager[None]]] = []
"""Each gives, by a span's name and attributes, what is entered for as long as the span lasts."""


@cache
def _tracer() -> Any:
    try:
        trace = importlib.import_module("opentelemetry.trace")
    except ImportError:
        return None
    return trace.get_tracer("steersman.runtime")


@contextmanager
def span(name: str, attributes: Attributes) -> Iterator[None]:
    """A span around a block; an exception that leaves the block is recorded in it."""
    tracer = _tracer()
    if tracer is None and not listeners:
        yield
        return
    with ExitStack() as stack:
        if tracer is not None:
            stack.enter_context(tracer.start_as_current_span(name, attributes=dict(attributes)))
        for listener in listeners:
            stack.enter_context(listener(name, attributes))
        yield
