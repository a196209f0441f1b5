from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.api import kinds
from steersman.api.kinds import builtin_kind, builtin_kinds, builtin_resource
from steersman.apimachinery.errors import BadRequest


def test_discovery_names_each_kind_once():
    assert (
        len({kind.gvk for kind in builtin_kinds()})
        == len({kind.gvr for kind in builtin_kinds()})
        == len(builtin_kinds())
    )


def test_what_discovery_says_of_a_deployment():
    kind = builtin_kind("apps", "v1", "Deployment")
    assert (kind.plural, kind.singular, kind.namespaced) == ("deployments", "deployment", True)
    assert kind.short_names == ("deploy",)
    assert kind.categories == ("all",)
    assert kind.api_version == "apps/v1"
    assert kind.list_kind == "DeploymentList"
    assert kind.stored
    assert kind.has_status
    scale = kind.subresources["scale"]
    assert (scale.group, scale.version, scale.kind, scale.verbs) == (
        "autoscaling",
        "v1",
        "Scale",
        ("get", "patch", "update"),
    )


def test_reviews_are_not_stored():
    assert not builtin_kind("authentication.k8s.io", "v1", "TokenReview").stored
    assert not builtin_kind("", "v1", "Binding").stored
    assert not builtin_kind("", "v1", "ComponentStatus").stored


def test_lookup_by_resource():
    assert builtin_resource("", "v1", "configmaps") is builtin_kind("", "v1", "ConfigMap")
    assert builtin_resource("example.com", "v1", "widgets") is None
    with pytest.raises(KeyError):
        builtin_kind("", "v1", "Widget")


@pytest.mark.parametrize(
    ("group", "version", "kind", "prefix"),
    [
        ("", "v1", "ConfigMap", "configmaps"),
        ("", "v1", "Service", "services/specs"),
        ("", "v1", "Endpoints", "services/endpoints"),
        ("", "v1", "Node", "minions"),
        ("networking.k8s.io", "v1", "Ingress", "ingress"),
        ("events.k8s.io", "v1", "Event", "events"),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "apiextensions.k8s.io/customresourcedefinitions"),
    ],
)
def test_where_objects_are_stored(group, version, kind, prefix):
    assert builtin_kind(group, version, kind).storage_prefix == prefix


def test_schemas_resolve():
    kind = builtin_kind("", "v1", "ConfigMap")
    assert kinds.schema_name(kind) == "io.k8s.api.core.v1.ConfigMap"
    assert kinds.schemas()[kinds.schema_name(kind)] is kind.schema
    metadata = kinds.resolve(kind.schema["properties"]["metadata"])
    assert "finalizers" in metadata["properties"]
    assert kinds.resolve(metadata) is metadata


def test_a_body_gets_its_kind_and_loses_what_is_unknown():
    decoded, unknown = builtin_kind("", "v1", "ConfigMap").decode({"data": {"a": "b"}, "spec": 1, "Data": {}})
    assert decoded == {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {}, "data": {"a": "b"}}
    assert list(decoded)[:2] == ["kind", "apiVersion"]
    assert unknown == ["spec", "Data"]


def test_a_wrong_type_is_a_bad_request():
    with pytest.raises(BadRequest) as caught:
        builtin_kind("coordination.k8s.io", "v1", "Lease").decode({"spec": {"leaseDurationSeconds": "15"}})
    assert caught.value.message == (
        'Lease in version "v1" cannot be handled as a Lease: json: cannot unmarshal string '
        "into Go struct field LeaseSpec.spec.leaseDurationSeconds of type int32"
    )


def test_strict_errors_are_listed():
    error = builtin_kind("", "v1", "Pod").strict_error(['unknown field "a"', 'duplicate field "b"'])
    assert error.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "a", duplicate field "b"'
    )


def test_embedded_structs_are_named_in_errors():
    volume = {"name": "v", "configMap": {"name": 5}}
    with pytest.raises(BadRequest) as caught:
        builtin_kind("", "v1", "Pod").decode({"spec": {"volumes": [volume]}})
    field = "ConfigMapVolumeSource.spec.volumes.VolumeSource.configMap.LocalObjectReference.name"
    assert caught.value.message.endswith(f"number into Go struct field {field} of type string")


def test_schemas_of_custom_resources_decode_where_other_things_may_stand():
    schema = {"items": {"type": "object", "junk": 1}, "additionalProperties": False, "dependencies": {"a": ["b"]}}
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}}
    kind = builtin_kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    decoded, unknown = kind.decode({"spec": {"versions": [version]}})
    assert unknown == []
    assert decoded["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "items": {"type": "object"},
        "additionalProperties": False,
        "dependencies": {"a": ["b"]},
    }
    schema["additionalProperties"] = 5
    with pytest.raises(BadRequest, match="boolean or JSON schema expected"):
        kind.decode({"spec": {"versions": [version]}})
    schema["additionalProperties"] = {"type": 5}
    with pytest.raises(
        BadRequest, match=r"JSONSchemaProps\.spec\.versions\.schema\.openAPIV3Schema\.additionalProperties\.type"
    ):
        kind.decode({"spec": {"versions": [version]}})


def test_the_stored_form_has_no_empty_lists():
    role = builtin_kind("rbac.authorization.k8s.io", "v1", "Role")
    decoded, _ = role.decode({"rules": []})
    assert decoded["rules"] == []
    assert role.stored_form(decoded)["rules"] is None


@pytest.mark.parametrize("kind", [kind for kind in builtin_kinds() if kind.stored], ids=lambda kind: str(kind.gvk))
def test_every_stored_kind_can_be_created(kind):
    strategy = kind.strategy
    obj, unknown = kind.decode({"metadata": {"name": "a", **({"namespace": "n"} if kind.namespaced else {})}})
    assert unknown == []
    assert kind.decode(obj) == (obj, [])
    strategy.default(obj)
    obj["metadata"]["uid"] = "u"
    strategy.before_create(obj)
    stored = kind.storage_kind.stored_form(strategy.to_storage(obj))
    assert strategy.from_storage(stored)["metadata"]["name"] == "a"
    assert len(strategy.row(obj, NOW)) == len(strategy.columns)


NOW = datetime(2024, 1, 1, tzinfo=UTC)
TREES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", "a", "2024-01-01T00:00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "spec", "a"]), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(st.sampled_from(builtin_kinds()), st.data())
def test_decoding_what_was_decoded_changes_nothing(kind, data):
    fields = sorted(kind.schema["properties"])
    body = data.draw(st.dictionaries(st.sampled_from(fields), TREES, max_size=4))
    try:
        decoded, _ = kind.decode(body)
    except BadRequest as error:
        assert "cannot be handled" in error.message
        return
    assert kind.decode(decoded) == (decoded, [])
    stored = kind.stored_form(decoded)
    assert kind.stored_form(stored) == stored
