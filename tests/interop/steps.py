"""What the programs do, step by step: each says a step's name when it is done."""

_COMMON = ["define", "conflicts", "status", "patches"]
PYTHON = {
    "cloudcoil": ["define", "conflicts", "status", "pages", "watches", "lease"],
    "easykube": [*_COMMON, "apply", "watches", "lease"],
    "kopf": ["define", "retried", "created", "updated", "ticked", "deleted", "stopped"],
    "kr8s": [*_COMMON, "pages", "watches", "lease", "delete"],
    "kubex": [*_COMMON, "apply", "pages", "compact", "watches", "lease"],
    "kubernetes": [*_COMMON, "apply", "pages", "compact", "watches", "lease"],
    "kubernetes_asyncio": [*_COMMON, "apply", "pages", "compact", "watches", "lease"],
    "lightkube": [*_COMMON, "apply", "pages", "compact", "watches", "lease"],
    "pykube-ng": [*_COMMON, "compact", "watches", "lease"],
}
GO = ["define", "conflicts", "status", "patches", "apply", "pages", "watches", "lease", "webhooks"]
"""What the programs with controller-runtime do, in the names of the others."""
NODE = [*_COMMON, "apply", "pages", "compact", "watches", "lease"]
JAVA = {
    "WithFabric8": [*_COMMON, "apply", "pages", "compact", "watches", "lease"],
    "WithClientJava": [*_COMMON, "apply", "pages", "compact", "watches", "lease"],
}
RUST = [*_COMMON, "apply", "pages", "compact", "watches", "lease"]
