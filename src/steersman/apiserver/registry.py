"""The registry: objects with rules over a store of bytes. Every write is a compare-and-swap loop.

What a loop's turn computes is a function of what is stored and what was asked, so a turn may run again. A client that
named a resourceVersion gets Conflict as soon as another one is stored; without one the change is made again on what
is there now.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.apply.managers import restore_times
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import AlreadyExists, ApiError, Invalid, already_exists, conflict, invalid, not_found
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import dedup_owner_references
from steersman.apiserver import rest
from steersman.apiserver.admission import Admission, Attributes
from steersman.apiserver.aside import patiently
from steersman.apiserver.claimed import Claimed
from steersman.apiserver.deletion import Deletion
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.sizes import TooLarge
from steersman.apiserver.strategy import Object, Strategy
from steersman.apiserver.watchcache import Entry
from steersman.apiserver.writing import Facet, WriteContext, Writes, answered, attributes_of, begun, readable
from steersman.store.interface import CompareFailed, Store

NAME_TRIES = 8
_CLAIM_WAIT = 0.02
_CREATE_WITH_VERSION = "resourceVersion should not be set on objects to be created"


class Registry:
    """Reads and writes objects of any scope."""

    def __init__(
        self, store: Store, admission: Admission, is_stale: Callable[[bytes], Awaitable[bool]] | None = None
    ) -> None:
        """`is_stale` tells whether what a key holds should be written anew although it stays as it is."""
        self.admission = admission
        self._writes = Writes(store, admission, is_stale)
        self.delete = Deletion(self._writes).delete

    async def create(self, scope: ResourceScope, namespace: str, obj: Object, ctx: WriteContext) -> Entry:
        """Store a new object. Raises AlreadyExists, Invalid, Forbidden (admission) and what the store raises."""
        attributes, version = await self._admitted(scope, namespace, obj, ctx)
        admitted = attributes.obj
        assert admitted is not None
        generated = not admitted["metadata"].get("name")
        for attempt in range(NAME_TRIES):
            new = {**admitted, "metadata": dict(admitted["metadata"])}
            rest.fill_new_metadata(new["metadata"], ctx.now)
            try:
                with begun(attributes, new, None, ctx):
                    return await self._store_new(scope, namespace, new, version, attributes, ctx)
            except AlreadyExists:
                if not generated or attempt == NAME_TRIES - 1:
                    raise
            except Claimed as claimed:
                await _others_turn(claimed, attempt, scope, new)
        raise AssertionError("unreachable")

    async def _admitted(
        self, scope: ResourceScope, namespace: str, proposed: Object, ctx: WriteContext
    ) -> tuple[Attributes, str]:
        """A new object with its owners, after the first phase of admission, and the resourceVersion that it named."""
        obj = {**proposed, "metadata": dict(proposed["metadata"])}
        meta = obj["metadata"]
        version = str(meta.get("resourceVersion") or "")
        rest.wipe_system_metadata(meta)
        if not ctx.applies:
            _own(meta, await scope.settled(lambda: scope.strategy.track(None, obj, ctx.writer, ctx.now)))
        attributes = attributes_of("CREATE", scope, namespace, meta.get("name") or "", obj, None, ctx)
        await self.admission.admit(attributes)
        _check_metadata(attributes, ctx)
        if attributes.patched and attributes.obj is not None:
            version = str(attributes.obj["metadata"].get("resourceVersion") or version)
        return attributes, version

    async def _store_new(
        self, scope: ResourceScope, namespace: str, obj: Object, version: str, attributes: Attributes, ctx: WriteContext
    ) -> Entry:
        """Judge a new object and store it; `version` is the resourceVersion that came with it."""
        strategy = scope.strategy
        name = obj["metadata"].get("name") or ""
        ctx.warn(strategy.first_warnings(obj))
        if errors := await patiently(strategy.before_create, obj):
            raise _invalid(scope, strategy, obj, name, errors)
        ctx.warn(strategy.warnings(obj, None))
        if self.admission.judges_of(scope):
            attributes.obj, attributes.name = obj, name
            await self.admission.validate(attributes)
        if _unpruned(scope, attributes, ctx):
            obj, _ = strategy.decode(obj)
        if version.isdigit() and int(version):
            raise ApiError(_CREATE_WITH_VERSION)
        stored = codec.encode_object(await scope.settled(lambda: scope.to_storage(obj)))
        key = scope.key(namespace, name)
        existing = scope.cache.get(key)
        if existing is not None:
            raise self._exists(scope, name, existing)
        if ctx.dry_run:
            return await answered(scope, Entry(key, stored, 0, 0))
        try:
            stored, revision = await self._swap(scope, key, 0, obj, stored, ctx)
        except CompareFailed:
            raise self._exists(scope, name, scope.cache.get(key)) from None
        return await answered(scope, Entry(key, stored, revision, revision))

    def _exists(self, scope: ResourceScope, name: str, existing: Entry | None) -> AlreadyExists:
        error = already_exists(scope.group, scope.resource, name)
        if existing is not None and "deletionTimestamp" in existing.decode()["metadata"]:
            error.message = f"object is being deleted: {error.message}"
        return error

    async def update(
        self,
        scope: ResourceScope,
        strategy: Strategy,
        namespace: str,
        name: str,
        change: Callable[[Object | None], Object],
        ctx: WriteContext,
        *,
        uid: str | None = None,
        version: str | None = None,
        facet: Facet | None = None,
    ) -> tuple[Entry, bool]:
        """Replace an object by what `change` makes of the stored one (None: there is none). Returns (entry, created).

        `change` may be called several times and returns a new top level and metadata each time. `uid` is a
        precondition. `version` is the resourceVersion that `change` will ask for, if that is known: a stale write then
        fails before any work is done for it. With a `facet`, that is what `change` changes. Raises NotFound, Conflict,
        Invalid and what `change` raises.
        """
        key, claims = scope.key(namespace, name), 0
        async with self._writes.turn(scope, key):
            while True:
                existing = scope.cache.get(key)
                if existing is None and not _may_create(strategy, ctx):
                    raise not_found(scope.group, scope.resource, name)
                old = await readable(scope, existing, dry_run=ctx.dry_run) if existing is not None else None
                if uid:
                    _check_uid(scope, key, name, uid, old, dry_run=ctx.dry_run)
                if existing is None or old is None:
                    return await self._create_on_update(scope, strategy, namespace, name, change, ctx)
                if version and not self.admission.mutates:
                    rest.check_resource_version(scope, name, version, existing.revision, unconditional=True)
                try:
                    entry = await self._replace(scope, strategy, namespace, name, change, old, existing, ctx, facet)
                    return await answered(scope, entry), False
                except CompareFailed:
                    continue
                except Claimed as claimed:
                    await _others_turn(claimed, claims, scope, old)
                    claims += 1

    async def _replace(
        self,
        scope: ResourceScope,
        strategy: Strategy,
        namespace: str,
        name: str,
        change: Callable[[Object | None], Object],
        old: Object,
        existing: Entry,
        ctx: WriteContext,
        facet: Facet | None,
    ) -> Entry:
        """One turn of the loop. Raises CompareFailed when something else was stored in the meantime."""
        attributes = await self._proposed(scope, strategy, namespace, name, change, old, existing, ctx, facet)
        obj = attributes.obj
        assert obj is not None
        with begun(attributes, obj, old, ctx):
            if errors := await patiently(strategy.before_update, obj, old):
                raise _invalid(scope, strategy, obj, obj["metadata"].get("name") or name, errors)
            ctx.warn(strategy.warnings(obj, old))
            if self.admission.judges_of(scope):
                await self._judge_update(attributes, obj, old, facet)
            obj = restore_times(old, obj)
            if facet is None and _unpruned(scope, attributes, ctx):
                obj, _ = strategy.decode(obj)
            stored = codec.encode_object(await scope.settled(partial(scope.to_storage, obj)))
            if stored == existing.stored and not scope.view.is_fresh(existing):
                # what gets defaults when it is read is no longer what is stored: upstream compares with both
                before = await scope.settled(partial(scope.to_storage, old))
                changes = codec.encode_object(before) != stored
            else:
                changes = stored != existing.stored
            key = scope.key(namespace, name)
            return await self._store_update(scope, key, existing, obj, stored, ctx, changes=changes)

    async def _proposed(
        self,
        scope: ResourceScope,
        strategy: Strategy,
        namespace: str,
        name: str,
        change: Callable[[Object | None], Object],
        old: Object,
        existing: Entry,
        ctx: WriteContext,
        facet: Facet | None,
    ) -> Attributes:
        """What the client wants in place of `existing`, with its owners, after the first phase of admission."""
        current = old if facet is None else facet.view(old)
        obj = await scope.settled(lambda: change(current))
        if not ctx.applies and not ctx.owns:
            managed = await scope.settled(lambda: strategy.track(old, obj, ctx.writer, ctx.now))
            _own(obj["metadata"], managed)
        attributes = attributes_of("UPDATE", scope, namespace, name, obj, current, ctx, facet)
        await self.admission.admit(attributes)
        assert attributes.obj is not None
        if facet is None:
            _check_metadata(attributes, ctx)
        obj = attributes.obj = attributes.obj if facet is None else facet.merge(old, attributes.obj)
        given = obj["metadata"].get("resourceVersion")
        rest.check_resource_version(
            scope, name, given, existing.revision, unconditional=strategy.allow_unconditional_update
        )
        obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
        return attributes

    async def _judge_update(self, attributes: Attributes, obj: Object, old: Object, facet: Facet | None) -> None:
        """The second phase of admission."""
        attributes.obj = obj if facet is None else facet.plain(obj)
        attributes.old = old if facet is None else facet.plain(old)
        await self.admission.validate(attributes)

    async def _store_update(
        self,
        scope: ResourceScope,
        key: str,
        existing: Entry,
        obj: Object,
        stored: bytes,
        ctx: WriteContext,
        *,
        changes: bool,
    ) -> Entry:
        meta = obj["metadata"]
        held = meta.get("finalizers") or meta.get("deletionGracePeriodSeconds") or scope.strategy.holds_deletion(obj)
        if "deletionTimestamp" in meta and not held:
            if not ctx.dry_run:
                await self._writes.swap(scope, key, existing.revision, None, ctx.resting)
            return Entry(key, stored, existing.revision, existing.create_revision)
        if ctx.dry_run:
            return Entry(key, stored, existing.revision, existing.create_revision)
        if not changes and not await self._is_stale(scope, key):
            return existing
        stored, revision = await self._swap(scope, key, existing.revision, obj, stored, ctx)
        return Entry(key, stored, revision, existing.create_revision)

    async def _is_stale(self, scope: ResourceScope, key: str) -> bool:
        is_stale = self._writes.is_stale
        return is_stale is not None and await is_stale(scope.storage_key(key))

    async def _swap(
        self, scope: ResourceScope, key: str, expected: int, obj: Object, stored: bytes, ctx: WriteContext
    ) -> tuple[bytes, int]:
        """Store an object, without its owners if it is too large with them. Returns what was stored, and its revision.

        Raises TooLarge and CompareFailed.
        """
        try:
            return stored, await self._writes.swap(scope, key, expected, stored, ctx.resting)
        except TooLarge:
            if ctx.applies:
                raise
        meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
        lean = {**obj, "metadata": meta}
        stored = codec.encode_object(await scope.settled(lambda: scope.to_storage(lean)))
        return stored, await self._writes.swap(scope, key, expected, stored, ctx.resting)

    async def _create_on_update(
        self,
        scope: ResourceScope,
        strategy: Strategy,
        namespace: str,
        name: str,
        change: Callable[[Object | None], Object],
        ctx: WriteContext,
    ) -> tuple[Entry, bool]:
        obj = await scope.settled(lambda: change(None))
        obj["metadata"].pop("resourceVersion", None)
        await ctx.authorize_create()
        return await self.create(scope, namespace, obj, ctx), True


async def _others_turn(claimed: Claimed, attempt: int, scope: ResourceScope, obj: Object) -> None:
    """Wait until the other's object may be known here. Raises Invalid when that was done often enough."""
    if attempt == NAME_TRIES - 1:
        problem = fe.invalid(f"spec.{'clusterIPs' if claimed.kind == 'ip' else 'ports'}", claimed.value, str(claimed))
        raise invalid(scope.group, scope.kind, obj["metadata"].get("name") or "", [problem])
    await asyncio.sleep(_CLAIM_WAIT * (attempt + 1))


def _invalid(scope: ResourceScope, strategy: Strategy, obj: Object, name: str, errors: list[FieldError]) -> Invalid:
    group = scope.group if scope.error_group is None else scope.error_group
    return invalid(group, strategy.error_kind or obj["kind"], name, errors)


def _unpruned(scope: ResourceScope, attributes: Attributes, ctx: WriteContext) -> bool:
    """Whether an object may have fields that its version does not know.

    Upstream stores what was applied as it is: other versions may know more of it.
    """
    return attributes.patched or (ctx.applies and not scope.prunes_for_storage)


def _check_metadata(attributes: Attributes, ctx: WriteContext) -> None:
    """Owners that are named twice, by a patch or a webhook, go; what came from outside has the request's namespace.

    Who owns the fields was found before: a patch that names an owner again has written it.
    """
    assert attributes.obj is not None
    meta: Object = attributes.obj["metadata"]
    ctx.warn(dedup_owner_references(meta, after_mutating_admission=True))
    if attributes.patched:
        rest.match_namespace(meta, attributes.namespace, namespaced=attributes.scope.namespaced)


def _may_create(strategy: Strategy, ctx: WriteContext) -> bool:
    """Whether an update of what is missing creates it."""
    return (strategy.allow_create_on_update or ctx.applies) and not ctx.subresource


def _check_uid(
    scope: ResourceScope, key: str, name: str, uid: str, old: Object | None, *, dry_run: bool = False
) -> None:
    current = old["metadata"]["uid"] if old else ""
    if uid != current:
        place = scope.storage_key(key).decode().removeprefix("/registry" if dry_run else "")
        why = (
            f"StorageError: invalid object, Code: 4, Key: {place}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {current}"
        )
        raise conflict(scope.group, scope.resource, name, why)


def _own(meta: Object, managed: list[Object] | None) -> None:
    if managed:
        meta["managedFields"] = managed
    else:
        meta.pop("managedFields", None)
