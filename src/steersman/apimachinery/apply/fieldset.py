"""A set of fields, held as the tree that `fieldsV1` is: encoding and decoding a set costs nothing.

A node is a dict from path element to node. An empty node is a leaf that belongs to the set; a node with children
belongs to it if it has the key `.` too. Trees are never changed once a FieldSet holds them: operations share what
they do not touch, and return the very object they were given when nothing changes.

Source: structured-merge-diff `fieldpath/set.go` (algebra) and `fieldpath/serialize.go` (encoding and its order).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from steersman.apimachinery.apply import path as paths
from steersman.apimachinery.apply.path import SELF

Node: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

_MEMBER: Node = {}
"""The node of a leaf. Shared and never changed."""


class FieldSet:
    """An immutable set of paths. Build one with `of`, `decode`, or as the result of an operation."""

    __slots__ = ("tree",)

    def __init__(self, tree: Node | None = None) -> None:
        """Takes over `tree`, a fieldsV1 object in canonical form (as `decode` and all operations give it)."""
        self.tree: Node = {} if tree is None else tree

    @classmethod
    def of(cls, *members: Sequence[str]) -> FieldSet:
        """The set of these paths; plain words are field names: `of(("metadata", "name"), ("spec",))`."""
        builder: Node = {}
        for member in members:
            insert(builder, [step if step[1:2] == ":" else paths.field(step) for step in member])
        return cls(canonical(builder))

    @classmethod
    def decode(cls, fields: Any) -> FieldSet:
        """The set that a fieldsV1 value from elsewhere describes; elements of unknown kind are dropped.

        Raises PathError if it is no valid fieldsV1.
        """
        if fields is None:
            return EMPTY
        return cls(canonical(_decode(fields)))

    def encode(self) -> Node:
        """The fieldsV1 object, in upstream's order of keys. It is shared: do not change it."""
        return self.tree

    def __bool__(self) -> bool:
        return bool(self.tree)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.tree == other.tree

    def __hash__(self) -> int:
        return hash(frozenset(self.tree))

    def __repr__(self) -> str:
        return f"FieldSet({', '.join(paths.describe(path) for path in self)})"

    def __iter__(self) -> Iterator[Path]:
        """The members: those of a node before the members below it."""
        return _walk(self.tree, ())

    def has(self, path: Sequence[str]) -> bool:
        """Whether the path itself is a member; something below it does not count."""
        node: Node | None = self.tree
        for element in path:
            node = node.get(element) if node else None
            if node is None:
                return False
        return bool(path) and (not node or SELF in node)

    def union(self, other: FieldSet) -> FieldSet:
        """All members of both."""
        if not other.tree or self is other:
            return self
        if not self.tree:
            return other
        tree = union(self.tree, other.tree)
        return self if tree is self.tree else FieldSet(tree)

    def intersection(self, other: FieldSet) -> FieldSet:
        """The members that both have."""
        return FieldSet(intersection(self.tree, other.tree))

    def difference(self, other: FieldSet) -> FieldSet:
        """The members that are not in `other`; what is below a member of `other` stays."""
        if not other.tree:
            return self
        tree = difference(self.tree, other.tree)
        return self if tree is self.tree else FieldSet(tree)

    def recursive_difference(self, other: FieldSet) -> FieldSet:
        """The members that are neither in `other` nor below one of its members."""
        if not other.tree:
            return self
        tree = recursive_difference(self.tree, other.tree)
        return self if tree is self.tree else FieldSet(tree)

    def leaves(self) -> FieldSet:
        """The members with no member below them."""
        return FieldSet(_leaves(self.tree))

    def below(self, element: str) -> FieldSet:
        """What lies below `element`, as a set of its own."""
        node = self.tree.get(element)
        if not node:
            return EMPTY
        return FieldSet({k: v for k, v in node.items() if k != SELF}) if SELF in node else FieldSet(node)


EMPTY = FieldSet()


def insert(tree: Node, path: Sequence[str]) -> None:
    """Adds a path to a tree that is being built; `canonical` puts the finished tree into order."""
    if not path:
        return
    *parents, last = path
    for element in parents:
        node = tree.get(element)
        if node is None:
            node = tree[element] = {}
        elif not node:
            node = tree[element] = {SELF: _MEMBER}
        tree = node
    node = tree.get(last)
    if node is None:
        tree[last] = {}
    elif node:
        node[SELF] = _MEMBER


def graft(tree: Node, path: Sequence[str], node: Node) -> Node:
    """Adds a path to a tree that is being built, with all that is below it; returns the node that is there then."""
    insert(tree, path)
    for element in path[:-1]:
        tree = tree[element]
    if node:
        tree[path[-1]] = union(node, tree[path[-1]])
    found: Node = tree[path[-1]]
    return found


def canonical(tree: Node, finished: Container[int] = ()) -> Node:
    """The same tree with its keys in upstream's order at every level; the tree itself if they are already.

    Nodes whose id() is among `finished` are known to be.
    """
    out: Node | None = None
    for element, node in tree.items():
        if node and id(node) not in finished:
            ordered = canonical(node, finished)
            if ordered is not node:
                if out is None:
                    out = dict(tree)
                out[element] = ordered
    return in_order(tree if out is None else out)


def in_order(tree: Node) -> Node:
    """The node with its keys in upstream's order; what is below is left as it is."""
    if len(tree) < 2:
        return tree
    given = list(tree)
    keys = sorted(given)
    if not ((keys[0] == SELF or keys[0][0] == "f") and keys[-1][0] == "f"):
        keys.sort(key=paths.sort_key)
    return tree if keys == given else {element: tree[element] for element in keys}


def union(a: Node, b: Node) -> Node:
    """The children of both nodes; `a` itself if `b` adds nothing."""
    out: Node | None = None
    grown = False
    for element, theirs in b.items():
        mine = a.get(element)
        if mine is None:
            merged, grown = theirs, True
        elif mine is theirs or not (mine or theirs):
            continue
        elif not mine:
            merged = theirs if SELF in theirs else {SELF: _MEMBER, **theirs}
        elif not theirs:
            merged = mine if SELF in mine else {SELF: _MEMBER, **mine}
        else:
            merged = union(mine, theirs)
        if merged is not mine:
            if out is None:
                out = dict(a)
            out[element] = merged
    if out is None:
        return a
    return in_order(out) if grown else out


def intersection(a: Node, b: Node) -> Node:
    """What both nodes have below them."""
    if len(b) < len(a):
        return in_order(intersection(b, a))
    out: Node = {}
    for element, mine in a.items():
        theirs = b.get(element)
        if theirs is None:
            continue
        if element == SELF:
            out[SELF] = _MEMBER
            continue
        below = intersection(mine, theirs) if mine and theirs else {}
        if (not mine or SELF in mine) and (not theirs or SELF in theirs):
            if below and SELF not in below:
                below = {SELF: _MEMBER, **below}
            out[element] = {} if len(below) == 1 else below
        elif below:
            out[element] = below
    return out


def difference(a: Node, b: Node) -> Node:
    """What `a` has below it without the members of `b`; `a` itself if nothing goes."""
    return _subtract(a, b, False)


def recursive_difference(a: Node, b: Node) -> Node:
    """What `a` has below it without the members of `b` and all below them; `a` itself if nothing goes."""
    return _subtract(a, b, True)


_GONE: Node = {"gone": None}


def _subtract(a: Node, b: Node, recursive: bool) -> Node:
    out: Node | None = None
    small, large = (b, a) if len(b) < len(a) else (a, b)
    for element in small:
        if element == SELF or element not in large:
            continue
        mine = a[element]
        kept = _subtract_node(mine, b[element], recursive)
        if kept is mine:
            continue
        if out is None:
            out = dict(a)
        if kept is _GONE:
            del out[element]
        else:
            out[element] = kept
    return a if out is None else out


def _subtract_node(mine: Node, theirs: Node, recursive: bool) -> Node:
    member = not mine or SELF in mine
    struck = not theirs or SELF in theirs
    if struck and (recursive or not mine):
        return _GONE
    rest = _subtract(mine, theirs, recursive) if mine and theirs else mine
    if not member:
        return rest or _GONE
    if struck:
        rest = {k: v for k, v in rest.items() if k != SELF}
        return rest or _GONE
    return {} if len(rest) == 1 and SELF in rest else rest


def _walk(node: Node, prefix: Path) -> Iterator[Path]:
    for element, child in node.items():
        if element != SELF and (not child or SELF in child):
            yield (*prefix, element)
    for element, child in node.items():
        if child:
            yield from _walk(child, (*prefix, element))


def _leaves(node: Node) -> Node:
    out: Node = {}
    for element, child in node.items():
        if element != SELF:
            out[element] = _leaves(child) if child else child
    return out


def _decode(fields: Any) -> Node:
    """A tree, not yet in order, whose elements are canonical."""
    if not isinstance(fields, dict):
        raise paths.PathError(f"expected an object, got {paths.encode_value(fields)}")
    out: Node = {}
    for text, below in fields.items():
        if text == SELF:
            continue
        element = paths.parse(text)
        if element is not None:
            node = {} if below is None else _decode(below)
            if node and SELF in below:
                node[SELF] = _MEMBER
            out = union(out, {element: node})
    return out


def from_paths(members: Iterable[Sequence[str]]) -> FieldSet:
    """The set of these paths, given as canonical elements."""
    builder: Node = {}
    for member in members:
        insert(builder, member)
    return FieldSet(canonical(builder))
