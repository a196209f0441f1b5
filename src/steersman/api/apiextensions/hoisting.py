"""A CustomResourceDefinition's spec as upstream's rules see it: what all versions share stands at the top.

So with one version, errors about its schema name `spec.validation`, not `spec.versions[0].schema`.

Source: apiextensions `pkg/apis/apiextensions/v1/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from steersman.apimachinery.schema.correlation import deep_equal

_SHARED = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


@dataclass(slots=True)
class InternalSpec:
    """`versions` lack what they share; the shared parts are None when the versions differ or have none."""

    raw: Mapping[str, Any]
    versions: list[dict[str, Any]] = field(default_factory=list)
    validation: dict[str, Any] | None = None
    subresources: dict[str, Any] | None = None
    columns: list[dict[str, Any]] | None = None
    selectable: list[dict[str, Any]] | None = None

    @property
    def preserve_unknown_fields(self) -> bool:
        return bool(self.raw.get("preserveUnknownFields"))

    @property
    def names(self) -> Mapping[str, Any]:
        return self.raw.get("names") or {}

    def schemas(self) -> Iterator[dict[str, Any]]:
        """Every root schema there is."""
        for holder in (self.validation, *(version.get("schema") for version in self.versions)):
            if holder and holder.get("openAPIV3Schema") is not None:
                yield holder["openAPIV3Schema"]

    def has_shared_schema(self) -> bool:
        return self.validation is not None and self.validation.get("openAPIV3Schema") is not None


def internal_spec(crd: Mapping[str, Any]) -> InternalSpec:
    """The spec of a CRD as JSON (apiextensions.k8s.io/v1), rearranged. The CRD stays as it is."""
    raw = crd.get("spec") or {}
    versions = [dict(version) for version in raw.get("versions") or ()]
    spec = InternalSpec(raw, versions)
    if not versions:
        return spec
    shared: dict[str, Any] = {}
    for key in _SHARED:
        first = versions[0].get(key)
        if all(_same(version.get(key), first) for version in versions):
            shared[key] = first
            for version in versions:
                version.pop(key, None)
    spec.validation = shared.get("schema")
    spec.subresources = shared.get("subresources")
    spec.columns = shared.get("additionalPrinterColumns")
    spec.selectable = shared.get("selectableFields")
    return spec


def _same(left: Any, right: Any) -> bool:
    """Equality that takes an empty list for an absent one."""
    if isinstance(left, list) or isinstance(right, list):
        return deep_equal(left or [], right or [])
    return deep_equal(left, right)
