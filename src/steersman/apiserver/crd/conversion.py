"""Custom resources in other versions through a conversion webhook.

Reads convert what they show, many objects with one call, and remember the form beside the object. Ownership and storage
are functions that cannot wait: a conversion that they miss is made, and they run again.
Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import orjson

from steersman.api.apiextensions import conversion_review as reviews
from steersman.api.apiextensions.conversion_review import ConversionError
from steersman.apimachinery.apply.typed import TypeView
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import ApiError
from steersman.apiserver.scope import Change, View, stored_prefix
from steersman.apiserver.strategy import Object
from steersman.apiserver.unreadable import MOST_CAUSES, Failure, Unreadable
from steersman.apiserver.watchcache import Entry
from steersman.apiserver.webhooks.caller import ClientConfig, WebhookCaller, WebhookError

TIMEOUT = 30
"""Seconds that a conversion may take."""
BATCH = 200
BATCH_BYTES = 4 * 1024 * 1024
T = TypeVar("T")


class WebhookConverter:
    """Asks the conversion webhook of one definition."""

    def __init__(self, caller: WebhookCaller, webhook: Mapping[str, Any], name: str) -> None:
        self._caller = caller
        self._name = name
        self._config = ClientConfig.of(webhook["clientConfig"])
        self._offered = webhook["conversionReviewVersions"]

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object | ApiError]:
        """Objects of one version in another, each converted or with the error that it met."""
        if len(objects) > 1:
            try:
                return list(await self._ask(objects, api_version))
            except WebhookError as error:
                failure = _failed(objects[0], f"failed: {error}")
                return [failure] * len(objects)
            except ConversionError:
                pass  # One by one, it shows which of them cannot be converted.
        found: list[Object | ApiError] = []
        for item in objects:
            failed = sum(isinstance(each, ApiError) for each in found)
            found.append(found[-1] if failed > MOST_CAUSES else await self.convert_one(item, api_version))
        return found

    async def convert_one(self, obj: Object, api_version: str) -> Object | ApiError:
        try:
            return (await self._ask([obj], api_version))[0]
        except WebhookError as error:
            return _failed(obj, f"failed: {error}")
        except ConversionError as error:
            return ApiError(str(error)) if error.whole else _failed(obj, str(error))

    async def _ask(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        version, uid = reviews.review_version(self._offered), str(uuid.uuid4())
        review = reviews.request(version, uid, api_version, objects)
        body = await self._caller.call(self._config, review, TIMEOUT, name=self._name)
        found = reviews.converted(version, uid, body)
        if len(found) != len(objects):
            raise ConversionError(f"returned {len(found)} objects, expected {len(objects)}")
        alone = len(objects) == 1
        return [
            reviews.check_object(original, item, api_version, None if alone else index)
            for index, (original, item) in enumerate(zip(objects, found, strict=True))
        ]


def _failed(obj: Object, why: str) -> ApiError:
    return ApiError(f"conversion webhook for {obj['apiVersion']}, Kind={obj['kind']} {why}")


class WebhookView(View):
    """Stored objects as one version serves them, when a webhook converts those of other versions.

    `read` brings a decoded object into the form that the schema of its own version asks for, and `prune` one into the
    form of this version; both in place. `place` is where errors say that the objects are stored.
    """

    remote = True

    def __init__(
        self,
        place: str,
        api_version: str,
        storage: str,
        read: Change,
        prune: Change,
        fresh_after: int | None,
        converter: WebhookConverter,
    ) -> None:
        super().__init__(read, fresh_after, stored_as=storage)
        self.is_stored = api_version == storage
        self._place = place
        self._api_version = api_version
        self._own = stored_prefix(api_version)
        self._read = read
        self._prune = prune
        self._converter = converter

    def wire(self, entry: Entry) -> bytes:
        if self._is_own(entry):
            return super().wire(entry)
        if entry.views is None:
            entry.views = {}
        wire = entry.views.get(self)
        if wire is None:
            assert entry.forms is not None, "an object is read before it is prepared"
            wire = entry.views[self] = codec.with_resource_version(entry.forms[self], entry.revision)
        return wire

    def tree(self, entry: Entry) -> Object:
        if self._is_own(entry):
            return super().tree(entry)
        obj: Object = orjson.loads(self.wire(entry))
        return obj

    def labels(self, entry: Entry) -> Mapping[str, str]:
        return entry.labels if self._is_own(entry) else self.tree(entry)["metadata"].get("labels") or {}

    def missing(self, entries: Iterable[Entry]) -> list[Entry]:
        return [item for item in entries if not self._is_own(item) and self not in (item.forms or ())]

    async def prepare(self, entries: Sequence[Entry], *, again: bool = False) -> None:
        wanted = [item for item in entries if not self._is_own(item)] if again else self.missing(entries)
        failures: list[Failure] = []
        for batch in _batches(wanted):
            failures += await self._convert(batch)
        if failures:
            raise Unreadable(failures)

    async def _convert(self, batch: Sequence[Entry]) -> list[Failure]:
        trees = [orjson.loads(entry.stored) for entry in batch]
        for tree in trees:
            self._read(tree)
        failures = []
        for entry, found in zip(batch, await self._converter.convert(trees, self._api_version), strict=True):
            if isinstance(found, ApiError):
                failures.append(Failure(f"{self._place}/{entry.key}", entry.revision, found.message))
                continue
            self._prune(found)
            if entry.forms is None:
                entry.forms = {}
            entry.forms[self] = codec.encode_object(found)
            if entry.views is not None:
                entry.views.pop(self, None)
        return failures

    def _is_own(self, entry: Entry) -> bool:
        return entry.stored.startswith(self._own)


def _batches(entries: Sequence[Entry]) -> Iterable[list[Entry]]:
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) == BATCH or size + len(entry.stored) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += len(entry.stored)
    if batch:
        yield batch


class ConversionNeeded(Exception):
    """A function asked for a conversion that is not made yet."""

    def __init__(self, key: tuple[str, bytes]) -> None:
        super().__init__(key)
        self.key = key


class WebhookVersions:
    """The versions of a definition with a webhook, for functions that run within `settle`."""

    def __init__(self, views: Mapping[str, TypeView], converter: WebhookConverter) -> None:
        self._views = views
        self._converter = converter
        self._made: dict[tuple[str, bytes], Object | ApiError] | None = None

    def view(self, api_version: str) -> TypeView | None:
        found = self._views.get(api_version)
        if found is None:
            raise ApiError(f"request to convert CR to an invalid group/version: {api_version}")
        return found

    def convert(self, obj: Object, api_version: str) -> Object:
        if obj.get("apiVersion") == api_version:
            return obj
        assert self._made is not None, "conversions are asked for outside of settle"
        key = api_version, codec.encode(obj)
        found = self._made.get(key)
        if found is None:
            raise ConversionNeeded(key)
        if isinstance(found, ApiError):
            raise found
        return found

    async def settle(self, compute: Callable[[], T]) -> T:
        """What `compute` returns, once all conversions that it asks for are made. It may run several times."""
        made: dict[tuple[str, bytes], Object | ApiError] = {}
        while True:
            self._made = made
            try:
                return compute()
            except ConversionNeeded as needed:
                key = needed.key
            finally:
                self._made = None
            made[key] = await self._converter.convert_one(orjson.loads(key[1]), key[0])
