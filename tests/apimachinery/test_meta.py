import pytest

from steersman.apimachinery import meta, names

OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u1"}


def problems(metadata, *, namespaced=True, rule=names.name_is_dns_subdomain):
    errors = meta.validate_object_meta(metadata, namespaced=namespaced, name_validator=rule)
    return [str(error) for error in errors]


def changes(new, old):
    base = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "creationTimestamp": "t"}
    return [str(error) for error in meta.validate_object_meta_update({**base, **new}, {**base, **old})]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"name": "a", "namespace": "n"}, []),
        ({"namespace": "n"}, ["metadata.name: Required value: name or generateName is required"]),
        ({"name": "a"}, ["metadata.namespace: Required value"]),
        (
            {"name": "a", "namespace": "n.m"},
            ['metadata.namespace: Invalid value: "n.m": must not contain dots'],
        ),
        (
            {"name": "a", "namespace": "n", "generation": -1},
            ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"],
        ),
        (
            {"name": "a", "namespace": "n", "labels": {"/k": "v"}},
            ['metadata.labels: Invalid value: "/k": prefix part must be non-empty'],
        ),
        ({"name": "a", "namespace": "n", "annotations": {"Any.Case/Name": "free text"}}, []),
        ({"name": "a", "namespace": "n", "annotations": {"k": "v" * (262144 - 1)}}, []),
        (
            {"name": "a", "namespace": "n", "annotations": {"k": "v" * 262144}},
            ["metadata.annotations: Too long: may not be more than 262144 bytes"],
        ),
        (
            {"name": "a", "namespace": "n", "ownerReferences": [{"uid": "u"}]},
            [
                "metadata.ownerReferences[0].apiVersion: Required value: must not be empty",
                "metadata.ownerReferences[0].kind: Required value: must not be empty",
                "metadata.ownerReferences[0].name: Required value: must not be empty",
            ],
        ),
        (
            {"name": "a", "namespace": "n", "ownerReferences": [{**OWNER, "apiVersion": "a/b/c"}]},
            [
                'metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": '
                "must be <group>/<version> or <version>",
            ],
        ),
        (
            {"name": "a", "namespace": "n", "ownerReferences": [{**OWNER, "kind": "Event"}]},
            [
                'metadata.ownerReferences[0]: Invalid value: {"apiVersion":"v1","kind":"Event","name":"o","uid":"u1"}: '
                "/v1, Kind=Event is disallowed from being an owner"
            ],
        ),
        (
            {"name": "a", "namespace": "n", "finalizers": ["orphan", "foregroundDeletion"]},
            [
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
                "finalizer orphan and foregroundDeletion cannot be both set"
            ],
        ),
        (
            {"name": "a", "namespace": "n", "managedFields": [{"fieldsType": "F9", "manager": "m" * 129}]},
            [
                "metadata.managedFields[0].operation: Required value: must not be empty",
                'metadata.managedFields[0].fieldsType: Invalid value: "F9": must be `FieldsV1`',
                "metadata.managedFields[0].manager: Too long: may not be more than 128 bytes",
            ],
        ),
        (
            {"name": "a", "namespace": "n", "managedFields": [{"operation": "Patch", "subresource": "s" * 257}]},
            [
                'metadata.managedFields[0].operation: Unsupported value: "Patch": supported values: "Apply", "Update"',
                "metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes",
            ],
        ),
    ],
)
def test_new_metadata(metadata, expected):
    assert problems(metadata) == expected


def test_a_cluster_scoped_object_has_no_namespace():
    assert problems({"name": "a", "namespace": "n"}, namespaced=False) == [
        "metadata.namespace: Forbidden: not allowed on this type"
    ]


def test_a_bad_generate_name_is_told_beside_the_name_made_of_it():
    found = problems({"generateName": "a.b", "name": "a.bxyz", "namespace": "n"}, rule=names.name_is_dns_label)
    assert found == [
        'metadata.generateName: Invalid value: "a.b": must not contain dots',
        'metadata.name: Invalid value: "a.bxyz": must not contain dots',
    ]


def test_two_controllers_are_quoted_in_the_order_of_their_fields():
    controller = {"controller": True, **OWNER}
    (found,) = problems({"name": "a", "namespace": "n", "ownerReferences": [controller, {**controller, "name": "p"}]})
    first = '{"apiVersion":"v1","kind":"ConfigMap","name":"o","uid":"u1","controller":true}'
    second = first.replace('"o"', '"p"')
    assert found == (
        f"metadata.ownerReferences: Invalid value: [{first},{second}]: Only one reference can "
        'have Controller set to true. Found "true" in references for ConfigMap/o and ConfigMap/p'
    )


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ({}, {}, []),
        ({"uid": "x"}, {}, ['metadata.uid: Invalid value: "x": field is immutable']),
        ({"name": "b"}, {}, ['metadata.name: Invalid value: "b": field is immutable']),
        (
            {"deletionGracePeriodSeconds": 5},
            {},
            ["metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"],
        ),
        (
            {"generation": 1},
            {"generation": 2},
            ["metadata.generation: Invalid value: 1: must not be decremented"],
        ),
        (
            {"resourceVersion": ""},
            {},
            ['metadata.resourceVersion: Invalid value: "": must be specified for an update'],
        ),
        (
            {"finalizers": ["b/c", "a/b"], "deletionTimestamp": "t"},
            {"finalizers": [], "deletionTimestamp": "t"},
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
                'found new finalizers []string{"a/b", "b/c"}'
            ],
        ),
        ({"finalizers": ["x"]}, {}, []),
    ],
)
def test_changed_metadata(new, old, expected):
    assert changes(new, old) == expected


def test_an_update_is_judged_as_a_new_object_first():
    new = {"name": "a", "namespace": "n", "labels": {"/k": ""}, "uid": "x", "resourceVersion": "1"}
    found = meta.validate_common_update(new, {**new, "uid": "u"}, namespaced=True)
    assert [error.field for error in found] == ["metadata.labels", "metadata.uid", "metadata.labels"]


def test_a_manager_must_be_printable():
    (error,) = meta.validate_field_manager("é\tb", "fieldManager")
    assert str(error) == 'fieldManager: Invalid value: "é\\tb": invalid character U+0009 (at position 2)'


@pytest.mark.parametrize(
    ("finalizer", "expected"),
    [
        ("x.io/y", []),
        ("orphan", []),
        ("plain", ["prefer a domain-qualified finalizer name to avoid"]),
        ("x.io", ["prefer a domain-qualified finalizer name including a path (/) to avoid"]),
    ],
)
def test_warnings_for_a_custom_resources_finalizers(finalizer, expected):
    rest = " accidental conflicts with other finalizer writers"
    assert meta.finalizer_warnings([finalizer]) == [
        f'metadata.finalizers: "{finalizer}": {text}{rest}' for text in expected
    ]


def test_standard_finalizers_of_built_in_kinds():
    assert meta.validate_standard_finalizer("kubernetes", "f") == []
    assert [str(error) for error in meta.validate_standard_finalizer("plain", "f")] == [
        'f: Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified'
    ]


def test_repeated_owners_are_dropped_with_a_warning():
    metadata = {"ownerReferences": [OWNER, {**OWNER, "uid": "u2"}, dict(OWNER), {**OWNER, "controller": True}]}
    (warning,) = meta.dedup_owner_references(metadata)
    assert warning.endswith("please fix your requests; duplicate UID(s) observed: u1")
    assert ".metadata.ownerReferences contains duplicate entries; API server" in warning
    assert metadata["ownerReferences"] == [OWNER, {**OWNER, "uid": "u2"}, {**OWNER, "controller": True}]
    assert meta.dedup_owner_references(metadata) == []


def test_owners_repeated_by_admission_are_told_apart():
    metadata = {"ownerReferences": [OWNER, dict(OWNER)]}
    (warning,) = meta.dedup_owner_references(metadata, after_mutating_admission=True)
    assert "contains duplicate entries after mutating admission happens;" in warning
