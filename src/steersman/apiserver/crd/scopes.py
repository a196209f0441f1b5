"""From an established CRD to the scopes of its served versions: everything is compiled here, once.

Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence

from steersman.apimachinery.apply.managers import Versions
from steersman.apimachinery.apply.typed import TypeView, from_crd
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import ApiError
from steersman.apimachinery.gvk import GroupVersionKind, GroupVersionResource
from steersman.apimachinery.jsonpath import compile_path
from steersman.apimachinery.object_meta import coerce_object_meta
from steersman.apimachinery.schema.pipeline import SchemaPipeline, compile_schema
from steersman.apimachinery.selectors import SelectorError
from steersman.apiserver.builtins import object_meta_view
from steersman.apiserver.catalog import version_priority
from steersman.apiserver.crd.columns import columns
from steersman.apiserver.crd.conversion import WebhookConverter, WebhookVersions, WebhookView
from steersman.apiserver.crd.strategy import CustomStatusStrategy, CustomStrategy
from steersman.apiserver.epoch import Epoch
from steersman.apiserver.scope import Change, ResourceScope, ScaleMapping, View
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import ResourceCache
from steersman.apiserver.webhooks.caller import WebhookCaller

VERBS = frozenset({"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"})
_ALWAYS = (".metadata.name", ".metadata.namespace")
_SUBRESOURCE_VERBS = ("get", "patch", "update")
_SCALE_KIND = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
_READ_AND_DELETE = VERBS - {"create", "update", "patch"}


def build_scopes(
    crd: Object, cache: ResourceCache, revision: int, webhooks: WebhookCaller, *, terminating: bool
) -> tuple[list[ResourceScope], ResourceScope]:
    """A scope for each served version, and the one of the stored version, served or not.

    Objects written after `revision` have the form that the schemas ask for.
    """
    builder = _Builder(crd, cache, revision, webhooks, terminating)
    epoch = Epoch()
    found = {version["name"]: builder.scope(version) for version in crd["spec"]["versions"] if _counts(version)}
    for scope in found.values():
        scope.epoch = epoch
    served = [found[version["name"]] for version in crd["spec"]["versions"] if version["served"]]
    return served, found[builder.storage]


def _counts(version: Object) -> bool:
    return bool(version["served"] or version["storage"])


class _Versions:
    """All versions of a CRD, for ownership that was recorded in another one than the request's."""

    def __init__(self, views: Mapping[str, TypeView]) -> None:
        self._views = views

    def view(self, api_version: str) -> TypeView | None:
        found = self._views.get(api_version)
        if found is None:
            raise ApiError(f"request to convert CR to an invalid group/version: {api_version}")
        return found

    def convert(self, obj: Object, api_version: str) -> Object:
        return obj if obj.get("apiVersion") == api_version else {**obj, "apiVersion": api_version}


class _Builder:
    """What the scopes of one CRD share."""

    def __init__(
        self, crd: Object, cache: ResourceCache, revision: int, webhooks: WebhookCaller, terminating: bool
    ) -> None:
        self.spec, self.names = crd["spec"], crd["status"]["acceptedNames"]
        self.group = self.spec["group"]
        self.cache = cache
        self.terminating = terminating
        self.storage = next(version["name"] for version in self.spec["versions"] if version["storage"])
        self.pipelines = {version["name"]: self._pipeline(version) for version in self.spec["versions"]}
        self.fresh_after = None if self._lacks_defaults() else revision
        self.views = {v["name"]: from_crd(_schema(v), object_meta_view()) for v in self.spec["versions"]}
        self.converter = _converter(self.spec.get("conversion") or {}, webhooks, crd["metadata"]["name"])
        views = {f"{self.group}/{name}": view for name, view in self.views.items()}
        self.webhook_versions = WebhookVersions(views, self.converter) if self.converter else None
        self.versions: Versions = self.webhook_versions or _Versions(views)

    def _pipeline(self, version: Object) -> SchemaPipeline:
        return compile_schema(_schema(version), preserve_unknown_fields=self.spec.get("preserveUnknownFields", False))

    def scope(self, version: Object) -> ResourceScope:
        names, name = self.names, version["name"]
        gvk = GroupVersionKind(self.group, name, names["kind"])
        subresources = version.get("subresources") or {}
        scale = _scale(subresources["scale"]) if subresources.get("scale") is not None else None
        scope = ResourceScope(
            gvr=GroupVersionResource(self.group, name, names["plural"]),
            kind=names["kind"],
            list_kind=names["listKind"],
            singular=names.get("singular", ""),
            namespaced=self.spec["scope"] == "Namespaced",
            custom=True,
            cache=self.cache,
            view=self._view(gvk),
            strategy=self._strategy(CustomStrategy, gvk, subresources, scale),
            verbs=_READ_AND_DELETE if self.terminating else VERBS,
            columns=columns(version.get("additionalPrinterColumns")),
            scale=scale,
            openapi_schema=_schema(version),
            selectable_fields=tuple(f["jsonPath"].removeprefix(".") for f in version.get("selectableFields") or ()),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            storage_version_hash=storage_version_hash(self.group, self.storage, names["kind"]),
            deprecation=_deprecation(gvk, version, self.spec["versions"]),
            terminating=self.terminating,
            settler=self.webhook_versions,
            versions=self.versions,
        )
        select_by(scope, [field["jsonPath"] for field in version.get("selectableFields") or ()])
        if name != self.storage:
            scope.to_storage, scope.prunes_for_storage = self._to_storage(), True
        if "status" in subresources:
            scope.subresources["status"] = {"verbs": _SUBRESOURCE_VERBS}
            scope.subresource_strategies["status"] = self._strategy(CustomStatusStrategy, gvk, subresources, scale)
        if scale is not None:
            scope.subresources["scale"] = {"verbs": _SUBRESOURCE_VERBS, **_SCALE_KIND}
        return scope

    def _lacks_defaults(self) -> bool:
        """Whether new objects may be stored without defaults of the stored version, which they get when they are read.

        Creation drops the status after defaults are filled in; an object of another version has that one's defaults.
        """
        stored = self.pipelines[self.storage]
        return _fills_status(stored) or (len(self.pipelines) > 1 and stored.fills)

    def _view(self, gvk: GroupVersionKind) -> View:
        read = self._reader(gvk.version)
        storage = f"{self.group}/{self.storage}"
        prune = self._pruner(gvk.version)
        if self.converter is not None:
            place = f"/{self.group}/{self.names['plural']}"
            return WebhookView(place, gvk.api_version, storage, read, prune, self.fresh_after, self.converter)

        def convert(obj: Object) -> None:
            obj["apiVersion"] = gvk.api_version
            prune(obj)

        return View(read, self.fresh_after, None if gvk.version == self.storage else convert, storage)

    def _pruner(self, version: str) -> Change:
        pipeline = self.pipelines[version]

        def prune(obj: Object) -> None:
            pipeline.prune(obj, lenient=True)

        return prune

    def _reader(self, version: str) -> Change:
        """What brings an object that was stored under another schema, or in another version, into this version's form.

        It is read by the schema of the version that it was stored in, which also fills in the defaults; then it is
        converted, unless a webhook does that.
        """
        pipelines, fallback = self.pipelines, self.pipelines[self.storage]
        local, api_version = self.converter is None, f"{self.group}/{version}"

        def read(obj: Object) -> None:
            stored = obj["apiVersion"].rpartition("/")[2]
            own = pipelines.get(stored, fallback)
            obj["metadata"], _ = coerce_object_meta(obj["metadata"], drop_malformed=True)
            own.prune(obj, lenient=True)
            own.default(obj)
            if stored != version and local:
                obj["apiVersion"] = api_version
                pipelines[version].prune(obj, lenient=True)

        return read

    def _to_storage(self) -> Callable[[Object], Object]:
        """What turns an object of another version into the stored one: pruned by the stored version."""
        api_version, pipeline = f"{self.group}/{self.storage}", self.pipelines[self.storage]
        versions = self.versions

        def convert(obj: Object) -> Object:
            stored: Object = {**codec.copy(versions.convert(obj, api_version)), "apiVersion": api_version}
            pipeline.prune(stored, lenient=True)
            return stored

        return convert

    def _strategy(
        self, make: type[CustomStrategy], gvk: GroupVersionKind, subresources: Object, scale: ScaleMapping | None
    ) -> CustomStrategy:
        return make(
            gvk,
            self.pipelines[gvk.version],
            self.views[gvk.version],
            self.versions,
            namespaced=self.spec["scope"] == "Namespaced",
            has_status="status" in subresources,
            scale=scale,
            with_status=tuple(
                f"{self.group}/{version['name']}"
                for version in self.spec["versions"]
                if "status" in (version.get("subresources") or {})
            ),
        )


def _fills_status(pipeline: SchemaPipeline) -> bool:
    """Whether objects get a status when they are read."""
    status = pipeline.node.properties.get("status")
    return status is not None and status.default is not None


def _schema(version: Object) -> Object | None:
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _converter(conversion: Object, webhooks: WebhookCaller, name: str) -> WebhookConverter | None:
    if conversion.get("strategy") != "Webhook":
        return None
    return WebhookConverter(webhooks, conversion["webhook"], name)


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


def _deprecation(gvk: GroupVersionKind, version: Object, versions: Sequence[Object]) -> str:
    if not version.get("deprecated"):
        return ""
    if text := version.get("deprecationWarning"):
        return str(text)
    rank = version_priority(gvk.version)
    newer = [
        v["name"] for v in versions if v["served"] and not v.get("deprecated") and version_priority(v["name"]) < rank
    ]
    text = f"{gvk.api_version} {gvk.kind} is deprecated"
    return f"{text}; use {gvk.group}/{min(newer, key=version_priority)} {gvk.kind}" if newer else text


def storage_version_hash(group: str, version: str, kind: str) -> str:
    """Upstream's short hash that tells clients when the storage version changes."""
    text = f"{group}/{version}/{kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()
