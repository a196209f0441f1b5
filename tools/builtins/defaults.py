"""Asks a kube-apiserver for the defaults of built-in kinds: writes src/steersman/api/data/defaults.json.

    python tools/builtins/defaults.py URL TOKEN CA_FILE

Each manifest of defaults.yaml is created with dryRun and compared with the answer. A field that a type of the API gets
wherever it is left out is a default: `{type: {field: value}}`. A field that only some get depends on something else;
those are printed, for `steersman.api` has functions for them.
"""

from __future__ import annotations

import json
import ssl
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from steersman.api import _data
from steersman.api.kinds import BuiltinKind, builtin_kinds

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "src" / "steersman" / "api" / "data"
# What the server fills in besides defaults: metadata, what it allocates, and what admission plugins add.
ALLOCATED = {"metadata", "selector", "clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"}
ALLOCATED |= {"ipFamilies", "ipFamilyPolicy"}
ADMITTED = {("api/core/v1.PodSpec", name) for name in ("priority", "preemptionPolicy", "tolerations")}
# What the conversion between versions fills in.
CONVERTED = {("api/autoscaling/v1.HorizontalPodAutoscalerSpec", "targetCPUUtilizationPercentage")}

# For each type and field: the values (as JSON) that it got where it was left out; "" where it got none.
Seen = defaultdict[tuple[str, str], set[str]]


class Observer:
    """Walks manifests and answers along the types of the API."""

    def __init__(self) -> None:
        self.seen: Seen = defaultdict(set)
        self._types = _data.type_table().types

    def look(self, expression: str, given: Any, got: Any) -> None:
        """Note what the server put into one value of a type, and into what is in it."""
        if expression.startswith("*"):
            self.look(expression[1:], given, got)
        elif expression.startswith("[]") and isinstance(given, list):
            for item, answered in zip(given, got or (), strict=False):
                self.look(expression[2:], item, answered)
        elif isinstance(fields := self._types.get(expression), list) and isinstance(got, dict):
            for name, _, field, *_ in fields:
                self._field(expression, name, field, (given or {}).get(name), got.get(name))

    def _field(self, struct: str, name: str, field: str, given: Any, got: Any) -> None:
        if name in ALLOCATED or (struct, name) in ADMITTED | CONVERTED:
            return
        if given is not None:
            self.look(field, given, got)
            return
        zero = _data.type_table().codec(field).zero
        if isinstance(zero, dict):  # a struct that is always there
            self.look(field, zero, got)
            return
        self.seen[struct, name].add("" if got in (None, zero) else json.dumps(got, sort_keys=True))


def main(url: str, token: str, ca: str) -> int:
    by_name = {(kind.api_version, kind.kind): kind for kind in builtin_kinds()}
    context = ssl.create_default_context(cafile=ca)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    observer, refused = Observer(), 0
    for manifest in yaml.safe_load_all((HERE / "defaults.yaml").read_text()):
        kind = by_name[manifest["apiVersion"], manifest["kind"]]
        try:
            answer = create(url, token, context, kind, manifest)
        except urllib.error.HTTPError as error:
            sys.stderr.write(f"{kind.kind}: {json.load(error)['message']}\n")
            refused += 1
            continue
        answer.pop("status", None)
        observer.look(kind.type, manifest, answer)
    table: dict[str, dict[str, Any]] = defaultdict(dict)
    for (struct, name), values in sorted(observer.seen.items()):
        if len(values) > 1:
            sys.stdout.write(f"depends on something: {struct} {name}: {sorted(values)}\n")
        elif value := values.pop():
            table[struct][name] = json.loads(value)
    (DATA / "defaults.json").write_text(json.dumps(table, separators=(",", ":")) + "\n")
    return 1 if refused else 0


def create(url: str, token: str, context: ssl.SSLContext, kind: BuiltinKind, manifest: Any) -> Any:
    base = f"{url}/apis/{kind.api_version}" if kind.group else f"{url}/api/{kind.version}"
    place = "/namespaces/default" if kind.namespaced else ""
    request = urllib.request.Request(  # noqa: S310
        f"{base}{place}/{kind.plural}?dryRun=All",
        json.dumps(manifest).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, context=context) as response:  # noqa: S310
        return json.load(response)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
