"""The client: every verb of the API, for typed and untyped objects alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from steersman.client.config.load import load
from steersman.client.config.model import Config
from steersman.client.http_transport import HttpTransport
from steersman.client.modify import ConflictReport, Modification
from steersman.client.options import (
    PATCH_TYPES,
    FieldValidation,
    PatchType,
    Propagation,
    default_user_agent,
    delete_options,
    is_status,
    kind_of,
    origin_of,
    own_namespace,
    query_of,
    wire,
)
from steersman.client.pager import DEFAULT_LIMIT, Listing
from steersman.client.rebase import rebase
from steersman.client.resources import Kind, Object, Resource, ResourceMapping
from steersman.client.rest import RestClient
from steersman.client.rest_mapper import RestMapper
from steersman.client.retry import DEFAULT_RETRY, Backoff
from steersman.client.schemas import Schemas, Shape
from steersman.client.transport import Transport
from steersman.client.watch import INACTIVITY, RECONNECT, Watch
from steersman.client.watch_memory import Memory
from steersman.client.watch_source import Source

if TYPE_CHECKING:
    from steersman.client.models import KubernetesObject

T = TypeVar("T")
O = TypeVar("O", bound="KubernetesObject | Object")  # noqa: E741 -- an object, typed or not

REQUEST_TIMEOUT = 65.0
"""Seconds for a request: a little longer than kube-apiserver's own 60, so that its answer is seen."""


class Client:
    """A client for one cluster; an async context manager.

        async with Client() as client:
            app = await client.get(MyApp, "example", namespace="default")           # a MyApp
            pod = await client.get(Resource("v1", "Pod"), "example")                # a dict

    Kinds are named by a model class (see `custom_resource`) or a `Resource`; objects come back as instances of that
    class or as dicts. Where `namespace` is None, the object's own namespace and then the client's default one is meant;
    `list` and `watch` mean all namespaces. It is ignored for cluster-scoped kinds, which discovery tells.

    Every method raises `ApiError` (by reason: `NotFound`, `Conflict`, `AlreadyExists`, `Invalid`, ...) for what the
    server refuses, `TransportError` when there was no answer, `NoMatch` for a kind that is not served, and
    `DecodeError` for an object that does not fit its model. `dry_run` asks the server to do all but store;
    `field_manager` names the writer in managedFields, by default the program; `field_validation` says what is done
    about unknown and duplicate fields ("Warn" by default).
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        transport: Transport | None = None,
        namespace: str | None = None,
        field_manager: str | None = None,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
        user_agent: str | None = None,
        timeout: float | None = REQUEST_TIMEOUT,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        """`config` is found by `load()` when neither it nor a `transport` is given, which may raise ConfigError.

        `namespace` is the default namespace, else the configuration's. `timeout` is in seconds for each request.
        `on_warning` gets the text of each `Warning:` header once; it is logged by default.
        """
        if config is None:
            config = load() if transport is None else Config(server="")
        self.namespace = namespace or config.namespace
        self.server = config.server
        """The server's URL; "" where only a transport of one's own knows."""
        self._field_manager = field_manager
        self._field_validation = field_validation
        self._dry_run = dry_run
        self._transport = transport or (config.connect or HttpTransport)(config)
        self.rest = RestClient(
            self._transport,
            credentials=config.credentials,
            impersonate=config.impersonate,
            user_agent=user_agent or default_user_agent(),
            timeout=timeout,
            on_warning=on_warning,
        )
        self.mapper = RestMapper(lambda path: self.rest.json("GET", path))
        self._schemas = Schemas(lambda path: self.rest.json("GET", path))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections. Closing twice is allowed."""
        await self._transport.close()

    async def server_version(self) -> dict[str, str]:
        """What `/version` says: gitVersion, major, minor, ..."""
        version: dict[str, str] = await self.rest.json("GET", "/version")
        return version

    async def get(
        self,
        kind: Kind[T],
        name: str,
        *,
        namespace: str | None = None,
        resource_version: str | None = None,
    ) -> T:
        """One object. `resource_version="0"` allows an older state, any other asks for one not older than it."""
        query = query_of(resourceVersion=resource_version)
        return kind.from_wire(await self._send("GET", kind.api_kind(), namespace, name, query=query))

    def list(
        self,
        kind: Kind[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        limit: int = DEFAULT_LIMIT,
        resource_version: str | None = None,
        resource_version_match: Literal["Exact", "NotOlderThan"] | None = None,
    ) -> Listing[T]:
        """All objects, of all namespaces by default: `async for obj in client.list(...)`, or `await ....collect()`.

        `limit` is the size of a page, 0 for all at once. Requests are made as the objects are taken.
        """
        resource = kind.api_kind()
        query = query_of(
            labelSelector=label_selector,
            fieldSelector=field_selector,
            resourceVersion=resource_version,
            resourceVersionMatch=resource_version_match,
        )

        def fetch(page_query: Mapping[str, str]) -> Awaitable[Any]:
            return self._send("GET", resource, namespace, None, query=page_query, everywhere=True)

        return Listing(kind, fetch, query, limit)

    def watch(
        self,
        kind: Kind[T],
        *,
        namespace: str | None = None,
        name: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        resource_version: str | None = None,
        initial: Literal["auto", "list", "watchlist"] = "auto",
        backoff: Backoff = RECONNECT,
        on_synced: Callable[[], None] | None = None,
        on_error: Callable[[Exception], None] | None = None,
        inactivity: float | None = INACTIVITY,
        metadata_only: bool = False,
        memory: Memory | None = None,
    ) -> Watch[T]:
        """The objects and all that happens to them, for ever, of all namespaces by default. See `Watch`.

        `name` watches one object. With a `resource_version` there is no initial state: events after it are given.
        `initial` says how the initial state is asked for: streamed if the server can ("auto"), always by a list, or
        always streamed (KEP-3157). `on_synced` is called whenever the state is complete, after the last event of it was
        taken. `on_error` hears of each failure that the watch recovers from; it is logged by default. After
        `inactivity` seconds without an event or a bookmark the connection is opened anew (None: only when the server is
        late to end it). `metadata_only` asks for PartialObjectMetadata: apiVersion, kind and metadata. `memory` keeps
        the last states of the objects, by default one of its own.
        """
        if name is not None:
            field_selector = f"{field_selector},metadata.name={name}" if field_selector else f"metadata.name={name}"
        query = query_of(labelSelector=label_selector, fieldSelector=field_selector)
        source = Source(self.rest, self.mapper, kind, namespace, query, metadata_only=metadata_only)
        return Watch(
            kind,
            source,
            resource_version=resource_version,
            initial=initial,
            backoff=backoff,
            on_synced=on_synced,
            on_error=on_error,
            inactivity=inactivity,
            memory=memory,
        )

    async def create(
        self,
        obj: O,
        *,
        namespace: str | None = None,
        field_manager: str | None = None,
        dry_run: bool | None = None,
        field_validation: FieldValidation | None = None,
    ) -> O:
        """Create an object, and give it as the server has stored it. Raises AlreadyExists, Invalid, ..."""
        body, kind = wire(obj), kind_of(obj)
        query = self._write_query(field_manager, dry_run, field_validation)
        answer = await self._send("POST", kind.api_kind(), own_namespace(body, namespace), None, query=query, body=body)
        return kind.from_wire(answer)

    async def update(
        self,
        obj: O,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool | None = None,
        field_validation: FieldValidation | None = None,
    ) -> O:
        """Replace an object. Raises Conflict when it has changed since `metadata.resourceVersion`.

        Without a resourceVersion most kinds, custom resources among them, refuse. `modify` re-reads after a conflict.
        """
        body, kind = wire(obj), kind_of(obj)
        query = self._write_query(field_manager, dry_run, field_validation)
        space, name = own_namespace(body, namespace), body.get("metadata", {}).get("name", "")
        answer = await self._send("PUT", kind.api_kind(), space, name, subresource, query=query, body=body)
        return kind.from_wire(answer)

    async def update_status(self, obj: O, *, namespace: str | None = None, field_manager: str | None = None) -> O:
        """Replace an object's status through its /status subresource; nothing else of it is written."""
        return await self.update(obj, namespace=namespace, subresource="status", field_manager=field_manager)

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        patch_type: PatchType | None = None,
        namespace: str | None = None,
        subresource: str | None = None,
        field_manager: str | None = None,
        dry_run: bool | None = None,
        field_validation: FieldValidation | None = None,
    ) -> T:
        """Change parts of an object: "merge" (RFC 7396; the default for a mapping), "json" (RFC 6902; the default for a
        list), or "strategic" (built-in kinds only). A `metadata.resourceVersion` in the patch guards it."""
        chosen: PatchType = patch_type or ("merge" if isinstance(patch, Mapping) else "json")
        query = self._write_query(field_manager, dry_run, field_validation)
        content_type = PATCH_TYPES[chosen]
        answer = await self._send(
            "PATCH", kind.api_kind(), namespace, name, subresource, query=query, body=patch, content_type=content_type
        )
        return kind.from_wire(answer)

    async def patch_status(
        self,
        kind: Kind[T],
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        patch_type: PatchType | None = None,
        namespace: str | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Change parts of an object's status through its /status subresource: the patch has the whole object's
        shape."""
        return await self.patch(
            kind,
            name,
            patch,
            patch_type=patch_type,
            namespace=namespace,
            subresource="status",
            field_manager=field_manager,
        )

    async def apply(
        self,
        obj: O,
        *,
        field_manager: str | None = None,
        force: bool = False,
        namespace: str | None = None,
        subresource: str | None = None,
        dry_run: bool | None = None,
        field_validation: FieldValidation | None = None,
    ) -> O:
        """Server-side apply: `obj` holds the fields that this manager wants, and nothing else.

        Creates the object if need be. Raises Conflict when another manager owns one of the fields with another value,
        unless `force`. Needs a field manager, here or in the client: ValueError without one.
        """
        if not (field_manager or self._field_manager):
            raise ValueError('apply needs a field_manager, for example field_manager="myapp-operator"')
        body, kind = wire(obj), kind_of(obj)
        query = self._write_query(field_manager, dry_run, field_validation)
        if force:
            query["force"] = "true"
        space, name = own_namespace(body, namespace), body.get("metadata", {}).get("name", "")
        content_type = "application/apply-patch+yaml"
        answer = await self._send(
            "PATCH", kind.api_kind(), space, name, subresource, query=query, body=body, content_type=content_type
        )
        return kind.from_wire(answer)

    async def delete(
        self,
        kind: Kind[T],
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        dry_run: bool | None = None,
    ) -> T | None:
        """Delete an object; raises NotFound when there is none.

        Gives the object if it is still there, waiting for finalizers or its grace period (in seconds), and None if the
        server says no more than that it is gone. With a `uid` or `resource_version` another object is not deleted: that
        raises Conflict. `propagation` says what becomes of what the object owns.
        """
        options = delete_options(self._dry_run if dry_run is None else dry_run, propagation, grace_period)
        if preconditions := query_of(uid=uid, resourceVersion=resource_version):
            options["preconditions"] = preconditions
        answer = await self._send("DELETE", kind.api_kind(), namespace, name, body=options)
        return None if is_status(answer) else kind.from_wire(answer)

    async def delete_collection(
        self,
        kind: Kind[T],
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        propagation: Propagation | None = None,
        grace_period: int | None = None,
        dry_run: bool | None = None,
    ) -> Sequence[T]:
        """Delete all objects in one namespace that match; gives those that the server reports as deleted."""
        query = query_of(labelSelector=label_selector, fieldSelector=field_selector)
        options = delete_options(self._dry_run if dry_run is None else dry_run, propagation, grace_period)
        resource = kind.api_kind()
        answer = await self._send("DELETE", resource, namespace, None, query=query, body=options)
        items = answer.get("items") or []
        return [kind.from_wire({"apiVersion": resource.api_version, "kind": resource.kind, **item}) for item in items]

    async def get_scale(self, kind: Kind[Any], name: str, *, namespace: str | None = None) -> Object:
        """The Scale (autoscaling/v1) of an object."""
        scale: Object = await self._send("GET", kind.api_kind(), namespace, name, "scale")
        return scale

    async def update_scale(
        self, kind: Kind[Any], name: str, scale: Object, *, namespace: str | None = None, dry_run: bool | None = None
    ) -> Object:
        """Replace the Scale of an object: `scale["spec"]["replicas"]` is what counts. Raises Conflict like `update`."""
        query = self._write_query(None, dry_run, None)
        answer: Object = await self._send("PUT", kind.api_kind(), namespace, name, "scale", query=query, body=scale)
        return answer

    async def modify(
        self,
        kind: Kind[T],
        name: str,
        change: Callable[[T], T | None] | Callable[[T], Awaitable[T | None]],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        backoff: Backoff = DEFAULT_RETRY,
        on_conflict: Callable[[ConflictReport], None] | None = None,
        field_manager: str | None = None,
    ) -> T:
        """Get an object, change it, and put it back; after a Conflict read it again and do the same.

        `change` gets the object as read, and changes it in place or returns the new one; it runs once for each attempt,
        so it must follow from the object it gets. When it changes nothing, nothing is written. Any error but Conflict
        is raised at once; after `backoff.steps` attempts the last Conflict is. `on_conflict` is told after each
        Conflict what the other writer has done, see `ConflictReport`.

        `change` of a `SyncClient` runs on the client's own event loop: it must not use the same client, which raises
        RuntimeError, but a second one.
        """
        query = self._write_query(field_manager, None, None)
        resource = kind.api_kind()

        # A status is a part of its object; any other subresource is an object of its own, such as a Scale.
        part = None if subresource == "status" else subresource

        async def read() -> Object:
            return await self._read_to_change(resource, namespace, name, part)

        async def write(body: Object) -> Object:
            answer: Object = await self._send("PUT", resource, namespace, name, subresource, query=query, body=body)
            return answer

        return await Modification(kind, read, write, change, backoff, on_conflict).run()

    async def rebase(
        self,
        obj: O,
        read: O | None = None,
        *,
        namespace: str | None = None,
        subresource: Literal["status"] | None = None,
        backoff: Backoff = DEFAULT_RETRY,
        field_manager: str | None = None,
    ) -> O:
        """Replace an object like `update`, but after a Conflict put the change on top of the other writer's.

        The change is what differs between `read`, the object as it was read, and `obj`; a typed object that was read
        remembers how it was. It is merged with what is there field by field, and in lists item by item where the
        schema names their keys. Where both have changed the same field to different values, RebaseConflict is raised:
        it says which fields, who (field managers) and when. After `backoff.steps` lost races the last Conflict is
        raised.
        """
        kind, wanted = kind_of(obj), wire(obj)
        known = wire(read) if read is not None else origin_of(obj)
        if known is None:
            raise ValueError("rebase needs the object as it was read: pass it as `read`")
        resource, name = kind.api_kind(), wanted.get("metadata", {}).get("name", "")
        space, query = own_namespace(wanted, namespace), self._write_query(field_manager, None, None)

        async def get() -> Object:
            answer: Object = await Client._send(self, "GET", resource, space, name)
            return answer

        async def put(body: Object) -> Object:
            answer: Object = await self._send("PUT", resource, space, name, subresource, query=query, body=body)
            return answer

        async def shape() -> Shape:
            return await self._schemas.shape(resource)

        return kind.from_wire(await rebase(known, wanted, get=get, put=put, shape=shape, backoff=backoff))

    async def _read_to_change(
        self, resource: Resource, namespace: str | None, name: str, subresource: str | None
    ) -> Object:
        """What `modify` begins with, and reads again after a Conflict."""
        answer: Object = await self._send("GET", resource, namespace, name, subresource)
        return answer

    async def _send(
        self,
        method: str,
        resource: Resource,
        namespace: str | None,
        name: str | None,
        subresource: str | None = None,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        everywhere: bool = False,
    ) -> Any:
        """One request to where the kind's objects live. `everywhere`: without a namespace all of them are meant."""

        async def send(mapping: ResourceMapping) -> Any:
            space = namespace or (None if everywhere else self.namespace)
            path = mapping.path(space, name, subresource)
            return await self.rest.json(method, path, (query or {}).items(), body, content_type=content_type)

        return await self.mapper.at(resource, send)

    def _write_query(
        self, field_manager: str | None, dry_run: bool | None, field_validation: str | None
    ) -> dict[str, str]:
        dry = self._dry_run if dry_run is None else dry_run
        return query_of(
            fieldManager=field_manager or self._field_manager,
            dryRun="All" if dry else None,
            fieldValidation=field_validation or self._field_validation,
        )
