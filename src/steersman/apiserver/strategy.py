"""What a kind decides about its own objects: the rules between a decoded body and the store."""

from __future__ import annotations

from typing import Any, Protocol

from steersman.apimachinery.apply.managers import Writer
from steersman.apimachinery.apply.typed import TypeView
from steersman.apimachinery.field_errors import FieldError

Object = dict[str, Any]


class Strategy(Protocol):
    """Rules of one resource version (or of one of its subresources), pure functions of the objects given.

    Objects are decoded trees. Functions that change one change the tree given to them, whose top level and metadata
    belong to the caller; anything deeper is replaced, never changed in place.
    `error_kind` is the kind that 422 answers name ("": the object's own); `returns_deleted` says whether a delete
    answers the object instead of a Status; `type_view` is how objects merge.
    Source: apiserver `pkg/registry/rest/{create,update,delete}.go`.
    """

    allow_create_on_update: bool
    allow_unconditional_update: bool
    error_kind: str
    returns_deleted: bool

    @property
    def type_view(self) -> TypeView: ...

    def decode(self, obj: Object) -> tuple[Object, list[str]]:
        """A decoded body in the kind's form, and the paths of the fields that it does not know. Raises BadRequest."""
        ...

    def default(self, obj: Object) -> None:
        """Fill in what the client may leave out."""
        ...

    def before_create(self, obj: Object) -> list[FieldError]:
        """Prepare a new object, whose system metadata is set, and judge it."""
        ...

    def before_update(self, obj: Object, old: Object) -> list[FieldError]:
        """Prepare a changed object (what clients cannot change is restored) and judge it."""
        ...

    def first_warnings(self, obj: Object) -> list[str]:
        """Texts for Warning headers about a new object as it came, whether it is fine or not."""
        ...

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        """Texts for Warning headers about a write that is otherwise fine."""
        ...

    def track(self, live: Object | None, new: Object, writer: Writer, now: str) -> list[Object] | None:
        """The new object's managedFields after this write; None when nothing is owned."""
        ...

    def holds_deletion(self, obj: Object) -> bool:
        """Whether something besides metadata.finalizers keeps the object (a namespace's spec.finalizers)."""
        ...

    def deletion_finalizers(self, obj: Object) -> tuple[str, ...]:
        """Finalizers that a delete call adds whatever its options are (a CRD's cleanup of its instances)."""
        ...

    def apply(self, live: Object | None, config: Object, writer: Writer, now: str, *, force: bool) -> Object:
        """Server-side apply of a configuration: the merged object with its managedFields."""
        ...

    def mark_deleting(self, obj: Object, now: str) -> None:
        """Note in an object that is kept for now that its deletion has begun (timestamps, a phase, a condition)."""
        ...
