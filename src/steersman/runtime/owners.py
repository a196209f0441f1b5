"""Owner references: who made an object, and with whom it goes.

Source: controller-runtime `pkg/controller/controllerutil/controllerutil.go`; API concepts, "Owners and dependents".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from steersman.client.models import KubernetesObject, OwnerReference
from steersman.client.options import wire
from steersman.client.resources import Object

AnyObject = KubernetesObject | Object


class AlreadyOwned(Exception):
    """Another object is the controller of this one already."""


def set_controller_reference(owner: AnyObject, obj: AnyObject, *, block_owner_deletion: bool = True) -> None:
    """Make `owner` the one controller of `obj`: it is deleted with it, and its events are the owner's.

    Raises AlreadyOwned when it has another controller, ValueError where the API does not allow the owner (a namespaced
    owner of an object of another namespace, or of none; an owner that was never read).
    """
    reference = _reference(owner, obj)
    existing = controller_of(obj)
    if existing is not None and existing["uid"] != reference["uid"]:
        raise AlreadyOwned(f"{_name(obj)} is controlled by {existing['kind']} {existing['name']} already")
    _put(obj, {**reference, "controller": True, "blockOwnerDeletion": block_owner_deletion})


def set_owner_reference(owner: AnyObject, obj: AnyObject) -> None:
    """Make `owner` an owner of `obj`, one of several. Raises ValueError like `set_controller_reference`."""
    _put(obj, _reference(owner, obj))


def remove_owner_reference(owner: AnyObject, obj: AnyObject) -> bool:
    """Take the reference to `owner` away; tells whether there was one."""
    uid = _metadata(owner).get("uid")
    references = _metadata(obj).get("ownerReferences") or []
    kept = [reference for reference in references if reference["uid"] != uid]
    _set(obj, kept)
    return len(kept) != len(references)


def controller_of(obj: AnyObject) -> Object | None:
    """The reference to the object's controller, in the API's form."""
    return next((ref for ref in _metadata(obj).get("ownerReferences") or [] if ref.get("controller")), None)


def is_controlled_by(obj: AnyObject, owner: AnyObject) -> bool:
    controller = controller_of(obj)
    return controller is not None and controller["uid"] == _metadata(owner).get("uid")


def _reference(owner: AnyObject, obj: AnyObject) -> Object:
    body = wire(owner)
    metadata = body.get("metadata") or {}
    if not metadata.get("uid"):
        raise ValueError(f"{_name(owner)} has no uid: only an object that was read from the server can own others")
    namespace, own = metadata.get("namespace"), _metadata(obj).get("namespace")
    if namespace and namespace != own:
        raise ValueError(
            f"{_name(owner)} cannot own {_name(obj)}: a namespaced owner must be in the namespace of what it owns"
        )
    return {
        "apiVersion": body["apiVersion"],
        "kind": body["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _put(obj: AnyObject, reference: Object) -> None:
    references = list(_metadata(obj).get("ownerReferences") or [])
    for index, existing in enumerate(references):
        if existing["uid"] == reference["uid"]:
            references[index] = {**existing, **reference}
            break
    else:
        references.append(reference)
    _set(obj, references)


def _set(obj: AnyObject, references: list[Object]) -> None:
    if isinstance(obj, KubernetesObject):
        obj.metadata.owner_references = [OwnerReference.model_validate(reference) for reference in references]
    elif references:
        obj.setdefault("metadata", {})["ownerReferences"] = references
    else:
        obj.get("metadata", {}).pop("ownerReferences", None)


def _metadata(obj: AnyObject) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", wire(obj).get("metadata") or {})


def _name(obj: AnyObject) -> str:
    body = wire(obj)
    metadata = body.get("metadata") or {}
    place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{body.get('kind', 'object')} {place}{metadata.get('name', '')}"
