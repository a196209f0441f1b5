"""Defaults against what the recorder asks the reference: every manifest of tools/builtins/defaults.yaml."""

import copy
from pathlib import Path

import pytest
import yaml

from steersman.api.image_names import image_tag
from steersman.api.kinds import builtin_kinds

BY_NAME = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
FILE = Path(__file__).parents[2] / "tools" / "builtins" / "defaults.yaml"
MANIFESTS = list(yaml.safe_load_all(FILE.read_text()))


def decoded(manifest):
    kind = BY_NAME[manifest["apiVersion"], manifest["kind"]]
    obj, unknown = kind.decode(manifest)
    assert unknown == []
    return kind, obj


def covers(filled, given):
    """Whether everything that was given is still there."""
    if isinstance(given, dict):
        return isinstance(filled, dict) and all(covers(filled.get(key), value) for key, value in given.items())
    if isinstance(given, list):
        return len(filled) == len(given) and all(map(covers, filled, given))
    return given in (None, "", 0, filled)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: manifest["kind"])
def test_defaults_are_added_once_and_nothing_given_is_lost(manifest):
    kind, obj = decoded(manifest)
    before = copy.deepcopy(obj)
    shared = {key: value for key, value in obj.items() if key != "metadata"}
    kind.strategy.default(obj)
    assert covers(obj, before)
    assert shared == {key: value for key, value in before.items() if key != "metadata"}
    again = copy.deepcopy(obj)
    kind.strategy.default(again)
    assert again == obj


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("i", "latest"),
        ("i:latest", "latest"),
        ("i:1", "1"),
        ("localhost:5000/i", "latest"),
        ("localhost:5000/i:1", "1"),
        (f"i@sha256:{'a' * 64}", ""),
        (f"i:1@sha256:{'a' * 64}", "1"),
        ("docker.io/i", "latest"),
        ("[::1]:5000/a/b", "latest"),
        ("Team/i", "latest"),
        ("i@sha256:abc", ""),
        (f"i:1@md5:{'a' * 32}", ""),
        ("a" * 64, ""),
        ("<IMAGE>", ""),
        ("team/Image", ""),
        ("i:", ""),
        ("i/", ""),
        ("a..b", ""),
        ("https://example.com/i", ""),
        ("i" * 256 + "/i", ""),
        ("i:" + "1" * 129, ""),
    ],
)
def test_the_tag_of_an_image(image, tag):
    assert image_tag(image) == tag


def test_limits_are_requests_in_pods_but_not_in_templates():
    container = {"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "1"}}}
    kind, pod = decoded({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": [container]}})
    kind.strategy.default(pod)
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    template = {"spec": {"containers": [container]}}
    kind, workload = decoded(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {"template": template}}
    )
    kind.strategy.default(workload)
    assert workload["spec"]["template"]["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}}


def test_zero_is_no_default_where_it_may_be_meant():
    kind, workload = decoded({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}, "spec": {"replicas": 0}})
    kind.strategy.default(workload)
    assert workload["spec"]["replicas"] == 0
