"""Asks a kube-apiserver which old versions of kinds it knows: writes src/steersman/api/data/versions.json.

    python tools/builtins/versions.py URL TOKEN CA_FILE

An object in a version that is known, but not the endpoint's, is refused with other words than one in a version that
nobody knows. The file is `{apiVersion: [kind, ...]}`, without what is served.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import urllib.parse
from collections import defaultdict
from pathlib import Path

from steersman.api.kinds import builtin_kinds

DATA = Path(__file__).parents[2] / "src" / "steersman" / "api" / "data"
VERSIONS = ("v1", "v2", *(f"v{major}{stage}{n}" for major in (1, 2) for stage in ("alpha", "beta") for n in (1, 2, 3)))
SCALE = "/apis/apps/v1/namespaces/default/deployments/probe/scale"
KNOWN = "does not match the expected API version"


def main(url: str, token: str, ca_file: str) -> None:
    where = urllib.parse.urlsplit(url)
    context = ssl.create_default_context(cafile=ca_file)
    server = http.client.HTTPSConnection(where.hostname or "", where.port, context=context)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    kinds = [kind for kind in builtin_kinds() if "create" in kind.verbs]
    served = {(kind.api_version, kind.kind) for kind in kinds}
    known: dict[str, set[str]] = defaultdict(set)
    for kind in kinds:
        root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
        path = f"{root}{'/namespaces/default' if kind.namespaced else ''}/{kind.plural}?dryRun=All"
        for api_version in (*(f"{kind.group}/{version}".lstrip("/") for version in VERSIONS), "extensions/v1beta1"):
            if (api_version, kind.kind) in served:
                continue
            body = {"apiVersion": api_version, "kind": kind.kind, "metadata": {"name": "probe"}}
            server.request("POST", path, json.dumps(body), headers)
            if KNOWN in json.loads(server.getresponse().read()).get("message", ""):
                known[api_version].add(kind.kind)
    for group in ("apps", "autoscaling", "extensions"):
        for api_version in (f"{group}/{version}" for version in VERSIONS):
            body = {"apiVersion": api_version, "kind": "Scale", "metadata": {"name": "probe"}}
            server.request("PUT", SCALE, json.dumps(body), headers)
            if KNOWN in json.loads(server.getresponse().read()).get("message", ""):
                known[api_version].add("Scale")
    text = ",\n".join(f"{json.dumps(version)}: {json.dumps(sorted(names))}" for version, names in sorted(known.items()))
    (DATA / "versions.json").write_text(f"{{\n{text}\n}}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
