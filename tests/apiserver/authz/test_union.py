"""Authorizers in a row."""

from __future__ import annotations

import pytest

from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import AlwaysAllow, AlwaysDeny, Attributes, Decision, Rules
from steersman.apiserver.authz.union import Member, Union
from steersman.apiserver.authz.waiting import Undecided, settle

ANN = UserInfo("ann", groups=("devs",))
GET = Attributes(ANN, "get", resource="pods")


class Says:
    """Always the same; what it says has to be asked for first if it `waits`."""

    def __init__(self, decision: Decision, *, waits: bool = False) -> None:
        self.decision, self.waits, self.asked = decision, waits, 0

    def authorize(self, attributes: Attributes) -> Decision:
        from steersman.apiserver.authz.waiting import answered

        if not self.waits:
            return self.decision
        found = answered((self, attributes))
        if found is None:
            raise Undecided((self, attributes), self.ask)
        return found

    async def ask(self) -> Decision:
        self.asked += 1
        return self.decision

    def rules_for(self, user: UserInfo, namespace: str) -> Rules:
        return Rules([{"verbs": [self.decision.reason]}], (self.decision.error,), incomplete=self.waits)


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        (Decision(True, "a"), Decision(False, "b", denied=True), Decision(True, "a")),
        (Decision(False, "a", denied=True), Decision(True, "b"), Decision(False, "a", denied=True)),
        (Decision(False, "a"), Decision(True, "b"), Decision(True, "b")),
        (Decision(False, "a"), Decision(False, "b"), Decision(False, "one: a\ntwo: b")),
        (Decision(False), Decision(False, "b"), Decision(False, "two: b")),
        (Decision(False, error="x"), Decision(False), Decision(False, error="x")),
        (Decision(False, error="x"), Decision(False, error="y"), Decision(False, error="[x, y]")),
        (Decision(False, error="x"), Decision(True), Decision(True)),
    ],
)
def test_the_first_opinion_counts(first: Decision, second: Decision, outcome: Decision) -> None:
    union = Union([Member("one", Says(first)), Member("two", Says(second))])
    assert union.authorize(GET) == outcome


def test_masters_may_do_everything_whoever_is_asked() -> None:
    union = Union([Member("alwaysdeny", AlwaysDeny())])
    assert union.authorize(GET._replace(user=UserInfo("root", groups=("system:masters",)))) == Decision(True)
    assert union.authorize(GET) == Decision(False, "alwaysdeny: Everything is forbidden.")
    union.replace([Member("alwaysallow", AlwaysAllow())])
    assert union.authorize(GET) == Decision(True)


async def test_who_has_to_be_asked_is_asked_once_for_each_run() -> None:
    """Nothing is kept here, and yet a question with two answers to wait for comes to an end."""
    one, two = Says(Decision(False, "a"), waits=True), Says(Decision(True, "b"), waits=True)
    union = Union([Member("one", one), Member("two", two)])
    for turn in (1, 2):
        assert await settle(lambda: union.authorize(GET)) == Decision(True, "b")
        assert (one.asked, two.asked) == (turn, turn)
    with pytest.raises(Undecided):
        union.authorize(GET)


async def test_a_question_within_a_question_uses_the_same_answers() -> None:
    one = Says(Decision(True), waits=True)
    union = Union([Member("one", one)])

    def twice() -> bool:
        return union.authorize(GET).allowed and union.authorize(GET).allowed

    assert await settle(twice)
    assert one.asked == 1


def test_rules_are_those_of_all_and_incomplete_where_one_cannot_tell() -> None:
    union = Union(
        [Member("one", Says(Decision(False, "a", error="x"))), Member("two", Says(Decision(False, "b"), waits=True))]
    )
    found = union.rules_for(ANN, "default")
    assert ([rule["verbs"] for rule in found.rules], found.incomplete) == ([["a"], ["b"]], True)
