"""A small CRD to vary."""

from typing import Any

ROOT = {"type": "object"}


def crd(*schemas: dict[str, Any] | None, spec: dict[str, Any] | None = None, **version: Any) -> dict[str, Any]:
    """A CRD `gears.tools.example` with a version for each schema; the first is stored. Keywords go into the first."""
    versions = []
    for number, schema in enumerate(schemas or (ROOT,), start=1):
        each: dict[str, Any] = {"name": f"v{number}", "served": True, "storage": number == 1}
        if schema is not None:
            each["schema"] = {"openAPIV3Schema": schema}
        versions.append(each)
    versions[0].update(version)
    names = {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}
    body = {"group": "tools.example", "scope": "Namespaced", "names": names, "versions": versions, **(spec or {})}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gears.tools.example", "resourceVersion": "1"},
        "spec": body,
        "status": {"conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1"]},
    }


def in_spec(**properties: Any) -> dict[str, Any]:
    """A root schema with `spec` and the properties in it."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
