"""Record how kube-apiserver keeps objects in etcd, beside how it shows them, for `tests/apiserver/test_foreign.py`.

python -m tools.cross_check.record --server https://127.0.0.1:6443 --etcd etcd://127.0.0.1:2379 > foreign_values.json
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
from typing import Any

from tools.cross_check.servers import Object, Server

from steersman.store.etcd import EtcdStore, parse_url

SAMPLES = 3
"""Of each kind, at most."""


async def _record(url: str, token: str, etcd: str) -> list[Object]:
    server, store = Server(url, token), await EtcdStore.open(parse_url(etcd))
    try:
        found = await store.range(b"/registry/", b"/registry0")
        values = {(item.mod_revision, item.key): item.value for item in found.items}
        by_version: dict[int, list[bytes]] = {}
        for revision, key in values:
            by_version.setdefault(revision, []).append(key)
        recorded = []
        for path in await _paths(server):
            listed = (await server.request("GET", path)).body
            for shown in _samples(listed):
                revision = int(shown["metadata"].get("resourceVersion") or 0)
                [key] = by_version.get(revision, [b""])
                if key:
                    value = base64.b64encode(values[revision, key]).decode()
                    recorded.append({"path": path, "key": key.decode(), "value": value, "shown": shown})
        return recorded
    finally:
        await store.close()
        await server.close()


def _samples(listed: Object) -> list[Object]:
    """The largest objects of a list, each with its kind."""
    kind = {"apiVersion": listed.get("apiVersion"), "kind": str(listed.get("kind")).removesuffix("List")}
    items: list[Any] = sorted(listed.get("items") or [], key=lambda item: -len(json.dumps(item)))
    return [{**kind, **item} for item in items[:SAMPLES]]


async def _paths(server: Server) -> list[str]:
    groups = (await server.request("GET", "/apis")).body["groups"]
    versions = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    found = []
    for path in versions:
        resources = (await server.request("GET", path)).body["resources"]
        found += [f"{path}/{each['name']}" for each in resources if "list" in each["verbs"]]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.cross_check.record", description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--token", default="admintoken")
    parser.add_argument("--etcd", required=True, help="the store's URL")
    options = parser.parse_args()
    print(json.dumps(asyncio.run(_record(options.server, options.token, options.etcd)), indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
