"""What every write shares: who writes, what admission is told, taking turns, and the swap in the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from steersman._util.keylock import KeyLocks
from steersman.apimachinery.apply.managers import APPLY, Writer
from steersman.apimachinery.gvk import GroupVersionKind
from steersman.apiserver import rest
from steersman.apiserver.admission import Admission, Attributes, Form
from steersman.apiserver.admission.chain import Annotate, untold
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.resting import Resting
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.sizes import check_size
from steersman.apiserver.strategy import Object
from steersman.apiserver.unreadable import Unreadable
from steersman.apiserver.watchcache import Entry
from steersman.store.interface import Store


@dataclass(slots=True)
class WriteContext:
    """Who writes, how, and when (`now` in RFC 3339); `warn` collects texts for Warning headers.

    `authorize_create` is asked before an update creates; it raises Forbidden. `owns`: the change brings its own
    managedFields. `options` are the request's, without their kind.
    """

    user: UserInfo
    writer: Writer
    now: str
    dry_run: bool = False
    subresource: str = ""
    warnings: list[str] = field(default_factory=list)
    authorize_create: rest.Check = rest.allow
    owns: bool = False
    annotate: Annotate = untold
    options: Object = field(default_factory=dict)
    resting: Resting | None = None

    @property
    def applies(self) -> bool:
        """Server-side apply: the change brings its own managedFields, and creates what is missing."""
        return self.writer.operation == APPLY

    def warn(self, texts: list[str]) -> None:
        self.warnings.extend(text for text in texts if text not in self.warnings)


class Facet(Protocol):
    """What a subresource of another kind shows of an object, and how a change of that becomes one of the object.

    `kind` is that kind, `form` its rules.
    """

    @property
    def kind(self) -> GroupVersionKind: ...

    @property
    def form(self) -> Form: ...

    def view(self, obj: Object) -> Object:
        """What the subresource shows, with its owners: what a request changes."""

    def plain(self, obj: Object) -> Object:
        """The same without owners."""

    def merge(self, old: Object, changed: Object) -> Object:
        """The object with what was changed, as a new top level and metadata."""


class Writes:
    """The store as writes see it. `is_stale` tells whether what a key holds should be written anew as it is."""

    def __init__(
        self, store: Store, admission: Admission, is_stale: Callable[[bytes], Awaitable[bool]] | None = None
    ) -> None:
        self.store = store
        self.admission = admission
        self.is_stale = is_stale
        self._locks = KeyLocks()

    async def swap(
        self, scope: ResourceScope, key: str, expected: int, value: bytes | None, resting: Resting | None = None
    ) -> int:
        """Write to the store, unless the resource has another form by now.

        Raises TooLarge, Claimed and what the store raises.
        """
        if value is not None:
            check_size(scope.storage_key(key), value, expected)
        if scope.claims is not None:
            async with scope.claims.held(key, value):
                return await self.store.swap(scope.storage_key(key), expected, value)
        epoch = scope.epoch
        if epoch is None:
            return await self.store.swap(scope.storage_key(key), expected, value)
        epoch.begin()
        revision = 0
        try:
            premises = resting.premises if resting is not None else None
            revision = await self.store.swap(scope.storage_key(key), expected, value, premises)
            if resting is not None:
                resting.held = True
            return revision
        finally:
            epoch.end(revision)

    def turn(self, scope: ResourceScope, key: str) -> AbstractAsyncContextManager[None]:
        """The writers of one key take turns, unless others are asked meanwhile, who may themselves want to write."""
        if self.admission.mutates or self.admission.judges or scope.view.remote:
            return nullcontext()
        return self._locks.hold((scope.cache.prefix, key))


async def readable(scope: ResourceScope, entry: Entry, *, dry_run: bool) -> Object:
    """A new tree of what a write starts from; a dry run fails in the words of a read."""
    if scope.view.remote:
        try:
            await scope.view.prepare([entry])
        except Unreadable as error:
            raise error if dry_run else error.of_write() from None
    return scope.view.tree(entry)


async def answered(scope: ResourceScope, entry: Entry) -> Entry:
    """What a write gives back, ready to be read."""
    if scope.view.remote:
        try:
            await scope.view.prepare([entry])
        except Unreadable as error:
            raise error.of_answer() from None
    return entry


@contextmanager
def begun(attributes: Attributes, obj: Object, old: Object | None, ctx: WriteContext) -> Iterator[None]:
    """Give an object what the server gives out to its kind; what is not stored in the end is taken back."""
    begin = attributes.scope.begin
    if begin is not None and not ctx.subresource:
        attributes.afterwards.append(begin(obj, old, ctx.dry_run))
    stored = False
    try:
        yield
        stored = not ctx.dry_run
    finally:
        attributes.finish(stored)


def attributes_of(
    operation: str,
    scope: ResourceScope,
    namespace: str,
    name: str,
    obj: Object | None,
    old: Object | None,
    ctx: WriteContext,
    facet: Facet | None = None,
) -> Attributes:
    kind = "CreateOptions" if operation == "CREATE" else "UpdateOptions"
    return Attributes(
        operation,
        scope,
        namespace,
        name,
        obj,
        old,
        ctx.user,
        ctx.dry_run,
        ctx.subresource,
        kind=None if facet is None else facet.kind,
        form=None if facet is None else facet.form,
        options={"kind": kind, "apiVersion": "meta.k8s.io/v1", **ctx.options},
        warn=ctx.warn,
        annotate=ctx.annotate,
    )
