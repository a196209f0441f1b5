"""`steersman init`: a project that tests itself at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.generate.permissions import Proxy, Target, define, running, under, until

import steersman as st
from steersman import cli
from steersman.client.config import load
from steersman.generate.deploy import own_definitions
from steersman.generate.kinds import Kinds
from steersman.generate.rbac import permitted
from steersman.runtime.operator_file import load_manager

BIN = Path(sys.executable).parent


def init(*arguments: str) -> int:
    try:
        return cli.main(["init", *arguments])
    except SystemExit as ended:
        return int(ended.code or 0)


def call(directory: Path, *command: str | Path, **environment: str) -> str:
    """What a command prints; it must succeed."""
    # What a make above this test has set is not for the project's.
    inherited = {key: value for key, value in os.environ.items() if key != "VENV" and not key.startswith("MAKE")}
    done = subprocess.run(
        command,
        cwd=directory,
        env={**inherited, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def installed_here(project: Path) -> None:
    """The project's environment, with all that this one has: nothing has to come over a network."""
    call(project, sys.executable, "-m", "venv", ".venv")
    site = next((project / ".venv" / "lib").glob("python*/site-packages"))
    site.joinpath("outer.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_new_project_tests_itself_and_makes_its_manifests(tmp_path: Path) -> None:
    call(tmp_path, BIN / "steersman", "init", "demo")
    project = tmp_path / "demo"
    installed_here(project)
    offline = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTEST_ADDOPTS": "-p no:randomly -p no:xdist"}
    assert re.search(r"\b4 passed\b", call(project, "make", "test", **offline))
    call(project, "make", "manifests", "IMAGE=registry.example.com/demo:1", "NAMESPACE=demo")
    objects = list(yaml.safe_load_all((project / "manifests" / "deploy.yaml").read_text()))
    deployment = next(obj for obj in objects if obj["kind"] == "Deployment")
    assert deployment["metadata"]["namespace"] == "demo"
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example.com/demo:1"
    # The image has the same entry point and the same operator.
    dockerfile = (project / "Dockerfile").read_text()
    assert container["args"][:2] == ["run", "demo.operator"]
    assert 'ENTRYPOINT ["/app/bin/steersman"]' in dockerfile
    assert 'CMD ["run", "demo.operator"]' in dockerfile


async def test_a_new_operator_works_under_its_own_roles(
    apiserver: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert init("greeter") == 0
    module, manager = load_manager(str(tmp_path / "greeter" / "greeter" / "operator.py"))
    manager.configure(webhooks="127.0.0.1:0")
    example = yaml.safe_load((tmp_path / "greeter" / "examples" / "greeter.yaml").read_text())
    greeters = st.Resource.of(example)

    async def greets(target: Target, proxy: Proxy, config: st.Config) -> None:
        for crd in own_definitions(module, manager, None):
            await define(target.admin, crd)
        async with running(manager, config):
            await manager.ready.wait()
            await target.admin.create(example, namespace=target.apps)
            await until(
                target.admin,
                greeters,
                "example",
                target.apps,
                lambda obj: (obj.get("status") or {}).get("greeted") == 2,
            )
            await proxy.until(lambda: any(m == "POST" and path.endswith("/events") for m, path, _ in proxy.seen))

    async with await apiserver.client() as admin:
        target = Target(load(kubeconfig=apiserver.kubeconfig), admin)
        given = permitted(manager, Kinds(module), target.identity)
        assert given.notes == []
        assert await under(target, given.grants, greets) == []


def test_the_names_stand_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert init("data-base", "--kind", "Policy", "--group", "db.myorg.io") == 0
    files = {str(path.relative_to(tmp_path)): path for path in tmp_path.rglob("*") if path.is_file()}
    assert set(files) == {
        f"data-base/{name}"
        for name in (
            *(".dockerignore", ".gitignore", "Dockerfile", "Makefile", "README.md", "pyproject.toml"),
            *(f"data_base/{module}.py" for module in ("__init__", "models", "operator", "webhooks")),
            *("examples/policy.yaml", "tests/test_operator.py"),
        )
    }
    assert not [name for name, path in files.items() if "{{" in path.read_text() or ".tmpl" in name]
    assert yaml.safe_load(files["data-base/examples/policy.yaml"].read_text())["apiVersion"] == "db.myorg.io/v1"
    assert tomllib.loads(files["data-base/pyproject.toml"].read_text())["project"]["name"] == "data-base"
    assert (
        "class Policy(st.CustomResource[PolicySpec, PolicyStatus]):"
        in files["data-base/data_base/models.py"].read_text()
    )
    assert 'plural="policies"' in files["data-base/data_base/models.py"].read_text()


@pytest.mark.parametrize(
    ("name", "kind"), [("demo", "Demo"), ("a", "A"), ("data-base-1", "DataBase1"), ("client", "Class"), ("x", "Any")]
)
def test_what_is_written_is_tidy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert init(name, "--kind", kind) == 0
    project = tmp_path / name
    call(project, BIN / "ruff", "check", "--isolated", "--line-length", "120", "--select", "E,F,I,UP,B,W", ".")
    call(project, BIN / "ruff", "format", "--isolated", "--line-length", "120", "--check", ".")


def test_where_steersman_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def given(name: str) -> str:
        found = re.search(r"^STEERSMAN \?= (.*)$", (tmp_path / name / "Makefile").read_text(), re.M)
        assert found is not None
        return found[1]

    init("one")
    assert given("one") == "steersman"
    (tmp_path / "source").mkdir()
    init("two", "--steersman", "./source")
    assert given("two") == str(tmp_path / "source")
    monkeypatch.setenv("STEERSMAN_REQUIREMENT", "git+https://git.example.com/steersman@v1")
    init("three")
    assert given("three") == "git+https://git.example.com/steersman@v1"
    init("four", "--steersman", "steersman>=0.1")
    assert given("four") == "steersman>=0.1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["Demo"], "'Demo' cannot be a name"),
        (["../demo"], "'../demo' cannot be a name"),
        (["a" * 41], "cannot be a name"),
        (["json"], "json is a module's name already"),
        (["class"], "class is a module's name already"),
        (["tests"], "tests is a module's name already"),
        (["pytest"], "pytest is a module's name already"),
        (["pydantic"], "pydantic is a module's name already"),
        (["annotated-types"], "annotated_types is a module's name already"),
        (["yaml"], "yaml is a module's name already"),
        (["demo", "--kind", "Field"], "Field is called so already"),
        (["demo", "--group", "demo.k8s.io"], "one of Kubernetes' own groups"),
        (["demo", "--steersman", ""], "steersman comes from nowhere"),
        (["demo", "--kind", "demo"], "'demo' cannot be a kind"),
        (["demo", "--kind", "None"], "'None' cannot be a kind"),
        (["demo", "--group", "demo"], "'demo' cannot be a group"),
        (["demo", "--steersman", "a'b"], "cannot stand in a Makefile"),
        (["demo", "--steersman", "a\nb"], "cannot stand in a Makefile"),
        (["there"], "there exists already"),
        ([], "NAME"),
    ],
)
def test_what_cannot_be_made(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    assert init(*arguments) == 1
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
