"""What README.md says of its operators and of make is so."""

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

from .blocks import ROOT, blocks

README = (ROOT / "README.md").read_text()
CODE = [block.code for block in blocks("README.md") if block.is_operator]
[WEBHOOKS] = [code for code in CODE if "manager.webhook(" in code]
[OPERATOR] = [code for code in CODE if code != WEBHOOKS]
MY_APP = st.Resource("myorg.io/v1", "MyApp")


@pytest.fixture
async def kubeconfig(apiserver: Any) -> str:
    """Of a server with what the README's kubectl commands have made."""
    async with await apiserver.client() as client:
        await client.create(yaml.safe_load((ROOT / "examples/myapp-crd.yaml").read_text()))
        await apiserver.until_served("myorg.io", "v1", "myapps")
        await client.create(yaml.safe_load((ROOT / "examples/example-myapp.yaml").read_text()))
    return str(apiserver.kubeconfig)


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
    async with operator(OPERATOR, kubeconfig, tmp_path):
        async with asyncio.timeout(60), await apiserver.client() as client, client.watch(MY_APP) as events:
            async for event in events:
                if event.object.get("status", {}).get("replicas") == event.object["spec"]["replicas"]:
                    break
            settings = await client.get(st.Resource("v1", "ConfigMap"), "example-myapp-settings", namespace="default")
        assert settings["metadata"]["ownerReferences"][0]["kind"] == "MyApp"


async def test_the_webhooks_refuse_and_fill_in(kubeconfig: str, apiserver: Any, tmp_path: Path) -> None:
    configuration = st.Resource("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
    code = WEBHOOKS.replace("127.0.0.1:9443", "127.0.0.1:0")  # another test may run at the same time
    async with operator(code, kubeconfig, tmp_path), await apiserver.client() as client:
        async with asyncio.timeout(60), client.watch(configuration) as events:
            await anext(events)

        async def create(**spec: str) -> st.Object:
            app = {"apiVersion": "myorg.io/v1", "kind": "MyApp", "metadata": {"name": "a"}, "spec": spec}
            return await client.create(app, namespace="default", dry_run=True)

        async with asyncio.timeout(60):
            while (await create(env="dev"))["spec"].get("logging") != "debug":  # noqa: ASYNC110 -- nobody tells
                await asyncio.sleep(0.02)
        with pytest.raises(st.Forbidden, match="prod needs logging"):
            await create(env="prod")


def test_commands_of_make_exist() -> None:
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M)
    named = set(re.findall(r"(?:^\$ |`)make (\w+)", README, re.M))
    assert {"demo", "docs", "test"} <= named <= set(targets)
