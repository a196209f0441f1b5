"""Which controllers run: the syntax of kube-controller-manager's --controllers."""

from __future__ import annotations

import pytest

from steersman.controlplane.controller_names import CONTROLLERS, chosen


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("*", CONTROLLERS),
        ("", ()),
        ("namespace-controller", ("namespace-controller",)),
        ("namespace, garbagecollector", ("garbage-collector-controller", "namespace-controller")),
        ("*,-resourcequota-controller", [name for name in CONTROLLERS if name != "resourcequota-controller"]),
        ("-serviceaccount,*", [name for name in CONTROLLERS if name != "serviceaccount-controller"]),
        ("namespace-controller,-namespace-controller", ("namespace-controller",)),
        ("-namespace-controller,namespace-controller", ()),
        ("*,deployment-controller,-nodeipam", CONTROLLERS),
    ],
)
def test_the_first_word_counts(text: str, names: list[str]) -> None:
    assert chosen(text) == list(names)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("*,-nothing", '"nothing" is not in the list of known controllers'),
        ("a,-b,a", '["a" is not in the list of known controllers, "b" is not in the list of known controllers]'),
    ],
)
def test_unknown_names_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match="known controllers") as refused:
        chosen(text)
    assert str(refused.value) == why
