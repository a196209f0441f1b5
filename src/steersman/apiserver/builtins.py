"""Scopes of the built-in kinds: the rules of `steersman.api`, wired to storage.

Source: kubernetes `pkg/registry/**/storage.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from steersman.api import kinds
from steersman.api.kinds import BuiltinKind, Subresource
from steersman.api.strategy import Strategy as Rules
from steersman.apimachinery import selectors
from steersman.apimachinery.apply import server_side
from steersman.apimachinery.apply.fieldset import FieldSet
from steersman.apimachinery.apply.managers import Writer, track_update
from steersman.apimachinery.apply.typed import Atom, TypeView, from_openapi, object_meta
from steersman.apimachinery.errors import ApiError, BadRequest
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.go_values import DecodeError
from steersman.apimachinery.gvk import split_api_version
from steersman.apimachinery.patch.strategic import PatchSchema
from steersman.apiserver import rest
from steersman.apiserver.catalog import Key
from steersman.apiserver.endpoints.patch_errors import conversion_error
from steersman.apiserver.scope import Column, ResourceScope, ScaleMapping, View
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import WatchCache

_DEPRECATIONS = {
    ("", "Endpoints"): "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
}
_DELETE_WARNINGS = {
    ("batch", "Job"): (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or "
        "set propagationPolicy=Orphan to suppress this warning"
    ),
}
CRD_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_DELETION_PENDING = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionPending",
    "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
}
_RETURNS_DELETED = frozenset(
    {
        ("", "namespaces"),
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        ("", "pods"),
        ("", "podtemplates"),
        ("", "resourcequotas"),
        ("", "serviceaccounts"),
        ("", "services"),
        ("resource.k8s.io", "deviceclasses"),
        ("resource.k8s.io", "resourceclaims"),
        ("resource.k8s.io", "resourceclaimtemplates"),
        ("resource.k8s.io", "resourceslices"),
        ("storage.k8s.io", "csidrivers"),
        ("storage.k8s.io", "csinodes"),
        ("storage.k8s.io", "storageclasses"),
        ("storage.k8s.io", "volumeattachments"),
        ("storage.k8s.io", "volumeattributesclasses"),
    }
)
_REPLICAS = (("spec", "replicas"), ("status", "replicas"), ("spec", "selector"))


@cache
def object_meta_view() -> Atom:
    """Who may own which part of `metadata`: the same for every kind."""
    return object_meta(kinds.schemas())


@cache
def field_description(field: str) -> str:
    """The API's own words for a field of ObjectMeta, as tables repeat them."""
    wanted = "Name" if field == "name" else "Age"
    columns = kinds.builtin_kind("", "v1", "ConfigMap").strategy.columns
    return next(str(column["description"]) for column in columns if column["name"] == wanted)


class BuiltinRules:
    """The rules of a built-in kind, or of one of its subresources, as the registry asks for them."""

    error_kind = ""

    def __init__(self, kind: BuiltinKind, rules: Rules) -> None:
        self.kind = kind
        self.rules = rules
        self.reset = FieldSet.of(*rules.reset_fields) if rules.reset_fields else FieldSet()
        self.allow_create_on_update = rules.allow_create_on_update
        self.allow_unconditional_update = rules.allow_unconditional_update
        self.returns_deleted = (kind.group, kind.plural) in _RETURNS_DELETED
        self._view: TypeView | None = None

    @property
    def type_view(self) -> TypeView:
        if self._view is None:
            self._view = _type_view(self.kind)
        return self._view

    def decode(self, obj: Object) -> tuple[Object, list[str]]:
        decoded, unknown = self.kind.decode(obj)
        if (obj.get("metadata") or {}).get("managedFields") == []:
            decoded["metadata"]["managedFields"] = []  # asks to end tracking, which is not the same as left out
        self._keep_empty(obj, decoded)
        return decoded, unknown

    def _keep_empty(self, given: Object, decoded: Object) -> None:
        if decoded.get("immutable"):
            decoded.update({key: {} for key in self.rules.fixed_if_empty if given.get(key) == {}})

    def default(self, obj: Object) -> None:
        self.rules.default(obj)

    def before_create(self, obj: Object) -> list[FieldError]:
        return self.rules.before_create(obj)

    def before_update(self, obj: Object, old: Object) -> list[FieldError]:
        return self.rules.before_update(obj, old)

    def first_warnings(self, obj: Object) -> list[str]:
        return self.rules.first_warnings(obj)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return self.rules.warnings(obj, old)

    def track(self, live: Object | None, new: Object, writer: Writer, now: str) -> list[Object] | None:
        return track_update(
            live,
            {key: value for key, value in new.items() if value != {} or key not in self.rules.fixed_if_empty},
            writer,
            view=self.type_view,
            api_version=self.kind.api_version,
            now=now,
            reset=self.reset,
            versions=_Versions(self.kind),
        )

    def apply(self, live: Object | None, config: Object, writer: Writer, now: str, *, force: bool) -> Object:
        return server_side.apply(
            live,
            config,
            writer,
            kind=self.kind.kind,
            view=self.type_view,
            api_version=self.kind.api_version,
            now=now,
            force=force,
            reset=self.reset,
            versions=_Versions(self.kind),
            complete=partial(self._complete, config),
        )

    def _complete(self, config: Object, merged: Object) -> Object:
        try:
            obj, _ = self.kind.decode(merged)
        except BadRequest as error:
            assert isinstance(error.__cause__, DecodeError)
            raise self._not_convertible(config, error.__cause__) from None
        self._keep_empty(merged, obj)
        self.rules.default(obj)
        return obj

    def _not_convertible(self, config: Object, error: DecodeError) -> ApiError:
        """500 without a reason: a merged object is no client's body."""
        meta, gvk = config.get("metadata") or {}, self.kind.gvk
        kind = f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"
        return ApiError(
            f"failed to convert new object ({meta.get('namespace', '')}/{meta.get('name', '')}; {kind}) to proper "
            f"version: unable to convert unstructured object to {kind}: {conversion_error(error)}"
        )

    def holds_deletion(self, obj: Object) -> bool:
        return self.kind.kind == "Namespace" and bool((obj.get("spec") or {}).get("finalizers"))

    def deletion_finalizers(self, obj: Object) -> tuple[str, ...]:
        return (CRD_FINALIZER,) if self.kind.kind == "CustomResourceDefinition" and not _terminates(obj) else ()

    def mark_deleting(self, obj: Object, now: str) -> None:
        if self.kind.kind == "Namespace":
            obj["metadata"].setdefault("deletionTimestamp", now)
            obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
        elif self.kind.kind == "CustomResourceDefinition" and not _terminates(obj):
            from steersman.api.apiextensions import set_condition  # deferred: it loads schemas and their compilers

            obj["metadata"]["deletionTimestamp"] = now
            obj["status"] = dict(obj.get("status") or {})
            set_condition(obj, _DELETION_PENDING, now)
        else:
            rest.mark_deleting(obj["metadata"], now)


class _Versions:
    """The versions of a built-in kind in its own group: what was written in another, as Events, is nobody's there."""

    def __init__(self, kind: BuiltinKind) -> None:
        self._kind = kind

    def view(self, api_version: str) -> TypeView | None:
        kind = self._in(api_version)
        return None if kind is None else _type_view(kind)

    def convert(self, obj: Object, api_version: str) -> Object:
        present = obj.get("apiVersion") or self._kind.api_version
        kind = self._in(api_version)
        if kind is None or present == api_version:
            return obj
        own = kinds.builtin_kind(*split_api_version(present), self._kind.kind)
        return kind.strategy.from_storage(own.strategy.to_storage(obj))

    def _in(self, api_version: str) -> BuiltinKind | None:
        try:
            group, version = split_api_version(api_version)
            return kinds.builtin_kind(group, version, self._kind.kind) if group == self._kind.group else None
        except KeyError:
            return None
        except ValueError as error:
            raise ApiError(str(error)) from None


@cache
def _type_view(kind: BuiltinKind) -> TypeView:
    return from_openapi(kinds.schemas(), kinds.schema_name(kind))


@cache
def patch_schema(kind: BuiltinKind) -> PatchSchema:
    """How lists of a kind merge in a strategic merge patch."""
    schemas = kinds.schemas()
    return PatchSchema(schemas, schemas[kinds.schema_name(kind)], kind.kind)


def _terminates(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


class BuiltinResource:
    """The resource of a built-in kind, as discovery lists it; its scope is made by calling it."""

    custom = False

    def __init__(self, kind: BuiltinKind, cache: WatchCache) -> None:
        self._kind = kind
        self._cache = cache
        self.gvr = kind.gvr
        self.kind = kind.kind
        self.singular = kind.singular
        self.namespaced = kind.namespaced
        self.verbs = kind.verbs
        self.short_names = kind.short_names
        self.categories = kind.categories
        self.storage_version_hash = kind.storage_version_hash

    @property
    def subresources(self) -> dict[str, dict[str, Any]]:
        return {name: _facts(self._kind, sub) for name, sub in self._kind.subresources.items()}

    def __call__(self) -> ResourceScope:
        return _scope(self._kind, self._cache)


def _facts(kind: BuiltinKind, sub: Subresource) -> dict[str, Any]:
    """A subresource as discovery tells of it."""
    if sub.kind == kind.kind:
        return {"verbs": sub.verbs}
    return {"verbs": sub.verbs, "group": sub.group, "version": sub.version, "kind": sub.kind}


def builtin_scopes(cache: WatchCache) -> dict[Key, BuiltinResource]:
    """How to make the scope of every built-in kind that is stored, and of reviews."""
    return {
        (kind.group, kind.version, kind.plural): BuiltinResource(kind, cache)
        for kind in kinds.builtin_kinds()
        if kind.stored or kind.kind.endswith("Review")
    }


def _scope(kind: BuiltinKind, cache: WatchCache) -> ResourceScope:
    rules = kind.strategy
    storage = kind.storage_kind
    main = BuiltinRules(kind, rules)
    scope = ResourceScope(
        gvr=kind.gvr,
        kind=kind.kind,
        list_kind=kind.list_kind,
        singular=kind.singular,
        namespaced=kind.namespaced,
        custom=False,
        cache=cache.resource(f"/registry/{kind.storage_prefix}/".encode()),
        view=View(convert=_reader(kind) if storage is not kind else None),
        strategy=main,
        verbs=frozenset(kind.verbs),
        columns=_columns(kind),
        to_storage=lambda obj: storage.stored_form(rules.to_storage(obj)),
        short_names=kind.short_names,
        categories=kind.categories,
        storage_version_hash=kind.storage_version_hash,
        error_group=storage.group,
        deprecation=_DEPRECATIONS.get((kind.group, kind.kind), ""),
        patch_schema=lambda: patch_schema(kind),
        stored=kind.stored,
    )
    if "scale" in kind.subresources:
        scope.scale = ScaleMapping(*_REPLICAS, selector_text=_labels if kind.group == "" else _selector)
    if kind.group == "" and kind.kind == "Pod":
        from steersman.api.core.pod import grace_period  # deferred: with the rules of a Pod, in a server that has some

        scope.grace = grace_period
    if kind.group == "" and kind.kind == "Service":
        from steersman.apiserver.services import ServiceAllocator

        scope.begin = ServiceAllocator(scope.cache).begin
    scope.delete_policy = rules.default_delete_policy
    scope.delete_warning = _DELETE_WARNINGS.get((kind.group, kind.kind), "")
    scope.select_fields = rules.select
    scope.fields_of = rules.fields_of
    for name, sub in kind.subresources.items():
        scope.subresources[name] = _facts(kind, sub)
        try:
            own = rules.subresource(name)
        except KeyError:
            continue
        scope.subresource_strategies[name] = BuiltinRules(kind, own)
    return scope


def _selector(selector: Any) -> str:
    return str(selectors.from_object(selector))


def _labels(labels: Any) -> str:
    return str(selectors.from_labels(labels))


def _reader(kind: BuiltinKind) -> Callable[[Object], None]:
    def convert(obj: Object) -> None:
        converted = kind.strategy.from_storage(obj)
        obj.clear()
        obj.update(converted)

    return convert


def _columns(kind: BuiltinKind) -> tuple[Column, ...]:
    """The columns of a kind's table; a row is made once for all its cells."""
    rules = kind.strategy
    last: list[Any] = [None, []]

    def cell(index: int) -> Callable[[Object, float], Any]:
        def get(obj: Object, now: float) -> Any:
            if last[0] is not obj:
                last[:] = [obj, rules.row(obj, datetime.fromtimestamp(now, UTC))]
            return last[1][index]

        return get

    return tuple(Column(cell=cell(index), **facts) for index, facts in enumerate(rules.columns))
