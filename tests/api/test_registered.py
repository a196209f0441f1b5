"""Words for objects of the wrong kind or version."""

from __future__ import annotations

import pytest

from steersman.api.registered import refusal, unconvertible

DEPLOYMENT = ("apps/v1", "Deployment")


@pytest.mark.parametrize(
    ("given", "kind", "why"),
    [
        ("v1", "Foo", 'no kind "Foo" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'),
        ("v1", "Pod", "converting (v1.Pod) to (apps.Deployment): unknown conversion"),
        ("apps/v1beta1", "StatefulSet", "converting (v1beta1.StatefulSet) to (apps.Deployment): unknown conversion"),
        ("batch/v1", "Status", "converting (v1.Status) to (apps.Deployment): unknown conversion"),
        ("apps/v1", "PatchOptions", "converting (v1.PatchOptions) to (apps.Deployment): unknown conversion"),
    ],
)
def test_other_kinds_are_converted_or_unknown(given: str, kind: str, why: str) -> None:
    assert unconvertible(given, kind, *DEPLOYMENT) == why
    assert refusal(given, kind, *DEPLOYMENT).endswith(f"cannot be handled as a Deployment: {why}")


@pytest.mark.parametrize(
    ("given", "api_version", "kind"),
    [
        ("apps/v1beta2", "apps/v1", "Deployment"),
        ("extensions/v1beta1", "apps/v1", "Deployment"),
        ("v1", "events.k8s.io/v1", "Event"),
        ("extensions/v1beta1", "autoscaling/v1", "Scale"),
    ],
)
def test_the_same_kind_in_another_version_is_named_so(given: str, api_version: str, kind: str) -> None:
    assert unconvertible(given, kind, api_version, kind) == ""
    expected = f"the API version in the data ({given}) does not match the expected API version ({api_version})"
    assert refusal(given, kind, api_version, kind) == expected


def test_groups_of_other_servers_are_unknown_to_each_other() -> None:
    assert "no kind" in unconvertible("v1", "Pod", "apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert "no kind" in unconvertible("apiextensions.k8s.io/v1", "CustomResourceDefinition", "v1", "Pod")
