"""Names are granted first come, first served; conditions say how it went."""

from typing import Any

from steersman.api.apiextensions import (
    accept_names,
    approval_condition,
    establish,
    find_condition,
    is_condition_true,
    non_structural_violations,
    remove_condition,
    set_condition,
)

from .crds import crd, in_spec

GEAR = {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}
NOW, LATER = "2030-01-01T00:00:00Z", "2030-01-02T00:00:00Z"


def named(
    names: dict[str, Any], accepted: dict[str, Any] | None = None, group: str = "tools.example"
) -> dict[str, Any]:
    definition = crd(spec={"names": names, "group": group})
    definition["status"]["acceptedNames"] = accepted or {"plural": "", "kind": ""}
    return definition


def test_free_names_are_granted() -> None:
    naming = accept_names(named({**GEAR, "shortNames": ["g"], "categories": ["all"]}), [])
    assert naming.accepted_names == {**GEAR, "shortNames": ["g"], "categories": ["all"]}
    assert (naming.names_accepted["status"], naming.names_accepted["reason"]) == ("True", "NoConflicts")
    assert (naming.established["status"], naming.established["reason"]) == ("False", "Installing")


def test_a_taken_kind_is_withheld() -> None:
    other = named({**GEAR, "plural": "cogs"}, {**GEAR, "plural": "cogs", "singular": "cog", "listKind": "CogList"})
    naming = accept_names(named(GEAR), [other])
    assert naming.accepted_names == {**GEAR, "kind": ""}
    assert naming.names_accepted == {
        "type": "NamesAccepted",
        "status": "False",
        "reason": "KindConflict",
        "message": '"Gear" is already in use',
    }
    assert naming.established["reason"] == "NotAccepted"


def test_short_names_are_granted_all_or_none_and_old_ones_stay() -> None:
    other = named({"plural": "cogs", "kind": "Cog"}, {"plural": "cogs", "kind": "Cog", "shortNames": ["c", "x"]})
    wanted = named({**GEAR, "shortNames": ["g", "c", "x"]}, {**GEAR, "shortNames": ["g"]})
    naming = accept_names(wanted, [other, wanted])
    assert naming.accepted_names["shortNames"] == ["g"]
    assert naming.names_accepted["message"] == '["c" is already in use, "x" is already in use]'


def test_other_groups_do_not_matter() -> None:
    other = named(GEAR, GEAR, group="other.example")
    assert accept_names(named(GEAR), [other]).names_accepted["status"] == "True"


def test_an_established_crd_stays_established_in_a_conflict() -> None:
    other = named({"plural": "cogs", "kind": "Cog"}, {"plural": "cogs", "kind": "Cog"})
    mine = named({**GEAR, "singular": "cogs"}, GEAR)
    set_condition(mine, {"type": "Established", "status": "True", "reason": "R", "message": "m"}, NOW)
    naming = accept_names(mine, [other])
    assert naming.names_accepted["reason"] == "SingularConflict"
    assert naming.established["status"] == "True"


def test_establishing_follows_naming() -> None:
    definition = crd()
    assert establish(definition) is None
    set_condition(definition, {"type": "NamesAccepted", "status": "True", "reason": "R", "message": "m"}, NOW)
    condition = establish(definition)
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("True", "InitialNamesAccepted")
    set_condition(definition, condition, NOW)
    assert is_condition_true(definition, "Established")
    assert establish(definition) is None


def test_a_bad_ca_keeps_a_crd_from_being_established() -> None:
    config = {"url": "https://x", "caBundle": "YQ=="}
    definition = crd(spec={"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": config}}})
    set_condition(definition, {"type": "NamesAccepted", "status": "True", "reason": "R", "message": "m"}, NOW)
    condition = establish(definition)
    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "InvalidCABundle")


def test_the_time_of_a_condition_changes_with_its_status_only() -> None:
    definition = crd()
    condition = {"type": "Established", "status": "False", "reason": "A", "message": "a"}
    set_condition(definition, condition, NOW)
    set_condition(definition, {**condition, "reason": "B"}, LATER)
    kept = {"lastTransitionTime": NOW, **condition, "reason": "B"}
    assert find_condition(definition, "Established") == kept
    set_condition(definition, {**condition, "status": "True"}, LATER)
    assert find_condition(definition, "Established") == {"lastTransitionTime": LATER, **condition, "status": "True"}
    remove_condition(definition, "Established")
    assert find_condition(definition, "Established") is None


def test_schemas_that_are_not_structural_are_told() -> None:
    assert non_structural_violations(crd()) is None
    condition = non_structural_violations(crd(in_spec(a={})))
    assert condition is not None
    path = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[a].type"
    assert condition["message"] == f"{path}: Required value: must not be empty for specified object fields"
    unreadable = non_structural_violations(crd(in_spec(a={"$ref": "x"})))
    assert unreadable is not None
    assert (unreadable["status"], unreadable["reason"]) == ("Unknown", "StructuralError")


def test_approval_is_a_matter_of_the_communitys_groups() -> None:
    assert approval_condition(crd()) is None
    definition = crd(spec={"group": "k8s.io"})
    missing = approval_condition(definition)
    assert missing is not None
    assert (missing["status"], missing["reason"]) == ("False", "MissingAnnotation")
    definition["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://github.com/x"}
    approved = approval_condition(definition)
    assert approved is not None
    assert (approved["status"], approved["message"]) == ("True", "approved in https://github.com/x")
