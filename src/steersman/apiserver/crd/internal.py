"""Writes by the server's own controllers: the kind's bookkeeping, but no rules that bind clients."""

from __future__ import annotations

from steersman.apimachinery.apply.managers import Writer
from steersman.apimachinery.apply.typed import TypeView
from steersman.apimachinery.field_errors import FieldError
from steersman.apiserver.strategy import Object, Strategy


class InternalStrategy:
    """Stores what it is given: metadata and status alike. Ownership of status is recorded as for /status."""

    allow_create_on_update = False
    allow_unconditional_update = False
    returns_deleted = False

    def __init__(self, main: Strategy, status: Strategy | None = None) -> None:
        self.main = main
        self.error_kind = main.error_kind
        self._owner = status or main

    @property
    def type_view(self) -> TypeView:
        return self.main.type_view

    def decode(self, obj: Object) -> tuple[Object, list[str]]:
        return self.main.decode(obj)

    def default(self, obj: Object) -> None:
        self.main.default(obj)

    def before_create(self, obj: Object) -> list[FieldError]:
        return self.main.before_create(obj)

    def before_update(self, obj: Object, old: Object) -> list[FieldError]:
        return []

    def first_warnings(self, obj: Object) -> list[str]:
        return []

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        return []

    def track(self, live: Object | None, new: Object, writer: Writer, now: str) -> list[Object] | None:
        return self._owner.track(live, new, writer, now)

    def holds_deletion(self, obj: Object) -> bool:
        return self.main.holds_deletion(obj)

    def deletion_finalizers(self, obj: Object) -> tuple[str, ...]:
        return self.main.deletion_finalizers(obj)

    def apply(self, live: Object | None, config: Object, writer: Writer, now: str, *, force: bool) -> Object:
        return self._owner.apply(live, config, writer, now, force=force)

    def mark_deleting(self, obj: Object, now: str) -> None:
        self.main.mark_deleting(obj, now)
