from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.errors import AlreadyExists, ApiError, Conflict, NotFound
from steersman.client.retry import DEFAULT_BACKOFF, DEFAULT_RETRY, Backoff, retry_on_conflict

AT_ONCE = Backoff(steps=5, duration=0.0)


class Write:
    """A write that ends in each of the errors in turn, and then succeeds."""

    def __init__(self, *errors: ApiError) -> None:
        self._pending = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self._pending:
            raise self._pending.pop(0)
        return "written"


@given(
    st.integers(1, 40),
    st.floats(0, 10),
    st.floats(1, 10),
    st.floats(0, 2),
    st.none() | st.floats(0, 60),
    st.floats(0, 0.99),
)
def test_waits_grow_within_their_bounds(
    steps: int, duration: float, factor: float, jitter: float, cap: float | None, rand: float
) -> None:
    backoff = Backoff(steps, duration, factor, jitter, cap)
    plain = list(backoff.delays(lambda: 0.0))
    jittered = list(backoff.delays(lambda: rand))
    assert len(plain) == len(jittered) == steps - 1
    assert plain == sorted(plain)
    assert all(wait <= longer <= wait * (1 + jitter) + 1e-9 for wait, longer in zip(plain, jittered, strict=True))
    if cap is not None:
        assert all(wait <= cap for wait in plain)


def test_the_defaults_are_client_gos() -> None:
    assert list(DEFAULT_RETRY.delays(lambda: 0.0)) == pytest.approx([0.01] * 4)
    assert list(DEFAULT_BACKOFF.delays(lambda: 0.0)) == pytest.approx([0.01, 0.05, 0.25])
    assert list(DEFAULT_RETRY.delays(lambda: 1.0)) == pytest.approx([0.011] * 4)


def test_a_loop_of_days_does_not_overflow() -> None:
    assert Backoff(1, 0.8, 2.0, cap=30.0).delay(100_000, lambda: 0.0) == 30.0


async def test_success_is_returned_at_once() -> None:
    write = Write()
    assert await retry_on_conflict(write, AT_ONCE) == "written"
    assert write.calls == 1


async def test_conflicts_are_retried_until_success() -> None:
    write = Write(Conflict("1"), Conflict("2"))
    told: list[tuple[str, int]] = []
    result = await retry_on_conflict(write, AT_ONCE, on_conflict=lambda error, n: told.append((error.message, n)))
    assert result == "written"
    assert told == [("1", 1), ("2", 2)]


async def test_the_last_conflict_is_raised() -> None:
    write = Write(*[Conflict(str(n)) for n in range(1, 9)])
    with pytest.raises(Conflict, match=r"^5$"):
        await retry_on_conflict(write, AT_ONCE)
    assert write.calls == 5


@pytest.mark.parametrize("error", [NotFound("gone"), AlreadyExists("there"), ApiError("broken")])
async def test_other_errors_are_raised_at_once(error: ApiError) -> None:
    write = Write(Conflict("1"), error)
    with pytest.raises(type(error), match=error.message):
        await retry_on_conflict(write, AT_ONCE)
    assert write.calls == 2


async def test_the_attempts_are_apart() -> None:
    clock = asyncio.get_running_loop().time
    started = clock()
    await retry_on_conflict(Write(Conflict("1"), Conflict("2")), Backoff(5, 0.02))
    assert clock() - started >= 0.04
