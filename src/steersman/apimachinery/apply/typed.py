"""How a schema says that fields are owned: which maps and lists are owned whole, which item by item, and by what key.

Two sources of a TypeView: the structural schema of a custom resource definition, and OpenAPI schemas with `$ref`.

Source: kube-openapi `schemaconv/openapi.go` (schema to types), structured-merge-diff `typed/helpers.go`, and
apiextensions `controller/openapi/builder/builder.go` (the metadata of custom and embedded resources).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from steersman._util.dataclass import dataclass
from steersman._util.govalue import Foreign
from steersman.apimachinery.apply import path as paths

UNTYPED, NUMERIC, STRING, BOOLEAN = "untyped", "numeric", "string", "boolean"
_SCALARS = {"integer": NUMERIC, "number": NUMERIC, "boolean": BOOLEAN}
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_RAW_EXTENSION = "io.k8s.apimachinery.pkg.runtime.RawExtension"


@dataclass(slots=True, eq=False)
class Atom:
    """What a value may be: any of a scalar, a list and a map; a value selects the one that it is.

    `loose` says that values below have no declared type, so that 1 and true may meet in the same place.
    """

    scalar: str | None = None
    list: ListAtom | None = None
    map: MapAtom | None = None
    loose: bool = False

    def select(self, value: Any) -> Atom | ListAtom | MapAtom | None:
        """The part that applies to `value`; for null, or a value of a kind not allowed, the first there is."""
        if isinstance(value, dict):
            if self.map is not None:
                return self.map
        elif isinstance(value, list):
            if self.list is not None:
                return self.list
        elif value is not None and self.scalar is not None and value.__class__ is not Foreign:
            return self
        return self.map or (self if self.scalar is not None else self.list)


@dataclass(slots=True, eq=False)
class MapAtom:
    """A map or struct: `fields` are declared, any other key has `items` (None: no other key is allowed)."""

    fields: dict[str, Atom] = field(default_factory=dict)
    items: Atom | None = None
    atomic: bool = False

    def child(self, name: str) -> Atom | None:
        return self.fields.get(name) or self.items


@dataclass(slots=True, eq=False)
class ListAtom:
    """A list: atomic, or a set (no keys), or a map by `keys`, whose absent keys take `defaults`."""

    items: Atom
    atomic: bool = True
    keys: tuple[str, ...] = ()
    defaults: dict[str, Any] = field(default_factory=dict)

    def element(self, item: Any) -> str:
        """The path element of an item. Raises PathError for one that cannot be addressed."""
        if self.keys:
            return self._keyed(item)
        if isinstance(item, dict):
            raise paths.PathError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise paths.PathError("not supported: associative list with lists as elements")
        if item is None or item.__class__ is Foreign:
            raise paths.PathError("associative list without keys has an element that's an explicit null")
        return paths.value(item)

    def _keyed(self, item: Any) -> str:
        if item is None:
            raise paths.PathError("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise paths.PathError("associative list with keys may not have non-map elements")
        if len(self.keys) == 1 and self.keys[0] in item:
            name = self.keys[0]
            return f'k:{{"{name}":{paths.encode_value(item[name])}}}'
        found = [(name, item[name]) for name in self.keys if name in item]
        found += [(name, value) for name, value in self.defaults.items() if name not in item]
        if not found:
            names = "[" + " ".join(f'"{name}"' for name in self.keys) + "]"
            raise paths.PathError(
                f"associative list with keys has an element that omits all key fields {names} "
                "(and doesn't have default values for any key fields)"
            )
        return paths.key(found)


@dataclass(slots=True, eq=False)
class TypeView:
    """The ownership schema of one kind in one version.

    `empty` is what an object looks like before it is created: a built-in kind's encoding always has some fields,
    which are therefore never "added" (see `zero_value`); a custom resource has none. `reconciled` remembers which
    stored field sets already fit this schema.
    """

    root: Atom
    empty: dict[str, Any] = field(default_factory=dict)
    reconciled: dict[bytes, Any] = field(default_factory=dict)


def _untyped() -> tuple[Atom, Atom]:
    atomic = Atom(UNTYPED, loose=True)
    atomic.list, atomic.map = ListAtom(atomic), MapAtom(items=atomic, atomic=True)
    deduced = Atom(UNTYPED, loose=True)
    deduced.list, deduced.map = ListAtom(atomic), MapAtom(items=deduced)
    return atomic, deduced


UNTYPED_ATOMIC, DEDUCED = _untyped()


def from_crd(schema: Mapping[str, Any] | None, metadata: Atom) -> TypeView:
    """The view of a custom resource, from `openAPIV3Schema` of its version (None: everything is deduced).

    `metadata` is the atom of ObjectMeta, see `object_meta`; embedded resources use it too.
    """
    if schema is None:
        return TypeView(DEDUCED)
    root = _Converter({}, metadata).convert({**schema, "x-kubernetes-embedded-resource": True}, False)
    return TypeView(_without_managed_fields(root))


def from_openapi(schemas: Mapping[str, Any], name: str) -> TypeView:
    """The view of the OpenAPI schema `name`; `$ref`s lead to other schemas by the last part of their path.

    The schemas must be those of Kubernetes' own types: what they require and default tells how zero values encode.
    """
    root = _Converter(schemas, None).named(name)
    return TypeView(_without_managed_fields(root), zero_value(schemas, name))


def object_meta(schemas: Mapping[str, Any]) -> Atom:
    """The atom of ObjectMeta, to be shared by the views of custom resources."""
    return _Converter(schemas, None).named(_OBJECT_META)


def _type_meta(metadata: Atom) -> dict[str, Atom]:
    return {"apiVersion": Atom(STRING), "kind": Atom(STRING), "metadata": metadata}


def _without_managed_fields(root: Atom) -> Atom:
    """The type of whole objects: `metadata.managedFields`, which no one owns, is not looked at."""
    metadata = root.map.fields.get("metadata") if root.map is not None else None
    if root.map is None or metadata is None or metadata.map is None:
        return root
    kept = {name: atom for name, atom in metadata.map.fields.items() if name != "managedFields"}
    meta = MapAtom(kept, metadata.map.items, metadata.map.atomic)
    fields = {**root.map.fields, "metadata": Atom(map=meta, loose=_is_loose(meta))}
    whole = MapAtom(fields, root.map.items, root.map.atomic)
    return Atom(root.scalar, root.list, whole, _is_loose(whole))


class _Converter:
    """Turns schemas into atoms; a named schema is converted once, so that recursive ones end."""

    def __init__(self, schemas: Mapping[str, Any], metadata: Atom | None) -> None:
        self.schemas = schemas
        self.metadata = metadata
        self.done: dict[str, Atom] = {}

    def named(self, name: str) -> Atom:
        atom = self.done.get(name)
        if atom is None:
            if name == _RAW_EXTENSION:
                return UNTYPED_ATOMIC
            atom = self.done[name] = Atom()
            if name == _QUANTITY:
                atom.scalar = UNTYPED
            else:
                self.fill(atom, self.schemas[name], False)
        return atom

    def convert(self, schema: Mapping[str, Any], preserve: bool) -> Atom:
        reference = _reference(schema)
        if reference is None:
            atom = Atom()
            self.fill(atom, schema, preserve)
            return atom
        atom = self.named(reference)
        relation = schema.get("x-kubernetes-map-type")
        return _override(atom, relation == "atomic") if relation else atom

    def fill(self, atom: Atom, schema: Mapping[str, Any], preserve: bool) -> None:
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        kind = schema.get("type")
        if kind == "object":
            atom.map = self.map(schema, preserve)
        elif kind == "array":
            atom.list = self.list(schema, preserve)
        elif kind == "string":
            atom.scalar = STRING if schema.get("format", "") in ("", "byte") else UNTYPED
        elif kind:
            atom.scalar = _SCALARS.get(kind, UNTYPED)
        else:
            atom.scalar, atom.list, atom.map = UNTYPED, self.list(schema, preserve), self.map(schema, preserve)
            atom.loose = not (schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string")
        if kind == "object" and atom.map is not None:
            atom.loose = _is_loose(atom.map)
        elif kind == "array" and atom.list is not None:
            atom.loose = atom.list.items.loose

    def map(self, schema: Mapping[str, Any], preserve: bool) -> MapAtom:
        properties = schema.get("properties") or {}
        fields = {name: self.convert(child, preserve) for name, child in properties.items()}
        if schema.get("x-kubernetes-embedded-resource") is True and self.metadata is not None:
            fields |= _type_meta(self.metadata)
        items = self.other_keys(schema, preserve, bool(fields))
        return MapAtom(fields, items, schema.get("x-kubernetes-map-type") == "atomic")

    def other_keys(self, schema: Mapping[str, Any], preserve: bool, has_fields: bool) -> Atom | None:
        additional = schema.get("additionalProperties")
        if additional is None:
            return DEDUCED if preserve or not has_fields else None
        if isinstance(additional, Mapping):
            return self.convert(additional, preserve)
        return DEDUCED if additional else None

    def list(self, schema: Mapping[str, Any], preserve: bool) -> ListAtom:
        items_schema = schema.get("items")
        items = UNTYPED_ATOMIC if items_schema is None else self.convert(items_schema, preserve)
        keys = _list_keys(schema)
        if keys is None:
            return ListAtom(items)
        return ListAtom(items, False, keys, self.key_defaults(items_schema, keys) if keys else {})

    def key_defaults(self, items: Any, keys: tuple[str, ...]) -> dict[str, Any]:
        reference = _reference(items)
        properties = (self.schemas[reference] if reference else items).get("properties") or {}
        found = {name: properties[name].get("default") for name in keys if name in properties}
        return {name: default for name, default in found.items() if default is not None}


def _is_loose(atom: MapAtom) -> bool:
    return (atom.items is not None and atom.items.loose) or any(child.loose for child in atom.fields.values())


def _reference(schema: Mapping[str, Any]) -> str | None:
    reference = schema.get("$ref")
    if not reference:
        all_of: list[Any] = schema.get("allOf") or []
        reference = all_of[0].get("$ref") if len(all_of) == 1 else None
    return str(reference).rpartition("/")[2] if reference else None


def _override(atom: Atom, atomic: bool) -> Atom:
    """The same type, owned whole or by key as the field that refers to it says."""
    if atom.map is not None:
        return Atom(atom.scalar, atom.list, MapAtom(atom.map.fields, atom.map.items, atomic), atom.loose)
    if atom.list is not None:
        return Atom(atom.scalar, ListAtom(atom.list.items, atomic), None, atom.loose)
    return atom


def _list_keys(schema: Mapping[str, Any]) -> tuple[str, ...] | None:
    """None for an atomic list, () for a set, else the keys of its items."""
    kind = schema.get("x-kubernetes-list-type")
    if kind is not None:
        if kind == "map":
            return tuple(schema.get("x-kubernetes-list-map-keys") or ())
        return () if kind == "set" else None
    if schema.get("x-kubernetes-patch-strategy") in ("merge", "merge,retainKeys"):
        merge_key = schema.get("x-kubernetes-patch-merge-key")
        return (merge_key,) if merge_key else ()
    return None


_NULL_WHEN_EMPTY = {
    "io.k8s.api.authentication.v1.TokenRequestSpec": ("audiences", "boundObjectRef", "expirationSeconds"),
    "io.k8s.api.authentication.v1.TokenRequestStatus": ("expirationTimestamp",),
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerStatus": ("currentMetrics",),
    "io.k8s.api.core.v1.Event": ("eventTime", "firstTimestamp", "lastTimestamp"),
    "io.k8s.api.discovery.v1.EndpointSlice": ("endpoints", "ports"),
    "io.k8s.api.events.v1.Event": ("deprecatedFirstTimestamp", "deprecatedLastTimestamp"),
    "io.k8s.api.rbac.v1.ClusterRole": ("rules",),
    "io.k8s.api.rbac.v1.Role": ("rules",),
    "io.k8s.api.resource.v1.DeviceClaim": ("requests",),
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus": (
        "conditions",
        "storedVersions",
    ),
}
_LEFT_OUT_WHEN_EMPTY = {
    "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec": ("policyName", "validationActions"),
    "io.k8s.api.authentication.v1.TokenReviewSpec": ("token",),
    "io.k8s.api.autoscaling.v1.ScaleSpec": ("replicas",),
    "io.k8s.api.core.v1.ReplicationControllerSpec": ("minReadySeconds",),
    "io.k8s.api.networking.v1.IPAddressSpec": ("parentRef",),
}


def zero_value(schemas: Mapping[str, Any], name: str) -> dict[str, Any]:
    """How an object of a built-in type encodes when nothing is set.

    The schemas are generated from the types: a default of `{}` marks a struct held by value, which is always
    there, a default that is a zero value a scalar that is always there; a required field without a default is a
    pointer, list or map, which is null. All else is left out when empty. The few types whose schemas do not tell
    are listed above.
    """
    schema = schemas[name]
    required = schema.get("required") or ()
    left_out = _LEFT_OUT_WHEN_EMPTY.get(name, ())
    out: dict[str, Any] = dict.fromkeys(_NULL_WHEN_EMPTY.get(name, ()))
    for field_name, child in (schema.get("properties") or {}).items():
        default = child.get("default")
        if field_name in left_out:
            continue
        if default == {}:
            reference = _reference(child)
            out[field_name] = zero_value(schemas, reference) if reference else {}
        elif default in ("", 0) or (default is None and field_name in required):
            out[field_name] = default
    return out
