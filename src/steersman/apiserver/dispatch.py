"""From a parsed request to the endpoint that answers it."""

from __future__ import annotations

from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec.negotiate import JSON
from steersman.apimachinery.errors import (
    ApiError,
    BadRequest,
    MethodNotAllowed,
    method_not_supported,
    no_such_resource,
    not_found,
)
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers, discovery, health
from steersman.apiserver.endpoints.binding import bind
from steersman.apiserver.endpoints.create import create
from steersman.apiserver.endpoints.delete import delete, delete_collection
from steersman.apiserver.endpoints.eviction import evict
from steersman.apiserver.endpoints.get import get
from steersman.apiserver.endpoints.list import list_
from steersman.apiserver.endpoints.patch import patch
from steersman.apiserver.endpoints.scale import scale
from steersman.apiserver.endpoints.update import update
from steersman.apiserver.endpoints.watch import watch
from steersman.apiserver.epoch import EpochEnded
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.resting import Resting
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Strategy
from steersman.store.interface import PremisesChanged

# Documents for discovery do not mind a slash at the end, all other paths do.
_WITH_SLASH = frozenset({"api", "apis", "openid", ".well-known", "version"})
_DOCUMENTS = (["version"], ["openid", "v1", "jwks"], [".well-known", "openid-configuration"])
_VERBS_ON_ITEM = frozenset({"get", "update", "patch", "delete"})


def no_such_method() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource", details={})


async def dispatch(core: Core, x: Exchange) -> Answer:
    """Answer a request that was let in."""
    resting = core.premises.rest(x) if core.premises is not None else None
    if resting is not None:
        answer = await _rested(core, x, resting)
        if answer is not None:
            return answer
    while True:
        try:
            return await _dispatch(core, x)
        except EpochEnded:
            continue


async def _rested(core: Core, x: Exchange, resting: Resting) -> Answer | None:
    """The answer to a write that was carried out on its premises; None if the request is to be dealt with anew."""
    known, x.resting = len(x.warnings), resting
    try:
        answer = await _dispatch(core, x)
        if resting.held:
            return answer
    except (ApiError, PremisesChanged, EpochEnded):
        if resting.held:
            raise
    finally:
        x.resting = None
    del x.warnings[known:]
    return None


async def _dispatch(core: Core, x: Exchange) -> Answer:
    info = x.info
    if info.path[:1] != "/" or info.path[:2] == "//":
        return answers.page_not_found()
    if not info.is_resource:
        return await _path(core, x)
    if not info.group and info.path.startswith("/apis"):
        return answers.page_not_found()
    if core.settle is not None and x.resting is None and not _takes_any_state(x):
        await core.settle()
    scope = core.catalog.look_up(info.group, info.version, info.resource)
    if scope is None:
        if core.catalog.is_builtin(info.group):
            raise no_such_resource()
        return answers.page_not_found()
    x.scope = scope
    if info.verb == "proxy":
        raise no_such_resource()
    if not scope.stored:
        return await _review(core, scope, x)
    if scope.deprecation:
        x.warnings.append(scope.deprecation)
    if scope.namespaced and not info.namespace and not _across_namespaces(scope, x):
        return _wrong_scope(scope, x)
    itself = info.resource == "namespaces" and info.name == info.namespace
    if not scope.namespaced and info.namespace and not itself:
        return _wrong_scope(scope, x)
    if core.encrypted is not None and core.encrypted.unreadable:
        from steersman.apiserver.encryption.unreadable import refuse_unreadable  # few servers have lost their keys

        refuse_unreadable(core.encrypted.unreadable, scope, info)
    if info.subresource:
        return await _subresource(core, scope, x)
    return await _object(core, scope, x)


def _takes_any_state(x: Exchange) -> bool:
    """Whether a read may be of an old state: `resourceVersion=0`. As upstream, all others are of what is there now."""
    return x.info.verb in ("get", "list", "watch") and x.info.first("resourceVersion") == "0"


def _across_namespaces(scope: ResourceScope, x: Exchange) -> bool:
    """Whether a request of a namespaced resource may leave the namespace out.

    It has a name where a field selector gives one, too. Built-in resources have no path to an item, custom ones the old
    one of a watch.
    """
    return x.info.verb in ("list", "watch") and (scope.custom or len(x.info.parts) == 1)


def _wrong_scope(scope: ResourceScope, x: Exchange) -> Answer:
    """A namespaced resource outside a namespace, or the other way round."""
    if scope.custom:
        return answers.page_not_found()
    if scope.namespaced and len(x.info.parts) == 1:
        raise no_such_method()
    raise no_such_resource()


async def _review(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    info = x.info
    legacy_watch = info.verb == "watch" and "watch" not in info.query
    if scope.namespaced != bool(info.namespace) or len(info.parts) > 1 or legacy_watch:
        raise no_such_resource()
    if info.verb != "create":
        raise no_such_method()
    # Deferred, as tokens and the issuer's documents are below: a server starts without them.
    from steersman.apiserver.endpoints.reviews.create import create as create_review

    return await create_review(core, scope, x)


async def _object(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    verb = x.info.verb
    if len(x.info.parts) > 2:
        raise no_such_resource()
    if not scope.custom:
        if x.info.method == "HEAD" or (verb == "watch" and x.info.method != "GET"):
            raise no_such_method()
        on_item = len(x.info.parts) > 1
        if verb not in scope.verbs or (verb in _VERBS_ON_ITEM and not on_item) or (verb == "create" and on_item):
            raise no_such_method()
    elif verb in ("update", "patch") and not x.info.name:
        raise BadRequest("name must be provided")
    if verb == "update":
        return await update(core, scope, scope.strategy, x, core.authorize_create(x))
    if verb == "patch":
        return await patch(core, scope, scope.strategy, x, core.authorize_create(x))
    endpoint = _ENDPOINTS.get(verb)
    if endpoint is None:
        raise no_such_method() if not scope.custom else method_not_supported(scope.group, scope.resource, verb)
    return await endpoint(core, scope, x)


_ENDPOINTS = {
    "get": get,
    "list": list_,
    "watch": watch,
    "create": create,
    "delete": delete,
    "deletecollection": delete_collection,
}


async def _subresource(core: Core, scope: ResourceScope, x: Exchange) -> Answer:
    info = x.info
    facts = scope.subresources.get(info.subresource)
    if facts is None or len(info.parts) > 3:
        if scope.custom:
            raise not_found(scope.group, scope.resource, info.name)
        raise no_such_resource()
    if info.verb not in facts["verbs"] or (info.method == "HEAD" and not scope.custom):
        if scope.custom:
            raise method_not_supported(scope.group, scope.resource, info.verb)
        raise no_such_method()
    if info.subresource == "scale" and scope.scale is not None:
        return await scale(core, scope, x)
    if info.subresource == "token":
        from steersman.apiserver.endpoints.token_request import request_token

        return await request_token(core, scope, x)
    if info.subresource == "eviction":
        return await evict(core, scope, x)
    strategy = _strategy_of(scope, info.subresource)
    if info.subresource == "binding":
        return await bind(core, scope, x)
    if info.verb == "get":
        return await get(core, scope, x)
    if info.verb == "update":
        return await update(core, scope, strategy, x)
    if info.verb == "patch":
        return await patch(core, scope, strategy, x)
    raise no_such_method()


def _strategy_of(scope: ResourceScope, subresource: str) -> Strategy:
    strategy = scope.subresource_strategies.get(subresource)
    if strategy is None:
        raise no_such_resource()
    return strategy


async def _path(core: Core, x: Exchange) -> Answer:
    """Everything that is no object: discovery, schemas, health, version, metrics; some whatever the method."""
    parts = _parts(x.info.path)
    _see_no_document_above(parts)
    if "" in parts:
        return answers.page_not_found()
    if x.info.method != "GET" and _only_for_get(core, parts):
        raise no_such_method()
    match parts:
        case []:
            return answers.raw(200, JSON, codec.encode({"paths": core.paths()}))
        case ["api"]:
            return discovery.api_versions(core, x)
        case ["apis"]:
            return discovery.groups(core, x)
        case ["api", version]:
            return discovery.resources(core, x, "", version)
        case ["apis", group]:
            return discovery.group(core, x, group)
        case ["apis", group, version]:
            return discovery.resources(core, x, group, version)
        case ["version"]:
            return health.version(core, x)
        case ["healthz" | "livez" | "readyz" as endpoint, *check]:
            return health.health(core, x, endpoint, "/".join(check))
        case [".well-known" | "openid", *_]:
            from steersman.apiserver.endpoints import openid

            return openid.serve(core, x)
        case ["openapi", *rest]:
            return await _openapi(core, x, rest)
        case ["metrics"]:
            return await core.scrape()
        case _:
            return answers.page_not_found()


def _parts(path: str) -> list[str]:
    """The parts of a path, "" among them where it has slashes that mean nothing."""
    parts = path.split("/")[1:]
    if parts == ["apis", "", ""]:
        return parts
    while parts and parts[-1] == "" and (len(parts) == 1 or parts[0] in _WITH_SLASH):
        parts.pop()
    return parts


def _see_no_document_above(parts: list[str]) -> None:
    """Raises NotFound for a path that leads on where upstream has a web service of one document."""
    if any(parts[: len(document)] == document and parts != document for document in _DOCUMENTS):
        raise no_such_resource()


def _only_for_get(core: Core, parts: list[str]) -> bool:
    """Whether a document is given to GET alone, as upstream's web service does with those that are built in."""
    match parts:
        case ["api"] | ["version"]:
            return True
        case ["api", version] | ["apis", _, version]:
            group = "" if parts[0] == "api" else parts[1]
            return core.catalog.is_builtin(group) and version in core.catalog.groups()[group]
        case _:
            return False


async def _openapi(core: Core, x: Exchange, rest: list[str]) -> Answer:
    # Deferred: the documents' code takes a tenth of the whole start to import, and few servers are asked for them.
    from steersman.apiserver.endpoints import openapi

    match rest:
        case ["v2"]:
            return await openapi.v2(core, x)
        case ["v3", *path]:
            return await openapi.v3(core, x, "/".join(path))
        case _:
            return answers.page_not_found()
