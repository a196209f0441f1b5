"""Messages as the reference server gives them."""

import pytest

from steersman.api.batch.policies import failure_policy_errors, index_errors, success_policy_errors

CODES = {"operator": "In", "values": [1]}


def failures(*rules, **spec):
    policy = {"podFailurePolicy": {"rules": list(rules)}, "template": {"spec": {"containers": [{"name": "c"}]}}}
    return [str(error) for error in failure_policy_errors({**policy, **spec}, "p")]


def success(*rules):
    spec = {"successPolicy": {"rules": list(rules)}, "completionMode": "Indexed", "completions": 5}
    return [str(error) for error in success_policy_errors(spec, "p")]


def test_sound_policies():
    assert failures({"action": "FailJob", "onExitCodes": {**CODES, "containerName": "c"}}) == []
    assert failures({"action": "Count", "onPodConditions": [{"type": "A", "status": "True"}]}) == []
    assert failures({"action": "FailIndex", "onExitCodes": CODES}, backoffLimitPerIndex=1) == []
    assert success({"succeededIndexes": "0,2-4", "succeededCount": 4}, {"succeededCount": 5}) == []


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({"onExitCodes": CODES}, 'action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'),
        (
            {"action": "FailIndex", "onExitCodes": CODES},
            'action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
        ),
        (
            {"action": "Count", "onExitCodes": {**CODES, "containerName": "z"}},
            'onExitCodes.containerName: Invalid value: "z": must be one of the container or initContainer names in '
            "the pod template",
        ),
        (
            {"action": "Count", "onExitCodes": {"operator": "In", "values": [0]}},
            "onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator",
        ),
        (
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [2, 1]}},
            "onExitCodes.values: Invalid value: [2,1]: must be ordered",
        ),
        (
            {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [1, 1]}},
            "onExitCodes.values[1]: Duplicate value: 1",
        ),
        (
            {"action": "Count", "onPodConditions": [{"type": "A"}]},
            'onPodConditions[0].status: Required value: valid values: ["False" "True" "Unknown"]',
        ),
    ],
)
def test_a_rule_for_failures(rule, problem):
    assert failures(rule) == [f"p.rules[0].{problem}"]


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({}, "one of OnExitCodes and OnPodConditions is required"),
        (
            {"onExitCodes": CODES, "onPodConditions": [{"type": "A", "status": "True"}]},
            "both OnExitCodes and OnPodConditions is not supported",
        ),
    ],
)
def test_a_rule_has_one_condition(more, what):
    assert failures({"action": "Count", **more}) == [f"p.rules[0]: Invalid value: specifying {what}"]


@pytest.mark.parametrize(
    ("indexes", "problem"),
    [
        ("a", 'cannot convert string to integer for index: "a"'),
        ("1,", 'cannot convert string to integer for index: ""'),
        ("-1", 'cannot convert string to integer for index: ""'),
        ("5", 'too large index: "5"'),
        ("3,1", "non-increasing order, previous: 3, current: 1"),
        ("2-2", "non-increasing order, previous: 2, current: 2"),
    ],
)
def test_indexes_that_succeed(indexes, problem):
    assert success({"succeededIndexes": indexes}) == [
        f'p.rules[0].succeededIndexes: Invalid value: "{indexes}": error parsing succeededIndexes: {problem}'
    ]


def test_a_count_of_successes():
    assert success({"succeededIndexes": "0-2", "succeededCount": 4}) == [
        "p.rules[0].succeededCount: Invalid value: 4: must be less than or equal to 3 (the number of indexes in the "
        "specified succeededIndexes field)"
    ]
    assert success({}) == [
        "p.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be specified"
    ]


def test_numbers_of_indexed_jobs():
    many = {"completions": 200_000, "backoffLimitPerIndex": 1, "parallelism": 10_001, "maxFailedIndexes": 5}
    assert [error.field for error in index_errors(many, "s")] == ["s.parallelism"]
    assert [error.field for error in index_errors({"completions": 3, "parallelism": 100_001}, "s")] == ["s.parallelism"]
    assert [error.field for error in index_errors({"completions": 3, "maxFailedIndexes": 4}, "s")] == [
        "s.maxFailedIndexes"
    ]
    assert index_errors({"completions": 3, "parallelism": 3, "maxFailedIndexes": 3}, "s") == []
