"""What Pods violate, as a kube-apiserver says: recorded for Pods at random, each level and version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.api.pod_security.evaluation import NEWEST, described, evaluate, reasons
from steersman.api.pod_security.levels import PREFIX, PRIVILEGED, RESTRICTED, LevelVersion, policy_of

from .record import LEVELS, RECORDED, VERSIONS

PODS: list[dict[str, Any]] = json.loads(RECORDED.read_text())


def standard(level: str, version: str) -> LevelVersion:
    policy, errors = policy_of({f"{PREFIX}enforce": level, f"{PREFIX}enforce-version": version})
    assert not errors and str(policy.enforce) == f"{level}:{version}"
    return policy.enforce


def wrong(pod: dict[str, Any], level: str) -> list[tuple[str, str, str]]:
    """The versions in which the verdict is another one than was recorded."""
    found, expected = [], ""
    for version in VERSIONS:
        expected = pod["verdicts"][level].get(version, expected)
        verdict = described(evaluate(standard(level, version), pod["metadata"], pod["spec"]))
        if verdict != expected:
            found.append((version, verdict, expected))
    return found


@pytest.mark.parametrize("level", LEVELS)
def test_verdicts_are_those_of_a_kube_apiserver(level: str) -> None:
    assert len(PODS) > 100
    assert [each for pod in PODS for each in wrong(pod, level)] == []


def test_everything_is_allowed_to_the_privileged() -> None:
    for pod in PODS:
        assert evaluate(LevelVersion(PRIVILEGED), pod["metadata"], pod["spec"]) == []


def test_versions_to_come_are_the_newest() -> None:
    for pod in PODS:
        newest = evaluate(LevelVersion(RESTRICTED, NEWEST), pod["metadata"], pod["spec"])
        for minor in (NEWEST + 1, 10**18, None):
            assert evaluate(LevelVersion(RESTRICTED, minor), pod["metadata"], pod["spec"]) == newest


def test_in_short_only_the_reasons_are_told() -> None:
    spec = {"hostPID": True, "containers": [{"name": "c", "securityContext": {"privileged": True}}]}
    assert reasons(evaluate(LevelVersion("baseline"), {}, spec)) == "host namespaces, privileged"
