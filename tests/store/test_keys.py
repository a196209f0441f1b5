from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from steersman.store import _keys
from steersman.store._keys import ABSENT, KeyIndex, undo

KEYS = st.binary(min_size=1, max_size=2)


def numbered(number: int) -> bytes:
    return b"%05d" % (number * 7919 % 10_000)


def test_many_keys_stay_in_order_across_blocks() -> None:
    index = KeyIndex()
    for number in range(10_000):
        index.set(numbered(number), (number + 2, number + 2))
    for number in range(0, 10_000, 2):
        index.remove(numbered(number))
    left = sorted(numbered(number) for number in range(1, 10_000, 2))
    assert list(index.keys(b"", b"\xff")) == left
    assert index.count(b"01000", b"09000") == len([key for key in left if b"01000" <= key < b"09000"])
    for key in left:
        index.remove(key)
    assert (list(index.keys(b"", b"\xff")), len(index), index.count(b"", b"\xff")) == ([], 0, 0)
    index.set(b"a", (1, 1))
    assert list(index.keys(b"", b"\xff")) == [b"a"]


def test_loaded_keys_are_in_order() -> None:
    refs = {numbered(number): (number + 2, number + 2) for number in range(3 * _keys._BLOCK)}
    index = KeyIndex(refs)
    assert list(index.keys(b"", b"\xff")) == sorted(refs)
    assert all(index.get(key) == ref for key, ref in refs.items())


@given(st.lists(st.tuples(KEYS, st.booleans()), max_size=60), st.integers(0, 60), KEYS, KEYS, st.integers(0, 5))
def test_view_of_an_earlier_state(
    writes: list[tuple[bytes, bool]], at: int, start: bytes, end: bytes, limit: int
) -> None:
    index, changes, earlier = KeyIndex(), [], {}
    for revision, (key, deleted) in enumerate(writes, 2):
        previous, created = index.get(key)
        if deleted and not previous:
            continue
        created = created or revision
        index.apply(key, (revision, created), deleted=deleted)
        if revision <= at:
            earlier = {key: index.get(key) for key in index.keys(b"", b"\xff\xff\xff")}
        elif start <= key < end:
            changes.append((revision, key, created, previous))
    undone = undo(changes)
    keys, count = index.view(start, end, undone, limit)
    wanted = [key for key in sorted(earlier) if start <= key < end]
    assert (keys, count) == (wanted[: limit or None], len(wanted))
    assert [undone.get(key) or index.get(key) for key in keys] == [earlier[key] for key in keys]
    assert all(index.get(key) is ABSENT or index.get(key) != ABSENT for key in undone)
