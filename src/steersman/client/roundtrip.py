"""Models that do not know every field, and updates that keep every field.

An `Origin` remembers, for every model instance inside an object that was read, the JSON that it was made from. `dump`
writes the object back: what the models hold, plus what the JSON had and the models do not know. An instance is found
again by its identity, so it keeps its unknown fields when its list is sorted or filtered; an instance that was put in
another's place in a field (not in a list) inherits that place's unknown fields.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Self, Union, cast, get_args, get_origin

from pydantic import AliasChoices, AliasPath, BaseModel
from pydantic.fields import FieldInfo


class Origin:
    """Where the model instances of one object came from. All origins are equal: models compare by their fields."""

    __slots__ = ("_records", "_root")

    def __init__(self) -> None:
        self._root: Mapping[str, Any] | None = None
        self._records: list[tuple[BaseModel, Mapping[str, Any]]] = []

    def read(self, model: BaseModel, raw: Mapping[str, Any]) -> None:
        """Remember that `model`, the whole object, was made from `raw`."""
        self._root = raw
        for field_value, raw_value in _deep_fields(model, raw):
            self._walk(field_value, raw_value)

    def add(self, model: BaseModel, raw: Mapping[str, Any]) -> None:
        """Remember that `model`, a part of the object, was made from `raw`."""
        self._records.append((model, raw))

    @property
    def root(self) -> Mapping[str, Any] | None:
        """The JSON of the whole object; None when it was not read."""
        return self._root

    def index(self) -> dict[int, Mapping[str, Any]]:
        """The JSON by the identity of the instance; the records keep the instances, hence the identities, alive."""
        return {id(model): raw for model, raw in self._records}

    def _walk(self, value: Any, raw: Any) -> None:
        if isinstance(value, BaseModel) and isinstance(raw, Mapping):
            self._records.append((value, raw))
            for field_value, raw_value in _deep_fields(value, raw):
                self._walk(field_value, raw_value)
        elif isinstance(value, (list, tuple)) and isinstance(raw, list) and len(value) == len(raw):
            for item, raw_item in zip(value, raw, strict=True):
                self._walk(item, raw_item)
        elif isinstance(value, dict) and isinstance(raw, Mapping):
            for key, item in value.items():
                self._walk(item, raw.get(key))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        clone = type(self)()
        clone._root = self._root
        clone._records = [(copy.deepcopy(model, memo), raw) for model, raw in self._records]
        return clone

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Origin)

    __hash__ = None  # type: ignore[assignment]


class Opaque:
    """A mark in a field's annotation: it holds plain JSON, never a model."""


def dump(model: BaseModel, origin: Origin) -> dict[str, Any]:
    """The JSON of a whole object; see the module."""
    tree = model.model_dump(mode="json", by_alias=True, warnings=False)
    return _Dump(origin.index()).model(model, tree, origin.root)


def dump_field(model: BaseModel, origin: Origin, name: str) -> Any:
    """What `dump` gives for one field that holds a model, at a fraction of the cost; None where it would leave it out.

    Raises LookupError for a field that holds no model.
    """
    value, key = getattr(model, name), _shape(type(model)).key_of(name)
    place = (origin.root or {}).get(key)
    if value is None:
        return None
    if not isinstance(value, BaseModel):
        raise LookupError(name)
    tree = value.model_dump(mode="json", by_alias=True, warnings=False)
    raw = place if isinstance(place, Mapping) else None
    found = _Dump(origin.index()).value(value, tree, raw)
    return None if found == {} and key not in (origin.root or {}) and name not in model.model_fields_set else found


class _Dump:
    def __init__(self, index: dict[int, Mapping[str, Any]]) -> None:
        self._index = index

    def value(self, value: Any, tree: Any, place: Any) -> Any:
        """`value` is in the models what `tree` is in pydantic's dump; `place` is the JSON that was at this place."""
        if isinstance(value, BaseModel) and isinstance(tree, dict):
            inherited = place if isinstance(place, Mapping) else None
            return self.model(value, tree, self._index.get(id(value), inherited))
        if isinstance(value, (list, tuple)) and isinstance(tree, list) and len(value) == len(tree):
            return [self.value(item, part, None) for item, part in zip(value, tree, strict=True)]
        if isinstance(value, dict) and isinstance(tree, dict):
            places = place if isinstance(place, Mapping) else {}
            for (key, item), part in zip(value.items(), list(tree), strict=True):
                tree[part] = self.value(item, tree[part], places.get(key))
        return tree

    def model(self, model: BaseModel, tree: dict[str, Any], raw: Mapping[str, Any] | None) -> dict[str, Any]:
        """`raw` is what the instance was made from, or else what its place held; None for a new instance."""
        shape = _shape(type(model))
        sparse = raw is not None or getattr(model, "omit_defaults", False)
        raw = raw if raw is not None else {}
        for key, name, plain, default in shape.written:
            if key not in tree:
                continue
            value = getattr(model, name)
            null = raw.get(key, 0) is None
            if null and name not in model.model_fields_set and value == default():
                tree[key] = None
                continue
            if value is None:
                if not null:
                    del tree[key]
                continue
            if not plain:
                tree[key] = self.value(value, tree[key], raw.get(key))
            if key in raw or name in model.model_fields_set:
                continue
            if tree[key] == {} or (sparse and value == default()):
                del tree[key]
        if not shape.keeps_extra:
            tree.update((key, value) for key, value in raw.items() if key not in shape.known)
        return tree


def _default(field: FieldInfo) -> Callable[[], Any]:
    """What gives a field's default. A factory that wants the other fields is not asked: nothing is equal to its."""
    if field.default_factory is not None:
        takes_fields = field.default_factory_takes_validated_data
        return object if takes_fields else cast("Callable[[], Any]", field.default_factory)
    return lambda: field.default


_PLAIN = (str, int, float, bool, type(None), datetime)


def _is_plain(annotation: Any, metadata: Iterable[Any] = ()) -> bool:
    """Whether what a field holds is dumped by pydantic as it is to be sent: there is no model in it."""
    if Opaque in metadata:
        return True
    origin = get_origin(annotation)
    if origin is Annotated:
        return _is_plain(annotation.__origin__, annotation.__metadata__)
    if origin is Literal:
        return True
    if origin in (dict, list, tuple, Union, UnionType):
        return all(part is Ellipsis or _is_plain(part) for part in get_args(annotation))
    return annotation in _PLAIN


class _Shape:
    """What `dump` needs to know of a model class."""

    def __init__(self, cls: type[BaseModel]) -> None:
        self.keeps_extra = cls.model_config.get("extra") == "allow"
        self.deep: list[tuple[str, list[str]]] = []
        self.written: list[tuple[str, str, bool, Callable[[], Any]]] = []
        self.known: set[str] = set()
        for name, field in cls.model_fields.items():
            keys, plain = list(_read_keys(name, field)), _is_plain(field.annotation, field.metadata)
            if not plain:
                self.deep.append((name, keys))
            key = field.serialization_alias or field.alias or name
            self.written.append((key, name, plain, _default(field)))
            self.known.update(keys, (key,))

    def key_of(self, name: str) -> str:
        """A field's key in JSON."""
        return next(key for key, field, _, _ in self.written if field == name)


@cache
def _shape(cls: type[BaseModel]) -> _Shape:
    return _Shape(cls)


def _read_keys(name: str, field: FieldInfo) -> Iterator[str]:
    alias = field.validation_alias or field.alias or name
    for choice in alias.choices if isinstance(alias, AliasChoices) else [alias]:
        if isinstance(choice, AliasPath):
            if isinstance(choice.path[0], str):
                yield choice.path[0]
        else:
            yield choice


def _deep_fields(model: BaseModel, raw: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """(value, JSON) of each field that the JSON has, and that may hold models."""
    for name, keys in _shape(type(model)).deep:
        for key in keys:
            if key in raw:
                yield getattr(model, name), raw[key]
                break
