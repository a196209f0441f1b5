"""GET of many objects: from memory when the wanted state is the newest, from the store's history when it is older.

Source: apiserver `pkg/endpoints/handlers/get.go`, `pkg/storage/etcd3/store.go` (GetList) and `pkg/storage/cacher`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from steersman._util import clock
from steersman._util.dataclass import dataclass
from steersman.api import kinds
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec.negotiate import JSON, PROTOBUF
from steersman.apimachinery.continue_token import ContinueToken, decode_continue, encode_continue
from steersman.apimachinery.errors import ApiError, BadRequest, Expired
from steersman.apimachinery.options import ListOptions, list_options
from steersman.apiserver import rest
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, large, transform
from steersman.apiserver.endpoints.get import not_older_than
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.selection import Selection, select
from steersman.apiserver.strategy import Object
from steersman.apiserver.unreadable import Unreadable
from steersman.apiserver.watchcache import Entry, ResourceCache
from steersman.store.interface import Compacted, FutureRevision

_SNAPSHOT_IS_GONE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


_FEW = 100
"""So many objects are looked at sooner than in an index."""


@dataclass(slots=True)
class Page:
    """The entries of one answer, the state they are of, where the next page starts ("": nowhere), what is left.

    `whole` says that nothing was left out of the newest state.
    """

    entries: list[Entry]
    revision: int
    next_key: str = ""
    remaining: int | None = None
    whole: bool = False


async def list_(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    choice = answers.accepted(x, answers.MANY, scope)
    options = list_options(x.info)
    selection = await large.read(x, select, scope, x.info.namespace, options)
    page = await read(core, scope, selection, options)
    meta = list_meta(scope, page)
    if not choice.transform and choice.media_type == JSON:
        return answers.raw(200, JSON, _encoded(scope, selection, page, meta))
    if choice.media_type == PROTOBUF:
        return answers.raw(200, PROTOBUF, _protobuf(scope, page, meta, choice.transform))
    trees = [scope.view.tree(entry) for entry in page.entries]
    if choice.transform:
        found = transform.many(choice.transform, scope, trees, meta, clock.now(), x.info)
        return answers.value(200, choice, transform.versioned(found, choice.version))
    items = trees if scope.custom else [_without_kind(tree) for tree in trees]
    return answers.value(
        200, choice, {"apiVersion": scope.api_version, "kind": scope.list_kind, "metadata": meta, "items": items}
    )


def _protobuf(scope: ResourceScope, page: Page, meta: Object, transformed: str) -> bytes:
    encoder = kinds.protobuf_encoder()
    if not transformed:
        items = (answers.protobuf_message(scope, entry) for entry in page.entries)
        return encoder.encode_list(scope.api_version, scope.list_kind, meta, items)
    trees = (transform.partial(scope.view.tree(entry)) for entry in page.entries)
    version, kind = transform.META_V1, "PartialObjectMetadata"
    return encoder.encode_list(version, f"{kind}List", meta, (encoder.message(version, kind, tree) for tree in trees))


def _without_kind(tree: Object) -> Object:
    return {key: item for key, item in tree.items() if key not in ("apiVersion", "kind")}


def list_meta(scope: ResourceScope, page: Page) -> Object:
    meta: Object = {"resourceVersion": str(page.revision)}
    if page.next_key:
        meta["continue"] = encode_continue(page.revision, page.next_key)
    elif scope.custom:
        meta["continue"] = ""
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    return meta


def _encoded(scope: ResourceScope, selection: Selection, page: Page, meta: Object) -> list[bytes]:
    """The list's JSON; a whole one that was asked for before, and has not changed since, is not made again."""
    if not page.whole or not selection.everything:
        return encode_list(scope, page.entries, meta)
    key = (scope.view, selection.namespace)
    items = scope.cache.listed.get(key)
    if items is None:
        items = encode_items(scope, page.entries)
        if scope.cache.revision <= page.revision:
            scope.cache.remember_list(key, items)
    return _framed(scope, meta, items)


def encode_list(scope: ResourceScope, entries: Iterable[Entry], meta: Object) -> list[bytes]:
    """The list's JSON in parts, a join of encoded items."""
    return _framed(scope, meta, encode_items(scope, entries))


def _framed(scope: ResourceScope, meta: Object, items: bytes) -> list[bytes]:
    head = codec.encode({"apiVersion": scope.api_version, "kind": scope.list_kind, "metadata": meta})
    return [b'%b,"items":[' % head[:-1], items, b"]}"]


def encode_items(scope: ResourceScope, entries: Iterable[Entry]) -> bytes:
    """The items of a list, joined; those of built-in lists leave apiVersion and kind out."""
    wire = scope.view.wire
    if scope.custom:
        return b",".join([wire(entry) for entry in entries])
    skip = len(codec.encode({"apiVersion": scope.api_version, "kind": scope.kind}))
    return b",".join([b"{" + wire(entry)[skip:] for entry in entries])


async def read(core: Core, scope: ResourceScope, selection: Selection, options: ListOptions) -> Page:
    """The page of a list that the options ask for, ready to be read.

    Raises BadRequest, Expired, Timeout, and StoreReadError for objects that cannot be converted.
    """
    try:
        page = await _read(core, scope, selection, options)
        if scope.view.remote:
            await scope.view.prepare(page.entries)
        return page
    except Unreadable as error:
        raise error.of_list(scope.group, scope.resource) from None


async def _read(core: Core, scope: ResourceScope, selection: Selection, options: ListOptions) -> Page:
    text = options.resource_version
    if options.continue_token:
        if text not in ("", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")
        token = decode_continue(options.continue_token)
        return await _continue(core, scope, selection, options, token)
    try:
        wanted = rest.parse_option(text)
    except ApiError as error:
        raise BadRequest(f"invalid resource version: {error.message}") from None
    not_older_than(core, wanted)
    match = options.resource_version_match
    if wanted and (match == "Exact" or (match == "" and options.limit)):
        try:
            return await _snapshot(core, scope, selection, options.limit, wanted, "")
        except Compacted:
            raise Expired("The resourceVersion for the provided list is too old.") from None
    limit = 0 if text == "0" else options.limit
    return await _newest(core, scope, selection, limit, "")


async def _continue(
    core: Core, scope: ResourceScope, selection: Selection, options: ListOptions, token: ContinueToken
) -> Page:
    if token.revision < 0:
        return await _newest(core, scope, selection, options.limit, token.start)
    not_older_than(core, token.revision)
    try:
        return await _snapshot(core, scope, selection, options.limit, token.revision, token.start)
    except Compacted:
        raise _expired_token(token) from None


def _expired_token(token: ContinueToken) -> Expired:
    error = Expired(_SNAPSHOT_IS_GONE)
    error.list_meta = {"continue": encode_continue(-1, token.start)}
    return error


async def _newest(core: Core, scope: ResourceScope, selection: Selection, limit: int, start: str) -> Page:
    cache = scope.cache
    entries = cache.entries
    if selection.everything:
        span = cache.span(selection.namespace, start)
        end = min(span.start + limit, span.stop) if limit else span.stop
        page = cache.keys[span.start : end]
        found = [entries[key] for key in page]
        if end < span.stop:
            return Page(found, core.cache.revision, page[-1] + "\0", span.stop - end)
        return Page(found, core.cache.revision, whole=not start)
    keys = _candidates(cache, selection, start)
    return await _cut([entries[key] for key in keys], selection, limit, core.cache.revision)


def _candidates(cache: ResourceCache, selection: Selection, start: str) -> Sequence[str]:
    """The keys, in order, of what may be selected."""
    namespace = selection.namespace
    if selection.name and namespace:
        return [key for key in (f"{namespace}/{selection.name}",) if key in cache.entries]
    label = selection.label if len(cache.keys) > _FEW else None
    if label is None:
        return cache.keys[cache.span(namespace, start)]
    prefix = f"{namespace}/" if namespace else ""
    return sorted(key for key in cache.labels.keys(*label) if key >= start and key.startswith(prefix))


async def _cut(candidates: Sequence[Entry], selection: Selection, limit: int, revision: int) -> Page:
    """The first `limit` entries that match; a selected list does not count what is left."""
    view, found = selection.scope.view, list[Entry]()
    if view.remote and selection.looks_inside:
        await view.prepare(candidates)
    for entry in candidates:
        if selection.matches(entry):
            if limit and len(found) == limit:
                return Page(found, revision, found[-1].key + "\0")
            found.append(entry)
    return Page(found, revision)


async def _snapshot(
    core: Core, scope: ResourceScope, selection: Selection, limit: int, revision: int, start: str
) -> Page:
    """The state at a revision: what is in memory if nothing has changed since, else the store's history."""
    if scope.cache.revision <= revision and core.store.compacted <= revision:
        page = await _newest(core, scope, selection, limit, start)
        page.revision = revision
        return page
    prefix = scope.cache.prefix
    first = prefix + (f"{selection.namespace}/" if selection.namespace else "").encode()
    end = first[:-1] + bytes([first[-1] + 1])
    page_limit = limit if selection.everything else 0
    try:
        found = await core.store.range(max(first, prefix + start.encode()), end, limit=page_limit, revision=revision)
    except FutureRevision:
        not_older_than(core, revision)
        raise
    entries = [
        Entry(item.key[len(prefix) :].decode(), item.value, item.mod_revision, item.create_revision)
        for item in found.items
    ]
    if selection.everything:
        if found.more:
            return Page(entries, revision, entries[-1].key + "\0", found.count - len(entries))
        return Page(entries, revision)
    return await _cut(entries, selection, limit, revision)
