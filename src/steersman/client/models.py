"""Pydantic models of objects: metadata, a base for kinds, and a decorator that names the kind.

A model need not know every field of its objects. What it does not know is kept from the moment the object was read, so
that writing the object back never drops it; see `steersman.client.roundtrip`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar, cast

import orjson
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PrivateAttr, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from steersman._util.clock import utc_now
from steersman.client.declared import Column, Declaration, Rule, Scale
from steersman.client.errors import DecodeError
from steersman.client.resources import Resource
from steersman.client.roundtrip import Opaque, Origin, dump, dump_field


def _time(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError("a Kubernetes time needs a time zone: use datetime.now(timezone.utc)")
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(value: datetime) -> str:
    if value.tzinfo is None:
        raise ValueError("a Kubernetes time needs a time zone: use datetime.now(timezone.utc)")
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


Time = Annotated[datetime, PlainSerializer(_time, when_used="json")]
"""`metav1.Time`: whole seconds, UTC."""

MicroTime = Annotated[datetime, PlainSerializer(_micro_time, when_used="json")]
"""`metav1.MicroTime`: always six decimals, UTC."""


class Model(BaseModel):
    """A base for parts of objects: camelCase on the wire, snake_case in Python, unknown fields allowed.

    A null on the wire stands for an absent field, as it does for Go: servers send it for empty lists.
    """

    omit_defaults: ClassVar[bool] = False
    """Whether a field that was never set and holds its default is left out of a new object too."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="allow")

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if isinstance(data, dict) and None in data.values():
            return {key: value for key, value in data.items() if value is not None}
        return data


class OwnerReference(Model):
    """`metav1.OwnerReference`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Model):
    """`metav1.ManagedFieldsEntry`: which fields a manager has set."""

    omit_defaults = True

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    fields_v1: Annotated[dict[str, Any] | None, Opaque] = Field(None, alias="fieldsV1")
    subresource: str = ""


class ObjectMeta(Model):
    """`metav1.ObjectMeta`. What the server sets is None (or 0) in an object that was not read from it."""

    omit_defaults = True

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    owner_references: list[OwnerReference] = Field(default_factory=list)
    finalizers: list[str] = Field(default_factory=list)
    managed_fields: list[ManagedFieldsEntry] = Field(default_factory=list)


class Condition(Model):
    """`metav1.Condition`."""

    type: str
    status: str
    reason: str
    message: str = ""
    last_transition_time: Time = Field(default_factory=utc_now)
    observed_generation: int | None = None


def set_condition(conditions: list[Condition], new: Condition) -> bool:
    """Put a condition into a list of conditions, one for each type; tells whether that changed anything.

    `lastTransitionTime` moves only when `status` changes. Source: apimachinery `pkg/api/meta/conditions.go`.
    """
    for index, old in enumerate(conditions):
        if old.type != new.type:
            continue
        if old.status == new.status:
            new = new.model_copy(update={"last_transition_time": old.last_transition_time})
        conditions[index] = new
        return old != new
    conditions.append(new)
    return True


class KubernetesObject(Model):
    """A typed object: apiVersion, kind, metadata, and what a subclass adds.

    A class names its kind with `@custom_resource(...)`; without that it cannot be used with a client.
    """

    api_resource: ClassVar[Resource | None] = None
    api_declaration: ClassVar[Declaration] = Declaration()

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = Field(default_factory=ObjectMeta)

    _origin: Origin = PrivateAttr(default_factory=Origin)
    _read: bytes | None = PrivateAttr(None)

    @model_validator(mode="after")
    def _named(self) -> Self:
        resource = type(self).api_resource
        if resource is not None:
            self.api_version = self.api_version or resource.api_version
            self.kind = self.kind or resource.kind
        return self

    @classmethod
    def api_kind(cls) -> Resource:
        """The kind's name. Raises TypeError for a class that was not decorated with `@custom_resource`."""
        if cls.api_resource is None:
            raise TypeError(f'{cls.__name__} names no kind: decorate it with @custom_resource("GROUP/VERSION")')
        return cls.api_resource

    @classmethod
    def from_wire(cls, obj: Mapping[str, Any], /) -> Self:
        """The typed object for the JSON of the API. Raises DecodeError when it does not fit the model."""
        try:
            typed = cls._decoded(obj)
        except ValidationError as error:
            raise DecodeError(f"{cls.__name__}: {_told(error)}", obj) from error
        try:
            typed._read = orjson.dumps(obj)
        except TypeError:  # numbers beyond 64 bits, which no server sends
            typed._read = json.dumps(obj).encode()
        return typed

    @classmethod
    def _decoded(cls, obj: Mapping[str, Any]) -> Self:
        typed = cls.model_validate(obj)
        typed._origin.read(typed, obj)
        return typed

    def to_wire(self) -> dict[str, Any]:
        """The JSON to send: what the model holds and, if the object was read, the fields that the model does not know.

        Fields that are None are left out, as are defaults that were absent when the object was read.
        """
        return dump(self, self._origin)

    @property
    def origin(self) -> dict[str, Any] | None:
        """The JSON that this was read from, whatever has been changed since; None if it was not read."""
        return None if self._read is None else json.loads(self._read)

    def field_to_wire(self, name: str) -> Any:
        """One field of `to_wire()`, by its name in Python; None if it has none such."""
        try:
            return dump_field(self, self._origin, name)
        except LookupError:
            return self.to_wire().get(name)


Spec = TypeVar("Spec")
Status = TypeVar("Status")
C = TypeVar("C", bound=type[KubernetesObject])


class CustomResource(KubernetesObject, Generic[Spec, Status]):
    """A typed custom resource with a spec and a status.

        @custom_resource("myorg.io/v1")
        class MyApp(CustomResource[MyAppSpec, MyAppStatus]): ...

    An object without a status gets an empty one, if all fields of its model have defaults, else None: so that
    `app.status.ready = 1` works on a new object. Only what is then set in it is sent. The same goes for an object that
    was stored without a spec, which the server allows where the schema does.
    """

    spec: Spec
    status: Status = cast("Any", None)

    @classmethod
    def _decoded(cls, obj: Mapping[str, Any]) -> Self:
        if "spec" in obj or _empty(cls.model_fields["spec"].annotation) is None:
            return super()._decoded(obj)
        typed = cls.model_validate({**obj, "spec": {}})
        typed.model_fields_set.discard("spec")
        typed._origin.read(typed, obj)
        typed._origin.add(cast("BaseModel", typed.spec), {})
        return typed

    @model_validator(mode="after")
    def _with_status(self) -> Self:
        if self.status is not None:
            return self
        empty = _empty(type(self).model_fields["status"].annotation)
        if empty is not None:
            self.status = cast("Status", empty)
            self.model_fields_set.discard("status")
            self._origin.add(empty, {})
        return self


def _empty(model: Any) -> BaseModel | None:
    """An instance with all defaults; None where that is no model, or has fields without."""
    if not isinstance(model, type) or not issubclass(model, BaseModel):
        return None
    return None if any(field.is_required() for field in model.model_fields.values()) else model()


def custom_resource(
    api_version: str,
    *,
    kind: str | None = None,
    plural: str | None = None,
    namespaced: bool | None = None,
    singular: str | None = None,
    list_kind: str | None = None,
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    columns: Sequence[Column] = (),
    scale: Scale | None = None,
    selectable_fields: Sequence[str] = (),
    status: bool | None = None,
    rules: Sequence[Rule] = (),
    storage: bool | None = None,
    served: bool = True,
    deprecated: bool | str = False,
) -> Callable[[C], C]:
    """Names the kind that a model class stands for.

    `kind` is the class's name by default; `plural` and `namespaced` are asked of the server when they are not given.
    It serves for built-in kinds as well: `@custom_resource("apps/v1", kind="Deployment")`.

    All else is for the CustomResourceDefinition that `crd_for` makes of the class, where a kind is namespaced, and its
    plural made of the kind's name, unless they are given. `selectable_fields` are JSON paths such as ".spec.size";
    `status` is whether there is the subresource, by default if the model has a status; `rules` are CEL rules.
    Of several versions one has `storage`; a text for `deprecated` is what clients are warned with.
    """
    declaration = Declaration(
        singular=singular,
        list_kind=list_kind,
        short_names=short_names,
        categories=categories,
        columns=columns,
        scale=scale,
        selectable_fields=selectable_fields,
        status=status,
        rules=rules,
        storage=storage,
        served=served,
        deprecated=deprecated,
    )

    def decorate(cls: C) -> C:
        cls.api_resource = Resource(api_version, kind or cls.__name__, plural, namespaced)
        cls.api_declaration = declaration
        return cls

    return decorate


def _told(error: ValidationError) -> str:
    """What does not fit, with the paths of its fields, in one line."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        f"{'.'.join(map(str, each['loc']))}: {each['msg']}" if each["loc"] else each["msg"] for each in found
    )
