"""Explored tests, as a project has them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def run(directory: Path, code: str, *arguments: str, hash_seed: str = "0") -> tuple[int, str]:
    """Run pytest on a file in a project of its own; gives its exit status and what it prints."""
    (directory / "test_it.py").write_text(textwrap.dedent(code))
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(directory), "-q", "-p", "no:randomly"]
    process = subprocess.run(
        [*command, *arguments, "test_it.py"],
        cwd=directory,
        env={
            **os.environ,
            "PYTEST_ADDOPTS": "-W error -o asyncio_default_fixture_loop_scope=function",
            "PYTHONHASHSEED": hash_seed,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return process.returncode, process.stdout + process.stderr


TALLY = """
    import asyncio
    import pytest
    import steersman as st
    from steersman.testing import running
    MAP = st.Resource("v1", "ConfigMap")

    async def reconcile(ctx, app):
        print("reconciling", app["metadata"]["name"])
        tally = await ctx.client.get(MAP, "tally")
        if app["metadata"]["name"] == "tally" or app["metadata"]["name"] in tally["data"]:
            return
        tally = {**tally, "data": {**tally["data"], app["metadata"]["name"]: "seen"}}
        tally["metadata"] = {**tally["metadata"], "resourceVersion": ""}
        await ctx.client.update(tally)

    @pytest.fixture
    def tally(apiserver):
        apiserver.kube.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tally"}, "data": {"n": "0"}}
        )

    @pytest.mark.explore(runs=100)
    async def test_tally(apiserver, tally):
        async with apiserver.client(user_agent="user") as user:
            manager = st.Manager(client=apiserver.client(user_agent="operator"))
            manager.controller(MAP, reconcile)
            async with running(manager):
                await user.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}})
                await asyncio.sleep(1)
                await user.modify(MAP, "tally", lambda obj: obj["data"].update(user="here"))
                await asyncio.sleep(10)
            assert (await user.get(MAP, "tally"))["data"] == {"n": "0", "app": "seen", "user": "here"}
"""


def story_of(out: str) -> str:
    return out[out.index("- The interleaving -") : out.index("= short test summary")]


def test_a_failure_tells_the_shortest_interleaving_and_how_to_run_it_again(tmp_path: Path) -> None:
    status, out = run(tmp_path, TALLY)
    assert status == 1, out
    assert "AssertionError: assert {'app': 'seen', 'n': '0'} ==" in out
    told = re.search(r"To run it again: pytest 'test_it.py::test_tally' --explore-replay='([0-9+ ]+)'", out)
    assert told, out
    stories = set()
    for hash_seed in ("1", "2"):
        status, out = run(tmp_path, TALLY, f"--explore-replay={told[1]}", hash_seed=hash_seed)
        assert status == 1, out
        stories.add(story_of(out))
    assert len(stories) == 1, "\n\n".join(stories)
    story = stories.pop()
    assert re.search(r"user +--> update configmaps default/tally .*\n", story)
    assert re.search(r"operator +--> update configmaps default/tally without rv ", story)
    assert "reconcile of default/app begins" in story
    assert story.count("[held back") == len(told[1].split())
    assert out.count("reconciling app") == 1, "of what earlier runs have printed, nothing is shown"


def test_the_options_say_which_and_how_many(tmp_path: Path) -> None:
    status, out = run(tmp_path, TALLY, "--explore-runs=1")
    assert status == 0, out
    options = ("--explore-seed=7", "--explore-runs=90")
    found = [re.findall(r"Run \d+ of 90 \(seed 7\) failed.*\n.*", run(tmp_path, TALLY, *options)[1]) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0]


def test_definitions_may_be_loaded_before_and_within_a_test(tmp_path: Path) -> None:
    code = """
    import pytest
    import steersman as st

    @st.custom_resource("myorg.io/v1")
    class App(st.CustomResource[st.Object, st.Object]): ...
    @st.custom_resource("myorg.io/v1")
    class Other(st.CustomResource[st.Object, st.Object]): ...

    @pytest.fixture
    def loaded(apiserver):
        apiserver.load(App)

    @pytest.mark.asyncio
    @pytest.mark.explore(runs=3)
    @pytest.mark.apiserver({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "marked"}})
    async def test_it(apiserver, loaded, kube, kube_client):
        apiserver.load(Other)
        alice = apiserver.user("alice", [{"apiGroups": ["myorg.io"], "resources": ["apps"], "verbs": ["create"]}])
        async with kube_client() as client, st.Client(alice) as limited:
            await limited.create({"apiVersion": "myorg.io/v1", "kind": "App", "metadata": {"name": "a"}, "spec": {}})
            await client.create({"apiVersion": "myorg.io/v1", "kind": "Other", "metadata": {"name": "o"}, "spec": {}})
            with pytest.raises(st.Forbidden):
                await limited.get(App, "a")
            await client.get(App, "a")
            await client.get(st.Resource("v1", "ConfigMap"), "marked")
        assert kube.get(Other, "o").metadata.namespace == apiserver.namespace
    """
    status, out = run(tmp_path, code)
    assert status == 0, out


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("@pytest.mark.explore\ndef test_it(apiserver): ...", "only async tests have interleavings to explore"),
        (
            "@pytest.mark.explore(5)\nasync def test_it(apiserver): ...",
            "runs, seed, delay and breaks, not arguments",
        ),
        (
            "@pytest.mark.explore(run=5)\nasync def test_it(apiserver): ...",
            "runs, seed, delay and breaks, not run",
        ),
        ("@pytest.mark.explore(runs=0)\nasync def test_it(apiserver): ...", "runs is an integer, at least 1, not 0"),
        (
            "@pytest.mark.explore(runs='x')\nasync def test_it(apiserver): ...",
            "runs is an integer, at least 1, not 'x'",
        ),
        ("@pytest.mark.explore(seed='x')\nasync def test_it(apiserver): ...", "seed is an integer, not 'x'"),
        (
            "@pytest.mark.explore(delay=-1)\nasync def test_it(apiserver): ...",
            "delay is a number of seconds, 0 or more",
        ),
        ("@pytest.mark.explore(breaks='me')\nasync def test_it(apiserver): ...", "is a list of user agents, not 'me'"),
        ("@pytest.mark.explore\nasync def test_it(): ...", "nothing to explore in a test without the fixture"),
    ],
)
def test_what_cannot_be_explored_is_told(code: str, told: str, tmp_path: Path) -> None:
    status, out = run(tmp_path, f"import pytest\n{code}")
    assert status != 0
    assert told in out


def test_a_schedule_that_names_what_is_not_sent(tmp_path: Path) -> None:
    code = """
    import pytest

    @pytest.mark.explore
    async def test_it(apiserver):
        async with apiserver.client() as client:
            await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    """
    status, out = run(tmp_path, code, "--explore-replay=2+1")
    assert status == 0, out
    status, out = run(tmp_path, code, "--explore-replay=2+1 999+1")
    assert status == 1, out
    assert "this schedule does not fit the test any more: it names message 999, and the test sends 2" in out


HANGS = """
    import asyncio
    import pytest
    import steersman as st
    from steersman.testing import running

    @pytest.mark.explore
    async def test_waits_for_ever(apiserver):
        await asyncio.Event().wait()

    @pytest.mark.explore
    async def test_never_rests(apiserver):
        while True:
            await asyncio.sleep(0)

    @pytest.mark.explore
    async def test_wants_a_socket(apiserver):
        await asyncio.open_connection("127.0.0.1", 23999)

    @pytest.mark.explore
    async def test_blocks(apiserver):
        def reconcile(ctx, obj):
            ctx.client.get(st.Resource("v1", "ConfigMap"), "a")
        manager = st.Manager(apiserver.config)
        manager.controller(st.Resource("v1", "Namespace"), reconcile)
        async with running(manager):
            await asyncio.sleep(1)
        assert manager.metrics is None

    @pytest.mark.explore
    async def test_skips(apiserver):
        pytest.skip("not today")
"""


def test_what_does_not_come_to_an_end(tmp_path: Path) -> None:
    status, out = run(tmp_path, HANGS)
    assert status == 1
    assert "nothing can happen any more" in out or "has not come to an end at 3600 s of its own time" in out
    assert re.search(
        r"The test waits here:\n(.*\n)*?.*test_it.py:\d+ in test_waits_for_ever\n.*locks.py:\d+ in Event.wait", out
    )
    assert re.search(r"The test waits here:\n(.*\n)*?.*test_it.py:\d+ in test_never_rests\n", out)
    assert "has not come to an end after 100000 turns of its event loop" in out
    assert "there are no sockets while interleavings are explored" in out
    assert "make it async" in out
    assert "4 failed, 1 skipped" in out
