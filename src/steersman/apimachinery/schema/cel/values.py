"""Values while an expression runs.

int, float, str, bytes, bool, None, list and dict stand for themselves; a dict holds keys that are neither texts nor
integers as `Key`.
The other kinds of values have classes here, or in `objects` (data with a schema) and `library`.

Source: cel-go `common/types`.
"""

from __future__ import annotations

from typing import Any, Final

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError, EvaluationPanic, no_such_overload
from steersman.apimachinery.schema.cel.literals import INT_MAX, INT_MIN

SECOND: Final = 1_000_000_000
MIN_TIME: Final = -62135596800 * SECOND
MAX_TIME: Final = 253402300799 * SECOND + SECOND - 1


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


class Missing:
    """The absence of a value, where None is one."""


MISSING: Final = Missing()


class Key:
    """A key of a dict that Python would take for another one: True and 1.0 and 1 are different keys."""

    __slots__ = ("_token", "value")

    def __init__(self, value: Any, token: object) -> None:
        self.value = value
        self._token = token

    def __eq__(self, other: object) -> bool:
        return other.__class__ is Key and self._token == other._token

    def __hash__(self) -> int:
        return hash(self._token)


_BOOL_KEYS = {True: Key(True, (bool, True)), False: Key(False, (bool, False))}


def map_key(key: Any) -> Any:
    """How a dict holds a key. Lists, maps and the like are keys by identity, as upstream has it."""
    kind = key.__class__
    if kind is str or kind is int:
        return key
    if kind is bool:
        return _BOOL_KEYS[key]
    if kind is bytes or getattr(key, "unhashable", False):
        raise EvaluationPanic(f"internal error: runtime error: hash of unhashable type {go_type(key)}")
    return Key(key, (kind, key if kind in _KEYS_BY_VALUE or getattr(key, "comparable", False) else id(key)))


def key_value(key: Any) -> Any:
    """The key that a dict holds as `key`."""
    return key.value if key.__class__ is Key else key


class Duration:
    """A length of time in nanoseconds, within 64 bits."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    @classmethod
    def checked(cls, nanos: int) -> Duration:
        if not INT_MIN <= nanos <= INT_MAX:
            raise CelError("integer overflow")
        return cls(nanos)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __lt__(self, other: Duration) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


class Timestamp:
    """A point in time: nanoseconds since 1970 UTC, and the offset in seconds with which it was written."""

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int, offset: int = 0) -> None:
        self.nanos = nanos
        self.offset = offset

    @classmethod
    def checked(cls, nanos: int, offset: int = 0) -> Timestamp:
        if not MIN_TIME <= nanos <= MAX_TIME:
            raise CelError("timestamp overflow")
        return cls(nanos, offset)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)


class Optional:
    """A value that may be absent: `NONE` then."""

    __slots__ = ("item",)

    def __init__(self, item: Any) -> None:
        self.item = item

    def get(self) -> Any:
        if self.item is MISSING:
            raise CelError("optional.none() dereference")
        return self.item


NONE: Final = Optional(MISSING)


class ListLike:
    """A list that is no Python list; `items()` gives its elements as values."""

    __slots__ = ()
    go_type = "*common.unstructuredList"

    def items(self) -> list[Any]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.items())

    def contains(self, value: Any) -> bool:
        raise NotImplementedError

    def equals(self, other: Any) -> bool:
        raise NotImplementedError

    def plus(self, other: Any) -> Any:
        raise NotImplementedError


class MapLike:
    """A map that is no Python dict."""

    __slots__ = ()
    go_type = "*common.unstructuredMap"

    def find(self, key: Any) -> Any:
        """The value at a key, or MISSING."""
        raise NotImplementedError

    def keys(self) -> list[Any]:
        raise NotImplementedError

    def equals(self, other: Any) -> bool:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError


class Opaque:
    """A value of a library's type; `comparable` tells whether equal ones are the same key of a map."""

    __slots__ = ()
    cel_type: t.Type = t.DYN
    go_type = "types.Object"
    comparable = False
    unhashable = False

    def equals(self, other: Any) -> bool:
        if other.__class__ is not self.__class__:
            raise no_such_overload()
        return bool(self == other)

    def find(self, key: Any) -> Any:
        """The value of a field, or MISSING."""
        return MISSING

    def cost_size(self) -> int:
        return 1


LIST_TYPE: Final = t.Type("list", "list")
MAP_TYPE: Final = t.Type("map", "map")
OPTIONAL_TYPE: Final = t.Type(t.OPAQUE, "optional_type")
_TYPES: dict[type, t.Type] = {
    bool: t.BOOL,
    int: t.INT,
    Uint: t.UINT,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BYTES,
    type(None): t.NULL,
    list: LIST_TYPE,
    dict: MAP_TYPE,
    Duration: t.DURATION,
    Timestamp: t.TIMESTAMP,
    Optional: OPTIONAL_TYPE,
    t.Type: t.TYPE,
}


_KEYS_BY_VALUE = frozenset({Uint, float, type(None), Duration, Timestamp, t.Type})
_QUALIFIERS = frozenset({str, int, Uint, float, bool})
_GO_NAMES = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    list: "*types.baseList",
    dict: "*types.baseMap",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    Optional: "*types.Optional",
    t.Type: "*types.Type",
}


def type_of(value: Any) -> t.Type:
    """The run-time type of a value, without parameters."""
    known = _TYPES.get(value.__class__)
    if known is not None:
        return known
    if isinstance(value, ListLike):
        return LIST_TYPE
    if isinstance(value, MapLike):
        return MAP_TYPE
    return value.cel_type if isinstance(value, Opaque) else t.DYN


def is_list(value: Any) -> bool:
    return value.__class__ is list or isinstance(value, ListLike)


def is_map(value: Any) -> bool:
    return value.__class__ is dict or isinstance(value, MapLike)


def items_of(value: Any) -> list[Any]:
    """What a fold over a value visits: a list's elements, a map's keys."""
    if value.__class__ is list:
        return value
    if value.__class__ is dict:
        return [key_value(key) for key in value]
    if isinstance(value, ListLike):
        return value.items()
    if isinstance(value, MapLike):
        return value.keys()
    raise CelError(f"got '{go_type(value)}', expected iterable type")


def go_type(value: Any) -> str:
    """Upstream's own name for the type of a value."""
    return _GO_NAMES.get(value.__class__) or str(value.go_type)


def pairs_of(value: Any) -> list[tuple[Any, Any]]:
    """What a fold with two variables visits: (index, element) or (key, value)."""
    if is_list(value):
        return list(enumerate(items_of(value)))
    if value.__class__ is dict:
        return [(key_value(key), item) for key, item in value.items()]
    if isinstance(value, MapLike):
        return [(key, value.find(key)) for key in value.keys()]  # noqa: SIM118 (no mapping)
    raise CelError(f"unsupported comprehension range type: {go_type(value)}")


def find(container: Any, key: Any) -> Any:
    """A map's value at a key or a list's element at an index; MISSING when there is none.

    Keys of different number types that are equal are one key.
    """
    if container.__class__ is dict:
        return _find_key(container, key)
    if isinstance(container, MapLike):
        return container.find(key)
    if is_list(container):
        items = items_of(container)
        index = list_index(key)
        if not 0 <= index < len(items):
            return MISSING
        if key.__class__ is not int and container.__class__ is not list:
            raise CelError(f"unsupported index: {show(key)}")
        return items[index]
    return container.find(key) if isinstance(container, Opaque) else MISSING


def _find_key(container: dict[Any, Any], key: Any) -> Any:
    kind = key.__class__
    found = container.get(map_key(key), MISSING)
    if found is not MISSING or kind is str:
        return found
    if kind is float and key.is_integer():
        found = container.get(int(key), MISSING)
    elif kind is Uint:
        return container.get(int(key), MISSING)
    if found is MISSING and (kind is int or kind is float) and key >= 0 and key == int(key):
        return container.get(map_key(Uint(key)), MISSING)
    return found


def check_qualifier(key: Any) -> None:
    """See that a value may be an index or key at all. Raises CelError."""
    if key.__class__ not in _QUALIFIERS:
        raise CelError(f"invalid qualifier type: {go_type(key)}")


def list_index(key: Any) -> int:
    """A list index: an integer, or a number that is one. Lists that are data take no others in the end."""
    if key.__class__ is int or key.__class__ is Uint:
        return int(key)
    if key.__class__ is float:
        if key.is_integer():
            return int(key)
        raise CelError(f"unsupported index value {show(key)} in list")
    raise CelError(f"unsupported index type '{type_of(key).name}' in list")


def get(container: Any, key: Any) -> Any:
    """`container[key]`; a missing key or index is an error."""
    if key.__class__ not in _QUALIFIERS:
        check_qualifier(key)
    if container.__class__ is Optional:
        if container.item is MISSING:
            return container
        value = find(container.item, key)
        return NONE if value is MISSING else Optional(value)
    value = find(container, key)
    if value is not MISSING:
        return value
    if is_list(container):
        raise CelError(f"index out of bounds: {show(key)}")
    raise CelError(f"no such key: {show(key)}")


def actual_size(value: Any) -> int:
    """The size that run-time costs are reckoned with."""
    kind = value.__class__
    if kind is str or kind is bytes or kind is list or kind is dict:
        return len(value)
    if isinstance(value, (ListLike, MapLike)):
        return len(value)
    if kind is Optional and value.item is not MISSING:
        return actual_size(value.item)
    return value.cost_size() if isinstance(value, Opaque) else 1


def show(value: Any) -> str:
    """A value as Go's %v prints it inside of messages."""
    from steersman.apimachinery.schema.cel.library.standard import to_text

    if value.__class__ is str:
        return str(value)
    if value is None:
        return "0"
    try:
        return to_text(value)
    except CelError:
        return str(type_of(value))
