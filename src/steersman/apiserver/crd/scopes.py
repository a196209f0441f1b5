"""From an established CRD to the scopes of its served versions: everything is compiled here, once.

Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from steersman.apimachinery.apply.typed import from_crd
from steersman.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from steersman.apimachinery.jsonpath import compile_path
from steersman.apimachinery.object_meta import coerce_object_meta
from steersman.apimachinery.schema.pipeline import SchemaPipeline, compile_schema
from steersman.apimachinery.selectors import SelectorError
from steersman.apiserver.builtins import object_meta_view
from steersman.apiserver.crd.columns import columns
from steersman.apiserver.crd.strategy import CustomStatusStrategy, CustomStrategy
from steersman.apiserver.scope import ResourceScope, ScaleMapping, View
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import ResourceCache

VERBS = frozenset({"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"})
_ALWAYS = (".metadata.name", ".metadata.namespace")
_READ_AND_DELETE = VERBS - {"create", "update", "patch"}


def build_scopes(crd: Object, cache: ResourceCache, revision: int, *, terminating: bool) -> list[ResourceScope]:
    """A scope for each served version. Objects written after `revision` have the form that the schemas ask for."""
    spec = crd["spec"]
    storage = next(version["name"] for version in spec["versions"] if version["storage"])
    return [
        _scope(crd, version, storage, cache, revision, terminating) for version in spec["versions"] if version["served"]
    ]


def _scope(
    crd: Object, version: Object, storage: str, cache: ResourceCache, revision: int, terminating: bool
) -> ResourceScope:
    spec, names = crd["spec"], crd["status"]["acceptedNames"]
    group, name = spec["group"], version["name"]
    gvk = GroupVersionKind(group, name, names["kind"])
    pipeline = compile_schema(
        (version.get("schema") or {}).get("openAPIV3Schema"),
        preserve_unknown_fields=spec.get("preserveUnknownFields", False),
    )
    namespaced = spec["scope"] == "Namespaced"
    subresources = version.get("subresources") or {}
    scale = _scale(subresources["scale"]) if subresources.get("scale") is not None else None
    type_view = from_crd((version.get("schema") or {}).get("openAPIV3Schema"), object_meta_view())
    options: dict[str, Any] = {"namespaced": namespaced, "has_status": "status" in subresources, "scale": scale}
    strategy = CustomStrategy(gvk, pipeline, type_view, **options)
    storage_api_version = f"{group}/{storage}"
    scope = ResourceScope(
        gvr=GroupVersionResource(group, name, names["plural"]),
        kind=names["kind"],
        list_kind=names["listKind"],
        singular=names.get("singular", ""),
        namespaced=namespaced,
        custom=True,
        cache=cache,
        view=View(_reader(gvk, pipeline), revision if name == storage else None),
        strategy=strategy,
        verbs=_READ_AND_DELETE if terminating else VERBS,
        columns=columns(version.get("additionalPrinterColumns")),
        scale=scale,
        openapi_schema=(version.get("schema") or {}).get("openAPIV3Schema"),
        selectable_fields=tuple(f["jsonPath"].removeprefix(".") for f in version.get("selectableFields") or ()),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        storage_version_hash=storage_version_hash(group, storage, names["kind"]),
        deprecation=_deprecation(gvk, version),
        terminating=terminating,
    )
    select_by(scope, [field["jsonPath"] for field in version.get("selectableFields") or ()])
    if name != storage:
        scope.to_storage = lambda obj: {**obj, "apiVersion": storage_api_version}
    if "status" in subresources:
        scope.subresources["status"] = {"verbs": ("get", "patch", "update")}
        scope.subresource_strategies["status"] = CustomStatusStrategy(gvk, pipeline, type_view, **options)
    if scale is not None:
        scope.subresources["scale"] = {
            "verbs": ("get", "patch", "update"),
            "group": "autoscaling",
            "version": "v1",
            "kind": "Scale",
        }
    return scope


def _reader(gvk: GroupVersionKind, pipeline: SchemaPipeline) -> Callable[[Object], None]:
    """What reading an object does that was stored in another version, or under another schema."""

    def convert(obj: Object) -> None:
        obj["apiVersion"] = gvk.api_version
        obj["metadata"], _ = coerce_object_meta(obj["metadata"], drop_malformed=True)
        pipeline.prune(obj, lenient=True)
        pipeline.default(obj)

    return convert


def select_by(scope: ResourceScope, paths: Sequence[str]) -> None:
    """Let a scope be selected by its name, its namespace, and the fields at JSONPaths."""
    getters = {path.removeprefix("."): compile_path(path) for path in (*paths, *_ALWAYS)}

    def convert(field: str, value: str) -> tuple[str, str]:
        if field not in getters:
            raise SelectorError(f"field label not supported: {field}")
        return field, value

    def fields_of(obj: Object) -> Callable[[str], str]:
        def get(field: str) -> str:
            found = getters[field](obj)
            value = found[0] if found else ""
            if isinstance(value, bool):
                return "true" if value else "false"
            return "" if value is None else str(value)

        return get

    scope.select_fields = lambda selector: selector.transform(convert)
    scope.fields_of = fields_of


def _scale(facts: Object) -> ScaleMapping:
    selector = facts.get("labelSelectorPath")
    return ScaleMapping(
        tuple(facts["specReplicasPath"].strip(".").split(".")),
        tuple(facts["statusReplicasPath"].strip(".").split(".")),
        tuple(selector.strip(".").split(".")) if selector else None,
    )


def _deprecation(gvk: GroupVersionKind, version: Object) -> str:
    if not version.get("deprecated"):
        return ""
    return version.get("deprecationWarning") or f"{gvk.api_version} {gvk.kind} is deprecated"


def storage_version_hash(group: str, version: str, kind: str) -> str:
    """Upstream's short hash that tells clients when the storage version changes."""
    text = f"{group}/{version}/{kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()
