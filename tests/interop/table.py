"""`python -m tests.interop.table` prints docs/clients.md: what the tests here do with each client."""

from __future__ import annotations

import json
import re
from pathlib import Path

from . import steps

HERE = Path(__file__).parent
COLUMNS = {
    "define": "definitions",
    "conflicts": "conflicts, retried by its own means",
    "status": "status",
    "patches": "patches",
    "apply": "server-side apply",
    "pages": "lists in pages",
    "watches": "watches",
    "compact": "watches after 410",
    "lease": "leases, locks",
    "webhooks": "webhooks",
}
HEAD = """# Clients

Each of these is run by the test suite as it is published, against a server of ours: see `tests/interop` and
`tests/kubectl`. This table is made by `python -m tests.interop.table`; a test holds it to what is run.

"""


def text() -> str:
    """The page."""
    rows = [["", *COLUMNS.values()], ["---"] + [":-:"] * len(COLUMNS)]
    rows += [
        [f"{name} {version}", *("yes" if column in done else "" for column in COLUMNS)]
        for name, version, done in (*_python(), *_go(), *_node(), *_rust(), *_java())
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{HEAD}{table}\n\n{_more()}"


def _python() -> list[tuple[str, str, list[str]]]:
    pinned = re.findall(r"^(\w[\w-]*)\S*==(\S+)$", (HERE / "python/requirements.txt").read_text(), re.M)
    return [(name, version, steps.PYTHON[name]) for name, version in pinned if name != "kopf"]


def _go() -> list[tuple[str, str, list[str]]]:
    [version] = re.findall(r"controller-runtime v(\S+)", (HERE / "controller_runtime/go.mod").read_text())
    return [("controller-runtime", version, steps.GO)]


def _node() -> list[tuple[str, str, list[str]]]:
    wanted = json.loads((HERE / "node/package.json").read_text())["dependencies"]
    return [(name, version, steps.NODE) for name, version in wanted.items()]


def _rust() -> list[tuple[str, str, list[str]]]:
    [version] = re.findall(r'^kube = .*version = "=(\S+)"', (HERE / "rust/Cargo.toml").read_text(), re.M)
    return [("kube", version, steps.RUST)]


def _java() -> list[tuple[str, str, list[str]]]:
    pom = (HERE / "java/pom.xml").read_text()
    versions = dict(re.findall(r"<artifactId>(\S+)</artifactId>\s*<version>(\S+)</version>", pom))
    fabric8, official = versions["kubernetes-client"], versions["client-java"]
    return [
        ("fabric8 kubernetes-client", fabric8, steps.JAVA["WithFabric8"]),
        ("io.kubernetes client-java", official, steps.JAVA["WithClientJava"]),
    ]


def _more() -> str:
    versions = dict(re.findall(r"^(\S+)==(\S+)$", (HERE / "python/requirements.txt").read_text(), re.M))
    [go] = re.findall(r"k8s.io/client-go v(\S+)", (HERE / "controller_runtime/go.mod").read_text())
    return f"""Besides:

- kopf {versions["kopf"]}: an operator with handlers of creation, of a field and of deletion, a timer, an error that is
  retried.
- client-go {go}: leader election, beside ours, for one Lease; protobuf, and informers with WatchList, in
  controller-runtime.
- controller-runtime's envtest: a suite as kubebuilder makes it, on `steersman envtest-assets`.
- kubectl: the commands of the README, and those that `tests/kubectl` lists.
"""


if __name__ == "__main__":
    print(text(), end="")
