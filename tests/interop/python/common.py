"""What the programs here share. Each does the same with its client, and tells after each step that it is done."""

import json
import os
import sys
from pathlib import Path

GROUP, VERSION, PLURAL, KIND, NAMESPACE = "interop.example.com", "v1", "gadgets", "Gadget", "default"
API_VERSION = f"{GROUP}/{VERSION}"
KUBECONFIG = os.environ["KUBECONFIG"]
WRITERS, INCREMENTS = 4, 5
OBJECTS, PAGE = 25, 10
WRITTEN = Path(os.environ["WRITTEN"])
DEFINITION = json.loads((WRITTEN / "definition.json").read_text())


def gadget(name, count=0, **more):
    """A custom resource."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"count": count, **more},
    }


def deployment(name):
    """An object of a built-in kind, as people write them: the server fills in the rest."""
    written = json.loads((WRITTEN / "deployment.json").read_text())
    return {**written, "metadata": {"name": name, "namespace": NAMESPACE}}


def done(step):
    """Tell that a step is done."""
    print(step, flush=True)


def compact():
    """Have the server forget all revisions but the current one; returns when it has."""
    print("compact", flush=True)
    assert sys.stdin.readline().strip() == "compacted"
