"""A client for any Kubernetes API.

Names are loaded when they are first used: importing this package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.client.client import Client as Client
    from steersman.client.config import Config as Config
    from steersman.client.config import load as load
    from steersman.client.diff import Change as Change
    from steersman.client.diff import changes as changes
    from steersman.client.diff import writers as writers
    from steersman.client.errors import ClientError as ClientError
    from steersman.client.errors import ConfigError as ConfigError
    from steersman.client.errors import CredentialsError as CredentialsError
    from steersman.client.errors import DecodeError as DecodeError
    from steersman.client.errors import NoMatch as NoMatch
    from steersman.client.models import Condition as Condition
    from steersman.client.models import CustomResource as CustomResource
    from steersman.client.models import KubernetesObject as KubernetesObject
    from steersman.client.models import MicroTime as MicroTime
    from steersman.client.models import Model as Model
    from steersman.client.models import ObjectMeta as ObjectMeta
    from steersman.client.models import OwnerReference as OwnerReference
    from steersman.client.models import Time as Time
    from steersman.client.models import custom_resource as custom_resource
    from steersman.client.models import set_condition as set_condition
    from steersman.client.modify import ConflictReport as ConflictReport
    from steersman.client.pager import Listing as Listing
    from steersman.client.rebase import Clash as Clash
    from steersman.client.rebase import RebaseConflict as RebaseConflict
    from steersman.client.resources import Kind as Kind
    from steersman.client.resources import Object as Object
    from steersman.client.resources import Resource as Resource
    from steersman.client.retry import DEFAULT_BACKOFF as DEFAULT_BACKOFF
    from steersman.client.retry import DEFAULT_RETRY as DEFAULT_RETRY
    from steersman.client.retry import Backoff as Backoff
    from steersman.client.retry import retry_on_conflict as retry_on_conflict
    from steersman.client.sync import SyncClient as SyncClient
    from steersman.client.transport import ConnectError as ConnectError
    from steersman.client.transport import TlsError as TlsError
    from steersman.client.transport import Transport as Transport
    from steersman.client.transport import TransportError as TransportError
    from steersman.client.transport import TransportTimeout as TransportTimeout
    from steersman.client.watch import Watch as Watch
    from steersman.client.watch import WatchEvent as WatchEvent

_EXPORTS = {
    "client": ("Client",),
    "config": ("Config", "load"),
    "diff": ("Change", "changes", "writers"),
    "errors": ("ClientError", "ConfigError", "CredentialsError", "DecodeError", "NoMatch"),
    "models": (
        "Condition",
        "CustomResource",
        "KubernetesObject",
        "MicroTime",
        "Model",
        "ObjectMeta",
        "OwnerReference",
        "Time",
        "custom_resource",
        "set_condition",
    ),
    "modify": ("ConflictReport",),
    "pager": ("Listing",),
    "rebase": ("Clash", "RebaseConflict"),
    "resources": ("Kind", "Object", "Resource"),
    "retry": ("DEFAULT_BACKOFF", "DEFAULT_RETRY", "Backoff", "retry_on_conflict"),
    "sync": ("SyncClient",),
    "transport": ("ConnectError", "TlsError", "Transport", "TransportError", "TransportTimeout"),
    "watch": ("Watch", "WatchEvent"),
}
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
