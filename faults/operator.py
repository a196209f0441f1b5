"""An operator: `python -m faults.operator KUBECONFIG`. It gives every Parent as many ConfigMaps as its spec says, each
with the value that its spec says."""

from __future__ import annotations

import logging
import sys
from typing import Any

from faults.requests import GROUP
from steersman.client.config import load
from steersman.client.resources import Resource
from steersman.runtime.context import Context
from steersman.runtime.manager import Manager

PARENT = Resource(f"{GROUP}/v1", "Parent", "parents", True)
CONFIG_MAP = Resource("v1", "ConfigMap", "configmaps", True)
LABEL = "parent"


async def reconcile(ctx: Context, parent: Any) -> None:
    name, namespace = parent["metadata"]["name"], parent["metadata"]["namespace"]
    wanted = {f"{name}-{number}" for number in range(parent["spec"]["children"])}
    for child in sorted(wanted):
        meta = {"name": child, "namespace": namespace, "labels": {LABEL: name}}
        data = {"value": parent["spec"]["value"]}
        await ctx.create_or_update({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
    listing = ctx.client.list(CONFIG_MAP, namespace=namespace, label_selector=f"{LABEL}={name}")
    for found in await listing.collect():
        if found["metadata"]["name"] not in wanted:
            await ctx.client.delete(CONFIG_MAP, found["metadata"]["name"], namespace=namespace)


def main(kubeconfig: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    manager = Manager(load(kubeconfig=kubeconfig), name="faults-operator")
    manager.controller(PARENT, reconcile).owns(CONFIG_MAP)
    manager.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
