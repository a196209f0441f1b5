"""What a kind decides about its own objects: the rules between a decoded body and the store."""

from __future__ import annotations

from typing import Any, Protocol

from steersman.apimachinery.apply.managers import Writer
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]


class Strategy(Protocol):
    """Rules of one resource version (or of one of its subresources), pure functions of the objects given.

    Objects are decoded trees. Functions that change one change the tree given to them, whose top level and metadata
    belong to the caller; anything deeper is replaced, never changed in place.
    Source: apiserver `pkg/registry/rest/{create,update,delete}.go`.
    """

    allow_create_on_update: bool
    allow_unconditional_update: bool
    error_kind: str
    returns_deleted: bool

    def normalise(self, obj: Object) -> list[str]:
        """Bring a decoded body into the kind's form; returns the paths of the fields that it does not know."""
        ...

    def default(self, obj: Object) -> None: ...

    def prepare_for_create(self, obj: Object) -> None: ...

    def validate(self, obj: Object) -> list[FieldError]: ...

    def prepare_for_update(self, obj: Object, old: Object) -> None: ...

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]: ...

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        """Texts for Warning headers about a write that is otherwise fine."""
        ...

    def track(self, live: Object | None, new: Object, writer: Writer, now: str) -> list[Object] | None:
        """The new object's managedFields after this write; None when nothing is owned."""
        ...

    def holds_deletion(self, obj: Object) -> bool:
        """Whether something besides metadata.finalizers keeps the object (a namespace's spec.finalizers)."""
        ...

    def mark_deleting(self, obj: Object, now: str) -> None:
        """Note in the object that its deletion has begun (a phase, a condition)."""
        ...
