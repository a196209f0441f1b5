"""What kube-apiserver has stored is read as kube-apiserver shows it.

`foreign_values.json` is recorded from one, by `python -m tools.cross_check.record`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steersman.apimachinery.codec import json as codec
from steersman.apiserver.foreign import TranslatedStore, UnreadableValue, canonical
from steersman.store.interface import CompareFailed, StoreEvent
from steersman.store.memory import MemoryStore

RECORDED = json.loads((Path(__file__).parent / "foreign_values.json").read_text())
ALL = (b"/", b"0")


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: each["key"].removeprefix("/registry/"))
def test_a_value_is_read_as_it_is_shown(recorded: dict[str, Any]) -> None:
    value = canonical(base64.b64decode(recorded["value"]))
    version = int(recorded["shown"]["metadata"]["resourceVersion"])
    assert json.loads(codec.with_resource_version(value, version)) == recorded["shown"]
    assert canonical(value) is value


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"k8s\0",
        b"k8s\0\xff",
        b"{",
        b"[]\n",
        b'"text"\n',
        b'{"kind":"A"}\n',
        b"k8s:enc:aesgcm:v1:key1:\x00",
        b"\0\1",
    ],
)
def test_what_is_no_object_is_refused(value: bytes) -> None:
    with pytest.raises(UnreadableValue):
        canonical(value)


async def test_a_store_is_read_through_it() -> None:
    inner = MemoryStore()
    store = TranslatedStore(inner)
    seen: list[StoreEvent] = []

    def deliver(events: Sequence[StoreEvent]) -> None:
        seen.extend(events)

    store.watch(*ALL, 0, deliver)
    foreign = b'{"kind":"A","metadata":{"name":"a"},"apiVersion":"example.com/v1"}\n'
    own = b'{"apiVersion":"example.com/v1","kind":"A","metadata":{"name":"a"}}'
    await inner.swap(b"/registry/a", 0, foreign)
    await inner.swap(b"/registry/b", 0, b"garbage")
    found = await store.range(*ALL)
    assert [(item.key, item.value, item.mod_revision) for item in found.items] == [(b"/registry/a", own, 2)]
    one = await store.get(b"/registry/a")
    assert one is not None and one.value == own and await store.get(b"/registry/b") is None
    with pytest.raises(CompareFailed) as failed:
        await store.swap(b"/registry/a", 1, own)
    assert failed.value.current == one
    assert await store.swap(b"/registry/a", 2, own) == store.revision == 4
    assert [(event.key, event.value) for event in seen] == [
        (b"/registry/a", own),
        (b"/registry/b", None),
        (b"/registry/a", own),
    ]
