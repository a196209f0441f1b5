import pytest


@pytest.fixture
def leases(lifecycle):
    return lifecycle("coordination.k8s.io", "Lease")


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({}, []),
        ({"leaseDurationSeconds": 1, "leaseTransitions": 0}, []),
        ({"leaseDurationSeconds": 0}, ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]),
        ({"leaseTransitions": -1}, ["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"]),
    ],
)
def test_numbers(leases, spec, errors):
    assert leases.create(spec=spec)[1] == errors
    old, _ = leases.create()
    assert leases.update(old, spec=spec)[1] == errors


def test_fields_of_a_feature_that_is_off_are_dropped(leases):
    stored, errors = leases.create(
        spec={"holderIdentity": "a", "preferredHolder": "b", "strategy": "OldestEmulationVersion"}
    )
    assert (stored["spec"], errors) == ({"holderIdentity": "a"}, [])
    old = {**stored, "spec": {"preferredHolder": "b"}}
    changed, errors = leases.update(old, spec={"preferredHolder": "c", "strategy": "x"})
    assert (changed["spec"], errors) == ({"preferredHolder": "c"}, [])


def test_times_are_answered_in_utc_with_six_decimals(leases):
    stored, _ = leases.create(spec={"renewTime": "2026-01-01T02:00:00.000000+02:00"})
    assert stored["spec"] == {"renewTime": "2026-01-01T00:00:00.000000Z"}
