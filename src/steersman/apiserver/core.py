"""What every endpoint works with: the registry, the caches, the clock and the catalog."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from steersman._util import clock
from steersman._util.dataclass import dataclass
from steersman.apimachinery.apply.managers import Writer
from steersman.apimachinery.apply.names import manager_name
from steersman.apimachinery.options import options_object
from steersman.apiserver.exchange import Exchange
from steersman.apiserver.quota_charges import QuotaCharges
from steersman.apiserver.registry import Registry
from steersman.apiserver.rest import Check, allow
from steersman.apiserver.watchcache import Change, ResourceCache, WatchCache
from steersman.apiserver.watching import WatchHub
from steersman.apiserver.webhooks.caller import WebhookCaller
from steersman.apiserver.writing import WriteContext
from steersman.net.http import Response
from steersman.store.interface import Compacted, Store, StoreEvent

if TYPE_CHECKING:
    from steersman.apiserver.catalog import Catalog
    from steersman.apiserver.encryption.store import EncryptedStore
    from steersman.apiserver.identity import Identity
    from steersman.apiserver.metrics import Metrics
    from steersman.apiserver.openapi import OpenAPI
    from steersman.apiserver.resting import PremiseBook

_SERVER_PATHS = (
    "/.well-known/openid-configuration",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/readyz",
    "/version",
)


@dataclass(slots=True)
class Core:
    """`settle`, where several servers share the store, waits until the caches have all that others have written, and
    `premises` knows what writes rest on that do not wait for it;
    `encrypted` is the store as it decrypts values, where it does."""

    store: Store
    cache: WatchCache
    registry: Registry
    catalog: Catalog
    metrics: Metrics
    identity: Identity
    webhooks: WebhookCaller
    hub: WatchHub = field(default_factory=WatchHub)
    quota_charges: QuotaCharges = field(default_factory=QuotaCharges)
    settle: Callable[[], Awaitable[None]] | None = None
    premises: PremiseBook | None = None
    encrypted: EncryptedStore | None = None
    authorize_create: Callable[[Exchange], Check] = field(default=lambda x: allow)
    checks: dict[str, Callable[[], str | None]] = field(default_factory=dict)
    ready: bool = False
    event_ttl: float = 3600.0
    openapi: OpenAPI | None = None
    _second: int = 0
    _text: str = field(default="")

    def now(self) -> str:
        """The current time as objects carry it: RFC 3339, UTC, in seconds."""
        second = int(clock.now())
        if second != self._second:
            self._second = second
            self._text = datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return self._text

    def write_context(
        self, x: Exchange, field_manager: str, *, dry_run: bool, subresource: str = "", operation: str = "Update"
    ) -> WriteContext:
        """Who makes this write, and as which field manager."""
        x.dry_run = dry_run
        manager = manager_name(field_manager, x.request.headers.get("user-agent", ""))
        writer = Writer(manager, operation, subresource)
        options = options_object(x.info) if x.info.query else {}
        ctx = WriteContext(x.user, writer, self.now(), dry_run, subresource, x.warnings, options=options)
        ctx.resting = x.resting
        if x.audit is not None:
            ctx.annotate = x.audit.annotate
        return ctx

    async def history(self, cache: ResourceCache, after: int) -> list[Change] | None:
        """A resource's changes after a revision up to now, from the store; None when they are gone for good."""
        if after < max(self.store.compacted, cache.birth):
            return None
        first, end = cache.prefix, cache.prefix[:-1] + b"0"
        events: list[StoreEvent] = []
        try:
            before = await self.store.range(first, end, revision=after)
            watch = self.store.watch(first, end, after + 1, events.extend)
            try:
                await watch.caught_up()
            finally:
                watch.cancel()
        except Compacted:
            return None
        state = {
            item.key: cache.entry(item.key, item.value, item.mod_revision, item.create_revision)
            for item in before.items
        }
        # What the cache has not got yet comes to the watch from there.
        known = [event for event in events if event.revision <= self.cache.revision]
        return [change for event in known if (change := cache.change(event, state))]

    async def forget_history(self) -> None:
        """Compact the store, and forget in the caches, too, what was overwritten or deleted: for tests."""
        revision = self.cache.revision
        with suppress(Compacted):
            await self.store.compact(revision)
        self.cache.forget_history(revision)

    def health_checks(self, endpoint: str) -> list[tuple[str, str | None]]:
        """The checks of /healthz, /livez or /readyz, each with its failure or None."""
        found = [(name, check()) for name, check in self.checks.items()]
        if endpoint == "readyz":
            found.append(("shutdown", None if self.ready else "process is shutting down"))
        return found

    def paths(self) -> list[str]:
        """What the index at / lists."""
        found = ["/api", "/api/v1", "/apis", "/apis/"]
        for endpoint in ("healthz", "livez", "readyz"):
            found += [f"/{endpoint}/{name}" for name, _ in self.health_checks(endpoint)]
        for group, versions in self.catalog.groups().items():
            if group:
                found += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted([*found, *_SERVER_PATHS])

    async def scrape(self) -> Response:
        """GET /metrics."""
        from steersman.apiserver.measured import tell_size

        await tell_size(self.store, self.metrics)
        for scope in self.catalog.scopes():
            if scope.stored:
                self.metrics.resource_objects.cell((scope.group, scope.resource))[0] = len(scope.cache.entries)
        content_type, body = self.metrics.render()
        return Response(200, (("Content-Type", content_type),), body)
