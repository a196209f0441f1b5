"""`steersman crd lint`: on real files, with what the server says of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.offline.conftest import CRD, Run


def test_tells_rule_line_and_severity(run: Run, tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(CRD)
    done = run("crd", "lint", "crd.yaml")
    name = "widgets.shop.example.com"
    assert done.status == 0
    assert done.lines[0] == (
        f"crd.yaml:21: info: {name}: v1 spec.size: has no format: int32 or int64 tells clients how large it may be "
        "[integer-without-format]"
    )
    rules = [line.rpartition("[")[2].rstrip("]") for line in done.lines[:-1]]
    assert {"unbounded-list", "atomic-list"} <= set(rules)
    assert done.lines[-1] == "1 definition: 0 errors, 2 warnings, 3 info"


def test_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(CRD)
    findings = run("crd", "lint", "crd.yaml", "-o", "json").json["findings"]
    assert findings[0] == {
        "rule": "integer-without-format",
        "severity": "info",
        "file": "crd.yaml",
        "document": 0,
        "line": 21,
        "kind": "CustomResourceDefinition",
        "namespace": "",
        "name": "widgets.shop.example.com",
        "message": "v1 spec.size: has no format: int32 or int64 tells clients how large it may be",
        "path": "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size]",
    }


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], 0),
        (["--fail-on", "warning"], 1),
        (["--fail-on", "warning", "--disable", "atomic-list", "--disable", "unbounded-list"], 0),
        (["--fail-on", "info", "--disable", "atomic-list,unbounded-list"], 1),
        (["--disable", "no-such-rule"], 2),
        (["missing.yaml"], 2),
    ],
)
def test_exit_status(run: Run, tmp_path: Path, arguments: list[str], status: int) -> None:
    (tmp_path / "crd.yaml").write_text(CRD)
    assert run("crd", "lint", "crd.yaml", *arguments).status == status


def test_what_the_server_refuses_is_an_error(run: Run, tmp_path: Path) -> None:
    bad = CRD.replace("minimum: 1", "minimum: 1, default: 0, minimun: 1").replace("plural: widgets", "plural: Widgets")
    (tmp_path / "crd.yaml").write_text(bad + "---\na: [\n")
    done = run("crd", "lint", "crd.yaml")
    errors = [line for line in done.lines if ": error: " in line]
    path = "spec.validation.openAPIV3Schema.properties[spec].properties[size].default"
    assert done.status == 1
    places = [line.split(": ")[0].removeprefix("crd.yaml:") for line in errors]
    assert places == ["4", "8", "21", "21", "35"]
    assert 'unknown field "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.size.minimun"' in done.out
    assert f"{path}: Invalid value: 0: " in done.out
    assert "v1 spec.parts: is a list of objects" in done.out


def test_what_cannot_be_decoded_is_not_judged_further(run: Run, tmp_path: Path) -> None:
    (tmp_path / "crd.yaml").write_text(CRD.replace("served: true", "served: 5"))
    done = run("crd", "lint", "crd.yaml", "--against", "crd.yaml")
    assert [line.split(": ")[1] for line in done.lines[:-1]] == ["error"]
    assert done.lines[0].startswith("crd.yaml:11: ")


def test_other_manifests_are_passed_over(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: ConfigMap\napiVersion: v1\nmetadata: {name: A}\n")
    assert run("crd", "lint", "a.yaml").lines == ["0 definitions: 0 errors, 0 warnings"]


def test_breaking_changes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(CRD)
    (tmp_path / "new.yaml").write_text(
        CRD.replace("[red, blue]", "[red]").replace("scope: Namespaced", "scope: Cluster")
    )
    done = run("crd", "lint", "new.yaml", "--against", "old.yaml")
    assert done.status == 1
    assert [line for line in done.lines if ": error: " in line] == [
        'new.yaml:7: error: widgets.shop.example.com: spec.scope: Invalid value: "Cluster": field is immutable '
        "[refused]",
        "new.yaml:7: error: widgets.shop.example.com: the scope was Namespaced, and is Cluster [scope-changed]",
        'new.yaml:22: error: widgets.shop.example.com: v1 spec.colour: may not be "blue" any more [enum-narrowed]',
    ]
    assert run("crd", "lint", "old.yaml", "--against", "old.yaml").status == 0


def test_a_version_that_is_still_stored(run: Run, tmp_path: Path) -> None:
    """As exported from a cluster, the old definition says what is stored."""
    (tmp_path / "old.yaml").write_text(
        CRD
        + CRD[CRD.index("    - name: v1") :].replace("name: v1", "name: v2").replace("storage: true", "storage: false")
        + "status: {storedVersions: [v2, v1], conditions: [], acceptedNames: {plural: '', kind: ''}}\n"
    )
    (tmp_path / "new.yaml").write_text(CRD)
    done = run("crd", "lint", "new.yaml", "--against", "old.yaml")
    errors = [line for line in done.lines if ": error: " in line]
    assert ["status.storedVersions[0]: " in errors[0], "[version-removed]" in errors[1], len(errors)] == [True, True, 2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("type: integer, minimum: 1", "type: array, items: [{type: string}]"),
        ("size: {type: integer, minimum: 1}", "size: null"),
        ("      served: true\n", "      served: true\n      additionalPrinterColumns: [null]\n"),
        ("    - name: v1\n", "    - null\n    - name: v1\n"),
        ("[red, blue]", "[{a: [1]}, null, 1.5]"),
    ],
)
def test_strange_definitions(run: Run, tmp_path: Path, old: str, new: str) -> None:
    """What Go reads as empty, or what no structural schema may hold, is judged as far as it goes."""
    assert old in CRD
    (tmp_path / "old.yaml").write_text(CRD)
    (tmp_path / "new.yaml").write_text(CRD.replace(old, new))
    for first, second in (("old", "new"), ("new", "old")):
        done = run("crd", "lint", f"{first}.yaml", "--against", f"{second}.yaml")
        assert done.status in (0, 1)
        assert done.lines[-1].startswith("1 definition: ")
