"""Which plugins run: by the names and in the words of kube-apiserver."""

from __future__ import annotations

import pytest

from steersman.apiserver.admission.names import HERE, KNOWN, OFF_BY_DEFAULT, left_out, problem


@pytest.mark.parametrize(
    ("enabled", "disabled", "text"),
    [
        ([], [], ""),
        (["NodeRestriction"], ["ServiceAccount"], ""),
        (["mine"], [], ""),
        (["Nothing"], [], 'enable-admission-plugins plugin "Nothing" is unknown'),
        ([], ["priority"], 'disable-admission-plugins plugin "priority" is unknown'),
        (
            ["a", "Priority"],
            ["b"],
            '[enable-admission-plugins plugin "a" is unknown, disable-admission-plugins plugin "b" is unknown]',
        ),
        (
            ["Priority", "LimitRanger"],
            ["LimitRanger", "Priority"],
            "[LimitRanger Priority] in enable-admission-plugins and disable-admission-plugins overlapped",
        ),
    ],
)
def test_what_is_wrong_with_names(enabled: list[str], disabled: list[str], text: str) -> None:
    assert problem(enabled, disabled, ["mine"]) == text


def test_what_runs() -> None:
    assert left_out([], []) == OFF_BY_DEFAULT
    assert left_out(["AlwaysDeny"], ["Priority"]) == (OFF_BY_DEFAULT - {"AlwaysDeny"}) | {"Priority"}
    assert HERE < KNOWN
