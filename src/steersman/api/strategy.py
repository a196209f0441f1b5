"""What the registry does to an object of one kind before it is stored.

A strategy is pure: it changes the object that it is given (never the old one) and says what is wrong with it. It
writes to the object's top level and its metadata only; what lies deeper is replaced, never changed in place. The
methods `before_create` and `before_update` are the whole of upstream's BeforeCreate and BeforeUpdate, in their order;
a kind overrides the steps that they are made of.

Source: apiserver `pkg/registry/rest/{create,update,validate}.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import (
    validate_common_create,
    validate_common_update,
    validate_object_meta,
    validate_object_meta_update,
)

Object = dict[str, Any]


class Strategy:
    """The rules of a kind that has none of its own.

    allow_create_on_update: a PUT of a missing object creates it.
    allow_unconditional_update: an update need not carry a resourceVersion.
    has_status: `status` is written through its subresource only.
    generation_fields: top-level fields (or `metadata.x`) whose change bumps metadata.generation; None when the kind
    leaves generation alone.
    default_delete_policy: "background", "orphan", or "unsupported" for kinds that the garbage collector leaves alone.
    reset_fields: what writes never change, and so never own.
    fixed_if_empty: fields of immutable objects in which an empty map is not the same as none, until it is stored.
    """

    allow_create_on_update: bool = False
    allow_unconditional_update: bool = True
    has_status: bool = False
    generation_fields: tuple[str, ...] | None = None
    default_delete_policy: ClassVar[str] = "background"
    reset_fields: tuple[tuple[str, ...], ...] = ()
    fixed_if_empty: tuple[str, ...] = ()

    def __init__(self, *, namespaced: bool) -> None:
        self.namespaced = namespaced

    def name_validator(self, name: str, prefix: bool) -> list[str]:
        """What is wrong with a name, or with a generateName if `prefix`."""
        return names.name_is_dns_subdomain(name, prefix)

    def default(self, obj: Object) -> None:
        """Fill in what the client may leave out; also run over what is read from the store."""

    def prepare_for_create(self, obj: Object) -> None:
        """Clear what a client cannot set on a new object."""
        if self.has_status:
            self.reset_status(obj)
        if self.generation_fields is not None:
            obj["metadata"]["generation"] = 1

    def prepare_for_update(self, new: Object, old: Object) -> None:
        """Restore what a client cannot change, and bump the generation."""
        if self.has_status:
            restore(new, old, "status")
        if self.generation_fields is not None and any(differs(new, old, path) for path in self.generation_fields):
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1

    def reset_status(self, obj: Object) -> None:
        """What a new object has as its status."""
        obj.pop("status", None)

    def validate_create(self, obj: Object) -> list[FieldError]:
        """What is wrong with a new object."""
        return self.validate_meta(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """What is wrong with a changed object."""
        return self.validate_meta_update(new, old)

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        """What the kind's declarative rules find; answered after everything else."""
        return []

    def validate_meta(self, obj: Object) -> list[FieldError]:
        """The rules for metadata on create, with the kind's rule for names."""
        return validate_object_meta(obj["metadata"], namespaced=self.namespaced, name_validator=self.name_validator)

    def validate_meta_update(self, new: Object, old: Object) -> list[FieldError]:
        """The rules for a change of metadata."""
        return validate_object_meta_update(new["metadata"], old["metadata"])

    def canonicalize(self, obj: Object) -> None:
        """The last touch after validation."""

    def first_warnings(self, obj: Object) -> list[str]:
        """What to warn the client about a new object as it came, before it is prepared; also when it is not valid."""
        return []

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        """What to warn the client about a new (old: None) or changed object that is valid."""
        return []

    def before_create(self, obj: Object) -> list[FieldError]:
        """Prepare and validate a new object, whose name, namespace, uid and creationTimestamp are set already."""
        self.prepare_for_create(obj)
        errors = self.validate_create(obj)
        declared = self.validate_declared(obj, None)
        if not errors and not declared:
            errors = validate_common_create(obj["metadata"], namespaced=self.namespaced)
        errors = self.merge_errors([*errors, *declared])
        if not errors:
            self.canonicalize(obj)
        return errors

    def before_update(self, new: Object, old: Object) -> list[FieldError]:
        """Prepare and validate a change; what a client cannot change in metadata is carried over first."""
        meta, old_meta = new["metadata"], old["metadata"]
        _set(meta, "generation", old_meta.get("generation"))
        self.prepare_for_update(new, old)
        if not meta.get("uid"):
            _set(meta, "uid", old_meta.get("uid"))
        for key in ("creationTimestamp", "deletionTimestamp"):
            if old_meta.get(key) is not None:
                meta[key] = old_meta[key]
        if meta.get("deletionGracePeriodSeconds") is None:
            _set(meta, "deletionGracePeriodSeconds", old_meta.get("deletionGracePeriodSeconds"))
        errors = validate_common_update(meta, old_meta, namespaced=self.namespaced)
        errors += self.validate_update(new, old)
        errors = self.merge_errors([*errors, *self.validate_declared(new, old)])
        if not errors:
            self.canonicalize(new)
        return errors

    def merge_errors(self, errors: list[FieldError]) -> list[FieldError]:
        """The errors to answer; custom resources answer them all, even those found twice."""
        return errors


def distinct(errors: Iterable[FieldError]) -> list[FieldError]:
    """Each error once, in order."""
    return list({(error.type, error.field, error.body()): error for error in errors}.values())


def restore(new: Object, old: Object, key: str) -> None:
    """Give a top-level field the value, or the absence, that it had."""
    if key in old:
        new[key] = old[key]
    else:
        new.pop(key, None)


def differs(new: Object, old: Object, path: str) -> bool:
    """Whether the values at a dotted path differ; null, empty and absent are the same."""
    return bool(_at(new, path) != _at(old, path))


def _at(obj: Any, path: str) -> Any:
    for key in path.split("."):
        obj = (obj or {}).get(key)
    return obj or None


def _set(meta: Object, key: str, value: Any) -> None:
    if value is None:
        meta.pop(key, None)
    else:
        meta[key] = value
