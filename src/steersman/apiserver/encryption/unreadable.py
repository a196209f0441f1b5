"""Requests that need what cannot be decrypted are answered as kube-apiserver does.

Source: apiserver `pkg/storage/errors.go`, `pkg/storage/etcd3/store.go`, `pkg/storage/cacher/cacher.go`.
"""

from __future__ import annotations

from collections.abc import Mapping

from steersman.apimachinery.errors import ApiError, InternalError, TooManyRequests, qualified
from steersman.apimachinery.request_info import RequestInfo
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.unreadable import Failure, Unreadable

_WHAT = "data from the storage is not transformable"
_RETRY_SECONDS = 2


def refuse_unreadable(unreadable: Mapping[bytes, str], scope: ResourceScope, info: RequestInfo) -> None:
    """Raises what a request is answered that cannot be carried out; `unreadable` are keys, and what is wrong."""
    if info.name:
        key = scope.storage_key(scope.key(info.namespace if scope.namespaced else "", info.name))
        if key in unreadable:
            failure = _failure(key, unreadable[key])
            raise _of_write(failure) if info.verb in ("update", "patch") else Unreadable([failure])
    if info.verb == "deletecollection":
        first = scope.cache.prefix + (f"{info.namespace}/".encode() if info.namespace else b"")
        if failures := _failures(unreadable, first):
            raise Unreadable(failures).of_list(scope.group, scope.resource)
    elif info.verb in ("list", "watch") and (failures := _failures(unreadable, scope.cache.prefix)):
        raise _of_cache(scope, failures)


def _failure(key: bytes, why: str) -> Failure:
    return Failure(key.decode(errors="replace").removeprefix("/registry"), 0, why, _WHAT)


def _failures(unreadable: Mapping[bytes, str], first: bytes) -> list[Failure]:
    return [_failure(key, why) for key, why in sorted(unreadable.items()) if key.startswith(first)]


def _of_write(failure: Failure) -> ApiError:
    text = failure.plain
    return InternalError(f"Internal error occurred: {text}", details={"causes": [{"message": text}]})


def _of_cache(scope: ResourceScope, failures: list[Failure]) -> ApiError:
    """Upstream's cache of a resource is not ready while any of its objects cannot be read."""
    more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    which = f"failed to read one or more {qualified(scope.group, scope.resource)} from the storage"
    text = f"storage is (re)initializing: failed to list <unspecified>: {which}: {failures[0].text('/registry')}{more}"
    return TooManyRequests(text, details={"retryAfterSeconds": _RETRY_SECONDS})
