"""Changes of two writers on one object, against a real server."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.errors import Conflict
from steersman.apiserver.server import ServerConfig
from steersman.client import Client, Config, CustomResource, Model, RebaseConflict, Resource, custom_resource
from steersman.client.schemas import UNKNOWN
from steersman.client.three_way import ThreeWay
from steersman.controlplane.plane import ControlPlane

DEPLOYMENT = Resource("apps/v1", "Deployment")
SERVICE = Resource("v1", "Service")
MAP = Resource("v1", "ConfigMap")


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with await ControlPlane.start(config=ServerConfig(insecure=True), controllers=[]) as plane:
        yield plane.url


@pytest.fixture
async def mine(url: str) -> AsyncIterator[Client]:
    async with Client(Config(server=url, namespace="default"), field_manager="me") as client:
        yield client


@pytest.fixture
async def theirs(url: str) -> AsyncIterator[Client]:
    async with Client(Config(server=url, namespace="default"), field_manager="somebody") as client:
        yield client


def deployment(*containers: str) -> dict[str, Any]:
    labels = {"app": "a"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": name, "image": "one"} for name in containers]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def containers(obj: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = obj["spec"]["template"]["spec"]["containers"]
    return found


async def test_without_a_conflict_it_is_an_update(mine: Client) -> None:
    read = await mine.create(deployment("main"))
    wanted = copy.deepcopy(read)
    wanted["spec"]["replicas"] = 4
    assert (await mine.rebase(wanted, read))["spec"]["replicas"] == 4


async def test_changes_of_different_fields_are_both_kept(mine: Client, theirs: Client) -> None:
    read = await mine.create(deployment("main", "side"))
    await theirs.patch(DEPLOYMENT, "a", {"spec": {"replicas": 7}, "metadata": {"labels": {"theirs": "yes"}}})
    wanted = copy.deepcopy(read)
    containers(wanted)[1]["image"] = "two"
    made = await mine.rebase(wanted, read)
    assert made["spec"]["replicas"] == 7
    assert made["metadata"]["labels"] == {"theirs": "yes"}
    assert [container["image"] for container in containers(made)] == ["one", "two"]


async def test_items_of_a_list_are_told_apart_by_the_schemas_keys(mine: Client, theirs: Client) -> None:
    read = await mine.create(deployment("main", "side"))
    other = copy.deepcopy(read)
    containers(other).insert(0, {"name": "first", "image": "theirs"})
    containers(other)[1]["env"] = [{"name": "THEIRS", "value": "1"}]
    await theirs.update(other)
    wanted = copy.deepcopy(read)
    containers(wanted)[0]["env"] = [{"name": "MINE", "value": "2"}]
    del containers(wanted)[1]
    containers(wanted).append({"name": "last", "image": "mine"})
    made = await mine.rebase(wanted, read)
    assert [container["name"] for container in containers(made)] == ["first", "main", "last"]
    assert [entry["name"] for entry in containers(made)[1]["env"]] == ["THEIRS", "MINE"]


async def test_the_same_field_is_a_conflict_that_says_who_and_what(mine: Client, theirs: Client) -> None:
    read = await mine.create(deployment("main"))
    await theirs.patch(DEPLOYMENT, "a", {"spec": {"replicas": 7}})
    wanted = copy.deepcopy(read)
    wanted["spec"]["replicas"] = 3
    with pytest.raises(RebaseConflict) as caught:
        await mine.rebase(wanted, read)
    (clash,) = caught.value.clashes
    assert (clash.path, clash.read, clash.mine, clash.theirs) == (".spec.replicas", 1, 3, 7)
    assert clash.managers == ("somebody",)
    assert clash.time
    assert ".spec.replicas: read 1, mine 3, theirs 7 by somebody at " in str(caught.value)
    assert (await mine.get(DEPLOYMENT, "a"))["spec"]["replicas"] == 7


async def test_the_same_change_twice_is_no_conflict(mine: Client, theirs: Client) -> None:
    read = await mine.create(deployment("main"))
    await theirs.patch(DEPLOYMENT, "a", {"spec": {"replicas": 3}})
    wanted = copy.deepcopy(read)
    wanted["spec"]["replicas"] = 3
    assert (await mine.rebase(wanted, read))["spec"]["replicas"] == 3


async def test_removing_what_another_has_changed_is_a_conflict(mine: Client, theirs: Client) -> None:
    read = await mine.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}})
    await theirs.patch(MAP, "m", {"data": {"a": "2", "b": "3"}})
    wanted = copy.deepcopy(read)
    wanted["data"] = {"c": "4"}
    with pytest.raises(RebaseConflict, match=r"\.data\.a: read '1', mine None, theirs '2'"):
        await mine.rebase(wanted, read)


async def test_an_object_made_anew_is_not_written(mine: Client, theirs: Client) -> None:
    read = await mine.create(deployment("main"))
    await theirs.delete(DEPLOYMENT, "a")
    await theirs.create(deployment("main"))
    wanted = copy.deepcopy(read)
    wanted["spec"]["replicas"] = 3
    with pytest.raises(Conflict, match="deleted and created again"):
        await mine.rebase(wanted, read)


async def test_ports_have_two_keys_of_which_one_has_a_default(mine: Client, theirs: Client) -> None:
    ports = [{"name": "web", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    read = await mine.create(
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}}
    )
    other = copy.deepcopy(read)
    other["spec"]["ports"][1]["targetPort"] = 5353
    await theirs.update(other)
    wanted = copy.deepcopy(read)
    wanted["spec"]["ports"][0]["targetPort"] = 8080
    made = await mine.rebase(wanted, read)
    assert [port["targetPort"] for port in made["spec"]["ports"]] == [8080, 5353]


class Spec(Model):
    replicas: int = 1
    image: str = ""


@custom_resource("apps/v1", kind="Deployment")
class Deployment(CustomResource[dict[str, Any], dict[str, Any]]): ...


async def test_a_typed_object_remembers_how_it_was_read(mine: Client, theirs: Client) -> None:
    await mine.create(deployment("main"))
    read = await mine.get(Deployment, "a")
    await theirs.patch(DEPLOYMENT, "a", {"spec": {"replicas": 7}})
    read.spec["template"]["spec"]["containers"][0]["image"] = "two"  # deep inside of plain JSON
    made = await mine.rebase(read)
    assert made.spec["replicas"] == 7
    assert made.spec["template"]["spec"]["containers"][0]["image"] == "two"


async def test_an_untyped_object_needs_what_was_read(mine: Client) -> None:
    with pytest.raises(ValueError, match="as it was read"):
        await mine.rebase(deployment("main"))


async def test_the_status_is_rebased_through_its_subresource(mine: Client, theirs: Client) -> None:
    read = await mine.create(deployment("main"))
    await theirs.patch_status(DEPLOYMENT, "a", {"status": {"readyReplicas": 1, "replicas": 1}})
    wanted = copy.deepcopy(read)
    wanted.setdefault("status", {})["observedGeneration"] = 1
    made = await mine.rebase(wanted, read, subresource="status")
    assert made["status"]["observedGeneration"] == 1
    assert made["status"]["readyReplicas"] == 1


LEAF = st.none() | st.integers(0, 2) | st.text("ab", max_size=1) | st.lists(st.integers(0, 1), max_size=2)
TREE = st.dictionaries(
    st.sampled_from("abc"), LEAF | st.dictionaries(st.sampled_from("xyz"), LEAF, max_size=3), max_size=3
)


def whole(data: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "o"}, **data}


def merged(base: Any, mine: Any, theirs: Any) -> tuple[dict[str, Any], ThreeWay]:
    merge = ThreeWay()
    return merge.objects(whole(base), whole(mine), whole(theirs), UNKNOWN), merge


def text(data: dict[str, Any]) -> bytes:
    return orjson.dumps(data, option=orjson.OPT_SORT_KEYS)


@given(TREE, TREE)
def test_where_only_one_side_changes_its_change_is_the_result(base: dict[str, Any], other: dict[str, Any]) -> None:
    for sides in ((base, other, base), (base, base, other), (base, other, other)):
        result, merge = merged(*sides)
        assert not merge.overlaps
        assert text(result) == text(whole(other))


@given(TREE, TREE, TREE)
def test_what_one_side_has_changed_is_in_the_result_or_told(
    base: dict[str, Any], mine: dict[str, Any], theirs: dict[str, Any]
) -> None:
    result, merge = merged(base, mine, theirs)
    told = {overlap.path for overlap in merge.overlaps}
    for key in "abc":
        for inner in ["", *"xyz"]:
            path = (key, inner) if inner else (key,)
            before, mine_there, theirs_there = (_at(side, path) for side in (base, mine, theirs))
            if isinstance(mine_there, dict) or isinstance(theirs_there, dict) or isinstance(before, dict):
                continue
            if any(path[: len(known)] == known for known in told):
                continue
            found = _at(result, path)
            if mine_there != before and theirs_there == before:
                assert found == mine_there
            if theirs_there != before and mine_there == before:
                assert found == theirs_there


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        data = data.get(part, "absent") if isinstance(data, dict) else "absent"
    return data
