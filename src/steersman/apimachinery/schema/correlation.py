"""The old value beside the new one while an update is validated, for ratcheting.

Source: apiserver `pkg/cel/common/{equality,maplist}.go` (KEP-4008).
"""

from __future__ import annotations

from typing import Any

from steersman.apimachinery.schema.structural import Node

_NO_KEY: tuple[Any, ...] = ()


def deep_equal(left: Any, right: Any) -> bool:
    """JSON equality that tells booleans from numbers."""
    if isinstance(left, dict):
        if not isinstance(right, dict) or len(left) != len(right):
            return False
        return all(key in right and deep_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        if not isinstance(right, list) or len(left) != len(right):
            return False
        return all(map(deep_equal, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def map_list_key(item: Any, keys: list[str]) -> tuple[Any, ...]:
    """What identifies an item of a map-type list; empty when a key is missing or no scalar."""
    if not isinstance(item, dict):
        return _NO_KEY
    out = []
    for key in keys:
        value = item.get(key)
        if value is None or isinstance(value, (dict, list)):
            return _NO_KEY
        out.append((type(value), value))
    return tuple(out)


class Correlation:
    """A new value, the old value that it replaces, and the schema of both."""

    __slots__ = ("_children", "_equal", "_old_items", "new", "node", "old")

    def __init__(self, new: Any, old: Any, node: Node) -> None:
        self.new = new
        self.old = old
        self.node = node
        self._equal: bool | None = None
        self._children: dict[str | int, Correlation | None] = {}
        self._old_items: dict[tuple[Any, ...], Any] | None = None

    def key(self, name: str) -> Correlation | None:
        """The field's correlation; None when either side lacks it or the schema does not know it."""
        if name not in self._children:
            self._children[name] = self._correlate_field(name)
        return self._children[name]

    def index(self, position: int) -> Correlation | None:
        """The item's correlation: only items of map-type lists have one, by their keys."""
        if position not in self._children:
            self._children[position] = self._correlate_item(position)
        return self._children[position]

    def equal(self) -> bool:
        """Whether old and new are equal; fields that the schema does not know never are."""
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _correlate_field(self, name: str) -> Correlation | None:
        if not isinstance(self.old, dict) or not isinstance(self.new, dict):
            return None
        node = self.node.child(name)
        if node is None or name not in self.old or name not in self.new:
            return None
        return Correlation(self.new[name], self.old[name], node)

    def _is_map_list(self) -> bool:
        return self.node.list_type == "map" and self.node.type == "array" and bool(self.node.list_keys)

    def _correlate_item(self, position: int) -> Correlation | None:
        if not isinstance(self.old, list) or not isinstance(self.new, list) or not self._is_map_list():
            return None
        if self._old_items is None:
            self._old_items = {}
            for item in self.old:
                self._old_items.setdefault(map_list_key(item, self.node.list_keys), item)
            self._old_items.pop(_NO_KEY, None)
        old = self._old_items.get(map_list_key(self.new[position], self.node.list_keys))
        if old is None or self.node.items is None:
            return None
        return Correlation(self.new[position], old, self.node.items)

    def _compare(self) -> bool:
        if isinstance(self.new, dict) and isinstance(self.old, dict):
            if len(self.new) != len(self.old):
                return False
            children = [self.key(name) for name in self.new]
        elif isinstance(self.new, list) and isinstance(self.old, list):
            if len(self.new) != len(self.old):
                return False
            if not self._is_map_list():
                return deep_equal(self.old, self.new)
            children = [self.index(position) for position in range(len(self.new))]
        else:
            return deep_equal(self.old, self.new)
        return all(child is not None and child.equal() for child in children)
