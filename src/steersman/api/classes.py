"""How objects name their classes, which classes are taken by default, and what is held: words that several kinds share.

Source: kubernetes `pkg/apis/{core,networking,scheduling,storage}/**`, component-helpers `storage/volume`.
"""

from __future__ import annotations

from typing import Any

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
OLD_STORAGE_CLASS = "volume.beta.kubernetes.io/storage-class"
OLD_INGRESS_CLASS = "kubernetes.io/ingress.class"
DEFAULT_INGRESS_CLASS = "ingressclass.kubernetes.io/is-default-class"
DEFAULT_STORAGE_CLASS = "storageclass.kubernetes.io/is-default-class"
OLD_DEFAULT_STORAGE_CLASS = "storageclass.beta.kubernetes.io/is-default-class"
SYSTEM_PRIORITIES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


def storage_class(meta: dict[str, Any], spec: dict[str, Any]) -> str:
    """The class that a claim or a volume names, in the old annotation or in its spec."""
    return (meta.get("annotations") or {}).get(OLD_STORAGE_CLASS) or spec.get("storageClassName") or ""


def is_default_storage_class(annotations: dict[str, Any]) -> bool:
    """Whether claims without a class get the one with these annotations."""
    return "true" in (annotations.get(DEFAULT_STORAGE_CLASS), annotations.get(OLD_DEFAULT_STORAGE_CLASS))
