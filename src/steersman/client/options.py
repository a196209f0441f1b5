"""The small conventions of requests: query parameters, delete options, namespaces, the program's name."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from os.path import basename
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar, cast

from steersman import __version__
from steersman.client.resources import Kind, Object, Resource

if TYPE_CHECKING:
    from steersman.client.models import KubernetesObject

O = TypeVar("O", bound="KubernetesObject | Object")  # noqa: E741 -- an object, typed or not

PatchType = Literal["merge", "json", "strategic"]
Propagation = Literal["Background", "Foreground", "Orphan"]
FieldValidation = Literal["Ignore", "Warn", "Strict"]

PATCH_TYPES: Mapping[PatchType, str] = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}


def wire(obj: KubernetesObject | Mapping[str, Any]) -> Object:
    """The JSON of an object, typed or not."""
    if isinstance(obj, dict):
        return obj
    return dict(obj) if isinstance(obj, Mapping) else obj.to_wire()


def kind_of(obj: O) -> Kind[O]:
    """The kind of an object, which turns the server's answer into the like of it."""
    kind = Resource.of(cast("Object", obj)) if isinstance(obj, Mapping) else type(obj)
    return cast("Kind[O]", kind)


def own_namespace(body: Mapping[str, Any], namespace: str | None) -> str | None:
    """The namespace that an object is in, or is to be put into. Raises ValueError when the two differ."""
    own = (body.get("metadata") or {}).get("namespace") or None
    if own and namespace and own != namespace:
        raise ValueError(f"the object is of namespace {own!r}, the request of {namespace!r}")
    return namespace or own


def origin_of(obj: KubernetesObject | Mapping[str, Any]) -> Object | None:
    """A typed object as it was read; None if it was not, or is untyped."""
    return None if isinstance(obj, Mapping) else obj.origin


class Identity(NamedTuple):
    """Which object this is; "" for what is not known of it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str


def identity_of(obj: KubernetesObject | Mapping[str, Any]) -> Identity:
    """Which object this is, typed or not."""
    if not isinstance(obj, Mapping):
        meta = obj.metadata
        return Identity(obj.api_version, obj.kind, meta.namespace, meta.name, meta.uid, meta.resource_version)
    metadata = obj.get("metadata") or {}
    told = (metadata.get(key) or "" for key in ("namespace", "name", "uid", "resourceVersion"))
    return Identity(obj.get("apiVersion") or "", obj.get("kind") or "", *told)


def query_of(**parameters: str | None) -> dict[str, str]:
    """The parameters that are not None."""
    return {key: value for key, value in parameters.items() if value is not None}


def delete_options(dry_run: bool, propagation: Propagation | None, grace_period: int | None) -> Object:
    """`metav1.DeleteOptions`."""
    options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
    if dry_run:
        options["dryRun"] = ["All"]
    if propagation is not None:
        options["propagationPolicy"] = propagation
    if grace_period is not None:
        options["gracePeriodSeconds"] = grace_period
    return options


def is_status(answer: Any) -> bool:
    """Whether an answer is a `metav1.Status` rather than an object."""
    return isinstance(answer, dict) and answer.get("kind") == "Status" and answer.get("apiVersion") == "v1"


def default_user_agent() -> str:
    """Starts with the program's name, which the server takes for the field manager when none is given."""
    program = basename(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "python"
    safe = "".join(char if char.isascii() and char.isprintable() and char not in "/ " else "_" for char in program)
    return f"{safe}/{__version__} ({platform.system().lower()}/{platform.machine()}) steersman"
