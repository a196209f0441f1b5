"""Modules of models that are made from definitions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from pydantic import ValidationError
from tests.crdgen import kinds
from tests.crdgen.objects import objects_of
from tests.real_crds.conftest import modules as modules
from tests.real_crds.definitions import Definition, definition_text, examples, load
from tests.real_crds.modules import Package

import steersman as st
from steersman.crdgen import SchemaError, crd_for, module_for

DEFINITIONS = load()


def loaded(source: str, path: Path) -> ModuleType:
    """A module from its source."""
    path.write_text(source)
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def classes_of(module: ModuleType) -> Iterator[type[st.KubernetesObject]]:
    for each in vars(module).values():
        if isinstance(each, type) and issubclass(each, st.KubernetesObject) and each.api_resource is not None:
            yield each


def tools_are_content(directory: Path) -> None:
    """ruff as it formats like black, and mypy."""
    for command in (
        ["ruff", "format", "--isolated", "--line-length", "88", "--check", str(directory)],
        ["mypy", "--strict", "--config-file=", str(directory)],
    ):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


FULL: dict[str, Any] = {
    "type": "object",
    "description": 'A "widget" of all\nkinds.\n\nWith `\\n` and """ in it, and a line that goes on below.',
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["size", "class", "mode"],
            "properties": {
                "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9, "exclusiveMaximum": True},
                "class": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5, "description": 'It\'s a "class".'},
                "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
                "levels": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
                "$ref": {"type": "string"},
                "not-a-name": {"type": "string"},
                "schema": {"type": "boolean", "default": False},
                "register": {"type": "string"},
                "none": {"type": "object", "properties": {"True": {"type": "string"}}},
                "true": {"type": "object", "properties": {"None": {"type": "string"}, "": {"type": "string"}}},
                "list": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "HTTPRoute": {"type": "number", "default": 1.5},
                "port": {"x-kubernetes-int-or-string": True},
                "memory": {"x-kubernetes-int-or-string": True, "pattern": kinds.st.quantity.schema["pattern"]},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "anything": {"x-kubernetes-preserve-unknown-fields": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 4},
                "at": {"type": "string", "format": "date-time"},
                "wait": {"type": "string", "format": "duration", "default": "5m"},
                "maybe": {"type": "string", "nullable": True},
                "inner": {
                    "type": "object",
                    "default": {},
                    "properties": {"on": {"type": "boolean", "default": True}},
                },
                "other": {"type": "object", "properties": {"on": {"type": "boolean", "default": True}}},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
                },
                "open": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": {"type": "string"}},
                },
                "requiredDuringSchedulingIgnoredDuringExecutionOfEverything": {
                    "type": "array",
                    "description": "A long text " * 9,
                    "items": {"type": "object", "properties": {"weight": {"type": "integer"}}},
                },
                "colours": {"type": "string", "enum": [f"a-rather-long-colour-{number}" for number in range(9)]},
            },
        },
        "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
    },
}


def definition(schema: dict[str, Any], **names: str) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.shop.example.com"},
        "spec": {
            "group": "shop.example.com",
            "scope": "Cluster",
            "names": {"plural": "widgets", "kind": "Widget"} | names,
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}},
                {"name": "v2", "served": True, "storage": False, "schema": {"openAPIV3Schema": schema}},
            ],
        },
    }


def test_everything_a_schema_says(tmp_path: Path) -> None:
    source = module_for([definition(FULL)], versions=["v1", "v2"])
    module = loaded(source, tmp_path / "made_from_full.py")
    tools_are_content(tmp_path)
    widget = module.Widget
    assert widget.api_resource == st.Resource("shop.example.com/v1", "Widget", "widgets", False)
    assert module.WidgetV2.api_resource == st.Resource("shop.example.com/v2", "Widget", "widgets", False)
    assert 'A "widget" of all kinds.' in widget.__doc__
    raw: dict[str, Any] = {
        "apiVersion": "shop.example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "a", "creationTimestamp": None},
        "spec": {
            "size": 3,
            "class": "abc",
            "mode": "fast",
            "$ref": "x",
            "not-a-name": "y",
            "list": ["a"],
            "HTTPRoute": 2,
            "port": 80,
            "memory": "1Gi",
            "free": {"a": {"b": [1, None]}},
            "anything": [1],
            "at": "2026-01-02T03:04:05.678+02:00",
            "maybe": None,
            "ports": [{"name": "a", "unknown": 1}],
            "open": {"known": "a", "unknown": {"b": 1}},
            "colours": "a-rather-long-colour-3",
        },
    }
    found = widget.from_wire(raw)
    assert found.to_wire() == raw
    assert (found.spec.class_, found.spec.schema_, found.spec.list_, found.spec.http_route) == ("abc", False, ["a"], 2)
    assert (found.spec.wait, found.spec.inner.on, found.status.ready) == ("5m", True, None)
    assert type(found.spec.inner) is type(widget.from_wire(raw | {"spec": raw["spec"] | {"other": {}}}).spec.other)
    found.status.ready = 2
    assert found.to_wire() == raw | {"status": {"ready": 2}}


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 9},
        {"size": "x"},
        {"class": "abcdef"},
        {"class": "A"},
        {"mode": "medium"},
        {"levels": []},
        {"levels": [-1]},
        {"labels": {str(number): "" for number in range(5)}},
        {"port": 1.5},
        {"ports": [{}]},
    ],
)
def test_what_the_schema_refuses_is_refused(wrong: dict[str, Any], tmp_path: Path) -> None:
    module = loaded(module_for([definition(FULL)]), tmp_path / "made_to_refuse.py")
    spec = {"size": 1, "class": "a", "mode": "fast"}
    module.WidgetSpec.model_validate(spec)
    with pytest.raises(ValidationError):
        module.WidgetSpec.model_validate(spec | wrong)


def test_what_is_no_definition_is_an_error() -> None:
    with pytest.raises(SchemaError, match="no CustomResourceDefinition"):
        module_for([{"apiVersion": "v1", "kind": "ConfigMap"}])
    with pytest.raises(SchemaError, match="no version v9"):
        module_for([definition(FULL)], versions=["v9"])


SETTLED = [each for each in vars(kinds).values() if isinstance(each, type) and hasattr(each, "api_resource")]
OWN = [each for each in SETTLED if each.api_resource is not None and each.api_resource.group == kinds.GROUP]


def _stored_only(crd: dict[str, Any]) -> dict[str, Any]:
    spec = crd["spec"]
    return {**crd, "spec": {**spec, "versions": [each for each in spec["versions"] if each["storage"]]}}


def test_definitions_from_models_become_models_again(tmp_path: Path) -> None:
    seen: dict[str, list[type[st.KubernetesObject]]] = {}
    for cls in OWN:
        seen.setdefault(cls.api_kind().kind, []).append(cls)
    definitions = [crd_for(*versions) for versions in seen.values()]
    assert len(definitions) >= 30
    module = loaded(module_for(definitions), tmp_path / "made_from_kinds.py")
    tools_are_content(tmp_path)
    made = {cls.api_kind().kind: cls for cls in classes_of(module)}
    assert made.keys() == seen.keys()

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(some.data())
    def same(data: some.DataObject) -> None:
        crd = data.draw(some.sampled_from([_stored_only(each) for each in definitions]))
        raw = data.draw(objects_of(crd, wrong=False))
        kind = made[raw["kind"]]
        assert kind.from_wire(json.loads(json.dumps(raw))).to_wire() == raw

    same()


@pytest.mark.slow
@pytest.mark.parametrize("each", DEFINITIONS, ids=lambda each: each.name)
def test_models_of_real_definitions_read_their_examples(
    each: Definition, modules: dict[Any, Package | str], tmp_path: Path
) -> None:
    packages: dict[Any, Package] = {}
    for module in each.modules:
        found = modules[module]
        if isinstance(found, str):
            pytest.skip(found)
        packages[module] = found
    crd = yaml.load(definition_text(each, packages), Loader=yaml.CSafeLoader)
    versions = [version["name"] for version in crd["spec"]["versions"]]
    source = module_for([crd], versions=versions)
    made = loaded(source, tmp_path / f"made_from_{each.name.replace('.', '_').replace('-', '_')}.py")
    classes = {cls.api_kind().version: cls for cls in classes_of(made)}
    count = 0
    for document in examples(each, crd["spec"]["group"], crd["spec"]["names"]["kind"], packages):
        raw = json.loads(json.dumps(yaml.load(document.text, Loader=yaml.CSafeLoader), default=str))
        kind = classes[raw["apiVersion"].rpartition("/")[2]]
        assert kind.from_wire(json.loads(json.dumps(raw))).to_wire() == raw, document.key
        count += 1
    assert count
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "88", "--check", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
