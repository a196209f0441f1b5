"""CRDs as a whole: names, versions, conversion, and what an update may do."""

import base64
from typing import Any

import pytest
import trustme

from steersman.api.apiextensions import validate_crd, validate_crd_status_update, validate_crd_update

from .crds import ROOT, crd, in_spec

LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
ESTABLISHED = {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]}


def found(errors: Any) -> list[tuple[str, str]]:
    return [(error.field, error.body()) for error in errors]


def created(definition: dict[str, Any]) -> list[tuple[str, str]]:
    return found(validate_crd(definition))


def updated(new: dict[str, Any], old: dict[str, Any]) -> list[tuple[str, str]]:
    return found(validate_crd_update({**new, "status": old["status"]}, old))


def webhook(**config: Any) -> dict[str, Any]:
    reviews = {"conversionReviewVersions": ["v1"], "clientConfig": config}
    return {"conversion": {"strategy": "Webhook", "webhook": reviews}}


def test_a_good_one() -> None:
    assert created(crd(in_spec(a={"type": "string"}), ROOT, selectableFields=[{"jsonPath": ".spec.a"}])) == []


def test_no_version_at_all() -> None:
    for versions, quoted in ((None, "null"), ([], "[]")):
        reason = f"Invalid value: {quoted}: must have exactly one version marked as storage version"
        assert ("spec.versions", reason) in created(crd(spec={"versions": versions}))


def test_everything_missing() -> None:
    empty = {"metadata": {"name": "x.y"}, "spec": {}, "status": {}}
    assert created(empty) == [
        ("metadata.name", 'Invalid value: "x.y": must be spec.names.plural+"."+spec.group'),
        ("spec.group", "Required value"),
        ("spec.scope", "Required value"),
        ("spec.versions", "Invalid value: null: must have exactly one version marked as storage version"),
        ("spec.names.plural", "Required value"),
        ("spec.names.singular", "Required value"),
        ("spec.names.kind", "Required value"),
        ("spec.names.listKind", "Required value"),
        ("status.storedVersions", "Invalid value: null: must have at least one stored version"),
    ]


def test_names() -> None:
    names = {"plural": "gears", "singular": "Gear", "kind": "G_r", "listKind": "G_r", "shortNames": ["ok", "a.b"]}
    names["categories"] = ["all", "X"]
    assert created(crd(spec={"names": names, "scope": "Everywhere"})) == [
        ("spec.scope", 'Unsupported value: "Everywhere": supported values: "Cluster", "Namespaced"'),
        ("spec.names.singular", f'Invalid value: "Gear": {LABEL}'),
        ("spec.names.kind", f'Invalid value: "G_r": may have mixed case, but should otherwise match: {LABEL}'),
        ("spec.names.listKind", f'Invalid value: "G_r": may have mixed case, but should otherwise match: {LABEL}'),
        ("spec.names.shortNames[1]", f'Invalid value: "a.b": {LABEL}'),
        ("spec.names.listKind", 'Invalid value: "G_r": kind and listKind may not be the same'),
        ("spec.names.categories[1]", f'Invalid value: "X": {LABEL}'),
    ]


def test_versions_are_quoted_as_internal_structs() -> None:
    definition = crd(ROOT, ROOT)
    definition["spec"]["versions"][1].update(name="v1", storage=True, deprecated=True, deprecationWarning="old <v>")
    texts = [body for field, body in created(definition) if field == "spec.versions"]
    rest = '"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}'
    quoted = (
        f'[{{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,{rest},'
        f'{{"Name":"v1","Served":true,"Storage":true,"Deprecated":true,'
        f'"DeprecationWarning":"old \\u003cv\\u003e",{rest}]'
    )
    assert texts == [
        f"Invalid value: {quoted}: must contain unique version names",
        f"Invalid value: {quoted}: must have exactly one version marked as storage version",
    ]


def test_errors_name_versions_only_where_they_differ() -> None:
    assert created(crd({}))[0][0] == "spec.validation.openAPIV3Schema.type"
    assert created(crd({}, {}))[0][0] == "spec.validation.openAPIV3Schema.type"
    assert created(crd(ROOT, {}))[0][0] == "spec.versions[1].schema.openAPIV3Schema.type"
    assert created(crd(None)) == [("spec.versions[0].schema.openAPIV3Schema", "Required value")]


@pytest.mark.parametrize(
    ("version", "errors"),
    [
        (
            {"deprecationWarning": "x"},
            [("spec.versions[0].deprecationWarning", 'Invalid value: "x": can only be set for deprecated versions')],
        ),
        (
            {"deprecated": True, "deprecationWarning": ""},
            [("spec.versions[0].deprecationWarning", 'Invalid value: "": must not be an empty string')],
        ),
        (
            {"deprecated": True, "deprecationWarning": "é\n"},
            [
                (
                    "spec.versions[0].deprecationWarning",
                    'Invalid value: "é\\n": must only contain printable UTF-8 characters; '
                    "non-printable character found at index 2",
                )
            ],
        ),
        (
            {"additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": "a"}]},
            [
                (
                    "spec.additionalPrinterColumns[0].type",
                    'Invalid value: "text": must be one of boolean,date,integer,number,string',
                ),
                (
                    "spec.additionalPrinterColumns[0].JSONPath",
                    'Invalid value: "a": must be a simple json path starting with .',
                ),
            ],
        ),
        (
            {"additionalPrinterColumns": [{"format": "odd"}]},
            [
                ("spec.additionalPrinterColumns[0].name", "Required value"),
                (
                    "spec.additionalPrinterColumns[0].type",
                    "Required value: must be one of boolean,date,integer,number,string",
                ),
                (
                    "spec.additionalPrinterColumns[0].format",
                    'Invalid value: "odd": must be one of byte,date,date-time,double,float,int32,int64,password',
                ),
                ("spec.additionalPrinterColumns[0].JSONPath", "Required value"),
            ],
        ),
        (
            {"subresources": {"scale": {"specReplicasPath": ".status.x", "labelSelectorPath": ".x"}}},
            [
                (
                    "spec.subresources.scale.specReplicasPath",
                    'Invalid value: ".status.x": should be a json path under .spec',
                ),
                ("spec.subresources.scale.statusReplicasPath", "Required value"),
                (
                    "spec.subresources.scale.labelSelectorPath",
                    'Invalid value: ".x": should be a json path under either .spec or .status',
                ),
            ],
        ),
        (
            {"selectableFields": [{"jsonPath": ".a"}, {"jsonPath": "a"}, {"jsonPath": ""}, {"jsonPath": ".l[0]"}]},
            [
                (
                    "spec.selectableFields[0].jsonPath",
                    'Invalid value: ".a": is an invalid path: does not refer to a valid field',
                ),
                (
                    "spec.selectableFields[1].jsonPath",
                    'Invalid value: "a": is an invalid path: expected [ or . but got: a',
                ),
                ("spec.selectableFields[2].jsonPath", "Required value"),
                (
                    "spec.selectableFields[3].jsonPath",
                    'Invalid value: ".l[0]": is an invalid path: does not refer to a valid field',
                ),
            ],
        ),
    ],
)
def test_parts_of_a_version(version: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert created(crd(ROOT, **version)) == errors


def test_selectable_fields_are_eight_different_scalars() -> None:
    fields = {f"f{index}": {"type": "string"} for index in range(9)}
    nine = [{"jsonPath": f".spec.{name}"} for name in fields]
    assert created(crd(in_spec(**fields), selectableFields=nine)) == [
        ("spec.selectableFields", "Too many: 9: must have at most 8 items")
    ]
    numbered = in_spec(n={"type": "number"}, s={"type": "string"})
    twice = [{"jsonPath": ".spec.n"}, {"jsonPath": ".spec.s"}, {"jsonPath": ".spec.s"}]
    assert [error.type for error in validate_crd(crd(numbered, selectableFields=twice))] == [
        "FieldValueInvalid",
        "FieldValueDuplicate",
    ]


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        (
            {"conversion": {"strategy": "Magic"}},
            [("strategy", 'Unsupported value: "Magic": supported values: "None", "Webhook"')],
        ),
        (
            {"conversion": {"strategy": "Webhook"}},
            [
                ("webhookClientConfig", "Required value: required when strategy is set to Webhook"),
                ("conversionReviewVersions", "Required value"),
            ],
        ),
        (webhook(), [("webhookClientConfig", "Required value: exactly one of url or service is required")]),
        (
            webhook(url="http://x"),
            [
                (
                    "webhookClientConfig.url",
                    "Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: https://host[/path]",
                )
            ],
        ),
        (
            webhook(url="https://u:p@/x?q#f"),
            [
                (
                    "webhookClientConfig.url",
                    'Invalid value: "": host must be specified; desired format: https://host[/path]',
                ),
                ("webhookClientConfig.url", 'Invalid value: "u:p": user information is not permitted in the URL'),
                ("webhookClientConfig.url", 'Invalid value: "f": fragments are not permitted in the URL'),
                ("webhookClientConfig.url", 'Invalid value: "q": query parameters are not permitted in the URL'),
            ],
        ),
        (
            webhook(service={"name": "a", "namespace": "b", "port": 0, "path": "x//"}),
            [
                (
                    "webhookClientConfig.service.port",
                    "Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                ),
                ("webhookClientConfig.service.path", "Invalid value: \"x//\": must start with a '/'"),
                ("webhookClientConfig.service.path", 'Invalid value: "x//": segment[0] may not be empty'),
                ("webhookClientConfig.service.path", 'Invalid value: "x//": segment[1] may not be empty'),
            ],
        ),
        (webhook(service={"name": "a", "namespace": "b", "port": 443, "path": "/p/q"}), []),
        (webhook(url="https://x", caBundle="YQ=="), []),
        (
            {"conversion": {"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {}}}},
            [
                ("webhookClientConfig", "Forbidden: should not be set when strategy is not set to Webhook"),
                ("conversionReviewVersions", "Forbidden: should not be set when strategy is not set to Webhook"),
            ],
        ),
        (
            {"preserveUnknownFields": True},
            [
                (
                    "spec.preserveUnknownFields",
                    "Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
                    "spec.versions[*].schema instead",
                )
            ],
        ),
    ],
)
def test_conversion(spec: dict[str, Any], errors: list[tuple[str, str]]) -> None:
    assert [(field.removeprefix("spec.conversion."), body) for field, body in created(crd(spec=spec))] == errors


@pytest.mark.parametrize(
    ("annotations", "detail"),
    [
        ({}, 'protected groups must have approval annotation "api-approved.kubernetes.io", see'),
        ({"api-approved.kubernetes.io": "sure"}, 'with either a URL or a reason starting with "unapproved", see'),
        ({"api-approved.kubernetes.io": "unapproved, experimental"}, ""),
        ({"api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}, ""),
    ],
)
def test_community_groups_need_approval(annotations: dict[str, str], detail: str) -> None:
    definition = crd(spec={"group": "tools.k8s.io"})
    definition["metadata"] = {"name": "gears.tools.k8s.io", "annotations": annotations, "resourceVersion": "1"}
    errors = validate_crd(definition)
    assert [error.field for error in errors] == (["metadata.annotations[api-approved.kubernetes.io]"] if detail else [])
    assert all(detail in error.detail for error in errors)
    assert updated(definition, definition) == []


def test_what_never_changes() -> None:
    old = {**crd(), "status": ESTABLISHED}
    names = {"plural": "cogs", "singular": "cog", "kind": "Cog", "listKind": "CogList"}
    new = crd(spec={"scope": "Cluster", "group": "other.example", "names": names})
    assert updated(new, old) == [
        ("spec.scope", 'Invalid value: "Cluster": field is immutable'),
        ("spec.names.kind", 'Invalid value: "Cog": field is immutable'),
        ("spec.group", 'Invalid value: "other.example": field is immutable'),
        ("spec.names.plural", 'Invalid value: "cogs": field is immutable'),
    ]
    fresh = crd()
    renamed = crd(spec={"scope": "Cluster", "names": {**names, "plural": "gears"}})
    assert updated(renamed, fresh) == []


def test_a_stored_version_cannot_leave() -> None:
    old = crd(ROOT, in_spec())
    old["status"]["storedVersions"] = ["v1", "v2"]
    new = crd(ROOT)
    text = (
        "missing from spec.versions; v2 was previously a storage version, and must remain in spec.versions until a "
        "storage migration ensures no data remains persisted in v2 and removes v2 from status.storedVersions"
    )
    assert updated(new, old) == [("status.storedVersions[1]", f'Invalid value: "v2": {text}')]


def test_old_faults_are_tolerated_and_new_ones_are_not() -> None:
    unstructured = in_spec(a={"description": "typeless"})
    old = crd(unstructured, spec={"preserveUnknownFields": True})
    assert updated(crd(unstructured, spec={"preserveUnknownFields": True}), old) == []
    assert updated(crd(unstructured), old) != []
    set_of_objects = {"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}
    assert updated(crd(in_spec(a=set_of_objects, b={"type": "string"})), crd(in_spec(a=set_of_objects))) == []
    assert updated(crd(in_spec(a=set_of_objects)), crd()) != []
    unpruned = in_spec(a={"type": "object", "default": {"odd": 1}})
    assert updated(crd(unpruned), crd(unpruned)) == []
    nine = {f"f{index}": {"type": "string"} for index in range(9)}
    fields = [{"jsonPath": f".spec.{name}"} for name in nine]
    many = crd(in_spec(**nine), selectableFields=fields)
    assert updated(many, many) == []


def test_an_established_crd_needs_a_usable_ca() -> None:
    bad = crd(spec=webhook(url="https://x", caBundle="YQ=="))
    old = {**crd(), "status": ESTABLISHED}
    reason = "unable to load root certificates: unable to parse bytes as PEM block"
    assert updated(bad, old) == [("spec.conversion.webhookClientConfig.caBundle", f'Invalid value: "YQ==": {reason}')]
    assert updated(bad, {**bad, "status": ESTABLISHED}) == []
    bundle = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
    assert updated(crd(spec=webhook(url="https://x", caBundle=bundle)), old) == []


def test_status_updates_judge_accepted_names_only() -> None:
    new = crd()
    new["status"] = {"acceptedNames": {"plural": "Bad", "kind": "Gear"}, "storedVersions": ["nothing"]}
    assert found(validate_crd_status_update(new, crd())) == [
        ("status.acceptedNames.plural", f'Invalid value: "Bad": {LABEL}')
    ]
