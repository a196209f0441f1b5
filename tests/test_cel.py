"""`steersman.cel`, the expression language for everyone."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from steersman import cel
from steersman.cli import main

SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "tags": {"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 8}},
        "wait": {"type": "string", "format": "duration"},
    },
}


@pytest.mark.parametrize(
    ("expression", "value", "kind"),
    [
        ("self.replicas > 1", True, "bool"),
        ("self.tags.map(tag, tag + '!')", ["a!", "b!"], "list(string)"),
        ("{'n': self.replicas}", {"n": 3}, "map(string, int)"),
        ("self.wait", "5s", "duration"),
        ("self", {"replicas": 3, "tags": ["a", "b"], "wait": "5s"}, "selfType"),
        ("self.?replicas", 3, "optional_type(int)"),
        ("quantity('1.5Gi').add(quantity('1Gi'))", "2560Mi", "kubernetes.Quantity"),
        ("semver('1.2.3-rc.1+b')", "1.2.3-rc.1+b", "kubernetes.Semver"),
        ("ip('10.0.0.1')", "10.0.0.1", "net.IP"),
        ("cidr('10.0.0.0/8')", "10.0.0.0/8", "net.CIDR"),
        ("url('https://example.com/x')", "https://example.com/x", "kubernetes.URL"),
        ("timestamp('2020-01-02T03:04:05Z')", "2020-01-02T03:04:05Z", "timestamp"),
        ("b'ab'", b"ab", "bytes"),
        ("7u", 7, "uint"),
    ],
)
def test_values_and_types(expression: str, value: Any, kind: str) -> None:
    compiled = cel.compile(expression, SPEC)
    assert compiled.evaluate({"replicas": 3, "tags": ["a", "b"], "wait": "5s"}).value == value
    assert compiled.type == kind


def test_old_self_and_optional_old_self() -> None:
    grows = cel.compile("self.replicas >= oldSelf.replicas", SPEC)
    assert grows.evaluate({"replicas": 2}, {"replicas": 1}).value is True
    assert grows.evaluate({"replicas": 1}, {"replicas": 2}).value is False

    optional = cel.compile("oldSelf.hasValue() ? oldSelf.value().replicas : -1", SPEC, optional_old=True)
    assert optional.evaluate({"replicas": 2}).value == -1
    assert optional.evaluate({"replicas": 2}, {"replicas": 5}).value == 5


def test_without_a_schema_everything_is_dynamic() -> None:
    compiled = cel.compile("self.a.b + 1")
    assert compiled.evaluate({"a": {"b": 2}}).value == 3
    assert cel.compile("self.map(x, x * 2)").evaluate([1, 2]).value == [2, 4]
    with pytest.raises(cel.EvaluationError, match="no such key: b"):
        compiled.evaluate({"a": {}})


def test_without_an_old_value_there_is_no_result_for_what_needs_one() -> None:
    grows = cel.compile("self.replicas >= oldSelf.replicas", SPEC)
    assert grows.needs_old
    with pytest.raises(cel.EvaluationError, match="there is no old value"):
        grows.evaluate({"replicas": 2})
    assert not cel.compile("oldSelf.hasValue()", SPEC, optional_old=True).needs_old


@pytest.mark.parametrize("schema", [{"type": "object", "properties": [1]}, {"properties": {"a": None}}, {"type": []}])
def test_what_is_no_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="schema"):
        cel.compile("self", schema)


def test_wrong_types_are_told() -> None:
    with pytest.raises(TypeError, match="an expression is a str, not bytes"):
        cel.compile(b"1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a schema is a mapping, not list"):
        cel.compile("1", [SPEC])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("2024-01-02T03:04:05,5+01:00", "2024-01-02T03:04:05.5+01:00"),
        ("0000-02-29T00:00:00Z", "0000-02-29T00:00:00Z"),
        ("0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00+01:00"),
        ("9999-12-31T23:59:59-10:00", "9999-12-31T23:59:59-10:00"),
        ("2024-01-02t03:04:05Z", 'as "2006-01-02T15:04:05": cannot parse "t03:04:05Z" as "T"'),
        ("2024-01-02T03:04:05z", 'parsing time "2024-01-02T03:04:05z": extra text: "z"'),
        ("2024-01-02T03:04:05.5+25:00", 'parsing time "2024-01-02T03:04:05.5+25:00": extra text: "+25:00"'),
    ],
)
def test_times_of_the_schema_are_read_as_go_reads_them(text: str, outcome: str) -> None:
    compiled = cel.compile("string(self)", {"type": "string", "format": "date-time"})
    try:
        found = compiled.evaluate(text).value
    except cel.EvaluationError as error:
        found = str(error)
    assert outcome in found
    assert cel.compile("self.getFullYear()", {"type": "string", "format": "date"}).evaluate("0000-02-29").value == 0


def test_data_that_is_not_json_is_an_evaluation_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    counts = {"type": "object", "additionalProperties": {"type": "integer"}}
    for schema, value in ((None, endless), (counts, {1: 2}), (SPEC, 5), (SPEC, {"replicas": object()})):
        with pytest.raises(cel.EvaluationError):
            cel.compile("self" if schema is not SPEC else "self.replicas > 1", schema).evaluate(value)


def test_whole_objects_have_metadata() -> None:
    schema = {"type": "object", "properties": {"spec": SPEC}}
    obj = {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"replicas": 1}}
    assert cel.compile("self.metadata.name", schema, root=True).evaluate(obj).value == "n"
    with pytest.raises(cel.CompileError, match="undefined field 'metadata'"):
        cel.compile("self.metadata.name", schema)


def test_costs_are_estimated_by_the_bounds_and_measured() -> None:
    compiled = cel.compile("self.tags.all(tag, tag.startsWith('x'))", SPEC)
    found = compiled.evaluate({"tags": ["x1", "x2"]})
    assert found.value is True
    assert compiled.least_cost < found.cost < compiled.most_cost < 100
    with pytest.raises(cel.CostLimitExceeded, match="cost limit exceeded"):
        compiled.evaluate({"tags": ["x1", "x2"]}, limit=found.cost - 1)


def test_errors_say_where() -> None:
    with pytest.raises(cel.CompileError) as failure:
        cel.compile("self.replicas > 'x'", SPEC)
    assert str(failure.value).splitlines() == [
        "ERROR: <input>:1:15: found no matching overload for '_>_' applied to '(int, string)'",
        " | self.replicas > 'x'",
        " | ..............^",
    ]
    with pytest.raises(cel.EvaluationError, match="index out of bounds: 3"):
        cel.compile("self.tags[3]", SPEC).evaluate({"tags": []})
    for function in ("matches", "find"):
        with pytest.raises(cel.CompileError):
            cel.compile(f"self.tags[0].{function}('(')", SPEC)
    with pytest.raises(ValueError, match="can see nothing"):
        cel.compile("true", {})


def test_threads_share_an_expression() -> None:
    compiled = cel.compile("self.tags.exists(tag, tag == 'b')", SPEC)
    results: list[Any] = []

    def work() -> None:
        results.extend(compiled.evaluate({"tags": ["a", "b"]}).value for _ in range(200))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 800


CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer, default: 2}
              tags: {type: array, maxItems: 5, items: {type: string, maxLength: 10}}
"""
OBJECTS = """
{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, spec: {tags: [one]}}
---
{apiVersion: example.com/v1, kind: Widget, metadata: {name: b}, spec: {replicas: 1}}
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "crd.yaml").write_text(CRD)
    (tmp_path / "objects.yaml").write_text(OBJECTS)
    return str(tmp_path / "crd.yaml"), str(tmp_path / "objects.yaml")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["cel", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_command_finds_where_the_expression_fits(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    crd, objects = files
    status, out, _ = run(capsys, "self.replicas > 1", "-f", objects, "--crd", crd)
    assert status == 0
    assert out.splitlines() == [
        f"{objects}: Widget/a:",
        "  self:    the object's spec",
        "  result:  true",
        "  type:    bool",
        "  cost:    3, estimated 3 to 3",
        f"{objects}: Widget/b:",
        "  self:    the object's spec",
        "  result:  false",
        "  type:    bool",
        "  cost:    3, estimated 3 to 3",
    ]


def test_the_command_speaks_json(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    crd, objects = files
    status, out, _ = run(capsys, "self.spec.tags[0]", "-f", objects, "--crd", crd, "-o", "json")
    assert status == 1
    first, second = json.loads(out)
    assert first == {
        "object": f"{objects}: Widget/a",
        "self": "",
        "type": "string",
        "estimatedCost": {"least": 4, "most": 4},
        "value": "one",
        "cost": 4,
    }
    assert second["error"] == "no such key: tags"


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("1 + 1",), 0, "result:  2"),
        (("false", "-e"), 1, "result:  false"),
        (("self.nope", "-f", "OBJECTS", "--crd", "CRD"), 1, "undefined field 'nope'"),
        (("self.tags.size()", "-f", "OBJECTS", "--crd", "CRD", "--at", "spec"), 1, "result:  1"),
        (("self.replicas == oldSelf.replicas", "-f", "OBJECTS", "--at", "spec", "--old", "OBJECTS"), 2, "2 objects"),
        (("self", "-f", "OBJECTS", "--crd", "CRD", "--at", "spec.nope"), 2, "the schema has no nope there"),
        (("self", "-f", "OBJECTS", "--crd", "CRD", "--version", "v7"), 2, "no version v7"),
        (("self", "-f", "OBJECTS", "--crd", "OBJECTS"), 2, "holds 0 CustomResourceDefinitions"),
        (("self.a",), 2, "name its object with -f"),
        (("self", "-f", "missing.yaml"), 2, "missing.yaml cannot be read"),
        (("self", "-f", "EMPTY"), 2, "there is no object in"),
        (("self", "-f", "BINARY"), 2, ":1: yaml: incomplete UTF-16 character\n"),
        (("oldSelf.replicas == 1", "-f", "OBJECTS", "--at", "spec"), 2, "name its object with --old"),
        (("self", "-f", "OBJECTS", "--crd", "BROKEN"), 2, "cannot unmarshal number into Go struct field"),
        (("self", "-f", "CORE", "--crd", "CRD"), 2, "Widget is of the core group, the schema of example.com"),
        (("{1u: 1.0/0.0, 2u: -1.0/0.0, 3u: 0.0/0.0}",), 0, 'result:  {"1":"Infinity","2":"-Infinity","3":"NaN"}'),
        (("{true: b'ab'}",), 0, 'result:  {"true":"YWI="}'),
        (("{true: b'ab'}", "-o", "json"), 0, '"true": "YWI="'),
        (("18446744073709551615u",), 0, "result:  18446744073709551615"),
    ],
)
def test_statuses_of_the_command(
    tmp_path: Path,
    files: tuple[str, str],
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    status: int,
    text: str,
) -> None:
    crd, objects = files
    texts = {
        "EMPTY": b"",
        "BINARY": b"\xff\xfe\x00",
        "BROKEN": CRD.replace("versions:", "versions: 5\nx:").encode(),
        "CORE": b"{apiVersion: v1, kind: Widget}",
    }
    named = {"CRD": crd, "OBJECTS": objects}
    for name, content in texts.items():
        (tmp_path / f"{name}.yaml").write_bytes(content)
        named[name] = str(tmp_path / f"{name}.yaml")
    found, out, err = run(capsys, *(named.get(each, each) for each in arguments))
    assert (found, text in (out if found < 2 else err)) == (status, True), out + err
    assert err.count("\n") == (found == 2)
