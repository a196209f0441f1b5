"""Owner references: who made an object, and with whom it goes.

Source: controller-runtime `pkg/controller/controllerutil/controllerutil.go`; API concepts, "Owners and dependents".
"""

from __future__ import annotations

from steersman.client.models import KubernetesObject, OwnerReference
from steersman.client.options import identity_of
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
        raise _already_owned(obj, existing, reference)
    _put(obj, {**reference, "controller": True, "blockOwnerDeletion": block_owner_deletion})


def set_owner_reference(owner: AnyObject, obj: AnyObject) -> None:
    """Make `owner` an owner of `obj`, one of several. Raises ValueError like `set_controller_reference`."""
    _put(obj, _reference(owner, obj))


def remove_owner_reference(owner: AnyObject, obj: AnyObject) -> bool:
    """Take the reference to `owner` away; tells whether there was one."""
    uid, references = identity_of(owner).uid, _references(obj)
    kept = [reference for reference in references if reference["uid"] != uid]
    _set(obj, kept)
    return len(kept) != len(references)


def merged_references(present: Object, wanted: Object) -> list[Object]:
    """The owner references of `present` with those of `wanted` put in, in the API's form: other owners stay.

    Raises AlreadyOwned where both have a controller, and not the same.
    """
    old, new = controller_of(present), controller_of(wanted)
    if old is not None and new is not None and old["uid"] != new["uid"]:
        raise _already_owned(present, old, new)
    merged = {reference["uid"]: reference for reference in _references(present)}
    for reference in _references(wanted):
        merged[reference["uid"]] = {**merged.get(reference["uid"], {}), **reference}
    return list(merged.values())


def _already_owned(obj: AnyObject, existing: Object, wanted: Object) -> AlreadyOwned:
    who = f"{existing['kind']} {existing['name']}"
    if (existing["kind"], existing["name"]) == (wanted["kind"], wanted["name"]):
        return AlreadyOwned(f"{_name(obj)} is controlled by an earlier {who}: it has to be garbage-collected first")
    return AlreadyOwned(f"{_name(obj)} is controlled by {who} already")


def controller_of(obj: AnyObject) -> Object | None:
    """The reference to the object's controller, in the API's form."""
    return next((ref for ref in _references(obj) if ref.get("controller")), None)


def is_controlled_by(obj: AnyObject, owner: AnyObject) -> bool:
    controller = controller_of(obj)
    return controller is not None and controller["uid"] == identity_of(owner).uid


def _reference(owner: AnyObject, obj: AnyObject) -> Object:
    who = identity_of(owner)
    if not who.uid:
        raise ValueError(f"{_name(owner)} has no uid: only an object that was read from the server can own others")
    if who.namespace and who.namespace != identity_of(obj).namespace:
        raise ValueError(
            f"{_name(owner)} cannot own {_name(obj)}: a namespaced owner must be in the namespace of what it owns"
        )
    return {"apiVersion": who.api_version, "kind": who.kind, "name": who.name, "uid": who.uid}


def _put(obj: AnyObject, reference: Object) -> None:
    references = _references(obj)
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


def _references(obj: AnyObject) -> list[Object]:
    if isinstance(obj, KubernetesObject):
        return [reference.model_dump(by_alias=True, exclude_none=True) for reference in obj.metadata.owner_references]
    return list((obj.get("metadata") or {}).get("ownerReferences") or ())


def _name(obj: AnyObject) -> str:
    who = identity_of(obj)
    return (
        f"{who.kind or 'object'} {who.namespace}/{who.name}" if who.namespace else f"{who.kind or 'object'} {who.name}"
    )
