"""The parts of a Pod that checks look at, and the words in which they tell what they found.

Source: pod-security-admission `policy/{checks,visitor,helpers}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple

Object = dict[str, Any]


class Violation(NamedTuple):
    """What a Pod violates: the `reason` says it in a word or two, the `detail` where."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


Check = Callable[[Object, Object], Violation | None]
"""From a Pod's metadata and its spec to what is wrong with them in one respect."""


def containers(spec: Object) -> Iterator[Object]:
    """All containers: those that run first, the others, those that were added for debugging."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(key) or ()


def security(holder: Object) -> Object:
    """The securityContext of a Pod's spec, or of a container."""
    found: Object = holder.get("securityContext") or {}
    return found


def bad(spec: Object, is_bad: Callable[[Object], bool]) -> list[str]:
    """The names of the containers whose securityContext is bad."""
    return [name(container) for container in containers(spec) if is_bad(security(container))]


def name(item: Object) -> str:
    return str(item.get("name") or "")


def quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def counted(word: str, items: Collection[object]) -> str:
    """The word, in the plural unless there is one item."""
    return word if len(items) == 1 else f"{word}s"


def named(names: Collection[str]) -> str:
    """`container "a"`, `containers "a", "b"`."""
    return f"{counted('container', names)} {quoted(names)}"


def setters(pod: object, names: Collection[str]) -> str:
    """Who sets a value that may not be set: the Pod, and these containers. "" when it is nobody."""
    return " and ".join([*(["pod"] if pod else []), *([named(names)] if names else [])])


def uses(items: Collection[str]) -> str:
    return "uses" if len(items) == 1 else "use"
