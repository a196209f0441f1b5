"""The pytest plugin, as a project's tests use it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from steersman.controlplane.kubeconfig import write_kubeconfig
from steersman.testing import control_plane, differences, eventually, eventually_async, like

ROOT = Path(__file__).parents[2]


def run(directory: Path, code: str, *arguments: str) -> tuple[int, str]:
    """Run pytest on a file in a project of its own; gives its exit status and what it prints."""
    (directory / "test_it.py").write_text(textwrap.dedent(code))
    return pytest_in(directory, "-c", os.devnull, "--rootdir", str(directory), *arguments, "test_it.py")


def pytest_in(directory: Path, *arguments: str) -> tuple[int, str]:
    """Run pytest in a directory, with the configuration that it finds there."""
    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=directory,
        env={**os.environ, "PYTEST_ADDOPTS": "-W error -o asyncio_default_fixture_loop_scope=function"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return process.returncode, process.stdout + process.stderr


MAP = """
    import asyncio
    import pytest
    import steersman as st
    from steersman.testing import eventually, eventually_async, like
    MAP = st.Resource("v1", "ConfigMap")
    APP = st.Resource("myorg.io/v1", "MyApp")

    def settings(name="m"):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}}
"""


def test_each_test_has_a_server_of_its_own(tmp_path: Path) -> None:
    status, out = run(
        tmp_path,
        MAP
        + """
    @pytest.mark.parametrize("turn", range(3))
    def test_it(apiserver, kube, turn):
        assert [m["metadata"]["name"] for m in kube.list(MAP, namespace=apiserver.namespace)] == []
        kube.create(settings())

    async def test_async(kube_client):
        async with kube_client() as client:
            made = await client.create(settings())
            assert made == like({"data": {"a": "1"}})

    def test_other_programs(apiserver):
        async def names():
            async with st.Client(st.load(kubeconfig=apiserver.kubeconfig())) as client:
                return client.namespace
        assert asyncio.run(names()) == "default"
    """,
        "-o",
        "asyncio_mode=auto",
    )
    assert status == 0, out
    assert "5 passed" in out


def test_a_server_starts_with_what_is_named(tmp_path: Path) -> None:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "app.yaml").write_text((ROOT / "examples/myapp-crd.yaml").read_text())
    (tmp_path / "app.yaml").write_text((ROOT / "examples/example-myapp.yaml").read_text())
    status, out = run(
        tmp_path,
        MAP
        + """
    @pytest.mark.apiserver("crds", "app.yaml", settings("loaded"))
    def test_it(kube):
        assert kube.get(APP, "example-myapp")["spec"]["version"] == "1.0"
        assert kube.get(MAP, "loaded") == like({"data": {"a": str}})
        with pytest.raises(st.Invalid):
            kube.patch(APP, "example-myapp", {"spec": {"replicas": -1}})
    """,
    )
    assert status == 0, out


def test_a_mark_whose_config_is_none(tmp_path: Path) -> None:
    code = """
    import pytest

    @pytest.mark.apiserver(config=3)
    def test_it(apiserver): ...
    """
    status, out = run(tmp_path, code)
    assert status == 1, out
    assert "the mark's config is a steersman.apiserver.server.ServerConfig, not 3" in out
    assert "Traceback" not in out


def test_another_user_may_do_what_the_rules_say(tmp_path: Path) -> None:
    status, out = run(
        tmp_path,
        MAP
        + """
    from steersman.apiserver.server import ServerConfig

    def test_it(apiserver, kube):
        kube.create(settings())
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
        with st.SyncClient(apiserver.user("alice", rules)) as alice:
            assert alice.get(MAP, "m")["data"] == {"a": "1"}
            with pytest.raises(st.Forbidden, match='User "alice" cannot delete resource "configmaps"'):
                alice.delete(MAP, "m")
    """,
    )
    assert status == 0, out


def test_a_failure_shows_what_differs_and_what_was_asked(tmp_path: Path) -> None:
    status, out = run(
        tmp_path,
        MAP
        + """
    def test_it(kube):
        made = kube.create(settings())
        kube.patch(MAP, "m", {"data": {"a": "2"}})
        with pytest.raises(st.Conflict):
            kube.update({**made, "data": {"a": "3"}})
        assert kube.get(MAP, "m") == like({"data": {"a": "1", "b": ...}, "metadata": {"name": "m"}})
    """,
    )
    assert status == 1, out
    assert ".data.a: '2', expected '1'" in out
    assert ".data.b: absent, expected Ellipsis" in out
    assert "Requests to the API server" in out
    assert re.search(r"201 create +configmaps default/m", out)
    assert re.search(r"409 update +configmaps default/m .*the object has been modified", out)


def test_the_same_test_runs_against_a_cluster(tmp_path: Path) -> None:
    code = (
        MAP
        + """
    def test_it(apiserver, kube):
        assert apiserver.is_real and apiserver.namespace.startswith("test-")
        kube.create(settings())
        assert kube.get(MAP, "m")["metadata"]["namespace"] == apiserver.namespace
    """
    )
    with control_plane() as plane:
        plane.write_kubeconfig(tmp_path / "config")
        status, out = run(tmp_path, code, f"--kubeconfig={tmp_path}/config")
    assert status == 0, out


def test_eventually_waits_for_what_is_not_yet() -> None:
    tries: list[int] = []

    def check() -> int:
        tries.append(1)
        assert len(tries) == 3
        return len(tries)

    assert eventually(check) == 3
    with pytest.raises(KeyError) as caught:
        eventually(lambda: {}["absent"], timeout=0.02)  # type: ignore[var-annotated]
    assert re.match(r"still so after 0.02 s and \d+ tries", caught.value.__notes__[0])
    with pytest.raises(ZeroDivisionError):
        eventually(lambda: 1 / 0)


async def test_a_check_that_could_not_fail_is_refused() -> None:
    async def check() -> None: ...

    with pytest.raises(TypeError, match=r"the check is async: use `await eventually_async\(\.\.\.\)`"):
        eventually(check)
    with pytest.raises(TypeError, match="has returned False, which is no failure: have it assert or raise"):
        eventually(lambda: False)
    with pytest.raises(TypeError, match="has returned False"):
        await eventually_async(lambda: False)
    assert eventually(lambda: 0) == 0
    assert eventually(lambda: None) is None  # type: ignore[func-returns-value]


async def test_eventually_in_async_code() -> None:
    tries: list[int] = []

    async def check() -> int:
        tries.append(1)
        assert len(tries) == 3
        return len(tries)

    assert await eventually_async(check) == 3
    assert await eventually_async(lambda: 5) == 5


@pytest.mark.parametrize(
    ("actual", "expected", "lines"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, []),
        ({"a": None}, {"a": None, "b": None}, []),
        ({"a": [1, {"x": 2, "y": 3}]}, {"a": [1, {"x": int}]}, []),
        ({"a": "v1.2"}, {"a": re.compile(r"^v\d")}, []),
        ({"a": 1}, {"a": True}, [".a: 1, expected True"]),
        ({"a": [1]}, {"a": [1, 2]}, [".a: 1 items, expected 2: [1]"]),
        ({"a": 1}, {"a": {"b": 1}}, [".a: 1 is no mapping"]),
        ({"a": {}}, {"a": []}, [".a: {} is no list"]),
        ({"a": "x"}, {"a": re.compile("y")}, [".a: 'x' does not match 'y'"]),
        ({"a": "x"}, {"a": int}, [".a: 'x' is no int"]),
        ({}, {"a": {"b": 1}}, [".a: absent, expected {'b': 1}"]),
        (3, 4, ["the object: 3, expected 4"]),
    ],
)
def test_differences(actual: object, expected: object, lines: list[str]) -> None:
    assert list(differences(actual, expected)) == lines
    assert (actual == like(expected)) is not bool(lines)


@pytest.mark.parametrize("space", [True, False])
def test_an_option_never_moves_the_project(tmp_path: Path, space: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    (tmp_path / "project" / "test_it.py").write_text("async def test_it(apiserver): assert apiserver.is_real\n")
    path = str(tmp_path / "elsewhere" / "config")
    with control_plane() as plane:
        plane.write_kubeconfig(Path(path))
        chosen = ["--kubeconfig", path] if space else [f"--kubeconfig={path}"]
        status, out = pytest_in(tmp_path / "project", *chosen)
    if space:
        assert status == pytest.ExitCode.USAGE_ERROR
        assert f"ERROR: write --kubeconfig={path}, with an equals sign" in out
        assert "Traceback" not in out
    else:
        assert status == 0, out


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--kubeconfig=nowhere", "--kubeconfig: no kubeconfig at nowhere"),
        ("--kubeconfig=~/nowhere.d/config", "--kubeconfig: no kubeconfig at /"),
        ("--kubeconfig=", "--kubeconfig: "),
        ("--kubeconfig=closed", "--kubeconfig: the cluster at http://127.0.0.1:1 does not answer: "),
        ("--explore-runs=0", "--explore-runs is at least 1, not 0"),
        ("--explore-replay=garbage", "--explore-replay: 'garbage' is no part of a schedule"),
    ],
)
def test_an_option_that_no_test_could_follow_is_told_once(tmp_path: Path, option: str, told: str) -> None:
    write_kubeconfig(tmp_path / "closed", "http://127.0.0.1:1", None, "")
    (tmp_path / "test_it.py").write_text("def test_it(apiserver): ...\ndef test_again(apiserver): ...\n")
    status, out = pytest_in(tmp_path, option)
    assert status == pytest.ExitCode.USAGE_ERROR, out
    assert out.count(told) == 1, out
    assert "Traceback" not in out
