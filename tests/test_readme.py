"""Every block of code in README.md runs as it is written."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import steersman as st

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.M | re.S)
PYTHON = [code for language, code in BLOCKS if language == "python"]
WEBHOOKS = [code for code in PYTHON if "manager.webhook(" in code]
TESTS = [code for code in PYTHON if "def test_" in code]
OPERATORS = [code for code in PYTHON if "Manager(" in code and code not in (*WEBHOOKS, *TESTS)]
PROGRAMS = [code for code in PYTHON if "def test_" not in code and "Manager(" not in code]
MY_APP = st.Resource("myorg.io/v1", "MyApp")
EXPECTED = {  # a line of what each program prints, by a word of its code
    "scale_up": r"^3 replicas at resourceVersion \d+$",
    "watch": r"^(ADDED|MODIFIED) example-myapp 2\.0$",
    "SyncClient": r"^example-myapp 1\.0$",
    "LeaderElector": r"^leading, term 0$",
}


async def python(*arguments: str, cwd: Path, **environment: str) -> str:
    """What a Python program prints; it must succeed without a word on stderr."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = (stream.decode() for stream in await process.communicate())
    assert (process.returncode, err) == (0, ""), out + err
    return out


@pytest.fixture
async def kubeconfig(apiserver: Any) -> str:
    """Of a server with what the README's kubectl commands have made."""
    async with await apiserver.client() as client:
        await client.create(yaml.safe_load((ROOT / "examples/myapp-crd.yaml").read_text()))
        await apiserver.until_served("myorg.io", "v1", "myapps")
        await client.create(yaml.safe_load((ROOT / "examples/example-myapp.yaml").read_text()))
    return str(apiserver.kubeconfig)


def test_all_blocks_are_known() -> None:
    """A block of another kind needs a test here."""
    assert {language for language, _ in BLOCKS} == {"console", "text", "sh", "python"}
    assert (len(PROGRAMS), len(TESTS), len(OPERATORS), len(WEBHOOKS)) == (len(EXPECTED), 3, 1, 1)


@pytest.mark.parametrize("word", EXPECTED)
async def test_programs_run(word: str, kubeconfig: str, tmp_path: Path) -> None:
    [code] = [code for code in PROGRAMS if word in code]
    (tmp_path / "program.py").write_text(code)
    out = await python("-W", "error", "program.py", cwd=tmp_path, KUBECONFIG=kubeconfig)
    assert re.search(EXPECTED[word], out, re.M), out


@asynccontextmanager
async def operator(code: str, kubeconfig: str, directory: Path) -> AsyncIterator[None]:
    """Runs an operator until the block ends; it must stop without an error."""
    (directory / "my_operator.py").write_text(code)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "steersman", "run", "my_operator.py"),
        cwd=directory,
        env={**os.environ, "KUBECONFIG": kubeconfig},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = await process.communicate()
    assert process.returncode == 0, err.decode()


async def test_the_operator_works_until_it_is_told_to_stop(kubeconfig: str, apiserver: Any, tmp_path: Path) -> None:
    async with operator(OPERATORS[0], kubeconfig, tmp_path):
        async with asyncio.timeout(30), await apiserver.client() as client, client.watch(MY_APP) as events:
            async for event in events:
                if event.object.get("status", {}).get("replicas") == event.object["spec"]["replicas"]:
                    break
            settings = await client.get(st.Resource("v1", "ConfigMap"), "example-myapp-settings", namespace="default")
        assert settings["metadata"]["ownerReferences"][0]["kind"] == "MyApp"


async def test_the_webhooks_refuse_and_fill_in(kubeconfig: str, apiserver: Any, tmp_path: Path) -> None:
    configuration = st.Resource("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
    code = WEBHOOKS[0].replace("127.0.0.1:9443", "127.0.0.1:0")  # another test may run at the same time
    async with operator(code, kubeconfig, tmp_path), await apiserver.client() as client:
        async with asyncio.timeout(30), client.watch(configuration) as events:
            await anext(events)

        async def create(**spec: str) -> st.Object:
            app = {"apiVersion": "myorg.io/v1", "kind": "MyApp", "metadata": {"name": "a"}, "spec": spec}
            return await client.create(app, namespace="default", dry_run=True)

        async with asyncio.timeout(30):
            while (await create(env="dev"))["spec"].get("logging") != "debug":  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.02)
        with pytest.raises(st.Forbidden, match="prod needs logging"):
            await create(env="prod")


@pytest.mark.parametrize("code", TESTS)
async def test_tests_run(code: str, tmp_path: Path) -> None:
    (tmp_path / "test_example.py").write_text(code)
    options = ["-c", os.devnull, "-q", "-W", "error", "-o", "asyncio_default_fixture_loop_scope=function"]
    out = await python("-m", "pytest", *options, "test_example.py", cwd=tmp_path, PYTEST_ADDOPTS="")
    assert "1 passed" in out


async def test_python_type_checks(tmp_path: Path) -> None:
    files = [tmp_path / f"block_{number}.py" for number in range(len(PYTHON))]
    for file, code in zip(files, PYTHON, strict=True):
        file.write_text(code)
    out = await python("-m", "mypy", "--strict", "--cache-dir", str(tmp_path), *map(str, files), cwd=ROOT)
    assert out.startswith("Success"), out


def test_commands_of_make_exist() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"(?:^\$ |`)make (\w+)", README, re.M)) == {"demo", "test"} <= set(targets)


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
