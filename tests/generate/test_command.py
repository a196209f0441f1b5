"""`steersman generate`, as it is called."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.generate.permissions import EXAMPLES, HOOKED, OPERATOR

from steersman import cli
from steersman.runtime.operator_file import load_module


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """The exit status, stdout and stderr, as of a new process: no operator was loaded, and changed, before."""
    for operator in (HOOKED, OPERATOR):
        sys.modules.pop(operator.stem, None)
    try:
        status = cli.main(["generate", *map(str, arguments)])
    except SystemExit as ended:
        status = int(ended.code or 0)
    return status, *capsys.readouterr()


def made(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[dict[str, Any]]:
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    return list(yaml.safe_load_all(out))


def test_definitions_of_files_and_modules(capsys: pytest.CaptureFixture[str]) -> None:
    found = made(capsys, "crd", HOOKED, "tests.crdgen.kinds")
    assert found[0]["metadata"]["name"] == "shops.hooked.example.com"
    assert [version["name"] for version in found[0]["spec"]["versions"]] == ["v1", "v2"]
    assert len(found) > 30
    assert [crd["spec"]["names"]["kind"] for crd in made(capsys, "crd", "tests.crdgen.kinds", "--kind", "Texts")] == [
        "Texts"
    ]


def test_definitions_of_several_versions_say_who_converts(capsys: pytest.CaptureFixture[str]) -> None:
    shops, *rest = made(capsys, "crd", HOOKED, OPERATOR, "--conversion-service", "ops/hooks")
    webhook = shops["spec"]["conversion"]["webhook"]
    assert webhook["clientConfig"]["service"] == {
        "namespace": "ops",
        "name": "hooks",
        "path": "/convert-shops-hooked-example-com",
        "port": 443,
    }
    assert [crd for crd in rest if "conversion" in crd["spec"]] == []
    assert "conversion" not in made(capsys, "crd", HOOKED)[0]["spec"]


def test_what_is_written_and_read_back_is_the_same_definition(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    crd, models = tmp_path / "crd.yaml", tmp_path / "app_models.py"
    assert run(capsys, "crd", OPERATOR, "-o", crd) == (0, "", "")
    assert run(capsys, "models", crd, "-o", models) == (0, "", "")
    app = load_module(str(models)).MyApp.from_wire(yaml.safe_load((EXAMPLES / "example-myapp.yaml").read_text()))
    assert app.spec.version == "1.0"
    again = made(capsys, "crd", models)[0]
    assert again["spec"]["names"] == yaml.safe_load(crd.read_text())["spec"]["names"]


def test_definitions_come_from_stdin_and_from_lists(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crd = yaml.safe_load((EXAMPLES / "myapp-crd.yaml").read_text())
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [{"kind": "ConfigMap"}, crd]})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    status, out, _ = run(capsys, "models", "-")
    assert status == 0
    assert "class MyApp(st.KubernetesObject):" in out


def test_names_and_namespaces(capsys: pytest.CaptureFixture[str]) -> None:
    account = made(capsys, "rbac", OPERATOR)[0]
    assert account["metadata"] == {"name": "myapp-operator", "namespace": "myapp-operator-system"}
    account = made(capsys, "rbac", OPERATOR, "--name", "a", "--namespace", "b")[0]
    assert account["metadata"] == {"name": "a", "namespace": "b"}
    service, *configurations = made(capsys, "webhook", HOOKED, "--namespace", "b")
    assert service["metadata"]["namespace"] == "b"
    assert [each["metadata"]["name"] for each in configurations] == ["shops", "shops"]


def test_amounts_are_changed_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "deploy",
        OPERATOR,
        "--image",
        "a:1",
        "--requests",
        "cpu=2",
        "--limits",
        "cpu=3,memory=1Gi",
        "--no-crds",
    ]
    deployment = next(obj for obj in made(capsys, *arguments) if obj["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"] == {
        "requests": {"cpu": "2", "memory": "128Mi"},
        "limits": {"cpu": "3", "memory": "1Gi"},
    }
    assert container["args"][:2] == ["run", str(OPERATOR)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["crd", "nothing.py"], "nothing.py is not a file"),
        (["crd", "tests.conftest"], "tests.conftest: no class is decorated with @custom_resource"),
        (["crd", "tests.crdgen.kinds", "--kind", "Absent"], "tests.crdgen.kinds: there is no Absent"),
        (["crd", HOOKED, "--conversion-service", "hooks"], "'hooks' names no Service: write it as NAMESPACE/NAME"),
        (["models", EXAMPLES / "example-myapp.yaml"], "there is no CustomResourceDefinition"),
        (["models", "absent.yaml"], "models: absent.yaml: No such file"),
        (["crd", "{dir}/no_python.py"], "no_python.py:2: invalid syntax: def x(:"),
        (["crd", "{dir}/binary.py"], "binary.py:1: source code"),
        (["models", "{dir}/broken.yaml"], "broken.yaml: yaml: mapping values"),
        (["models", EXAMPLES / "myapp-crd.yaml", "--api-version", "v7"], "there is no version v7"),
        (["rbac", "{dir}/nameless.py"], "the Manager has no name: give it one, or pass --name"),
        (["rbac", "{dir}/odd.py"], "'My Operator' cannot be a name"),
        (["rbac", OPERATOR, "--name", "A"], "'A' cannot be a name"),
        (["webhook", OPERATOR], "has no webhooks"),
        (["deploy", OPERATOR], "--image"),
        (["deploy", OPERATOR, "--image", "a", "--limits", "gpu=1"], "'gpu=1' is no amount"),
        (["deploy", OPERATOR, "--image", "a", "--limits", "cpu=much"], "'cpu=much' is no amount"),
        (["deploy", OPERATOR, "--image", "a", "--requests", "cpu=-1"], "'cpu=-1' is no amount"),
        (["deploy", OPERATOR, "--image", "a", "--requests", "cpu=2"], "cpu 2 of 1; say --limits"),
        (["deploy", OPERATOR, "--image", ""], "'' is no image"),
        (["deploy", OPERATOR, "--image", "a b"], "'a b' is no image"),
        (["deploy", OPERATOR, "--image", "a", "--replicas=-1"], "'-1' is no number from 0"),
        (["deploy", OPERATOR, "--image", "a", "--metrics-port", "70000"], "'70000' is no number from 1 to 65535"),
        (["deploy", OPERATOR, "--image", "a", "-o", "{dir}/absent/file"], "No such file"),
        (["deploy", "{dir}/long.py", "--image", "a"], "use at most grace=105"),
        (["crd", "{dir}/wrong.py"], "Wrong.spec"),
    ],
)
def test_what_cannot_be_made(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[Any], said: str
) -> None:
    head = "import steersman as st\n"
    (tmp_path / "broken.yaml").write_text("a: b: c\n- d\n")
    (tmp_path / "no_python.py").write_text("import os\ndef x(:\n")
    (tmp_path / "binary.py").write_bytes(b"\x00\xff")
    (tmp_path / "nameless.py").write_text(f"{head}manager = st.Manager()\n")
    (tmp_path / "odd.py").write_text(f"{head}manager = st.Manager(name='My Operator')\n")
    (tmp_path / "long.py").write_text(f"{head}manager = st.Manager(name='long', grace=200)\n")
    (tmp_path / "wrong.py").write_text(
        f"{head}@st.custom_resource('a.example.com/v1')\nclass Wrong(st.CustomResource[dict[int, str], None]): ...\n"
    )
    status, out, err = run(capsys, *(str(each).replace("{dir}", str(tmp_path)) for each in arguments))
    assert (status, out) == (1, "")
    assert err.startswith("steersman generate")
    assert said in err
    assert err.count("\n") == 1


def test_what_is_not_clear_is_said_beside_the_output(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    operator = tmp_path / "deleter.py"
    operator.write_text(
        "import steersman as st\nMAP = st.Resource('v1', 'ConfigMap')\n"
        "async def reconcile(ctx, obj):\n    await ctx.client.delete(MAP, 'a')\n"
        "manager = st.Manager(name='deleter')\nmanager.controller(MAP, reconcile)\n"
    )
    for command in (["rbac"], ["deploy", "--image", "a:1"]):
        status, out, err = run(capsys, *command, operator)
        assert status == 0
        assert list(yaml.safe_load_all(out))
        assert err == (
            f"steersman generate {command[0]}: note: configmap calls client.delete: say with manager.permissions(...) "
            "on which kinds\n"
        )
