"""What happened in a run, in the order in which it did, for a person to read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from steersman.apimachinery.request_info import RequestInfo
from steersman.testing.explore.loop import BEGIN
from steersman.testing.explore.schedule import BREAK

_WIDEST = 100
_LEGEND = (
    "--> a request arrives at the server, <-- its answer at the client, ~~> a watch event at the client;\n"
    "a star marks what was held back or lost. A write takes effect when its request arrives."
)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened at a time of the run, in seconds. `number` is a message's, `held` for how long it was
    held back, both 0 for what is no message."""

    at: float
    actor: str
    text: Callable[[], str]
    number: int = 0
    held: int = 0

    @property
    def told(self) -> str:
        """What happened to whom, whenever that was."""
        return f"{self.actor} {self.text()}"

    def line(self, width: int) -> str:
        number = f"{'*' if self.held else ''}{self.number}" if self.number else ""
        note = f"   [held back: {self.held} step{'s' * (self.held > 1)}]" if self.held else ""
        if self.held == BREAK:
            note = "   [does not arrive: the connection breaks]"
        return f"{self.at:9.3f}s {number:>5}  {self.actor:<{width}}  {self.text()}{note}"


@dataclass(slots=True)
class Story:
    """The steps of one run."""

    steps: list[Step] = field(default_factory=list)
    over: bool = False

    def tell(self, actor: str, text: Callable[[], str], number: int = 0, held: int = 0) -> None:
        if not self.over:
            at = asyncio.get_running_loop().time() - BEGIN
            self.steps.append(Step(at, actor, text, number, held))

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, str | int]) -> Iterator[None]:
        """Tell when a reconcile begins and ends; a listener of `steersman.runtime.tracing`."""
        kind, _, actor = name.partition(" ")
        told = partial("{} of {} {}".format, kind, attributes.get("key", ""))
        self.tell(actor, partial(told, "begins"))
        try:
            yield
        except BaseException as error:
            self.tell(actor, partial(told, f"fails: {type(error).__name__}: {error}"))
            raise
        self.tell(actor, partial(told, "ends"))

    def text(self, limit: int = 100) -> str:
        """The steps, a line each; what repeats itself is shown once; if there are too many, the middle is left out."""
        width = max((len(step.actor) for step in self.steps), default=0)
        lines = list(_once([(step.told, step.line(width)) for step in self.steps]))
        if len(lines) > limit:
            left_out = len(lines) - limit
            lines[limit // 2 : limit // 2 + left_out] = [f"({left_out} steps are left out)"]
        return "\n".join([_LEGEND, *lines])


def _once(steps: Sequence[tuple[str, str]]) -> Iterator[str]:
    """The lines of steps; of one or two steps that repeat themselves, as a client's that polls do, only the first."""
    at = 0
    while at < len(steps):
        for length in (1, 2):
            block = [told for told, _ in steps[at : at + length]]
            times = 1
            while [told for told, _ in steps[at + times * length : at + (times + 1) * length]] == block:
                times += 1
            if times > 2:
                yield from (line for _, line in steps[at : at + length])
                yield f"{'':10}(and that {times - 1} times more)"
                at += times * length
                break
        else:
            yield steps[at][1]
            at += 1


def request(info: RequestInfo, body: bytes | None) -> str:
    """A request that arrives."""
    content = _decoded(body)
    blind = info.verb == "update" and not (content.get("metadata") or {}).get("resourceVersion")
    return f"--> {_what(info, content)}{' without rv' if blind else ''}{_of(content)}"


def answer(info: RequestInfo, status: int, body: bytes) -> str:
    """An answer that arrives."""
    content = _decoded(body)
    return f"<-- {status} {_what(info, content)}{_of(content)}"


def ended(info: RequestInfo) -> str:
    """A stream that ends in order."""
    return f"<-- end of {_what(info, {})}"


def failure(info: RequestInfo, why: str) -> str:
    """A connection that breaks."""
    return f"<-- {why}: {_what(info, {})}"


def events(info: RequestInfo, data: bytes) -> str:
    """Events of a watch that arrive."""
    told = []
    for line in data.splitlines():
        event = orjson.loads(line)
        obj = event.get("object") or {}
        meta = obj.get("metadata") or {}
        place = "/".join(part for part in (meta.get("namespace"), meta.get("name")) if part)
        told.append(" ".join(part for part in (event.get("type", ""), info.resource, place) if part) + _of(obj))
    return f"~~> {'; '.join(told)}"


def _decoded(body: bytes | None) -> Mapping[str, Any]:
    try:
        content = orjson.loads(body or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return content if isinstance(content, dict) else {"": content}


def _what(info: RequestInfo, content: Mapping[str, Any]) -> str:
    """Which request it is: "update configmaps/status default/a"."""
    resource = "/".join(part for part in (info.resource, info.subresource) if part)
    name = info.name
    if info.verb == "create" and not name:
        meta = content.get("metadata") or {}
        name = meta.get("name") or (f"{meta['generateName']}*" if meta.get("generateName") else "")
    place = "/".join(part for part in (info.namespace, name) if part)
    return " ".join(part for part in (info.verb, resource, place) if part)


def _of(obj: Mapping[str, Any]) -> str:
    """What tells an object from others: its version, and what it holds besides metadata."""
    if obj.get("kind") == "Status":
        said = obj.get("message")
        return f": {said}" if said else ""
    meta = obj.get("metadata") or {}
    version = f" rv={meta['resourceVersion']}" if meta.get("resourceVersion") else ""
    if isinstance(obj.get("items"), list):
        return f"{version} {len(obj['items'])} items"
    rest = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata") and value}
    kept = {key: meta[key] for key in ("finalizers", "deletionTimestamp", "labels") if meta.get(key)}
    return version + (f" {_short({**kept, **rest})}" if kept or rest else "")


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."
