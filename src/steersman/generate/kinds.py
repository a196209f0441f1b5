"""What is known of a kind without asking a server: built-in kinds, and those that the operator has models of."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from steersman.api.kinds import builtin_kind
from steersman.client.models import KubernetesObject
from steersman.client.resources import Kind, Resource, ResourceMapping
from steersman.crdgen.definition import plural_of


@dataclass(frozen=True, slots=True)
class KnownKind:
    """Where objects of a kind live, and whether they have a status of their own; `is_guess`: only what is usual."""

    mapping: ResourceMapping
    has_status: bool
    is_guess: bool = False

    @property
    def group(self) -> str:
        return self.mapping.api_version.rpartition("/")[0]


class Kinds:
    """The kinds that an operator's module names."""

    def __init__(self, module: ModuleType | None = None) -> None:
        self._models: dict[tuple[str, str], type[KubernetesObject]] = {}
        for each in vars(module).values() if module is not None else ():
            self.learn(each)

    def learn(self, each: object) -> None:
        """Take note of a model class; of anything else, nothing."""
        if isinstance(each, type) and issubclass(each, KubernetesObject) and each.api_resource is not None:
            self._models[_identity(each.api_resource)] = each

    def known(self, kind: Kind[Any]) -> KnownKind:
        """What discovery would say of a kind; of one that is neither built in nor has a model, what is usual."""
        resource = kind.api_kind()
        try:
            builtin = builtin_kind(resource.group, resource.version, resource.kind)
        except KeyError:
            return self._custom(kind, resource)
        mapping = ResourceMapping(resource.api_version, resource.kind, builtin.plural, builtin.namespaced)
        return KnownKind(mapping, builtin.has_status)

    def _custom(self, kind: Kind[Any], resource: Resource) -> KnownKind:
        self.learn(kind)
        model = self._models.get(_identity(resource))
        named = model.api_resource if model is not None else None
        plural = resource.plural or (named and named.plural) or plural_of(resource.kind)
        namespaced = resource.namespaced if resource.namespaced is not None else (named and named.namespaced)
        mapping = ResourceMapping(resource.api_version, resource.kind, plural, namespaced is not False)
        return KnownKind(mapping, model is None or _has_status(model), model is None and resource.plural is None)


def _has_status(model: type[KubernetesObject]) -> bool:
    said = model.api_declaration.status
    if said is not None:
        return said
    field = model.model_fields.get("status")
    return field is not None and field.annotation is not type(None)


def _identity(resource: Resource) -> tuple[str, str]:
    return resource.api_version, resource.kind
