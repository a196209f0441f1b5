"""Authorizers that have to ask someone else first.

An authorizer decides without waiting, so that an expression, or a rule of an admission plugin, can ask it. One that
has no answer yet raises `Undecided`; who can wait then has the answer fetched, and runs the question again:

    decision = await settle(lambda: authorizer.authorize(attributes))

Answers are good for that run, so that it comes to an end whatever is cached.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from typing import Any, TypeVar

from steersman.apiserver.authz.attributes import Decision

T = TypeVar("T")
_answers: ContextVar[dict[Any, Decision] | None] = ContextVar("answers of authorizers", default=None)


class Undecided(Exception):
    """There is no answer to `key` yet: `ask` gets it."""

    def __init__(self, key: Hashable, ask: Callable[[], Awaitable[Decision]]) -> None:
        super().__init__("an authorizer has to be asked first")
        self.key = key
        self.ask = ask


def answered(key: Hashable) -> Decision | None:
    """The answer that was got for this run, None without one."""
    found = _answers.get()
    return None if found is None else found.get(key)


async def settle(question: Callable[[], T]) -> T:
    """What a question comes to, once all that it needs has been asked; it runs as often as that takes."""
    try:
        return question()
    except Undecided as error:
        missing = error
    held = _answers.get()
    answers: dict[Any, Decision] = {} if held is None else held
    token = _answers.set(answers)
    try:
        while True:
            answers[missing.key] = await missing.ask()
            try:
                return question()
            except Undecided as error:
                missing = error
    finally:
        _answers.reset(token)
