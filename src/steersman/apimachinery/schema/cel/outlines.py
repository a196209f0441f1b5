"""Which parts of a large expression become functions of their own.

Python compiles a function in one go, and nothing else runs meanwhile: no function may become large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from steersman.apimachinery.schema.cel.ast import Call, Expr, ListExpr, MapExpr, Message, walk
from steersman.apimachinery.schema.cel.constants import is_constant

T = TypeVar("T")
_MOST: Final = 250
"""Nodes of a function, or little more: its code is compiled within milliseconds."""


class Outlines(NamedTuple):
    """`sizes` says how many nodes are written where a node stands, by its id; `apart` are those with a function."""

    sizes: dict[int, int]
    apart: frozenset[int]

    def size(self, expr: Expr) -> int:
        return self.sizes.get(id(expr), 1)


def outlines(expr: Expr) -> Outlines:
    """Where to cut an expression."""
    nodes = list(walk(expr))
    if len(nodes) <= _MOST:
        return Outlines({}, frozenset())
    sizes: dict[int, int] = {}
    apart = set()
    for node in reversed(nodes):
        children = list(node.children())
        if not children or is_constant(node):
            sizes[id(node)] = int(bool(children))
            continue
        size = 1 + sum(sizes[id(each)] for each in children)
        if size > _MOST:
            if not _is_flat(node):
                apart.add(id(node))
            size = 1 + size // _MOST
        sizes[id(node)] = size
    return Outlines(sizes, frozenset(apart))


def grouped(items: Sequence[T], size: Callable[[T], int]) -> list[Sequence[T]]:
    """Items in groups, each for a function of its own; a single group if they are not many."""
    groups: list[Sequence[T]] = []
    start = total = 0
    for index, item in enumerate(items):
        total += size(item)
        if total > _MOST and index > start:
            groups.append(items[start:index])
            start, total = index, size(item)
    return [*groups, items[start:]]


def _is_flat(expr: Expr) -> bool:
    """Whether a node may have any number of parts, which are grouped instead."""
    if isinstance(expr, Call):
        return expr.function in ("_&&_", "_||_")
    return isinstance(expr, (ListExpr, MapExpr, Message))
