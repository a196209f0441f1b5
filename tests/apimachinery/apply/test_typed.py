from __future__ import annotations

from typing import Any

import pytest

from steersman.apimachinery.apply.path import PathError
from steersman.apimachinery.apply.typed import DEDUCED, UNTYPED_ATOMIC, Atom, from_crd, from_openapi

from .views import META, NUMBER, OPENAPI, TEXT, VIEW, list_of, struct

REF = "#/components/schemas/"
SCHEMAS: dict[str, Any] = {
    **OPENAPI,
    "Selector": {**struct(match=TEXT), "x-kubernetes-map-type": "atomic"},
    "Inner": {**struct(name={**TEXT, "default": ""}, list=list_of(TEXT), opt=TEXT), "required": ["name", "list"]},
    "Tree": struct(children={"type": "array", "items": {"$ref": REF + "Tree"}}, value=TEXT),
    "Kind": {
        **struct(
            metadata={
                "allOf": [{"$ref": REF + "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],
                "default": {},
            },
            inner={"allOf": [{"$ref": REF + "Inner"}], "default": {}},
            pointer={"allOf": [{"$ref": REF + "Inner"}]},
            selector={"allOf": [{"$ref": REF + "Selector"}], "default": {}},
            granular={"allOf": [{"$ref": REF + "Selector"}], "x-kubernetes-map-type": "granular"},
            tree={"$ref": REF + "Tree"},
            merged={"type": "array", "items": {"$ref": REF + "Inner"}, "x-kubernetes-patch-strategy": "merge",
                    "x-kubernetes-patch-merge-key": "name"},
            names={"type": "array", "items": TEXT, "x-kubernetes-patch-strategy": "merge"},
            raw={"$ref": REF + "io.k8s.apimachinery.pkg.runtime.RawExtension"},
        ),
        "required": ["inner"],
    },
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
}  # fmt: skip


def at(atom: Atom | None, *names: str) -> Atom:
    for name in names:
        assert atom is not None and atom.map is not None
        atom = atom.map.child(name)
    assert atom is not None
    return atom


def test_kinds_of_maps_and_lists() -> None:
    spec = at(VIEW.root, "spec")
    nested, atomic = at(spec, "nested").map, at(spec, "atomic").map
    assert nested is not None and not nested.atomic and nested.items is None
    assert atomic is not None and atomic.atomic
    lists = {name: at(spec, name).list for name in ("items", "tags", "parts", "ports")}
    assert {name: part and (part.atomic, part.keys) for name, part in lists.items()} == {
        "items": (True, ()),
        "tags": (False, ()),
        "parts": (False, ("name",)),
        "ports": (False, ("port", "protocol")),
    }


def test_unknown_fields_are_deduced_where_they_are_preserved() -> None:
    free = {"x-kubernetes-preserve-unknown-fields": True, **struct(known=struct(a=TEXT))}
    view = from_crd(struct(spec=struct(free=free, closed=struct(a=TEXT), empty={"type": "object"})), META)
    spec = at(view.root, "spec")
    assert at(spec, "free", "other") is DEDUCED
    assert at(spec, "free", "known", "other") is DEDUCED
    assert at(spec, "empty", "other") is DEDUCED
    closed = at(spec, "closed").map
    assert closed is not None and closed.child("other") is None


def test_metadata_is_that_of_all_objects_also_in_embedded_ones() -> None:
    for metadata in (at(VIEW.root, "metadata"), at(VIEW.root, "spec", "template", "metadata")):
        finalizers = at(metadata, "finalizers").list
        assert finalizers is not None and not finalizers.atomic
    assert at(VIEW.root, "spec", "template", "metadata") is META


def test_references() -> None:
    root = from_openapi(SCHEMAS, "Kind").root
    selector, granular = at(root, "selector").map, at(root, "granular").map
    assert selector is not None and selector.atomic
    assert granular is not None and not granular.atomic
    tree = at(root, "tree")
    children = at(tree, "children").list
    assert children is not None and children.items is tree
    assert at(root, "raw") is UNTYPED_ATOMIC


def test_lists_of_patch_strategies() -> None:
    root = from_openapi(SCHEMAS, "Kind").root
    merged, names = at(root, "merged").list, at(root, "names").list
    assert merged is not None and merged.keys == ("name",) and merged.defaults == {"name": ""}
    assert names is not None and not names.atomic and not names.keys


def test_zero_value() -> None:
    assert from_openapi(SCHEMAS, "Kind").empty == {
        "metadata": {},
        "inner": {"name": "", "list": None},
        "selector": {},
    }


@pytest.mark.parametrize(
    ("name", "item", "element"),
    [
        ("tags", "a", 'v:"a"'),
        ("parts", {"name": "x", "value": "1"}, 'k:{"name":"x"}'),
        ("ports", {"port": 1}, 'k:{"port":1,"protocol":"TCP"}'),
        ("ports", {"protocol": "UDP", "port": 1}, 'k:{"port":1,"protocol":"UDP"}'),
        ("ports", {}, 'k:{"protocol":"TCP"}'),
    ],
)
def test_elements_of_lists(name: str, item: Any, element: str) -> None:
    part = at(VIEW.root, "spec", name).list
    assert part is not None and part.element(item) == element


@pytest.mark.parametrize(
    ("name", "item", "message"),
    [
        ("tags", {}, "associative list without keys has an element that's a map type"),
        ("tags", [], "not supported: associative list with lists as elements"),
        ("tags", None, "associative list without keys has an element that's an explicit null"),
        ("parts", None, "associative list with keys may not have a null element"),
        ("parts", "x", "associative list with keys may not have non-map elements"),
        (
            "parts",
            {},
            'associative list with keys has an element that omits all key fields ["name"] '
            "(and doesn't have default values for any key fields)",
        ),
    ],
)
def test_items_that_have_no_element(name: str, item: Any, message: str) -> None:
    part = at(VIEW.root, "spec", name).list
    assert part is not None
    with pytest.raises(PathError) as caught:
        part.element(item)
    assert str(caught.value) == message


def test_loose_types_are_those_with_untyped_values_below() -> None:
    spec = at(VIEW.root, "spec")
    loose = {name for name, atom in (spec.map.fields if spec.map else {}).items() if atom.loose}
    assert loose == {"free", "template"}
    assert VIEW.root.loose
    assert not from_crd(struct(spec=struct(a=TEXT, n=NUMBER)), META).root.loose
