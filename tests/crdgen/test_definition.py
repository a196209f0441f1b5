"""What definitions say of models."""

from __future__ import annotations

import enum
from datetime import timedelta
from decimal import Decimal
from types import ModuleType
from typing import Annotated, Any, Literal, NewType

import pytest
from pydantic import (
    AfterValidator,
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
    computed_field,
    conint,
    conlist,
)
from tests.crdgen import kinds

import steersman as st
from steersman.crdgen import SchemaError, crd_for, crds

GROUP = kinds.GROUP


Port = NewType("Port", int)


def spec_of(cls: type[st.KubernetesObject]) -> dict[str, Any]:
    found = crd_for(cls)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert isinstance(found, dict)
    return found


def field_schema(annotation: Any, default: Any = ...) -> dict[str, Any]:
    """The schema of a field `x` in the spec of a kind."""
    model = type(
        "Spec", (st.Model,), {"__annotations__": {"x": annotation}, "__module__": __name__, "x": Field(default)}
    )

    @st.custom_resource(f"{GROUP}/v1", kind="Thing")
    class Thing(st.CustomResource[model, None]): ...  # type: ignore[valid-type]

    found = spec_of(Thing)["properties"]["x"]
    assert isinstance(found, dict)
    return found


def test_the_whole_definition() -> None:
    crd = crd_for(kinds.Scaled)
    assert crd["metadata"] == {"name": f"scaled.{GROUP}"}
    version = crd["spec"]["versions"][0]
    schema = version.pop("schema")["openAPIV3Schema"]
    assert crd["spec"] == {
        "group": GROUP,
        "names": {
            "kind": "Scaled",
            "listKind": "ScaledList",
            "plural": "scaled",
            "singular": "scale-one",
            "shortNames": ["sc", "scs"],
            "categories": ["all", "kinds"],
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": [
                    {
                        "name": "Replicas",
                        "type": "integer",
                        "jsonPath": ".spec.replicas",
                        "description": "How many are wanted.",
                    },
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                    {"name": "Region", "type": "string", "jsonPath": ".spec.region", "priority": 1},
                ],
                "selectableFields": [{"jsonPath": ".spec.region"}],
            }
        ],
    }
    assert schema["required"] == ["spec"]
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    status = schema["properties"]["status"]["properties"]
    assert status["replicas"] == {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1}
    assert "default" not in status["observedGeneration"]
    conditions = status["conditions"]
    assert (conditions["x-kubernetes-list-type"], conditions["x-kubernetes-list-map-keys"]) == ("map", ["type"])
    assert conditions["items"]["required"] == ["type", "status", "reason", "message", "lastTransitionTime"]


def test_several_versions() -> None:
    crd = crd_for(kinds.VersionedOld, kinds.VersionedUnserved, kinds.Versioned, conversion={"strategy": "None"})
    flags = [{key: value for key, value in each.items() if key != "schema"} for each in crd["spec"]["versions"]]
    assert flags == [
        {
            "name": "v1alpha1",
            "served": True,
            "storage": False,
            "deprecated": True,
            "deprecationWarning": "v1alpha1 goes away",
        },
        {"name": "v1beta1", "served": False, "storage": False, "deprecated": True},
        {"name": "v1", "served": True, "storage": True},
    ]
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    with pytest.raises(SchemaError, match="exactly one version is stored"):
        crd_for(kinds.VersionedOld, kinds.VersionedUnserved)
    with pytest.raises(SchemaError, match="no version of Versioned"):
        crd_for(kinds.Versioned, kinds.Scaled)


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer", "format": "int64"}),
        (Annotated[int, st.int32], {"type": "integer", "format": "int32"}),
        (float, {"type": "number"}),
        (Port, {"type": "integer", "format": "int64"}),
        (conint(ge=1, multiple_of=2), {"type": "integer", "format": "int64", "minimum": 1, "multipleOf": 2}),
        (conlist(str, max_length=3), {"type": "array", "items": {"type": "string"}, "maxItems": 3}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (kinds.Level, {"type": "integer", "format": "int64", "enum": [1, 2]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (set[str], {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer", "format": "int64"}}),
        (Any, {"x-kubernetes-preserve-unknown-fields": True}),
        (dict[str, Any], {"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True}}),
        (int | str, {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (st.Duration, {"type": "string", "format": "duration"}),
        (Annotated[str, StringConstraints(max_length=3)], {"type": "string", "maxLength": 3}),
        (
            Annotated[dict[str, Any], st.embedded],
            {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            Annotated[list[kinds.Inner], st.atomic],
            {
                "type": "array",
                "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "properties": {
                        "size": {"type": "integer", "format": "int64", "default": 3},
                        "mode": {"type": "string"},
                    },
                },
            },
        ),
        (
            Annotated[int, Field(gt=0, lt=9)],
            {
                "type": "integer",
                "format": "int64",
                "minimum": 0,
                "exclusiveMinimum": True,
                "maximum": 9,
                "exclusiveMaximum": True,
            },
        ),
    ],
)
def test_types(annotation: Any, schema: Any) -> None:
    assert field_schema(annotation) == schema


def test_what_may_be_absent_is_not_required_and_not_nullable() -> None:
    spec = spec_of(kinds.Optionals)
    assert "required" not in spec
    properties = spec["properties"]
    assert properties["text"] == {"type": "string"}
    assert properties["nulls"] == {"type": "string", "nullable": True}
    assert properties["items"]["items"]["nullable"] is True
    assert properties["values"]["additionalProperties"]["nullable"] is True


def test_defaults() -> None:
    properties = spec_of(kinds.Defaulted)["properties"]
    defaults = {name: node["default"] for name, node in properties.items() if "default" in node}
    assert defaults == {"policy": {}, "colours": ["blue"], "wait": "1h30m0s", "home": "127.0.0.1", "zero": 0}
    assert properties["policy"]["properties"]["steps"]["default"] == [{"size": 9}]
    nested = spec_of(kinds.Nested)["properties"]
    assert nested["middle"]["default"] == {}
    assert nested["middle"]["properties"]["innerWith"]["default"] == {"mode": "m"}
    assert "default" not in nested["plainModel"]
    assert "default" not in spec_of(kinds.Scalars)["properties"]["note"]


def test_unions_of_objects_are_told_apart() -> None:
    source = spec_of(kinds.Unions)["properties"]["source"]
    assert source == {
        "type": "object",
        "required": ["type"],
        "properties": {
            "type": {"type": "string", "enum": ["file", "url"]},
            "path": {"type": "string"},
            "url": {"type": "string"},
            "retries": {"type": "integer", "format": "int64"},
        },
        "oneOf": [
            {"properties": {"type": {"enum": ["file"]}}, "required": ["path", "type"]},
            {"properties": {"type": {"enum": ["url"]}}, "required": ["type", "url"]},
        ],
    }
    assert spec_of(kinds.Unions)["properties"]["tagged"] == source


def test_descriptions() -> None:
    schema = crd_for(kinds.Scalars)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["description"] == 'All plain types.\n\nWith a second paragraph: of "quoted" words.'
    spec = spec_of(kinds.Described)
    assert spec["description"] == "What is wanted."
    assert spec["properties"]["size"] == {
        "type": "integer",
        "format": "int64",
        "description": "How large.",
        "title": "Size",
        "example": 5,
        "default": 1,
    }
    assert spec["properties"]["old"]["description"] == "Deprecated: use size"
    assert spec["properties"]["documented"]["description"] == "Said below the field."


def test_names_in_json() -> None:
    spec = spec_of(kinds.Aliases)
    assert list(spec["properties"]) == ["$ref", "from", "APIKey"]
    assert spec["required"] == ["$ref"]
    assert list(spec_of(kinds.Roots)["properties"]["other"]["properties"]) == ["snake_case"]


def test_rules_stand_where_they_are_said() -> None:
    schema = crd_for(kinds.Ruled)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert len(schema["x-kubernetes-validations"]) == 1
    spec = schema["properties"]["spec"]
    assert spec["x-kubernetes-validations"] == [
        {"rule": "self.env != 'prod' || has(self.logging)", "message": "prod needs logging"}
    ]
    for node in (spec["properties"]["range"], spec["properties"]["ranges"]["items"]):
        assert node["x-kubernetes-validations"][0]["message"] == "low is above high"


def test_recursion_ends_where_unknown_fields_are_kept() -> None:
    root = spec_of(kinds.Trees)["properties"]["root"]
    assert root["properties"]["child"] == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class Own(st.Model):
    child: Own | None = None


class Odd(enum.Enum):
    A = "a"
    B = 2


class Computed(st.Model):
    @computed_field  # type: ignore[prop-decorator]
    @property
    def total(self) -> int:
        return 1


class Extra(st.Model):
    y: int = Field(0, json_schema_extra={"format": "int32"})


class Money(str):
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return handler(str)


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


class Twice(st.Model):
    one: int = Field(0, alias="same")
    other: str = Field("", alias="same")


class WrittenElsewhere(st.Model):
    y_z: int = Field(0, serialization_alias="z")


class ReadElsewhere(st.Model):
    y_z: int = Field(0, validation_alias="z")


class ReadInside(st.Model):
    y_z: int = Field(0, validation_alias=AliasChoices("z", AliasPath("y", 0)))


class Undefined(st.Model):
    child: Absent = None  # type: ignore[name-defined] # noqa: F821 -- that is the point


class Below(st.Model):
    parts: list[Part] = Field(default_factory=list)
    old_or_new: int = Field(0, validation_alias=AliasChoices("oldOrNew", "old"))


class Part(st.Model):
    name: str = ""


def test_classes_that_stand_below_are_known() -> None:
    found = field_schema(Below)["properties"]
    assert found["parts"]["items"]["properties"] == {"name": {"type": "string"}}
    assert list(found) == ["parts", "oldOrNew"]


def positive(value: int) -> int:
    return value


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (Own, r"Thing\.spec\.x\.child: Own holds itself"),
        (list[Own], r"Thing\.spec\.x\[\]\.child: Own holds itself"),
        (dict[str, Own], r"Thing\.spec\.x\.\*\.child: Own holds itself"),
        (list[Annotated[Own, st.preserve_unknown]], r"as in Annotated\[Own, preserve_unknown\]"),
        (Rights, r"Thing\.spec\.x: Rights has sums of its values"),
        (Twice, r"Thing\.spec\.x\.same: two fields are called so"),
        (WrittenElsewhere, r"Thing\.spec\.x\.z: it is written as 'z', and read as yZ, y_z"),
        (ReadElsewhere, r"Thing\.spec\.x\.yZ: it is written as 'yZ', and read as z, y_z"),
        (ReadInside, r"Thing\.spec\.x\.yZ: it is written as 'yZ', and read as z, y_z"),
        (Undefined, r"'Absent' is not defined"),
        (Annotated[float, Field(ge=float("nan"))], r"Thing\.spec\.x: nan is no limit"),
        (Annotated[float, Field(le=float("inf"))], r"Thing\.spec\.x: inf is no limit"),
        (Odd, r"Thing\.spec\.x: the values of an enumeration are all texts or all numbers, not int, str"),
        (Computed, r"Thing\.spec\.x\.total: a computed field"),
        (Extra, r"Thing\.spec\.x\.y: json_schema_extra is not read"),
        (timedelta, r"Thing\.spec\.x: timedelta .* use steersman\.Duration"),
        (Decimal, r"Thing\.spec\.x: Decimal .* steersman\.Quantity"),
        (bytes, r"Thing\.spec\.x: bytes .*Base64Bytes"),
        (Money, r"Thing\.spec\.x: Money is a str of its own"),
        (type[int], r"Thing\.spec\.x: type is no type that a schema can say"),
        (tuple[int, str], r"Thing\.spec\.x: the items of a list are all of one type"),
        (dict[int, str], r"Thing\.spec\.x: the keys of a map are texts"),
        (bool | str, r"Thing\.spec\.x: a union of boolean, string"),
        (list[str] | str, r"Thing\.spec\.x: a union of array, string"),
        (kinds.Inner | kinds.Port, r"Thing\.spec\.x: a union of objects needs a required field that is a Literal"),
        (set[kinds.Inner], r"Thing\.spec\.x: a set is of texts or numbers"),
        (st.ObjectMeta, r"Thing\.spec\.x: metadata is not described"),
        (Annotated[int, AfterValidator(positive)], r"Thing\.spec\.x: AfterValidator .* Python code"),
        (Annotated[str, st.pattern(r"(?<!a)b")], r"Thing\.spec\.x: the pattern .* invalid or unsupported Perl syntax"),
        (Annotated[str, StringConstraints(to_lower=True)], r"Thing\.spec\.x: to_lower changes"),
        (Annotated[str, st.list_set], r"Thing\.spec\.x: a list type \(set\) is for lists"),
        (Annotated[str, st.atomic], r"Thing\.spec\.x: atomic is for"),
        (Annotated[str, st.int32], r"Thing\.spec\.x: format is for integer, not for string"),
        (Annotated[list[kinds.Port], st.list_map("nome")], r"Thing\.spec\.x: the items have no field 'nome'"),
        (Annotated[list[kinds.Inner], st.list_map("mode")], r"Thing\.spec\.x: the list's key 'mode' must be required"),
        (Annotated[str, st.preserve_unknown], r"Thing\.spec\.x: unknown fields can be kept in objects only"),
        (Annotated[str, st.rule("self.", "?")], r"Thing\.spec\.x .*: Invalid value: .*compilation failed"),
        (Annotated[str, st.rule("true", at="y")], r"Thing\.spec\.x: a rule is at 'y'"),
        (Annotated[str, st.text_format("ipv5")], r"unrecognized format"),
        (str | None, r"Thing\.spec\.x: it may be None, .* and is required"),
        (
            Annotated[list[list[str]], st.rule("self.all(a, a.all(b, b.contains('x')))")],
            r"Thing\.spec\.x .*cost.*; without bounds \(max_length\) are v1 spec\.x",
        ),
    ],
)
def test_what_cannot_be_said_is_an_error_that_names_the_field(annotation: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        field_schema(annotation)


def test_a_default_that_the_schema_refuses() -> None:
    with pytest.raises(SchemaError, match=r"Thing\.spec\.x \(default\): Invalid value"):
        field_schema(Annotated[int, Field(ge=3)], 1)


def test_kinds_of_a_module() -> None:
    module = ModuleType("operator")
    vars(module).update(
        A=kinds.Scaled,
        B=kinds.VersionedOld,
        C=kinds.VersionedUnserved,
        D=kinds.Versioned,
        E=st.CustomResource,
        F=BaseModel,
    )

    @st.custom_resource("apps/v1")
    class Deployment(st.KubernetesObject): ...

    module.Deployment = Deployment  # type: ignore[attr-defined]
    assert [each["metadata"]["name"] for each in crds(module)] == [f"scaled.{GROUP}", f"versioneds.{GROUP}"]
    assert [each["spec"]["names"]["kind"] for each in crds(module, kinds=["Scaled"])] == ["Scaled"]


@pytest.mark.parametrize(
    ("kind", "plural"), [("MyApp", "myapps"), ("Policy", "policies"), ("Box", "boxes"), ("Gateway", "gateways")]
)
def test_plurals(kind: str, plural: str) -> None:
    @st.custom_resource(f"{GROUP}/v1", kind=kind)
    class Thing(st.CustomResource[kinds.Inner, None]): ...

    assert crd_for(Thing)["spec"]["names"]["plural"] == plural


def test_durations_are_read_and_written_as_go_does() -> None:
    class Waiting(st.Model):
        model_config = ConfigDict(extra="forbid")

        wait: st.Duration

    found = Waiting.model_validate({"wait": "1h30m"})
    assert found.wait == timedelta(minutes=90)
    assert found.model_dump(mode="json") == {"wait": "1h30m0s"}
    with pytest.raises(ValueError, match="not a duration"):
        Waiting.model_validate({"wait": "soon"})
