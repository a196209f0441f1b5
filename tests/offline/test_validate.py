"""`steersman validate`: the server's verdict on real files, without a server."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.offline.conftest import CRD, Run, widget


@pytest.fixture
def crd(tmp_path: Path) -> str:
    (tmp_path / "crd.yaml").write_text(CRD)
    return "crd.yaml"


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        (directory / f"{name}.yaml").write_text(text)


def test_what_is_valid_is_told_in_one_line(run: Run, crd: str, tmp_path: Path) -> None:
    write(tmp_path, good=widget("good", "size: 1"))
    done = run("validate", "good.yaml", crd)
    assert (done.status, done.out, done.err) == (0, "2 manifests: 2 valid\n", "")


def test_each_cause_is_told_in_its_own_line(run: Run, crd: str, tmp_path: Path) -> None:
    spec = "colour: green\nparts:\n- {low: 1, high: 2}\n- low: 4\n  high: 3\n- low: 1"
    write(tmp_path, bad="# first\n---\n" + widget("bad", spec))
    done = run("validate", "bad.yaml", "--crd", crd)
    assert done.status == 1
    assert done.lines == [
        'bad.yaml:8: Widget/bad: spec.colour: Unsupported value: "green": supported values: "red", "blue"',
        "bad.yaml:13: Widget/bad: spec.parts[2].high: Required value",
        "bad.yaml:7: Widget/bad: spec.size: Required value",
        "bad.yaml:3: Widget/bad: Invalid value: null: some validation rules were not checked because the object was "
        "invalid; correct the existing errors to complete validation",
        "1 manifest: 0 valid, 1 invalid (4 errors)",
    ]
    write(tmp_path, rule=widget("rule", "size: 1\nparts:\n- low: 4\n  high: 3"))
    assert run("validate", "rule.yaml", "--crd", crd).lines[0] == (
        "rule.yaml:8: Widget/rule: spec.parts[0]: Invalid value: low is above high"
    )


def test_json_says_all_that_is_known(run: Run, crd: str, tmp_path: Path) -> None:
    write(tmp_path, bad=widget("good", "size: 1") + "---\n" + widget("bad", "size: 0", "  namespace: shop"))
    report = run("validate", "-o", "json", "bad.yaml", "--crd", crd).json
    assert report["summary"] == {"manifests": 2, "valid": 1, "invalid": 1, "skipped": 0}
    about = {"file": "bad.yaml", "document": 1, "kind": "Widget", "namespace": "shop", "name": "bad"}
    message = "Invalid value: 0: spec.size in body should be greater than or equal to 1"
    assert report["findings"] == [
        {
            **about,
            "severity": "error",
            "line": 14,
            "field": "spec.size",
            "reason": "FieldValueInvalid",
            "message": message,
        }
    ]
    good, bad = report["manifests"]
    assert (good["result"], "status" in good) == ("valid", False)
    assert bad["status"]["message"] == f'Widget.shop.example.com "bad" is invalid: spec.size: {message}'
    assert bad == {
        **about,
        "apiVersion": "shop.example.com/v1",
        "line": 8,
        "result": "invalid",
        "status": bad["status"],
    }


async def test_the_status_is_the_servers(apiserver: Any, crd: str, tmp_path: Path) -> None:
    """The same object, sent to a server with the same definition."""
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "Bad_Name"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {}, "spec": {"containers": []}}},
    }
    (tmp_path / "bad.json").write_text(json.dumps(manifest))
    answer = await apiserver.request("POST", "/apis/apps/v1/namespaces/default/deployments", manifest)
    command = (sys.executable, "-m", "steersman", "validate", "-o", "json", str(tmp_path / "bad.json"))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    report = json.loads(out)
    assert answer.status == 422
    assert report["manifests"][0]["status"] == answer.body
    assert [finding["field"] for finding in report["findings"]] == [
        cause["field"] for cause in answer.body["details"]["causes"]
    ]


@pytest.mark.parametrize(
    ("level", "status", "told"), [("Strict", 1, "Widget/w: "), ("Warn", 0, "warning: Widget/w: "), ("Ignore", 0, None)]
)
def test_unknown_and_repeated_fields(
    run: Run, crd: str, tmp_path: Path, level: str, status: int, told: str | None
) -> None:
    write(tmp_path, w=widget("w", "size: 1\nsize: 2\nhue: red\nparts: [{low: 1, high: 2, x: 1}]"))
    done = run("validate", "w.yaml", "--crd", crd, "--field-validation", level)
    expected = [
        f'w.yaml:7: {told}key "size" already set in map',
        f'w.yaml:8: {told}spec.hue: unknown field "spec.hue"',
        f'w.yaml:9: {told}spec.parts[0].x: unknown field "spec.parts[0].x"',
    ]
    assert done.status == status
    assert done.lines[:-1] == (expected if told else [])


def test_unknown_fields_do_not_hide_what_else_is_wrong(run: Run, crd: str, tmp_path: Path) -> None:
    write(tmp_path, w=widget("w", "hue: red\nsize: 0"))
    assert [line.split(": ")[2] for line in run("validate", "w.yaml", "--crd", crd).lines[:-1]] == [
        "spec.hue",
        "spec.size",
    ]


def test_a_kind_that_nobody_defines(run: Run, tmp_path: Path) -> None:
    write(tmp_path, w=widget("w", "size: 1"))
    done = run("validate", "w.yaml")
    assert done.status == 1
    assert done.lines[0] == 'w.yaml:1: Widget/w: no matches for kind "Widget" in version "shop.example.com/v1"'
    done = run("validate", "--ignore-missing-kinds", "w.yaml")
    assert (done.status, done.lines) == (0, ["1 manifest: 0 valid, 1 skipped"])


def test_a_broken_document_hides_no_other(run: Run, crd: str, tmp_path: Path) -> None:
    write(tmp_path, a=widget("one", "size: 0") + "---\na: [1\n---\n" + widget("two", "size: 0"), b="x: {{ y }}\n")
    (tmp_path / "c.json").write_text('{"a":\n 1,,}')
    (tmp_path / "d.yaml").write_bytes(b"\xff\xfe\x00")
    done = run("validate", "--crd", crd, "a.yaml", "b.yaml", "c.json", "d.yaml", "missing.yaml")
    places = [":".join(line.split(":")[:2]) for line in done.lines[:-1]]
    assert places == ["a.yaml:6", "a.yaml:9", "a.yaml:15", "b.yaml:1", "c.json:2", "d.yaml:1"]
    assert done.err == "steersman validate: missing.yaml cannot be read: No such file or directory\n"
    assert done.status == 2


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("- a\n", 1, "the document is not an object"),
        ("\n\nmetadata: {name: x}\n", 3, "apiVersion not set, kind not set"),
        ("apiVersion: v1\nkind: 5\n", 2, "kind is not a string"),
        ("apiVersion: v1\nkind: List\nitems:\n- 5\n", 4, "the item is not an object"),
        ("apiVersion: a/b/c\nkind: X\n", 1, 'X: no matches for kind "X" in version "a/b/c"'),
        ("a: &a [*a]\n", 1, "yaml: anchor value contains itself"),
        ("? {a: b}\n: c\n", 1, "yaml: unsupported map key {'a': 'b'}"),
        ("a: " + "[" * 1000 + "]" * 1000, 1, "yaml: exceeded maximum nesting depth"),
    ],
)
def test_what_is_no_object(run: Run, tmp_path: Path, text: str, line: int, message: str) -> None:
    write(tmp_path, a=text)
    done = run("validate", "a.yaml")
    assert (done.status, done.lines[0]) == (1, f"a.yaml:{line}: {message}")


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "null\n"])
def test_nothing_is_valid(run: Run, tmp_path: Path, text: str) -> None:
    write(tmp_path, a=text)
    done = run("validate", "a.yaml")
    assert (done.status, done.out) == (0, "0 manifests: 0 valid\n")


def test_items_of_lists(run: Run, crd: str, tmp_path: Path) -> None:
    items = "- spec: {size: 0}\n  metadata: {name: a}\n- metadata: {name: b}\n  spec:\n    size: 1\n    size: 2\n"
    write(tmp_path, a="apiVersion: shop.example.com/v1\nkind: WidgetList\nitems:\n" + items)
    done = run("validate", "a.yaml", "--crd", crd)
    assert done.lines == [
        "a.yaml:4: Widget/a: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        'a.yaml:9: Widget/b: key "size" already set in map',
        "2 manifests: 0 valid, 2 invalid (2 errors)",
    ]


def test_json_texts(run: Run, crd: str, tmp_path: Path) -> None:
    one = json.dumps(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "\ud83d\ude00"}}
    )
    two = '{\n  "apiVersion": "v1", "kind": "ConfigMap",\n  "metadata": {"name": "b"},\n  "data": {"k": 1,\n "k": 2}}'
    (tmp_path / "a.json").write_text(f"{one}\n{two}\n")
    done = run("validate", "a.json", "-o", "json")
    assert [(each["document"], each["line"], each["field"]) for each in done.json["findings"]] == [
        (1, 6, "data.k"),
        (1, 5, "data"),
    ]
    (tmp_path / "rest.json").write_text(f"{one}\n\n x")
    assert run("validate", "rest.json").lines[0].startswith("rest.json:3: json: invalid character 'x'")
    (tmp_path / "flow.yaml").write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
    assert run("validate", "flow.yaml").lines == ["1 manifest: 1 valid"]


def test_directories(run: Run, tmp_path: Path) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    below = tmp_path / "all" / "below"
    below.mkdir(parents=True)
    (tmp_path / "all" / "a.yaml").write_text(config)
    (tmp_path / "all" / "notes.txt").write_text("no manifest")
    (below / "b.yml").write_text(config)
    assert run("validate", "all").out == "1 manifest: 1 valid\n"
    assert run("validate", "-R", "all", "all/a.yaml").out == "2 manifests: 2 valid\n"
    (tmp_path / "empty").mkdir()
    done = run("validate", "empty")
    assert (done.status, "holds no" in done.err) == (2, True)


def test_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A}\n"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    done = run("validate", "-")
    assert (done.status, done.lines[0][:42]) == (1, "<stdin>:3: ConfigMap/A: metadata.name: Inv")


def test_objects_are_judged_by_themselves(run: Run, crd: str, tmp_path: Path) -> None:
    """Of one name, in namespaces that nobody made; addresses and classes are the cluster's business."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
    pod += "spec: {priorityClassName: urgent, containers: [{name: c, image: i}]}\n"
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {clusterIP: 10.96.0.77, ports: [{port: 1}]}\n"
    write(
        tmp_path,
        same=widget("w", "size: 1") + "---\n" + widget("w", "size: 0"),
        away=widget("w", "size: 1", "  namespace: nowhere"),
        generated=widget("x", "size: 1").replace("name: x", "generateName: x-"),
        services=service + "---\n" + service + "---\n" + pod,
        namespaces="apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n---\n"
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: Up}\n",
    )
    done = run("validate", "same.yaml", "away.yaml", "generated.yaml", "services.yaml", "namespaces.yaml", "--crd", crd)
    assert [line.split(": ")[1] for line in done.lines[:-1]] == ["Widget/w", "Namespace/Up"]
    assert done.lines[-1] == "9 manifests: 7 valid, 2 invalid (2 errors)"


def test_an_invalid_definition(run: Run, tmp_path: Path) -> None:
    """It is told as any manifest is, and its objects are not judged."""
    bad = CRD.replace("minimum: 1", "minimum: 1, default: 0")
    write(tmp_path, crd=bad, w=widget("w", "size: 1"))
    done = run("validate", "w.yaml", "crd.yaml")
    assert done.status == 1
    assert done.lines[0] == "w.yaml:1: warning: Widget/w: not judged: what defines the kind is invalid (crd.yaml:1)"
    line = bad.splitlines().index("                size: {type: integer, minimum: 1, default: 0}") + 1
    assert done.lines[1].startswith(
        f"crd.yaml:{line}: CustomResourceDefinition/widgets.shop.example.com: "
        "spec.validation.openAPIV3Schema.properties[spec].properties[size].default: Invalid value: 0: "
    )
    assert done.lines[-1] == "2 manifests: 0 valid, 1 invalid, 1 skipped (1 error, 1 warning)"
    assert run("validate", "w.yaml", "--crd", "crd.yaml").status == 1


def test_a_definition_with_unknown_fields_still_defines(run: Run, tmp_path: Path) -> None:
    write(tmp_path, crd=CRD.replace("minimum: 1", "minimun: 1"), w=widget("w", "size: 0\ncolour: green"))
    done = run("validate", "crd.yaml", "w.yaml")
    assert ["minimun" in done.lines[0], "Unsupported value" in done.lines[1]] == [True, True]


def test_definitions_that_disagree(run: Run, tmp_path: Path) -> None:
    """Those among the manifests count, the first of a name; names that are taken are told."""
    other = CRD.replace("widgets.shop", "gadgets.shop").replace("plural: widgets", "plural: gadgets")
    write(tmp_path, a=CRD.replace("minimum: 1", "minimum: 5"), b=CRD, c=other, w=widget("w", "size: 3"))
    done = run("validate", "w.yaml", "a.yaml", "--crd", "b.yaml")
    assert "greater than or equal to 5" in done.lines[0]
    assert run("validate", "w.yaml", "b.yaml", "a.yaml").lines == [
        "a.yaml:1: warning: CustomResourceDefinition/widgets.shop.example.com: is defined differently in b.yaml:1, by "
        "which objects are judged",
        "3 manifests: 3 valid (1 warning)",
    ]
    assert '"WidgetList" is already in use' in run("validate", "b.yaml", "c.yaml").lines[0]


def test_conversion_webhooks_are_not_called(run: Run, tmp_path: Path) -> None:
    second = (
        CRD[CRD.index("    - name: v1") :].replace("name: v1", "name: v2").replace("storage: true", "storage: false")
    )
    hook = "{conversionReviewVersions: [v1], clientConfig: {url: 'https://127.0.0.1:1/'}}"
    conversion = f"  conversion: {{strategy: Webhook, webhook: {hook}}}\n"
    write(tmp_path, crd=CRD + second + conversion, w=widget("w", "size: 1").replace("com/v1", "com/v2"))
    assert run("validate", "w.yaml", "crd.yaml").lines == ["2 manifests: 2 valid"]


def test_warnings_are_told_and_are_no_failure(run: Run, crd: str, tmp_path: Path) -> None:
    endpoints = "apiVersion: v1\nkind: Endpoints\nmetadata: {name: a}\n"
    write(tmp_path, a=endpoints + "---\n" + widget("w", "size: 1", "  finalizers:", "  - mine.example.com"))
    done = run("validate", "a.yaml", "--crd", crd)
    assert done.lines == [
        "a.yaml:1: warning: Endpoints/a: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        'a.yaml:9: warning: Widget/w: metadata.finalizers: "mine.example.com": prefer a domain-qualified finalizer '
        "name including a path (/) to avoid accidental conflicts with other finalizer writers",
        "2 manifests: 2 valid (2 warnings)",
    ]
    assert done.status == 0


def test_a_manifest_that_is_too_large(run: Run, tmp_path: Path) -> None:
    write(tmp_path, a="apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: " + "x" * (3 << 20) + "}\n")
    assert run("validate", "a.yaml").lines[0] == "a.yaml:1: ConfigMap/a: Request entity too large: limit is 3145728"


@pytest.mark.parametrize("arguments", [["validate"], ["validate", "--crd"], ["validate", "x", "-o", "xml"]])
def test_usage(run: Run, arguments: list[str]) -> None:
    done = run(*arguments)
    assert (done.status, done.err.count("\n")) == (2, 1)


def test_the_line_of_a_cause_with_a_dot_in_front(run: Run, tmp_path: Path) -> None:
    """As the rules of /scale name their fields."""
    scale = (
        "storage: true\n      subresources: {scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}"
    )
    item = "- metadata: {name: a}\n  spec:\n    size: -1\n"
    write(
        tmp_path,
        crd=CRD.replace("storage: true", scale),
        a="apiVersion: shop.example.com/v1\nkind: WidgetList\nitems:\n" + item,
    )
    done = run("validate", "a.yaml", "--crd", "crd.yaml")
    assert "a.yaml:6: Widget/a: .spec.size: Invalid value: -1: should be a non-negative integer" in done.lines
