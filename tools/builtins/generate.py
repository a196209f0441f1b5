"""Writes what the package knows of the built-in kinds: src/steersman/api/data/*.json.

    python tools/builtins/generate.py DISCOVERY SCHEMAS [KUBERNETES_VERSION]

DISCOVERY is a JSON list of APIResourceLists ({group, version, resources}) and SCHEMAS the `components.schemas` of the
OpenAPI v3 documents, both as a kube-apiserver of that version serves them. Go reads the rest out of its sources.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# Columns that no printer of kubernetes has: those of the servers of CustomResourceDefinitions and APIServices.
OWN_COLUMNS = {
    "apiextensions.k8s.io/CustomResourceDefinition": [
        ["Scope", "string", "", "Cluster/Namespaced", 0],
        ["Versions", "string", "", "Served versions", 0],
        ["Created At", "date", "", "", 0],
        ["Group", "string", "", "API group", 1],
        ["Kind", "string", "", "CustomResource kind", 1],
        ["ShortNames", "string", "", "Short names", 1],
        ["Established", "boolean", "", "Established status", 1],
    ],
    "apiregistration.k8s.io/APIService": [
        ["Service", "string", "", "The reference to the service that hosts this API endpoint.", 0],
        ["Available", "string", "", "Whether this service is available.", 0],
        ["Age", "string", "", "", 0],
    ],
}
# Kinds whose printers exist but are not used by their registries.
UNUSED_PRINTERS = {"storage.k8s.io/CSIStorageCapacity"}

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "src" / "steersman" / "api" / "data"


def main(discovery: str, schemas: str, version: str = "v1.37.2") -> None:
    facts = go_facts(version)
    kinds = [kind for group in json.loads(Path(discovery).read_text()) for kind in of_group(group, facts["kinds"])]
    DATA.mkdir(exist_ok=True)
    write("kinds", kinds)
    write("types", reachable(facts["types"], {kind["type"] for kind in kinds} | set(facts["kinds"].values())))
    write("columns", columns(facts["columns"], kinds))
    write("schemas", json.loads(Path(schemas).read_text()))


def go_facts(version: str) -> dict[str, Any]:
    """Runs main.go in a module of its own that requires Kubernetes, with its libraries at the matching versions."""
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        (work / "main.go").write_text((HERE / "main.go").read_text())
        (work / "go.mod").write_text("module facts\n")
        download = go(work, "mod", "download", "-json", f"k8s.io/kubernetes@{version}")
        upstream = (Path(json.loads(download)["Dir"]) / "go.mod").read_text()
        go_version = re.search(r"^go (\S+)$", upstream, re.MULTILINE)
        libraries = sorted(set(re.findall(r"(k8s\.io/[a-z-]+) v0\.0\.0$", upstream, re.MULTILINE)))
        lines = [
            "module facts",
            f"go {go_version[1] if go_version else '1.26'}",
            f"require k8s.io/kubernetes {version}",
        ]
        lines += [f"replace {name} => {name} v0.{version.removeprefix('v1.')}" for name in libraries]
        (work / "go.mod").write_text("\n".join(lines) + "\n")
        go(work, "mod", "tidy")
        facts: dict[str, Any] = json.loads(go(work, "run", "."))
        return facts


def go(directory: Path, *arguments: str) -> str:
    command = ("go", *arguments)
    return subprocess.run(command, cwd=directory, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603


def of_group(group: dict[str, Any], go_types: dict[str, str]) -> list[dict[str, Any]]:
    """The kinds of one group and version, each with its subresources."""
    api_version = f"{group['group']}/{group['version']}".lstrip("/")
    out: dict[str, dict[str, Any]] = {}
    for resource in group["resources"]:
        plural, _, subresource = resource["name"].partition("/")
        if subresource:
            entry = {"name": subresource, "kind": resource["kind"], "verbs": resource["verbs"]}
            entry |= {key: resource[key] for key in ("group", "version") if key in resource}
            out[plural]["subresources"].append(entry)
            continue
        out[plural] = {
            "group": group["group"],
            "version": group["version"],
            "kind": resource["kind"],
            "plural": plural,
            "singular": resource["singularName"],
            "namespaced": resource["namespaced"],
            "verbs": resource["verbs"],
            "shortNames": resource.get("shortNames", []),
            "categories": resource.get("categories", []),
            "storageVersionHash": resource.get("storageVersionHash", ""),
            "type": go_types[f"{api_version}/{resource['kind']}"],
            "subresources": [],
        }
    return list(out.values())


def reachable(types: dict[str, Any], wanted: set[str]) -> dict[str, Any]:
    """The types that the wanted ones need."""
    pending, found = sorted(wanted), {}
    while pending:
        name = pending.pop()
        if name in found or name not in types:
            continue
        found[name] = types[name]
        if isinstance(types[name], list):
            pending += [part for field in types[name] for part in named(field[2])]
        elif types[name].startswith("!JSONSchema"):
            pending.append(name.rpartition(".")[0] + ".JSONSchemaProps")
        else:
            pending += named(types[name])
    return dict(sorted(found.items()))


def named(expression: str) -> list[str]:
    return re.findall(r"[a-zA-Z][\w./-]*\.\w+", expression)


def columns(printed: dict[str, Any], kinds: list[dict[str, Any]]) -> dict[str, list[list[Any]]]:
    """The columns of each kind that has its own, `group/kind` to `[name, type, format, description, priority]`."""
    out = {}
    for kind in kinds:
        key = f"{kind['group']}/{kind['kind']}"
        package = kind["type"].split("/")[-2].replace("events", "core")
        found = printed.get(f"{package}.{kind['kind']}")
        if found and key not in UNUSED_PRINTERS:
            parts = ("name", "type", "format", "description", "priority")
            out[key] = [[column[part] for part in parts] for column in found]
    described = {column[0]: column for column in out["/ConfigMap"]}
    created = described["Age"][3]
    for key, own in OWN_COLUMNS.items():
        out[key] = [described["Name"], *([*column[:3], column[3] or created, column[4]] for column in own)]
    return out


def write(name: str, content: Any) -> None:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    (DATA / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
