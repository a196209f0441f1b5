"""CustomResourceDefinitions from model classes.

Source: `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go`; controller-tools `pkg/crd/spec.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import ModuleType
from typing import Any

from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from steersman.client.models import KubernetesObject
from steersman.crdgen.errors import SchemaError
from steersman.crdgen.markers import Node
from steersman.crdgen.schemas import object_schema
from steersman.crdgen.verdict import check

_ES = ("s", "x", "z", "ch", "sh")


def crd_for(*versions: type[KubernetesObject], conversion: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind: of one model class, or of one for each version.

    Of several, one is decorated with `storage=True`. `conversion` is `spec.conversion`, if objects are to be converted
    by a webhook. What it gives has been judged by the server's own rules. Raises SchemaError for what a definition
    cannot say or the server would refuse or warn of, with the field's path; TypeError for a class without a kind.
    """
    if not versions:
        raise TypeError("crd_for needs a model class")
    first = versions[0].api_kind()
    stored = _stored(versions)
    names = _names(stored)
    for cls in versions:
        kind = cls.api_kind()
        if (kind.group, kind.kind) != (first.group, first.kind):
            raise SchemaError(
                cls.__name__, f"{kind.kind} in {kind.group} is no version of {first.kind} in {first.group}"
            )
    if not first.group:
        raise SchemaError(versions[0].__name__, "custom resources have a group: write the apiVersion as GROUP/VERSION")
    spec: Node = {
        "group": first.group,
        "names": names,
        "scope": "Cluster" if stored.api_kind().namespaced is False else "Namespaced",
        "versions": [_version(cls, stored=cls is stored) for cls in versions],
    }
    if conversion is not None:
        spec["conversion"] = dict(conversion)
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{names['plural']}.{first.group}"},
        "spec": spec,
    }
    check(crd, {cls.api_kind().version: cls.__name__ for cls in versions})
    return crd


def crds(module: ModuleType, *, kinds: Collection[str] = ()) -> list[dict[str, Any]]:
    """The definitions of all kinds (or of `kinds`) whose model classes stand in a module, in their order there.

    Classes of built-in groups are passed over, and so are those without a kind. Raises SchemaError.
    """
    return crds_of(each for each in models(module) if not kinds or each.api_kind().kind in kinds)


def crds_of(classes: Iterable[type[KubernetesObject]]) -> list[dict[str, Any]]:
    """The definitions of model classes, which may be several versions of a kind. Raises SchemaError."""
    found: dict[tuple[str, str], list[type[KubernetesObject]]] = {}
    for each in classes:
        resource = each.api_kind()
        found.setdefault((resource.group, resource.kind), []).append(each)
    return [crd_for(*versions) for versions in found.values()]


def models(module: ModuleType) -> list[type[KubernetesObject]]:
    """The model classes of custom resources that stand in a module, each once, also those that it has imported."""
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, KubernetesObject)
        and each.api_resource is not None
        and is_custom(each.api_resource.group)
    ]
    return list(dict.fromkeys(found))


def is_custom(group: str) -> bool:
    """Whether a group can be one of custom resources: built-in ones have no dot, or are Kubernetes' own."""
    return "." in group and not group.endswith(".k8s.io")


def plural_of(kind: str) -> str:
    """A kind's plural, as `meta.UnsafeGuessKindToResource` and controller-tools make it."""
    word = kind.lower()
    if word.endswith(_ES):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return f"{word[:-1]}ies"
    return f"{word}s"


def _stored(versions: tuple[type[KubernetesObject], ...]) -> type[KubernetesObject]:
    stored = [cls for cls in versions if cls.api_declaration.storage or len(versions) == 1]
    if len(stored) != 1:
        names = ", ".join(cls.__name__ for cls in versions)
        raise SchemaError(names, f"exactly one version is stored: decorate it with storage=True ({len(stored)} are)")
    return stored[0]


def _names(cls: type[KubernetesObject]) -> Node:
    resource, said = cls.api_kind(), cls.api_declaration
    names: Node = {
        "kind": resource.kind,
        "listKind": said.list_kind or f"{resource.kind}List",
        "plural": resource.plural or plural_of(resource.kind),
        "singular": said.singular or resource.kind.lower(),
    }
    if said.short_names:
        names["shortNames"] = list(said.short_names)
    if said.categories:
        names["categories"] = list(said.categories)
    return names


def _version(cls: type[KubernetesObject], *, stored: bool) -> Node:
    said = cls.api_declaration
    found: Node = {"name": cls.api_kind().version, "served": said.served, "storage": stored}
    if said.deprecated:
        found["deprecated"] = True
        if isinstance(said.deprecated, str):
            found["deprecationWarning"] = said.deprecated
    try:
        cls.model_rebuild()
        schema = object_schema(cls, rules=said.rules)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise SchemaError(cls.__name__, str(error).splitlines()[0]) from None
    found["schema"] = {"openAPIV3Schema": schema}
    subresources: Node = {}
    if said.status if said.status is not None else "status" in schema["properties"]:
        subresources["status"] = {}
    if said.scale is not None:
        subresources["scale"] = said.scale.wire()
    if subresources:
        found["subresources"] = subresources
    if said.columns:
        found["additionalPrinterColumns"] = [column.wire() for column in said.columns]
    if said.selectable_fields:
        found["selectableFields"] = [{"jsonPath": path} for path in said.selectable_fields]
    return found
