"""Deletion: at once, marked while finalizers hold the object, or after the time that its kind is given to end."""

from __future__ import annotations

from functools import partial

from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import not_found
from steersman.apimachinery.options import DeleteOptions
from steersman.apiserver import rest
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import Entry
from steersman.apiserver.writing import WriteContext, Writes, answered, attributes_of
from steersman.store.interface import CompareFailed


class Deletion:
    """Deletes objects of any scope."""

    def __init__(self, writes: Writes) -> None:
        self._writes = writes

    async def delete(
        self,
        scope: ResourceScope,
        namespace: str,
        name: str,
        options: DeleteOptions,
        ctx: WriteContext,
        *,
        named: bool = True,
    ) -> tuple[Entry, bool]:
        """Delete an object, or mark it when finalizers hold it. Returns (its last state, whether it is gone).

        `named` says that the request names it, as one that deletes a collection does not.
        """
        key = scope.key(namespace, name)
        if scope.delete_warning and options.propagation_policy is None and options.orphan_dependents is None:
            ctx.warn([scope.delete_warning])
        async with self._writes.turn(scope, key):
            while True:
                existing = scope.cache.get(key)
                if existing is None:
                    raise not_found(scope.group, scope.resource, name)
                await scope.view.prepare([existing])
                try:
                    entry, gone = await self._delete(scope, namespace, name, key, existing, options, ctx, named)
                    return (entry if gone else await answered(scope, entry)), gone
                except CompareFailed:
                    continue

    async def _delete(
        self,
        scope: ResourceScope,
        namespace: str,
        name: str,
        key: str,
        existing: Entry,
        options: DeleteOptions,
        ctx: WriteContext,
        named: bool,
    ) -> tuple[Entry, bool]:
        obj = scope.view.tree(existing)
        meta = obj["metadata"]
        rest.check_delete_preconditions(scope, name, meta, existing.revision, options)
        await self._admit_deletion(scope, namespace, name if named else "", existing, options, ctx)
        finalizers = rest.deletion_finalizers(meta.get("finalizers") or [], options, scope.delete_policy)
        finalizers += [item for item in scope.strategy.deletion_finalizers(obj) if item not in finalizers]
        if scope.grace is not None:
            return await self._delete_gracefully(scope, key, existing, obj, finalizers, options, ctx)
        if not finalizers and not scope.strategy.holds_deletion(obj):
            if ctx.dry_run or options.dry_run:
                return existing, True
            revision = await self._writes.swap(scope, key, existing.revision, None, ctx.resting)
            return Entry(key, existing.stored, revision, existing.create_revision), True
        if finalizers:
            meta["finalizers"] = finalizers
        scope.strategy.mark_deleting(obj, ctx.now)
        stored = await _stored_form(scope, obj)
        if stored == existing.stored:
            return existing, False
        if ctx.dry_run or options.dry_run:
            return Entry(key, stored, existing.revision, existing.create_revision), False
        revision = await self._writes.swap(scope, key, existing.revision, stored, ctx.resting)
        return Entry(key, stored, revision, existing.create_revision), False

    async def _admit_deletion(
        self,
        scope: ResourceScope,
        namespace: str,
        name: str,
        existing: Entry,
        options: DeleteOptions,
        ctx: WriteContext,
    ) -> None:
        attributes = attributes_of("DELETE", scope, namespace, name, None, scope.view.tree(existing), ctx)
        attributes.options = {**options.raw, "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
        await self._writes.admission.admit(attributes)
        if self._writes.admission.judges:
            await self._writes.admission.validate(attributes)

    async def _delete_gracefully(
        self,
        scope: ResourceScope,
        key: str,
        existing: Entry,
        obj: Object,
        finalizers: list[str],
        options: DeleteOptions,
        ctx: WriteContext,
    ) -> tuple[Entry, bool]:
        """Delete an object that is given time to end: it is marked first, and goes when no time is left."""
        assert scope.grace is not None
        meta = obj["metadata"]
        asked = options.grace_period_seconds
        rest.announce_deletion(meta, scope.grace(obj, asked), asked, ctx.now)
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        entry, dry_run = existing, ctx.dry_run or options.dry_run
        stored = await _stored_form(scope, obj)
        if stored != existing.stored:
            revision = existing.revision
            if not dry_run:
                revision = await self._writes.swap(scope, key, revision, stored)
            entry = Entry(key, stored, revision, existing.create_revision)
        if finalizers or meta["deletionGracePeriodSeconds"]:
            return entry, False
        if not dry_run:
            revision = await self._writes.swap(scope, key, entry.revision, None)
            entry = Entry(key, stored, revision, existing.create_revision)
        return entry, True


async def _stored_form(scope: ResourceScope, obj: Object) -> bytes:
    """What is stored of an object that was marked in the version of the request: what that lacks is lost."""
    if not scope.view.is_stored:
        obj = await scope.settled(partial(scope.to_storage, obj))
    return codec.encode_object(obj)
