"""The API server: composed, started and stopped here.

It runs on the caller's event loop. `steersman.controlplane` adds the controllers that work over the API.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steersman._util.dataclass import dataclass
from steersman.api.flowcontrol.fixed import LEVELS, SCHEMAS
from steersman.apiserver.admission import Plugin, Validator
from steersman.apiserver.admission.composition import Surroundings, compose
from steersman.apiserver.admission.names import left_out
from steersman.apiserver.authn.authenticator import (
    Authenticator,
    BearerTokens,
    RemoteAuthenticator,
    RequestAuthenticator,
)
from steersman.apiserver.authn.service_accounts import ServiceAccountConfig, ServiceAccountTokens
from steersman.apiserver.authn.settings import TokenSettings
from steersman.apiserver.authn.tokens import StaticTokens
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authn.x509 import ClientCertificates
from steersman.apiserver.authz.settings import RBAC, AuthorizerSettings
from steersman.apiserver.bootstrap import bootstrap
from steersman.apiserver.builtins import builtin_scopes
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.config_files import FollowedFile
from steersman.apiserver.core import Core
from steersman.apiserver.crd.deferred import CustomResources
from steersman.apiserver.feed import END, FIRST, Feed
from steersman.apiserver.filters.stack import Filters
from steersman.apiserver.first_objects import write_first_objects
from steersman.apiserver.flowcontrol.fairness import Fairness
from steersman.apiserver.flowcontrol.objects import Upkeep, scope_of
from steersman.apiserver.identity import Identity, Permissions, everything, permissions
from steersman.apiserver.measured import MeasuredStore
from steersman.apiserver.metrics import Metrics
from steersman.apiserver.quota_charges import QuotaCharges, save_status
from steersman.apiserver.registry import Registry
from steersman.apiserver.resting import PremiseBook
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import WatchCache
from steersman.apiserver.webhooks.caller import WebhookCaller
from steersman.apiserver.webhooks.services import Address, known_services
from steersman.net.http import Request
from steersman.net.listen import listen as open_listener
from steersman.net.server import Server
from steersman.store.interface import Store, StoreError

if TYPE_CHECKING:
    from steersman.apiserver.audit.auditor import Auditor
    from steersman.apiserver.encryption.configuration import Ciphers
    from steersman.apiserver.encryption.store import EncryptedStore
    from steersman.apiserver.faults import FaultPlan

log = logging.getLogger("steersman.apiserver")
ENCRYPTED = b"k8s:enc:"
"""What encrypted values begin with, and no others."""
_EVENTS = b"/registry/events/"
ANONYMOUS_PATHS = ("/healthz", "/livez", "/readyz", "/version")


@dataclass(frozen=True, slots=True)
class Encryption:
    """How values are encrypted in the store, whose keys have `root` before them there. They follow `file` (its path,
    and what it held when it was read), if there is one."""

    ciphers: Ciphers
    root: str = ""
    file: tuple[Path, bytes] | None = None


@dataclass(slots=True)
class ServerConfig:
    """How to serve. `tls` None means plain HTTP. `authorizers` are asked who may do what, in this order; they follow
    `authorization_file` (its path, and what it held when they were read) if there is one.

    `anonymous` allows requests without credentials (RBAC then leaves them health and version); `insecure` takes every
    request for an administrator's, and is meant for tests on loopback. `enabled_plugins` run beside those that run by
    default, `disabled_plugins` do not; `admission_plugins` are the embedder's own. `service_addresses` says by
    (namespace, name) where Services that webhooks stand behind are reached. `audit` makes what records requests, None
    records none. With `fairness` the limits are shared out among priority levels, and requests wait in fair queues.
    `faults` are what is to go wrong. Events go `event_ttl` seconds after their last write. `listener` listens at
    `host` and `port` already. `encryption` is that of values in the store; None leaves them as they are.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None
    tokens: StaticTokens | None = None
    client_certificates: bool = False
    authorizers: Sequence[AuthorizerSettings] = RBAC
    authorization_file: tuple[Path, bytes] | None = None
    anonymous: bool | tuple[str, ...] = True
    token_settings: TokenSettings = field(default_factory=TokenSettings)
    insecure: bool = False
    enabled_plugins: frozenset[str] = frozenset()
    disabled_plugins: frozenset[str] = frozenset()
    admission_plugins: Sequence[Plugin | Validator] = field(default_factory=tuple)
    max_reads: int = 400
    max_writes: int = 200
    fairness: bool = True
    token_file: Path | None = None
    service_accounts: ServiceAccountConfig = field(default_factory=ServiceAccountConfig)
    service_addresses: Mapping[tuple[str, str], Address] = field(default_factory=dict)
    audit: Callable[[], Auditor] | None = None
    faults: FaultPlan | None = None
    listener: socket.socket | None = None
    encryption: Encryption | None = None
    event_ttl: float = 3600.0


ADMINISTRATOR = UserInfo("admin", "", ("system:masters",))


class APIServer:
    """A running server: `url`, `port`, `core` (registry, caches, catalog)."""

    def __init__(self, core: Core, filters: Filters, crds: CustomResources, feed: Feed) -> None:
        self.core = core
        self.filters = filters
        self._crds = crds
        self._feed = feed
        self._upkeep = Upkeep(core)
        self._http: Server | None = None
        self._encryption: FollowedFile | None = None
        self.failed: asyncio.Future[StoreError] = asyncio.get_running_loop().create_future()

    @classmethod
    async def start(cls, store: Store, config: ServerConfig, *, listen: bool = True) -> APIServer:
        """Load what is stored, create what must exist, and serve. Raises StoreError, ListenError.

        Without `listen` there is no socket: requests are handed to `filters`.
        """
        # Who connects from now on waits, instead of being refused, until all is loaded.
        listener = (config.listener or await open_listener(config.host, config.port)) if listen else None
        try:
            return await cls._start(store, config, listener)
        except BaseException:
            if listener is not None:
                listener.close()
            raise

    @classmethod
    async def _start(cls, store: Store, config: ServerConfig, listener: socket.socket | None) -> APIServer:
        core = await _compose(store, config)
        authenticator = _authenticator(config, core.identity.tokens)
        filters = Filters(
            core,
            authenticator,
            core.identity.authorizer,
            max_reads=config.max_reads,
            max_writes=config.max_writes,
            auditor=config.audit() if config.audit is not None else None,
            fairness=_fairness(core, config),
            faults=config.faults,
        )
        core.authorize_create = filters.authorize_create
        crds = CustomResources(core)
        feed = Feed(core.store, core.cache, core.hub)
        if store.shared and not store.read_only:
            core.premises = PremiseBook(core.cache, core.catalog, core.registry.admission)
        core.settle = feed.settle if store.shared else None
        server = cls(core, filters, crds, feed)
        if not store.read_only:
            await server._create_first(config)
            if filters.fairness is not None:
                await server._upkeep.start()
        crds.start()
        core.identity.start()
        server._follow_encryption(config)
        if listener is not None:
            server._http = await Server.start(filters.handle, host=config.host, ssl=config.tls, listener=listener)
            if config.faults is not None:
                config.faults.interrupt = server._http.interrupt
        core.ready = True
        return server

    def _follow_encryption(self, config: ServerConfig) -> None:
        """Read the file with the keys again when it changes, and what could not be decrypted before."""
        encrypted = self.core.encrypted
        if encrypted is None or config.encryption is None or config.encryption.file is None:
            return
        from steersman.apiserver.encryption.configuration import read_configuration

        path, held = config.encryption.file

        async def apply(raw: bytes) -> None:
            encrypted.use(read_configuration(raw, str(path)))
            if encrypted.unreadable:
                with encrypted.told_as_before():
                    await self._feed.read_anew()

        self._encryption = FollowedFile(path, held, apply)
        self._encryption.start()

    async def _create_first(self, config: ServerConfig) -> None:
        """Create what must exist; in an empty store, where no plugin of the embedder's looks on, all at once."""
        core, rbac = self.core, self.core.identity.permissions.rbac is not None
        if core.cache.empty and not config.admission_plugins:
            fairness = self.filters.fairness is not None
            await write_first_objects(core.store, core.now(), rbac=rbac, fairness=fairness)
        else:
            await bootstrap(core, rbac=rbac)

    @property
    def port(self) -> int:
        assert self._http is not None
        return self._http.port

    @property
    def address(self) -> tuple[int, tuple[Any, ...]]:
        """The family of its listening socket, and where that is bound."""
        assert self._http is not None
        return self._http.address

    @property
    def url(self) -> str:
        assert self._http is not None
        return self._http.url

    async def stop(self, grace: float = 10.0) -> None:
        """Refuse new connections, end watches, finish running requests within `grace` seconds, stop the controllers.

        The store is the caller's and stays open.
        """
        self.core.ready = False
        if self._http is not None:
            await self._http.stop(grace)
        if self.filters.auditor is not None:
            await self.filters.auditor.close()
        if self._encryption is not None:
            await self._encryption.stop()
        await self._upkeep.stop()
        await self._crds.stop()
        await self.core.webhooks.close()
        await self.core.identity.close()
        await self._feed.close()


async def _compose(store: Store, config: ServerConfig) -> Core:
    metrics = Metrics()
    store = MeasuredStore(store, metrics)
    store, encrypted = _readable(store, config.encryption, metrics)
    store.expire(_EVENTS, config.event_ttl)
    snapshot = await store.range(FIRST, END)
    if encrypted is None and any(item.value.startswith(ENCRYPTED) for item in snapshot.items):
        store, encrypted = _readable(store, Encryption({}), metrics)
        snapshot = await store.range(FIRST, END)
    cache = WatchCache()
    cache.load(snapshot.items, snapshot.revision)
    catalog = Catalog()
    catalog.offer(builtin_scopes(cache))
    permitted = everything() if config.insecure else permissions(config.authorizers, config.authorization_file, catalog)
    find, slices = partial(_find, catalog), partial(_endpoint_slices, catalog)
    webhooks = WebhookCaller(known_services(config.service_addresses, find, slices), config.faults)
    charges = QuotaCharges()
    around = Surroundings(
        catalog,
        cache,
        permitted.authorizer,
        webhooks,
        metrics,
        lambda quota: save_status(core, quota),
        charges,
        config.admission_plugins,
        left_out(config.enabled_plugins, config.disabled_plugins),
        permitted.rbac,
    )
    accounts = ServiceAccountTokens(config.service_accounts, find)
    static = [config.tokens] if config.tokens is not None else []
    remote, followed = _remote(config, accounts, permitted)
    tokens = BearerTokens([*static, accounts], accounts.audiences, remote)
    identity = Identity(tokens, accounts, permitted, followed)
    is_stale = encrypted.is_stale if encrypted is not None and config.encryption is not None else None
    registry = Registry(store, compose(around), is_stale)
    core = Core(store, cache, registry, catalog, metrics, identity, webhooks, quota_charges=charges)
    core.encrypted = encrypted
    core.event_ttl = config.event_ttl
    if store.shared:
        from steersman.apiserver.claims import Claims

        services = catalog.look_up("", "v1", "services")
        assert services is not None
        services.claims = Claims(store, services.cache, core.now)
    core.checks["ping"] = lambda: None
    core.checks["etcd"] = store.trouble
    return core


def _readable(store: Store, encryption: Encryption | None, metrics: Metrics) -> tuple[Store, EncryptedStore | None]:
    """A store as its values were before they were encrypted, and as if all had been written here."""
    encrypted = None
    others = store.shared or store.read_only
    if encryption is not None or others:
        from steersman.apiserver.encryption.store import EncryptedStore
        from steersman.apiserver.foreign import TranslatedStore  # a store of our own has nothing to translate

        given = encryption or Encryption({})
        encrypted = EncryptedStore(store, given.ciphers, given.root, metrics if encryption is not None else None)
        store = TranslatedStore(encrypted)
    return store, encrypted


def _fairness(core: Core, config: ServerConfig) -> Fairness | None:
    """Seats for as many requests as the limits allow together; without limits there is nothing to share out."""
    seats = config.max_reads + config.max_writes
    if not config.fairness or not seats:
        return None
    return Fairness(scope_of(core, SCHEMAS).cache, scope_of(core, LEVELS).cache, seats)


def _remote(
    config: ServerConfig, accounts: ServiceAccountTokens, permitted: Permissions
) -> tuple[list[RemoteAuthenticator], list[FollowedFile]]:
    """Those who are asked whose tokens are, which few servers have."""
    if config.insecure or not config.token_settings.remote:
        return [], []
    from steersman.apiserver.authn.composition import remote_authenticators

    issuers = config.service_accounts.issuers
    return remote_authenticators(config.token_settings, accounts.audiences, issuers, permitted.caller)


def _find(catalog: Catalog, resource: str, namespace: str, name: str) -> Object | None:
    """An object of the core group, None when it is not there."""
    scope = catalog.look_up("", "v1", resource)
    assert scope is not None
    entry = scope.cache.get(f"{namespace}/{name}" if scope.namespaced else name)
    return None if entry is None else scope.view.tree(entry)


def _endpoint_slices(catalog: Catalog, namespace: str, service: str) -> Iterator[Object]:
    """The EndpointSlices of a Service."""
    scope = catalog.look_up("discovery.k8s.io", "v1", "endpointslices")
    assert scope is not None
    for key in scope.cache.select(namespace):
        entry = scope.cache.entries[key]
        if entry.labels.get("kubernetes.io/service-name") == service:
            yield scope.view.tree(entry)


class Insecure:
    """Takes every request for an administrator's."""

    async def authenticate(self, request: Request) -> UserInfo | None:
        return ADMINISTRATOR


def _authenticator(config: ServerConfig, tokens: BearerTokens) -> Authenticator:
    if config.insecure:
        return Authenticator([Insecure()])
    found: list[RequestAuthenticator] = []
    if config.client_certificates:
        found.append(ClientCertificates())
    found.append(tokens)
    return Authenticator(found, anonymous=config.anonymous)
