"""What a namespace's labels choose, right ones and wrong ones."""

from __future__ import annotations

import pytest

from steersman.api.pod_security.levels import PREFIX, Policy, policy_of


def chosen(**labels: str) -> tuple[tuple[str, str, str], list[str]]:
    policy, errors = policy_of({f"{PREFIX}{key.replace('_', '-')}": value for key, value in labels.items()})
    return (str(policy.enforce), str(policy.audit), str(policy.warn)), [str(error) for error in errors]


def test_without_labels_everything_is_allowed() -> None:
    assert policy_of({"a": "b", f"{PREFIX}other": "c"}) == (Policy(), [])
    assert Policy().privileged


@pytest.mark.parametrize(
    ("labels", "policy"),
    [
        ({"enforce": "baseline"}, ("baseline:latest", "privileged:latest", "baseline:latest")),
        (
            {"enforce": "restricted", "enforce_version": "v1.5"},
            ("restricted:v1.5", "privileged:latest", "restricted:v1.5"),
        ),
        (
            {"enforce": "restricted", "enforce_version": "v1.5", "warn_version": "v1.6"},
            ("restricted:v1.5", "privileged:latest", "restricted:v1.6"),
        ),
        ({"enforce": "restricted", "warn": "baseline"}, ("restricted:latest", "privileged:latest", "baseline:latest")),
        ({"enforce": "restricted", "warn": "privileged"}, ("restricted:latest",) + ("privileged:latest",) * 2),
        ({"enforce_version": "v1.0"}, ("privileged:v1.0", "privileged:latest", "privileged:latest")),
        ({"audit": "baseline", "audit_version": "v1.10"}, ("privileged:latest", "baseline:v1.10", "privileged:latest")),
    ],
)
def test_what_labels_choose(labels: dict[str, str], policy: tuple[str, str, str]) -> None:
    assert chosen(**labels) == (policy, [])


def test_a_wrong_level_is_enforced_as_the_strictest_but_neither_audited_nor_warned_of() -> None:
    policy, errors = chosen(enforce="none", audit="none", warn="none")
    assert policy == ("restricted:latest", "privileged:latest", "privileged:latest")
    why = "must be one of privileged, baseline, restricted"
    assert errors == [
        f'metadata.labels[{PREFIX}{mode}]: Invalid value: "none": {why}' for mode in ("enforce", "audit", "warn")
    ]


def test_a_wrong_level_to_enforce_is_not_warned_of() -> None:
    assert chosen(enforce="none")[0] == ("restricted:latest", "privileged:latest", "privileged:latest")


@pytest.mark.parametrize("version", ["", "v1", "1.2", "v1.01", "v2.0", "v1.2.3", "V1.2", "v1.٣", f"v1.{2**63}"])
def test_a_wrong_version_is_the_latest(version: str) -> None:
    policy, errors = chosen(enforce="baseline", enforce_version=version)
    assert policy[0] == "baseline:latest" and len(errors) == 1
    assert errors[0].endswith('must be "latest" or "v1.x"')


def test_the_largest_version() -> None:
    assert chosen(enforce_version=f"v1.{2**63 - 1}") == (
        (f"privileged:v1.{2**63 - 1}", "privileged:latest", "privileged:latest"),
        [],
    )
