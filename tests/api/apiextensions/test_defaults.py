"""What the server fills into a CRD, wipes from it and warns about."""

from typing import Any

from steersman.api.apiextensions import (
    crd_warnings,
    default_crd,
    prepare_crd_for_create,
    prepare_crd_for_status_update,
    prepare_crd_for_update,
)

from .crds import ROOT, crd, in_spec

FRESH_STATUS = {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]}


def test_names_conversion_and_status_are_filled_in() -> None:
    definition = crd()
    definition["spec"]["names"] = {"plural": "gears", "kind": "Gear"}
    del definition["status"]
    default_crd(definition)
    names = {"plural": "gears", "kind": "Gear", "singular": "gear", "listKind": "GearList"}
    assert definition["spec"]["names"] == names
    assert definition["spec"]["conversion"] == {"strategy": "None"}
    assert definition["status"] == FRESH_STATUS


def test_a_webhook_that_says_nothing_is_dropped() -> None:
    for webhook, kept in (
        ({}, False),
        ({"conversionReviewVersions": None}, False),
        ({"conversionReviewVersions": []}, True),
    ):
        definition = crd(spec={"conversion": {"strategy": "None", "webhook": webhook}})
        default_crd(definition)
        assert ("webhook" in definition["spec"]["conversion"]) == kept


def test_what_is_given_stays_and_a_service_gets_a_port() -> None:
    service = {"name": "a", "namespace": "b"}
    webhook = {"clientConfig": {"service": service}}
    definition = crd(spec={"conversion": {"strategy": "Webhook", "webhook": webhook}})
    definition["spec"]["names"]["singular"] = "cogwheel"
    before = definition["spec"]
    default_crd(definition)
    assert definition["spec"]["names"]["singular"] == "cogwheel"
    assert definition["spec"]["conversion"]["webhook"] == {"clientConfig": {"service": {**service, "port": 443}}}
    assert before["conversion"]["webhook"] == {"clientConfig": {"service": {"name": "a", "namespace": "b"}}}


def test_nothing_to_derive_names_from() -> None:
    definition: dict[str, Any] = {"metadata": {}}
    default_crd(definition)
    assert definition["spec"] == {"names": {}, "conversion": {"strategy": "None"}}
    assert definition["status"]["storedVersions"] == []


def test_a_clients_status_is_wiped_on_create_and_kept_from_the_old_object_on_update() -> None:
    sent = {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v7"]}
    definition = {**crd(), "status": sent}
    prepare_crd_for_create(definition)
    assert definition["status"] == FRESH_STATUS

    new, old = crd(ROOT, in_spec()), crd(ROOT, in_spec())
    new["spec"]["versions"][0]["storage"], new["spec"]["versions"][1]["storage"] = False, True
    new["status"] = sent
    prepare_crd_for_update(new, old)
    assert new["status"]["storedVersions"] == ["v1", "v2"]
    assert old["status"]["storedVersions"] == ["v1"]


def test_a_status_update_leaves_the_spec() -> None:
    new = {"metadata": {}, "spec": {"group": "other"}, "status": {"storedVersions": ["v2"]}}
    prepare_crd_for_status_update(new, crd())
    assert new["spec"] == crd()["spec"]
    assert new["status"] == {"storedVersions": ["v2"]}


def test_warnings_tell_of_what_is_new() -> None:
    objects = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}}
    definition = crd(in_spec(a={"type": "string", "format": "odd"}, b={"type": "boolean", "format": "date"}, c=objects))
    text = "is not supported by server-side apply or CEL validation rules"
    warnings = [
        'unrecognized format "odd"',
        'unrecognized format "date"',
        f'x-kubernetes-list-type: set for items of type "object" {text}',
    ]
    assert crd_warnings(definition) == warnings
    assert crd_warnings(definition, definition) == []
    assert crd_warnings(definition, crd(in_spec(c=objects))) == warnings[:2]
