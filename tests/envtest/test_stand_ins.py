"""The stand-ins of kube-apiserver, etcd and kubectl, called as envtest calls them."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from steersman.client.client import Client
from steersman.client.config import load
from steersman.client.resources import Resource
from steersman.net import pki

MAP = Resource("v1", "ConfigMap")


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("assets")
    done = subprocess.run(
        [sys.executable, "-m", "steersman.cli", "envtest-assets", str(directory)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()) == directory.resolve()
    return directory


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@asynccontextmanager
async def running(program: Path, url: str, *arguments: str) -> AsyncIterator[None]:
    """A program that has become healthy; it must stop when it is told to."""
    process = await asyncio.create_subprocess_exec(str(program), *arguments, stderr=asyncio.subprocess.DEVNULL)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        async with aiohttp.ClientSession() as session:
            while process.returncode is None:
                try:
                    async with session.get(url, ssl=context) as answer:
                        if answer.status == 200:
                            break
                except aiohttp.ClientError:
                    await asyncio.sleep(0.02)
        assert process.returncode is None
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        assert await process.wait() == 0


async def test_data_live_as_long_as_etcds_would(assets: Path, tmp_path: Path) -> None:
    certificates, data, etcd = tmp_path / "certs", tmp_path / "etcd", f"http://127.0.0.1:{free_port()}"
    certificates.mkdir()
    authority = pki.create_ca("clients")
    user = pki.create_client_certificate(authority, "root", ["system:masters"])
    (certificates / "ca.crt").write_bytes(authority.cert)
    serving = pki.create_server_certificate(pki.create_ca("servers"), ["127.0.0.1"])
    (certificates / "apiserver.crt").write_bytes(serving.cert)
    (certificates / "apiserver.key").write_bytes(serving.key)
    (certificates / "user.crt").write_bytes(user.cert)
    (certificates / "user.key").write_bytes(user.key)
    port = free_port()
    kubeconfig = tmp_path / "config"
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(certificates / "apiserver.crt")}
    identity = {
        "client-certificate": str(certificates / "user.crt"),
        "client-key": str(certificates / "user.key"),
    }
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": identity}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    kubeconfig.write_text(json.dumps(content))
    flags = (
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        "--bind-address=127.0.0.1",
        f"--cert-dir={certificates}",
        f"--client-ca-file={certificates / 'ca.crt'}",
        "--disable-admission-plugins=ServiceAccount",
        f"--etcd-servers={etcd}",
        "--feature-gates=AllBeta=true",
        "--runtime-config",
        "api/all=true",
        f"--secure-port={port}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "-v=0",
    )
    async with running(assets / "etcd", f"{etcd}/health", f"--data-dir={data}", f"--listen-client-urls={etcd}"):
        for exists in (False, True):
            async with (
                running(assets / "kube-apiserver", f"{cluster['server']}/healthz", *flags),
                Client(load(kubeconfig=kubeconfig)) as client,
            ):
                if not exists:
                    await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})
                assert (await client.get(MAP, "kept"))["metadata"]["name"] == "kept"
    assert (data / "steersman.db").is_file()


def call(program: Path, *arguments: str, path: str | None = None) -> tuple[int, str, str]:
    environment = {**os.environ, **({} if path is None else {"PATH": path})}
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


def test_what_envtest_asks_them(assets: Path) -> None:
    status, out, _ = call(assets / "kube-apiserver", "--help")
    assert status == 0
    assert re.search(r"(?m)^\s*--secure-port\b", out)
    assert not re.search(r"(?m)^\s*--insecure-port\b", out)
    status, out, _ = call(assets / "etcd", "--help")
    assert status == 0
    assert re.search(r"(?m)^\s*--unsafe-no-fsync\b", out)
    assert call(assets / "kube-apiserver", "--version")[:2] == (0, "Kubernetes v1.37.2\n")


@pytest.mark.parametrize(
    ("program", "arguments", "message"),
    [
        ("kube-apiserver", ["--bogus=1"], "Error: unknown flag: --bogus\n"),
        ("kube-apiserver", ["serve"], 'Error: unknown command "serve"\n'),
        ("kube-apiserver", ["--secure-port"], "Error: flag needs an argument: --secure-port\n"),
        ("kube-apiserver", [], "Error: --etcd-servers must be specified\n"),
        (
            "kube-apiserver",
            ["--etcd-servers=http://127.0.0.1:1"],
            "Error: http://127.0.0.1:1 is not the etcd that stands beside this kube-apiserver: both come together\n",
        ),
        ("etcd", ["--bogus"], "etcd: unknown flag: --bogus\n"),
        (
            "etcd",
            ["--data-dir=/proc/none"],
            "etcd: cannot serve http://localhost:2379 from /proc/none: No such file or directory\n",
        ),
    ],
)
def test_wrong_arguments_are_told_in_a_line(assets: Path, program: str, arguments: list[str], message: str) -> None:
    assert call(assets / program, *arguments) == (1, "", message)


def test_kubectl_is_the_one_that_is_installed(assets: Path, tmp_path: Path) -> None:
    real = tmp_path / "kubectl"
    real.write_text('#!/bin/sh\necho "real $1"\n')
    real.chmod(0o755)
    shell = os.path.dirname(shutil.which("sh") or "/bin/sh")
    assert call(assets / "kubectl", "version", path=f"{assets}:{tmp_path}:{shell}") == (0, "real version\n", "")
    status, _, err = call(assets / "kubectl", "version", path=str(assets))
    assert (status, err) == (127, "kubectl: this is a stand-in, and there is no kubectl on the PATH: install it\n")


def test_they_may_lie_where_setup_envtest_looks(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "steersman.cli", "envtest-assets", "--setup-envtest", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    directory = Path(done.stdout.strip())
    assert re.fullmatch(r"k8s/1\.37\.2-\w+-\w+", str(directory.relative_to(tmp_path.resolve())))
    assert sorted(path.name for path in directory.iterdir()) == ["etcd", "kube-apiserver", "kubectl"]
