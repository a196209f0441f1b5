"""What the user is told before anything runs."""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest

from steersman import Client, LeaderElector, LeaseLock
from steersman.client import Config
from steersman.runtime.leaderelection import Timing, default_identity


def made(**options: Any) -> LeaderElector:
    return LeaderElector(Client(Config("http://127.0.0.1:1")), LeaseLock("default", "lock"), **options)


def test_the_defaults_are_kubernetes_own() -> None:
    assert made().timing == Timing(15.0, 10.0, 2.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lease_duration": 10}, "lease_duration (10) must be greater than renew_deadline (10.0)"),
        ({"renew_deadline": 2.4}, "renew_deadline (2.4) must be greater than 1.2 times retry_period (2.0)"),
        ({"retry_period": 0}, "retry_period must be a number of seconds greater than zero, not 0"),
        ({"renew_deadline": -1}, "renew_deadline must be a number of seconds greater than zero, not -1"),
        ({"lease_duration": float("inf")}, "lease_duration must be a number of seconds greater than zero, not inf"),
        ({"lease_duration": float("nan")}, "lease_duration must be a number of seconds greater than zero, not nan"),
        ({"identity": ""}, "an elector needs an identity"),
    ],
)
def test_what_cannot_be_kept_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        made(**options)


def test_a_lock_needs_a_name() -> None:
    with pytest.raises(ValueError, match="a lock needs a name"):
        LeaseLock("default", "")


def test_identities_are_unique_and_name_the_host() -> None:
    assert default_identity() != default_identity()
    assert default_identity().startswith(f"{socket.gethostname()}_")
    assert made().identity != made().identity


def test_a_record_promises_no_less_than_what_is_kept() -> None:
    assert [Timing(seconds, 1.0, 0.5).promised for seconds in (1.1, 2.0, 2.5)] == [2, 2, 3]
