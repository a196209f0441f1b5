"""What people do with custom resources in a terminal."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from .conftest import Kubectl, crd, widget

AGE = r"\d+m?s"


def columns(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


async def size_of(kubectl: Kubectl, name: str) -> str:
    return await kubectl(f"get widget {name} -o jsonpath={{.spec.size}}")


@pytest.mark.parametrize("side", ["", " --server-side"])
async def test_apply_a_definition_and_objects(kubectl: Kubectl, side: str) -> None:
    applied, again = ("created", "unchanged") if not side else ("serverside-applied", "serverside-applied")
    definition = kubectl.write("crd.json", crd())
    name = "customresourcedefinition.apiextensions.k8s.io/widgets.example.com"
    assert await kubectl(f"apply{side} -f {definition}") == f"{name} {applied}"
    assert await kubectl("wait --for=condition=Established crd/widgets.example.com") == f"{name} condition met"
    assert await kubectl(f"apply{side} -f {definition}") == f"{name} {again}"
    objects = kubectl.write("w.json", widget("a", 3), widget("b", 5))
    assert (
        await kubectl(f"apply{side} -f {objects}") == f"widget.example.com/a {applied}\nwidget.example.com/b {applied}"
    )
    assert await kubectl(f"apply{side} -f {objects}") == f"widget.example.com/a {again}\nwidget.example.com/b {again}"
    kubectl.write("w.json", widget("a", 4), widget("b", 5))
    assert (await kubectl(f"apply{side} -f w.json")).startswith(
        "widget.example.com/a " + ("configured" if not side else "")
    )
    assert await size_of(kubectl, "a") == "4"
    assert await kubectl("get crd") != ""


async def test_a_field_that_leaves_the_manifest_leaves_the_object(widgets: Kubectl) -> None:
    for side in ("", " --server-side"):
        name = f"a{len(side)}"
        widgets.write("w.json", widget(name, 3, color="green"))
        await widgets(f"apply{side} -f w.json")
        widgets.write("w.json", widget(name, 3))
        await widgets(f"apply{side} -f w.json")
        assert await widgets(f"get widget {name} -o jsonpath={{.spec.color}}") == "red"  # the default


async def test_server_side_apply_shows_conflicts(widgets: Kubectl) -> None:
    await widgets(f"apply --server-side -f {widgets.write('w.json', widget('a', 3))}")
    widgets.write("w.json", widget("a", 4))
    said = await widgets.fails("apply --server-side --field-manager=other -f w.json")
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .spec.size' in said
    await widgets("apply --server-side --field-manager=other --force-conflicts -f w.json")
    assert await size_of(widgets, "a") == "4"


async def test_get_in_every_form(widgets: Kubectl) -> None:
    one, two = widget("a", 3, meta={"labels": {"app": "x"}}), widget("b", 5, color="green")
    await widgets(f"create -f {widgets.write('w.json', one, two)}")
    table = columns(await widgets("get widgets"))
    assert table[0] == ["NAME", "SIZE", "AGE"]
    assert [row[:2] for row in table[1:]] == [["a", "3"], ["b", "5"]]
    assert all(re.fullmatch(AGE, row[2]) for row in table[1:])
    assert [row[:3] for row in columns(await widgets("get wd -o wide"))] == [
        ["NAME", "SIZE", "COLOR"],
        ["a", "3", "red"],
        ["b", "5", "green"],
    ]
    assert columns(await widgets("get widgets -A"))[1][:3] == ["default", "a", "3"]
    assert columns(await widgets("get widget.v1.example.com -l app=x --no-headers --show-labels"))[0][-1] == "app=x"
    assert columns(await widgets("get all --no-headers"))[0][0] in ("a", "widget.example.com/a")
    assert await widgets("get widgets -o name") == "widget.example.com/a\nwidget.example.com/b"
    assert await widgets("get widgets --field-selector metadata.name=b -o name") == "widget.example.com/b"
    assert await widgets("get widgets --chunk-size=1 -o jsonpath={.items[*].spec.size}") == "3 5"
    assert columns(await widgets("get widgets --sort-by=.spec.color --no-headers"))[0][0] == "b"
    assert columns(await widgets("get widgets -o custom-columns=N:.metadata.name,S:.spec.size")) == [
        ["N", "S"],
        ["a", "3"],
        ["b", "5"],
    ]
    found = json.loads(await widgets("get widget a -o json --show-managed-fields"))
    assert found["spec"] == {"size": 3, "color": "red", "replicas": 1}
    assert found["metadata"]["managedFields"][0]["manager"] == "kubectl-create"
    assert "spec:\n  color: red\n  replicas: 1\n  size: 3" in await widgets("get widget a -o yaml")
    described = await widgets("describe widget a")
    assert "Labels:       app=x" in described
    assert re.search(r"Events: +<none>", described)


async def test_get_what_is_not_there(widgets: Kubectl) -> None:
    said = await widgets.fails("get widget nope")
    assert said == 'Error from server (NotFound): widgets.example.com "nope" not found'
    assert await widgets("get widgets") == ""
    assert "the server doesn't have a resource type" in await widgets.fails("get gadgets")


async def test_watch_prints_changes_as_they_happen(widgets: Kubectl) -> None:
    await widgets(f"create -f {widgets.write('a.json', widget('a', 1))}")
    process = await widgets.start("get", "widgets", "-w", "--output-watch-events")
    assert process.stdout is not None

    async def line() -> list[str]:
        assert process.stdout is not None
        async with asyncio.timeout(20):
            return (await process.stdout.readline()).decode().split()

    try:
        assert await line() == ["EVENT", "NAME", "SIZE", "AGE"]
        assert (await line())[:3] == ["ADDED", "a", "1"]
        await widgets(f"create -f {widgets.write('b.json', widget('b', 2))}")
        assert (await line())[:3] == ["ADDED", "b", "2"]
        await widgets("patch widget b --type=merge -p", '{"spec": {"size": 7}}')
        assert (await line())[:3] == ["MODIFIED", "b", "7"]
        await widgets("delete widget a")
        assert (await line())[:3] == ["DELETED", "a", "1"]
    finally:
        process.kill()
        await process.communicate()


async def test_patch(widgets: Kubectl) -> None:
    await widgets(f"create -f {widgets.write('w.json', widget('a', 3))}")
    assert await widgets("patch widget a --type=merge -p", '{"spec": {"size": 7}}') == "widget.example.com/a patched"
    assert await widgets("patch widget a --type=merge -p", '{"spec": {"size": 7}}') == (
        "widget.example.com/a patched (no change)"
    )
    await widgets("patch widget a --type=json -p", '[{"op": "replace", "path": "/spec/size", "value": 8}]')
    assert await size_of(widgets, "a") == "8"
    said = await widgets.fails("patch widget a -p", '{"spec": {"size": 9}}')
    assert "application/strategic-merge-patch+json is not supported" in said
    said = await widgets.fails("patch widget a --type=merge -p", '{"spec": {"size": 0}}')
    assert said == (
        'The Widget "a" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1'
    )
    result = await widgets.run("patch", "widget", "a", "--type=merge", "-p", '{"spec": {"nope": 1}}')
    assert result.err == 'Warning: unknown field "spec.nope"'


async def test_what_is_invalid_is_refused(widgets: Kubectl) -> None:
    widgets.write("w.json", widget("a", 0, color="blue", nope=1))
    assert 'strict decoding error: unknown field "spec.nope"' in await widgets.fails("create -f w.json")
    said = await widgets.fails("create --validate=false -f w.json")
    assert said.splitlines() == [
        'The Widget "a" is invalid: ',
        '* spec.color: Unsupported value: "blue": supported values: "red", "green"',
        "* spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
    ]


async def test_edit(widgets: Kubectl) -> None:
    await widgets(f"create -f {widgets.write('w.json', widget('a', 3))}")
    script = widgets.directory / "editor"
    script.write_text('#!/bin/sh\nsed -i "s/size: 3/size: 6/" "$1"\n')
    script.chmod(0o755)
    widgets.environment["EDITOR"] = str(script)
    assert await widgets("edit widget a") == "widget.example.com/a edited"
    assert await size_of(widgets, "a") == "6"
    assert await widgets("edit widget a") == ""  # nothing to change


async def test_replace_and_conflict(widgets: Kubectl) -> None:
    await widgets(f"create -f {widgets.write('w.json', widget('a', 3))}")
    stale = json.loads(await widgets("get widget a -o json"))
    assert await widgets(f"replace -f {widgets.write('w.json', widget('a', 4))}") == "widget.example.com/a replaced"
    stale["spec"]["size"] = 9
    said = await widgets.fails(f"replace -f {widgets.write('stale.json', stale)}")
    assert said == (
        'Error from server (Conflict): error when replacing "stale.json": Operation cannot be fulfilled on '
        'widgets.example.com "a": the object has been modified; please apply your changes to the latest version and '
        "try again"
    )
    assert await size_of(widgets, "a") == "4"
    await widgets("replace --force -f w.json")
    assert json.loads(await widgets("get widget a -o json"))["metadata"]["uid"] != stale["metadata"]["uid"]


async def test_label_and_annotate(widgets: Kubectl) -> None:
    await widgets(f"create -f {widgets.write('w.json', widget('a'), widget('b'))}")
    assert await widgets("label widget a tier=one") == "widget.example.com/a labeled"
    assert "already has a value (one)" in await widgets.fails("label widget a tier=two")
    await widgets("label widget a tier=two --overwrite")
    await widgets("annotate widgets --all note=hi")
    assert await widgets("get widgets -l tier=two -o jsonpath={.items[*].metadata.annotations.note}") == "hi"
    await widgets("label widget a tier-")
    assert await widgets("get widgets -l tier -o name") == ""


async def test_status_and_waiting(widgets: Kubectl) -> None:
    await widgets(f"create -f {widgets.write('w.json', widget('a'))}")
    said = await widgets.fails("wait --for=condition=Ready widget/a --timeout=100ms")
    assert "timed out waiting for the condition" in said
    waiting = [
        asyncio.create_task(widgets(f"wait widget/a --timeout=20s --for={what}"))
        for what in ("condition=Ready", "jsonpath={.status.phase}=Up")
    ]
    status = {"status": {"phase": "Up", "conditions": [{"type": "Ready", "status": "True"}]}}
    await widgets("patch widget a --subresource=status --type=merge -p", json.dumps(status))
    assert await asyncio.gather(*waiting) == ["widget.example.com/a condition met"] * 2
    assert await widgets("get widget a --subresource=status -o jsonpath={.status.phase}") == "Up"


async def test_scale(widgets: Kubectl) -> None:
    await widgets(f"create -f {widgets.write('w.json', widget('a'))}")
    assert await widgets("scale widget a --replicas=3") == "widget.example.com/a scaled"
    assert await widgets.fails("scale widget a --replicas=4 --current-replicas=1") == (
        "error: Expected replicas to be 1, was 3"
    )
    await widgets("scale widget a --replicas=4 --current-replicas=3")
    assert await widgets("get widget a -o jsonpath={.spec.replicas}") == "4"
    assert json.loads(await widgets("get widget a --subresource=scale -o json"))["kind"] == "Scale"
    table = columns(await widgets("get widget a --subresource=scale"))
    assert (table[0], table[1][:3]) == (["NAME", "DESIRED", "AVAILABLE", "AGE"], ["a", "4", "0"])


async def test_delete_waits_for_finalizers(widgets: Kubectl) -> None:
    held = widget("held", meta={"finalizers": ["example.com/hold"]})
    await widgets(f"create -f {widgets.write('w.json', widget('a'), held)}")
    assert await widgets("delete widget a --wait") == 'widget.example.com "a" deleted from default namespace'
    deleting = asyncio.create_task(widgets("delete widget held --wait"))
    await widgets("wait widget/held --timeout=20s --for=jsonpath={.metadata.deletionTimestamp}")
    assert not deleting.done()
    await widgets("patch widget held --type=merge -p", '{"metadata": {"finalizers": null}}')
    assert "deleted" in await deleting
    assert await widgets("get widgets -o name") == ""
    assert await widgets("delete widget nope --ignore-not-found") == ""
    assert "(NotFound)" in await widgets.fails("delete widget nope")


async def test_delete_many_and_prune(widgets: Kubectl) -> None:
    x: Any = {"labels": {"app": "x"}}
    await widgets(f"apply -f {widgets.write('w.json', widget('a', meta=x), widget('b', meta=x), widget('c'))}")
    widgets.write("w.json", widget("a", meta=x))
    said = await widgets("apply -f w.json -l app=x --prune --prune-allowlist=example.com/v1/Widget")
    assert "widget.example.com/b pruned" in said
    await widgets("delete widgets -l app=x")
    assert await widgets("get widgets -o name") == "widget.example.com/c"
    await widgets("delete widgets --all")
    assert await widgets("get widgets -o name") == ""


async def test_diff(widgets: Kubectl) -> None:
    await widgets(f"apply -f {widgets.write('w.json', widget('a', 3))}")
    assert await widgets("diff -f w.json") == ""
    widgets.write("w.json", widget("a", 4))
    for side in ((), ("--server-side", "--force-conflicts")):
        result = await widgets.run("diff", *side, "-f", "w.json")
        assert result.code == 1, result.err
        changed = [line for line in result.out.splitlines() if re.match(r"[+-] ", line)]
        assert {"-  size: 3", "+  size: 4"} <= set(changed)
    assert await size_of(widgets, "a") == "3"


async def test_dry_run(widgets: Kubectl) -> None:
    widgets.write("w.json", widget("a", 3))
    assert json.loads(await widgets("create --dry-run=server -f w.json -o json"))["spec"]["color"] == "red"
    assert await widgets("get widgets -o name") == ""


async def test_last_applied(widgets: Kubectl) -> None:
    await widgets(f"apply -f {widgets.write('w.json', widget('a', 3))}")
    assert json.loads(await widgets("apply view-last-applied widget/a -o json"))["spec"] == {"size": 3}
    widgets.write("w.json", widget("a", 4))
    await widgets("apply set-last-applied -f w.json")
    assert json.loads(await widgets("apply view-last-applied widget/a -o json"))["spec"] == {"size": 4}


async def test_deleting_the_definition_deletes_the_objects(widgets: Kubectl) -> None:
    await widgets(f"create -f {widgets.write('w.json', widget('a'))}")
    await widgets("delete crd widgets.example.com --wait")
    assert "the server doesn't have a resource type" in await widgets.fails("get widgets --cache-dir=fresh")
    await widgets("create -f crd.json")
    await widgets("wait --for=condition=Established crd/widgets.example.com")
    assert await widgets("get widgets -o name") == ""


async def test_a_column_that_cannot_be_read_ends_the_columns(kubectl: Kubectl) -> None:
    definition = crd()
    paths = {"A": ".spec.size", "B": ".spec.a[0", "C": ".spec.color"}
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = [
        {"name": name, "type": "string" if name == "C" else "integer", "jsonPath": path} for name, path in paths.items()
    ]
    await kubectl(f"create -f {kubectl.write('crd.json', definition)}")
    await kubectl("wait --for=condition=Established crd/widgets.example.com --timeout=10s")
    await kubectl(f"create -f {kubectl.write('w.json', widget('a', 3))}")
    assert columns(await kubectl("get widgets")) == [["NAME", "A"], ["a", "3"]]
