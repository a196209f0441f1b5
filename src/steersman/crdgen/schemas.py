"""Structural schemas from annotations and pydantic models.

Source: API concepts, "Specifying a structural schema"; controller-tools `pkg/crd/schema.go`.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from pydantic import AliasChoices, BaseModel, JsonValue, PlainSerializer, RootModel
from pydantic.fields import FieldInfo

from steersman.client.declared import Rule
from steersman.client.models import Condition, KubernetesObject, ObjectMeta
from steersman.crdgen.conditions import CONDITION
from steersman.crdgen.constraints import constrain, flattened
from steersman.crdgen.defaults import has_defaults, json_default
from steersman.crdgen.errors import SchemaError
from steersman.crdgen.markers import Atomic, Keywords, Listed, Marker, Node, PreserveUnknown, Ruled, Settled
from steersman.crdgen.types import is_base64, literal, plain
from steersman.crdgen.unions import joined

_LISTS = (list, Sequence, set, frozenset, tuple)
_MAPS = (dict, Mapping)
_API_VERSION = "The version of the schema that this object is written in, as GROUP/VERSION."
_KIND = "The kind of this object, in CamelCase. It cannot be changed."


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a model something stands: for messages, for recursion, and for whether there are defaults."""

    path: str
    around: tuple[type, ...] = ()
    defaults: bool = True

    def below(self, name: str) -> Place:
        return replace(self, path=f"{self.path}.{name}")

    def item(self) -> Place:
        return replace(self, path=f"{self.path}[]")


def object_schema(cls: type[KubernetesObject], *, rules: Iterable[Rule] = ()) -> Node:
    """The schema of a whole object. Raises SchemaError, which names the field."""
    node: Node = {"type": "object"}
    if description := _description(cls):
        node["description"] = description
    place = Place(cls.__name__, (cls,))
    properties: Node = {
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND},
        "metadata": {"type": "object"},
    }
    skipped = ("api_version", "kind", "metadata")
    found, required = _properties(cls, place, skipped)
    node["properties"] = properties | found
    if required:
        node["required"] = required
    for each in (*_class_markers(cls), *map(Ruled, rules)):
        constrain(node, each, cls.__name__)
    return node


def value_schema(annotation: Any, metadata: Sequence[Any], place: Place) -> Node:
    """The schema of a value; `nullable` if it may be None."""
    said = list(flattened(metadata))
    for each in said:
        if isinstance(each, Settled):
            beside = [other for other in said if isinstance(other, Keywords | Ruled)]
            return _with({**each.settles()}, beside, place)
    if _is_alias(annotation):
        annotation = annotation.__value__
    while isinstance(annotation, NewType):
        annotation = annotation.__supertype__
    if get_origin(annotation) is Annotated:
        return value_schema(annotation.__origin__, [*annotation.__metadata__, *said], place)
    if annotation is bytes and is_base64(said):
        return {"type": "string", "format": "byte"}
    keeps = any(isinstance(each, PreserveUnknown) for each in said)
    node = _type_schema(annotation, place, keeps=keeps)
    if node.get("format") == "date-time":
        said = [each for each in said if not isinstance(each, PlainSerializer)]
    if node.get("type") == "array" and any(isinstance(each, Listed | Atomic) for each in said):
        node.pop("x-kubernetes-list-type", None)
        node.pop("x-kubernetes-list-map-keys", None)
    return _with(node, said, place)


def _with(node: Node, said: Iterable[Any], place: Place) -> Node:
    for each in said:
        constrain(node, each, place.path)
    return node


def _is_alias(annotation: Any) -> bool:
    return type(annotation).__name__ == "TypeAliasType" and annotation is not JsonValue


def _type_schema(annotation: Any, place: Place, *, keeps: bool) -> Node:
    found = plain(annotation, place.path)
    if found is not None:
        return found
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return _union(get_args(annotation), place, keeps=keeps)
    if origin is Literal:
        return literal(annotation, place.path)
    if annotation in _MAPS or origin in _MAPS:
        return _map(get_args(annotation), place)
    if annotation in _LISTS or origin in _LISTS:
        return _list(origin or annotation, get_args(annotation), place)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return model_schema(annotation, place, keeps=keeps)
    name = getattr(annotation, "__name__", str(annotation))
    raise SchemaError(
        place.path, f"{name} is no type that a schema can say: use a model, or raw_schema(...) for the whole field"
    )


def _union(parts: tuple[Any, ...], place: Place, *, keeps: bool) -> Node:
    wanted = [part for part in parts if part is not type(None)]
    marked = [PreserveUnknown()] if keeps else []
    nodes = [value_schema(part, marked, place) for part in wanted]
    if not nodes:
        raise SchemaError(place.path, "None alone is no type of a field")
    node = nodes[0] if len(nodes) == 1 else joined(nodes, place.path)
    return node | ({"nullable": True} if len(wanted) < len(parts) else {})


def _map(parts: tuple[Any, ...], place: Place) -> Node:
    key, value = parts or (str, Any)
    if key is not str:
        name = getattr(key, "__name__", str(key))
        raise SchemaError(place.path, f"the keys of a map are texts without constraints, not {name}: use a rule")
    return {"type": "object", "additionalProperties": value_schema(value, (), place.below("*"))}


def _list(kind: Any, parts: tuple[Any, ...], place: Place) -> Node:
    node: Node = {"type": "array"}
    if kind is tuple and Ellipsis not in parts:
        if not parts or len(set(map(repr, parts))) != 1:
            raise SchemaError(place.path, "the items of a list are all of one type: use a model instead of a tuple")
        node |= {"minItems": len(parts), "maxItems": len(parts)}
    node["items"] = value_schema(parts[0] if parts else Any, (), place.item())
    if kind in (set, frozenset):
        if node["items"].get("type") not in ("string", "integer", "number", "boolean"):
            raise SchemaError(place.path, "a set is of texts or numbers; for objects use a list with list_map(...)")
        node["x-kubernetes-list-type"] = "set"
    if parts and parts[0] is Condition:
        node |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return node


def model_schema(cls: type[BaseModel], place: Place, *, keeps: bool = False) -> Node:
    """The schema of a model's objects. Raises SchemaError."""
    cls.model_rebuild()  # classes that stand below it in their module are known by now
    if cls in place.around:
        if keeps:
            return {"type": "object"}  # its fields are kept, by the mark that allows this
        raise SchemaError(
            place.path,
            f"{cls.__name__} holds itself, and no schema can: mark it where it stands, as in "
            f"Annotated[{cls.__name__}, preserve_unknown] or list[Annotated[{cls.__name__}, preserve_unknown]]",
        )
    if issubclass(cls, Condition):
        return dict(CONDITION)
    if issubclass(cls, ObjectMeta):
        raise SchemaError(place.path, "metadata is not described: use embedded for a whole object, or a model")
    if issubclass(cls, KubernetesObject):
        return _embedded_object(cls, place)
    below = replace(place, around=(*place.around, cls))
    if issubclass(cls, RootModel):
        field = cls.model_fields["root"]
        node = value_schema(field.annotation, field.metadata, below)
    else:
        found, required = _properties(cls, below, ())
        node = {"type": "object"} | ({"properties": found} if found else {})
        if required:
            node["required"] = required
    if description := _description(cls):
        node["description"] = description
    return _with(node, _class_markers(cls), place)


def _embedded_object(cls: type[KubernetesObject], place: Place) -> Node:
    found, required = _properties(cls, replace(place, around=(*place.around, cls)), ("api_version", "kind", "metadata"))
    properties = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    node: Node = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": properties | found}
    return node | ({"required": required} if required else {})


def _properties(cls: type[BaseModel], place: Place, skipped: Sequence[str]) -> tuple[Node, list[str]]:
    if cls.model_computed_fields:
        name = next(iter(cls.model_computed_fields))
        raise SchemaError(
            f"{place.path}.{name}", "a computed field would be sent, and is none of the schema's: drop it"
        )
    found: Node = {}
    required: list[str] = []
    for name, field in cls.model_fields.items():
        if name in skipped or field.exclude or field.annotation is type(None):
            continue
        key = next(each for each in (field.serialization_alias, field.alias, name) if each is not None)
        here = place.below(key)
        _check_name(cls, (name, key), field, here)
        if key in found:
            raise SchemaError(here.path, f"two fields are called so in JSON, {name} is the second: change an alias")
        if len(place.around) == 1 and key == "status":
            here = replace(here, defaults=False)
        found[key] = _property(field, here)
        if field.is_required():
            required.append(key)
    return found, required


def _check_name(cls: type[BaseModel], names: tuple[str, str], field: FieldInfo, place: Place) -> None:
    """What a field (its name, and the one in JSON) is written as, it must be read as."""
    (name, written), alias = names, field.validation_alias
    by_name = cls.model_config.get("populate_by_name") or cls.model_config.get("validate_by_name")
    read = [
        *(alias.choices if isinstance(alias, AliasChoices) else [name if alias is None else alias]),
        *([name] if by_name else []),
    ]
    if written not in read:
        told = ", ".join(each for each in read if isinstance(each, str)) or "another path"
        raise SchemaError(place.path, f"it is written as {written!r}, and read as {told}: give it one `alias` for both")


def _property(field: FieldInfo, place: Place) -> Node:
    node = value_schema(field.annotation, field.metadata, place)
    wants_null = any(isinstance(each, Keywords) and "nullable" in each.keywords for each in flattened(field.metadata))
    if not wants_null and node.pop("nullable", False) and field.is_required():
        raise SchemaError(
            place.path, "it may be None, which is absent in JSON, and is required: give it `= None`, or take None away"
        )
    if field.json_schema_extra:
        raise SchemaError(place.path, "json_schema_extra is not read: use raw_schema(...) in the annotation")
    if field.description:
        node["description"] = inspect.cleandoc(field.description)
    if field.title:
        node["title"] = field.title
    if field.examples:
        node["example"] = field.examples[0]
    if field.deprecated:
        why = field.deprecated if isinstance(field.deprecated, str) else "do not use it"
        node["description"] = "\n\n".join(filter(None, (node.get("description"), f"Deprecated: {why}")))
    if place.defaults and not field.is_required():
        _put_default(node, field, place)
    return node


def _put_default(node: Node, field: FieldInfo, place: Place) -> None:
    known, default = json_default(field, place.path)
    if not known or default in (None, "", []):
        return  # what is absent
    if default == {} and not has_defaults(node):
        return
    node["default"] = default


def _class_markers(cls: type[BaseModel]) -> list[Marker]:
    said = [each for base in reversed(cls.__mro__) for each in base.__dict__.get("__crd_markers__", ())]
    return list(flattened(said))


def _description(cls: type[BaseModel]) -> str:
    if cls.__module__.startswith(("pydantic.", "steersman.client.")):
        return ""
    return inspect.cleandoc(cls.__dict__.get("__doc__") or "")
