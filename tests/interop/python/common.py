"""What the programs here share. Each does the same with its client, and tells after each step that it is done."""

import os
import sys

GROUP, VERSION, PLURAL, KIND, NAMESPACE = "interop.example.com", "v1", "gadgets", "Gadget", "default"
API_VERSION = f"{GROUP}/{VERSION}"
KUBECONFIG = os.environ["KUBECONFIG"]
WRITERS, INCREMENTS = 4, 5
OBJECTS, PAGE = 25, 10
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": KIND, "plural": PLURAL, "singular": "gadget"},
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"count": {"type": "integer", "minimum": 0}, "note": {"type": "string"}},
                            },
                            "status": {"type": "object", "properties": {"seen": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


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
    labels = {"app": name}
    container = {"name": "c", "image": "example.com/c:1", "ports": [{"containerPort": 80}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def done(step):
    """Tell that a step is done."""
    print(step, flush=True)


def compact():
    """Have the server forget all revisions but the current one; returns when it has."""
    print("compact", flush=True)
    assert sys.stdin.readline().strip() == "compacted"
