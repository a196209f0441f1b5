"""steersman-client: the client half by itself, with its own requirements and no other."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import steersman
from steersman.cli import COMMANDS

from .conftest import RunningServer

ROOT = Path(__file__).parents[1]
PROJECT = ROOT / "packaging/client"
SERVERS = {"serve", "store", "validate", "crd", "cel", "envtest-assets", "demo"}
"""Commands that need the server."""

# What steersman requires and the client does not, and what is not there on every system, cannot be imported.
BLOCKED = """\
import sys
from importlib.abc import MetaPathFinder


class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


sys.meta_path.insert(0, Blocked())
"""
BLOCKED_NAMES = ("apsw", "cryptography", "prometheus_client", "uvloop", "hpack", "pytest")
POSIX = ("fcntl", "grp", "pwd", "resource", "termios")

OPERATOR = """\
import steersman as st

CONFIG_MAP = st.Resource("v1", "ConfigMap")


class Spec(st.Model):
    colour: str = ""


class Status(st.Model):
    colour: str = ""


@st.custom_resource("slim.example.com/v1")
class Paint(st.CustomResource[Spec, Status]): ...


async def reconcile(ctx: st.Context, paint: Paint) -> None:
    await ctx.create_or_update({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": paint.metadata.name, "namespace": paint.metadata.namespace},
        "data": {"colour": paint.spec.colour},
    })
    paint.status.colour = paint.spec.colour


manager = st.Manager(name="painter", leader_election="painter")
manager.controller(Paint, reconcile).owns(CONFIG_MAP)
"""

USER = """\
import steersman as st

PAINT = st.Resource("slim.example.com/v1", "Paint")
CRD = st.Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")

with st.SyncClient(namespace="default") as client:
    client.create(
        {"apiVersion": PAINT.api_version, "kind": "Paint", "metadata": {"name": "wall"}, "spec": {"colour": "red"}}
    )
    with client.watch(PAINT) as events:
        for event in events:
            if event.object.get("status", {}).get("colour") == "red":
                break
    print(client.get(st.Resource("v1", "ConfigMap"), "wall")["data"]["colour"])
"""


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(out)], cwd=PROJECT, check=True)
    return out


@pytest.fixture(scope="module")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content, where nothing but what it requires can be imported besides."""
    [wheel] = distributions.glob("*.whl")
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "sitecustomize.py").write_text(BLOCKED.format(blocked=(*BLOCKED_NAMES, *POSIX)))
    return site


def environment(installed: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(installed), **more}


def run(installed: Path, *arguments: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    env = environment(installed, **more)
    return subprocess.run(command, cwd=installed, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_what_it_requires_is_a_part_of_what_steersman_requires() -> None:
    own, whole = (tomllib.loads((place / "pyproject.toml").read_text())["project"] for place in (PROJECT, ROOT))
    extras = [each for group in own["optional-dependencies"].values() for each in group]
    assert {*own["dependencies"], *extras} <= set(whole["dependencies"])
    names = {canonicalize_name(Requirement(each).name) for each in own["dependencies"]}
    assert names & {canonicalize_name(each) for each in BLOCKED_NAMES} == set()
    assert own["version"] == whole["version"] == steersman.__version__
    assert own["requires-python"] == whole["requires-python"]
    assert (PROJECT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_source_distribution_builds_the_same_wheel(distributions: Path, tmp_path: Path) -> None:
    [archive], [wheel] = distributions.glob("*.tar.gz"), distributions.glob("*.whl")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "again")]
    subprocess.run(build, cwd=unpacked, check=True)
    [again] = (tmp_path / "again").glob("*.whl")
    assert set(zipfile.ZipFile(again).namelist()) == set(zipfile.ZipFile(wheel).namelist())
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.endswith(".pyc")]
    assert "steersman_client-0.1.0.dist-info/licenses/LICENSE" in names


def test_all_of_it_can_be_imported(installed: Path) -> None:
    """Also where modules of POSIX are missing."""
    names = [
        ".".join(path.relative_to(installed).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((installed / "steersman").rglob("*.py"))
        if path.name != "__main__.py"
    ]
    assert "steersman.runtime.manager" in names
    done = run(installed, "-c", f"import importlib\nfor name in {names}: importlib.import_module(name)")
    assert done.stderr == ""


def test_commands_that_need_the_server_say_what_to_install(installed: Path) -> None:
    listed = run(installed, "-m", "steersman", "--help").stdout
    for name in COMMANDS:
        assert bool(re.search(rf"^    {name}\b", listed, re.M)) == (name not in SERVERS)
    for name in sorted(SERVERS):
        done = run(installed, "-m", "steersman", name, "--help")
        wanted = "pip install steersman, in the place of steersman-client"
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"steersman {name}: it is in the server's distribution: {wanted}\n"
    assert run(installed, "-m", "steersman", "completion", "bash").stdout.count("validate") == 0


async def define(installed: Path, apiserver: RunningServer, operator: Path) -> None:
    """Create the operator's definition, as `steersman generate crd` makes it, and wait until it is served."""
    made = await asyncio.to_thread(run, installed, "-m", "steersman", "generate", "crd", operator)
    assert made.stderr == ""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    headers = {"Content-Type": "application/yaml"}
    answer = await apiserver.request("POST", path, made.stdout.encode(), headers=headers)
    assert answer.status == 201, answer.body
    await apiserver.until_served("slim.example.com", "v1", "paints")


async def test_an_operator_and_a_client_work(installed: Path, apiserver: RunningServer, tmp_path: Path) -> None:
    operator, user = tmp_path / "operator.py", tmp_path / "user.py"
    operator.write_text(OPERATOR)
    user.write_text(USER)
    await define(installed, apiserver, operator)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "steersman", "run", str(operator), "--kubeconfig", str(apiserver.kubeconfig)),
        cwd=installed,
        env=environment(installed),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    log = asyncio.create_task(process.stderr.read())
    try:
        done = await asyncio.to_thread(run, installed, user, KUBECONFIG=str(apiserver.kubeconfig))
        assert (done.stdout, done.stderr) == ("red\n", "")
    finally:
        process.terminate()
        status = await process.wait()
        said = (await log).decode()
    assert status == 0, said


async def test_webhooks_say_what_they_lack(installed: Path, apiserver: RunningServer, tmp_path: Path) -> None:
    operator = tmp_path / "operator.py"
    operator.write_text(
        OPERATOR.replace('name="painter"', 'name="painter", webhooks=st.Webhooks("127.0.0.1:0")')
        + "manager.webhook(Paint, validate=lambda paint, request: None)\n"
    )
    await define(installed, apiserver, operator)
    arguments = ("-m", "steersman", "run", str(operator), "--kubeconfig", str(apiserver.kubeconfig))
    done = await asyncio.to_thread(run, installed, *arguments)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "steersman run: certificates of webhooks are made with cryptography: pip install 'steersman-client[webhooks]'"
    )
