"""steersman: a Kubernetes-compatible API server for custom resources, and an operator runtime, in Python.

Names are loaded when they are first used: `import steersman` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from steersman.apimachinery.errors import AlreadyExists as AlreadyExists
    from steersman.apimachinery.errors import ApiError as ApiError
    from steersman.apimachinery.errors import Conflict as Conflict
    from steersman.apimachinery.errors import Expired as Expired
    from steersman.apimachinery.errors import Forbidden as Forbidden
    from steersman.apimachinery.errors import Gone as Gone
    from steersman.apimachinery.errors import Invalid as Invalid
    from steersman.apimachinery.errors import NotFound as NotFound
    from steersman.apimachinery.errors import Unauthorized as Unauthorized
    from steersman.client.client import Client as Client
    from steersman.client.config import Config as Config
    from steersman.client.config import load as load
    from steersman.client.errors import ClientError as ClientError
    from steersman.client.errors import ConfigError as ConfigError
    from steersman.client.errors import DecodeError as DecodeError
    from steersman.client.errors import NoMatch as NoMatch
    from steersman.client.models import Condition as Condition
    from steersman.client.models import CustomResource as CustomResource
    from steersman.client.models import KubernetesObject as KubernetesObject
    from steersman.client.models import Model as Model
    from steersman.client.models import ObjectMeta as ObjectMeta
    from steersman.client.models import custom_resource as custom_resource
    from steersman.client.models import set_condition as set_condition
    from steersman.client.modify import ConflictReport as ConflictReport
    from steersman.client.rebase import RebaseConflict as RebaseConflict
    from steersman.client.resources import Object as Object
    from steersman.client.resources import Resource as Resource
    from steersman.client.retry import DEFAULT_BACKOFF as DEFAULT_BACKOFF
    from steersman.client.retry import DEFAULT_RETRY as DEFAULT_RETRY
    from steersman.client.retry import Backoff as Backoff
    from steersman.client.retry import retry_on_conflict as retry_on_conflict
    from steersman.client.sync import SyncClient as SyncClient
    from steersman.client.transport import TransportError as TransportError
    from steersman.client.watch import WatchEvent as WatchEvent
    from steersman.crdgen import SchemaError as SchemaError
    from steersman.crdgen import crd_for as crd_for
    from steersman.crdgen import crds as crds
    from steersman.crdgen.markers import Duration as Duration
    from steersman.crdgen.markers import Int32 as Int32
    from steersman.crdgen.markers import IntOrString as IntOrString
    from steersman.crdgen.markers import Quantity as Quantity
    from steersman.crdgen.markers import atomic as atomic
    from steersman.crdgen.markers import column as column
    from steersman.crdgen.markers import duration as duration
    from steersman.crdgen.markers import embedded as embedded
    from steersman.crdgen.markers import int32 as int32
    from steersman.crdgen.markers import int64 as int64
    from steersman.crdgen.markers import int_or_string as int_or_string
    from steersman.crdgen.markers import list_map as list_map
    from steersman.crdgen.markers import list_set as list_set
    from steersman.crdgen.markers import nullable as nullable
    from steersman.crdgen.markers import pattern as pattern
    from steersman.crdgen.markers import preserve_unknown as preserve_unknown
    from steersman.crdgen.markers import quantity as quantity
    from steersman.crdgen.markers import raw_schema as raw_schema
    from steersman.crdgen.markers import rule as rule
    from steersman.crdgen.markers import scale as scale
    from steersman.crdgen.markers import schema as schema
    from steersman.crdgen.markers import text_format as text_format
    from steersman.runtime.cache.cache import CacheScope as CacheScope
    from steersman.runtime.cache.cache import strip_managed_fields as strip_managed_fields
    from steersman.runtime.cache.events import Event as Event
    from steersman.runtime.cluster import Cluster as Cluster
    from steersman.runtime.context import Context as Context
    from steersman.runtime.controller import Controller as Controller
    from steersman.runtime.election import Election as Election
    from steersman.runtime.finalizers import finalizing as finalizing
    from steersman.runtime.leaderelection import ConfigMapLock as ConfigMapLock
    from steersman.runtime.leaderelection import EndpointsLock as EndpointsLock
    from steersman.runtime.leaderelection import LeaderElector as LeaderElector
    from steersman.runtime.leaderelection import Leadership as Leadership
    from steersman.runtime.leaderelection import LeadershipLost as LeadershipLost
    from steersman.runtime.leaderelection import LeaseLock as LeaseLock
    from steersman.runtime.leaderelection import MultiLock as MultiLock
    from steersman.runtime.manager import Manager as Manager
    from steersman.runtime.owners import AlreadyOwned as AlreadyOwned
    from steersman.runtime.owners import set_controller_reference as set_controller_reference
    from steersman.runtime.owners import set_owner_reference as set_owner_reference
    from steersman.runtime.requests import Reason as Reason
    from steersman.runtime.requests import Request as Request
    from steersman.runtime.requests import Result as Result
    from steersman.runtime.requests import TerminalError as TerminalError
    from steersman.runtime.webhook.reviews import AdmissionRequest as AdmissionRequest
    from steersman.runtime.webhook.reviews import Denied as Denied
    from steersman.runtime.webhook.setup import Webhooks as Webhooks

__version__ = "0.1.0"

_EXPORTS = {
    "apimachinery.errors": (
        "AlreadyExists",
        "ApiError",
        "Conflict",
        "Expired",
        "Forbidden",
        "Gone",
        "Invalid",
        "NotFound",
        "Unauthorized",
    ),
    "client.client": ("Client",),
    "client.config": ("Config", "load"),
    "client.errors": ("ClientError", "ConfigError", "DecodeError", "NoMatch"),
    "client.models": (
        "Condition",
        "CustomResource",
        "KubernetesObject",
        "Model",
        "ObjectMeta",
        "custom_resource",
        "set_condition",
    ),
    "client.modify": ("ConflictReport",),
    "client.rebase": ("RebaseConflict",),
    "client.resources": ("Object", "Resource"),
    "client.retry": ("DEFAULT_BACKOFF", "DEFAULT_RETRY", "Backoff", "retry_on_conflict"),
    "client.sync": ("SyncClient",),
    "client.transport": ("TransportError",),
    "client.watch": ("WatchEvent",),
    "crdgen": ("SchemaError", "crd_for", "crds"),
    "crdgen.markers": (
        "Duration",
        "Int32",
        "IntOrString",
        "Quantity",
        "atomic",
        "column",
        "duration",
        "embedded",
        "int32",
        "int64",
        "int_or_string",
        "list_map",
        "list_set",
        "nullable",
        "pattern",
        "preserve_unknown",
        "quantity",
        "raw_schema",
        "rule",
        "scale",
        "schema",
        "text_format",
    ),
    "runtime.cache.cache": ("CacheScope", "strip_managed_fields"),
    "runtime.cache.events": ("Event",),
    "runtime.cluster": ("Cluster",),
    "runtime.context": ("Context",),
    "runtime.controller": ("Controller",),
    "runtime.election": ("Election",),
    "runtime.finalizers": ("finalizing",),
    "runtime.manager": ("Manager",),
    "runtime.owners": ("AlreadyOwned", "set_controller_reference", "set_owner_reference"),
    "runtime.requests": ("Reason", "Request", "Result", "TerminalError"),
    "runtime.webhook.reviews": ("AdmissionRequest", "Denied"),
    "runtime.webhook.setup": ("Webhooks",),
    "runtime.leaderelection": (
        "ConfigMapLock",
        "EndpointsLock",
        "LeaderElector",
        "Leadership",
        "LeadershipLost",
        "LeaseLock",
        "MultiLock",
    ),
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
