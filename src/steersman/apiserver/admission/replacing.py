"""An object that comes back from outside takes the place of the request's: in its kind's form, and complete again."""

from __future__ import annotations

from steersman.apimachinery.object_meta import coerce_object_meta
from steersman.apiserver.admission.chain import Attributes
from steersman.apiserver.strategy import Object


def replace(attributes: Attributes, obj: Object) -> None:
    """Put an object of the request's version in place of the request's. Raises BadRequest for what is no such object.

    The object becomes the request's own.
    """
    if attributes.scope.custom and attributes.kind is None:
        # What its schema does not know is pruned when it is stored.
        obj["metadata"], _ = coerce_object_meta(obj.get("metadata") or {})
    else:
        obj, _ = attributes.rules.decode(obj)
    attributes.rules.default(obj)
    attributes.obj = obj
    attributes.patched = True
