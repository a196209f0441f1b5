import pytest

from steersman.apimachinery.go_values import DecodeError
from steersman.apimachinery.object_meta import coerce_object_meta


def test_metadata_is_stored_sorted_and_without_what_is_empty():
    given = {
        "name": "a",
        "creationTimestamp": None,
        "labels": {},
        "annotations": {"z": "1", "a": None},
        "generation": 2.0,
        "finalizers": [],
        "deletionTimestamp": "2024-01-01T02:00:00+02:00",
    }
    coerced, unknown = coerce_object_meta(given)
    assert list(coerced.items()) == [
        ("annotations", {"a": "", "z": "1"}),
        ("deletionTimestamp", "2024-01-01T00:00:00Z"),
        ("generation", 2),
        ("name", "a"),
    ]
    assert unknown == []


def test_unknown_fields_are_dropped_and_named():
    owner = {"apiVersion": "v1", "kind": "X", "name": "y", "uid": "z"}
    coerced, unknown = coerce_object_meta({"bogus": 1, "ownerReferences": [{**owner, "extra": 1}]})
    assert coerced == {"ownerReferences": [owner]}
    assert unknown == ["metadata.bogus", "metadata.ownerReferences[0].extra"]


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"name": True}, "bool into Go struct field ObjectMeta.name of type string"),
        ({"uid": 5}, "number into Go struct field ObjectMeta.uid of type types.UID"),
        ({"labels": "x"}, "string into Go struct field ObjectMeta.labels of type map[string]string"),
        ({"labels": {"a": 1}}, "number into Go struct field ObjectMeta.labels of type string"),
        ({"labels": {"b": [], "a": 1}}, "number into Go struct field ObjectMeta.labels of type string"),
        ({"generation": 1.5}, "number 1.5 into Go struct field ObjectMeta.generation of type int64"),
        ({"ownerReferences": {}}, "object into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference"),
        (
            {"managedFields": [{"manager": 1}]},
            "number into Go struct field ManagedFieldsEntry.managedFields.manager of type string",
        ),
        ("x", "string into Go value of type v1.ObjectMeta"),
    ],
)
def test_wrong_types_are_refused(metadata, why):
    with pytest.raises(DecodeError) as caught:
        coerce_object_meta(metadata)
    assert str(caught.value) == f"json: cannot unmarshal {why}"


def test_what_the_store_holds_loses_only_its_malformed_fields():
    assert coerce_object_meta({"name": "a", "labels": {"b": 1}}, drop_malformed=True) == ({"name": "a"}, [])
    assert coerce_object_meta("x", drop_malformed=True) == ({}, [])


def test_no_metadata_is_empty_metadata():
    assert coerce_object_meta(None) == ({}, [])


def test_unknown_fields_come_in_the_order_of_keys():
    owner = {"uid": "u", "z": 1, "name": "n", "kind": "K", "b": 1, "apiVersion": "v1"}
    _, unknown = coerce_object_meta({"ownerReferences": [owner], "Labels": {}})
    assert unknown == ["metadata.Labels", "metadata.ownerReferences[0].b", "metadata.ownerReferences[0].z"]
