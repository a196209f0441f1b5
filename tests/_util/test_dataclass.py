"""Classes of steersman's own `dataclass` are what the standard library would make of them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field
from functools import cached_property
from typing import Any

import pytest

from steersman._util.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is."""

    name: str
    row: int = 0
    tags: tuple[str, ...] = ()
    seen: dict[str, int] = field(default_factory=dict, hash=False)
    note: str = field(default="", compare=False, repr=False)


@dataclass(slots=True)
class Thing:
    """Something that changes."""

    name: str
    parts: list[Any] = field(default_factory=list)
    uses: int = field(default=0, init=False)
    log: list[str] = field(default_factory=list, init=False)


@dataclass(slots=True)
class Bigger(Thing):
    size: int = 1


@dataclass(slots=True, eq=False)
class Alone:
    """Equal to itself only."""

    name: str


@dataclass(frozen=True)
class Open:
    """Has no slots, and keeps what it finds out."""

    name: str

    @cached_property
    def length(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True)
class Length:
    """Is filled in later, compares by its own rule, and prints itself."""

    text: str
    value: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", len(self.text))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Length) and other.value == self.value

    def __hash__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"<{self.value}>"


def test_the_constructor_takes_fields_in_order_and_by_name() -> None:
    place = Place("home", tags=("a",), row=2)
    assert (place.name, place.row, place.tags, place.seen, place.note) == ("home", 2, ("a",), {}, "")


def test_each_object_gets_its_own_default() -> None:
    first, second = Thing("a"), Thing("b")
    first.parts.append(1)
    first.log.append("x")
    assert (second.parts, second.log, second.uses) == ([], [], 0)


def test_arguments_that_do_not_fit_are_told_with_the_class() -> None:
    with pytest.raises(TypeError, match=r"Place\.__init__\(\) missing 1 required positional argument: 'name'"):
        Place()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Thing\.__init__\(\) got an unexpected keyword argument 'uses'"):
        Thing("a", uses=1)  # type: ignore[call-arg]


def test_it_prints_what_the_standard_library_prints() -> None:
    assert repr(Place("home")) == "Place(name='home', row=0, tags=(), seen={})"
    thing = Thing("loop")
    thing.parts.append(thing)
    assert repr(thing) == "Thing(name='loop', parts=[...], uses=0, log=[])"
    assert repr(Length("four")) == "<4>"


def test_equal_are_those_of_one_class_with_equal_fields() -> None:
    assert Place("a", note="x") == Place("a", note="y") != Place("b")
    assert Thing("a") == Thing("a") != Thing("b")
    assert Thing("a") != Bigger("a")
    assert Place("a") != ("a", 0, (), {}, "")
    assert Alone("a") != Alone("a")
    assert Length("four") == Length("five")


def test_what_is_frozen_or_alone_can_be_a_key() -> None:
    assert hash(Place("a", seen={"x": 1}, note="x")) == hash(Place("a"))
    assert len({Place("a"), Place("a"), Place("b"), Alone("a"), Alone("a"), Length("x"), Length("y")}) == 5
    with pytest.raises(TypeError, match="unhashable type: 'Thing'"):
        hash(Thing("a"))


def test_what_is_frozen_stays_as_it_is() -> None:
    for frozen in (Place("a"), Open("a")):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
            frozen.name = "b"  # type: ignore[misc]
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
            del frozen.name
        assert frozen.name == "a"
    thing = Thing("a")
    thing.name = "b"
    assert thing.name == "b"


def test_there_are_no_attributes_but_the_slots() -> None:
    with pytest.raises(AttributeError):
        Thing("a").other = 1  # type: ignore[attr-defined]
    assert Open("four").length == 4
    assert Bigger("a", size=3).size == 3


@pytest.mark.parametrize("value", [Place("a", 1, ("t",), {"x": 1}), Thing("a", [1]), Open("a"), Length("four")])
def test_copies_are_equal(value: Any) -> None:
    assert copy.copy(value) == copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value


def test_the_standard_library_knows_them() -> None:
    assert dataclasses.replace(Place("a", 1), name="b") == Place("b", 1)
    assert [each.name for each in dataclasses.fields(Bigger)] == ["name", "parts", "uses", "log", "size"]
    match Place("a", 3):
        case Place(name, row):
            assert (name, row) == ("a", 3)
