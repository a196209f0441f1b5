"""Owner references: who may own whom, and what is in them."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.client import CustomResource, Model, custom_resource
from steersman.runtime.owners import (
    AlreadyOwned,
    controller_of,
    is_controlled_by,
    remove_owner_reference,
    set_controller_reference,
    set_owner_reference,
)


class Spec(Model):
    size: int = 0


@custom_resource("example.com/v1")
class App(CustomResource[Spec, Spec]): ...


def app(name: str = "app", namespace: str = "space", uid: str = "1", *, typed: bool = False) -> Any:
    metadata = {"name": name, "namespace": namespace, "uid": uid} if namespace else {"name": name, "uid": uid}
    raw = {"apiVersion": "example.com/v1", "kind": "App", "metadata": metadata, "spec": {}}
    return App.from_wire(raw) if typed else raw


def part(namespace: str = "space", *, typed: bool = False) -> Any:
    raw = {"apiVersion": "example.com/v1", "kind": "App", "metadata": {"name": "part"}, "spec": {}}
    if namespace:
        raw["metadata"]["namespace"] = namespace
    return App.from_wire(raw) if typed else raw


TYPED = pytest.mark.parametrize("typed", [False, True])


@TYPED
def test_a_controller_is_one_and_owners_may_be_several(typed: bool) -> None:
    owner, obj = app(typed=typed), part(typed=typed)
    set_owner_reference(app("friend", uid="2", typed=typed), obj)
    set_controller_reference(owner, obj)
    set_controller_reference(owner, obj)
    assert is_controlled_by(obj, owner)
    assert not is_controlled_by(obj, app(uid="2"))
    assert controller_of(obj) == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "name": "app",
        "uid": "1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    with pytest.raises(AlreadyOwned, match="App space/part is controlled by App app already"):
        set_controller_reference(app("other", uid="3", typed=typed), obj)
    with pytest.raises(AlreadyOwned, match="by an earlier App app: it has to be garbage-collected first"):
        set_controller_reference(app(uid="3", typed=typed), obj)
    assert remove_owner_reference(owner, obj)
    assert not remove_owner_reference(owner, obj)
    assert controller_of(obj) is None
    assert remove_owner_reference(app("friend", uid="2"), obj)


@TYPED
def test_who_may_not_own_is_said_to_be_so(typed: bool) -> None:
    with pytest.raises(ValueError, match="must be in the namespace of what it owns"):
        set_controller_reference(app(typed=typed), part("elsewhere", typed=typed))
    with pytest.raises(ValueError, match="must be in the namespace of what it owns"):
        set_owner_reference(app(typed=typed), part("", typed=typed))
    with pytest.raises(ValueError, match="App space/app has no uid"):
        set_owner_reference(app(uid="", typed=typed), part(typed=typed))
    cluster_wide, obj = app(namespace="", typed=typed), part(typed=typed)
    set_controller_reference(cluster_wide, obj)
    assert is_controlled_by(obj, cluster_wide)
