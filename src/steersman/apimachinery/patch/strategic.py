"""Strategic merge patch: merging by what the schema says about each list and map, with directives in the patch.

Built-in kinds only; custom resources have no strategies and refuse this type of patch.

Source: apimachinery `util/strategicpatch/patch.go` (StrategicMergeMapPatch), `util/mergepatch/errors.go`, apiserver
`endpoints/handlers/patch.go` (interpretStrategicMergePatchError).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from steersman._util import govalue
from steersman._util.dataclass import dataclass
from steersman.apimachinery.errors import ApiError, BadRequest, Invalid
from steersman.apimachinery.patch import element_order

MEDIA_TYPE = "application/strategic-merge-patch+json"
_DIRECTIVE = "$patch"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_SET_ORDER = "$setElementOrder"

Map = dict[str, Any]


@dataclass(slots=True)
class PatchSchema:
    """What an OpenAPI schema says about patching: strategies and merge keys of its fields.

    `schemas` are all schemas by name, for `$ref`; `node` is the schema itself, of the Go type `go_name`. Fields are
    looked up once.
    """

    schemas: Mapping[str, Any]
    node: Mapping[str, Any]
    go_name: str = ""
    known: dict[str, FieldSchema] = field(default_factory=dict)

    def lookup(self, name: str) -> FieldSchema:
        """The schema of a struct's field, or of the items of a list field. Raises ApiError if there is none."""
        found = self.known.get(name)
        if found is None:
            node = (self.node.get("properties") or {}).get(name)
            if node is None:
                if not self.go_name:
                    kind = "map" if self.node.get("type") == "object" else self.node.get("type")
                    raise ApiError(f"merging an object in json but data type is not struct, instead is: {kind}")
                field_name = govalue.literal(name)
                raise ApiError(f"unable to find api field in struct {self.go_name} for the json field {field_name}")
            found = self.known[name] = self._field(node)
        return found

    def _field(self, node: Mapping[str, Any]) -> FieldSchema:
        strategies = [s for s in str(node.get("x-kubernetes-patch-strategy") or "").split(",") if s != "retainKeys"]
        merge_key = node.get("x-kubernetes-patch-merge-key") or ""
        inner, go_name = _resolve(self.schemas, node)
        if inner.get("type") == "array":
            inner, go_name = _resolve(self.schemas, inner.get("items") or {})
        return FieldSchema(PatchSchema(self.schemas, inner, go_name), strategies[0] if strategies else "", merge_key)


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """One field: the schema of what it holds, and how that is merged ("merge", "replace" or "")."""

    schema: PatchSchema
    strategy: str
    merge_key: str


def _resolve(schemas: Mapping[str, Any], node: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The schema that a node stands for, and the name of its type in Go ("" for one that has none)."""
    reference = node.get("$ref")
    if not reference:
        all_of: list[Any] = node.get("allOf") or []
        reference = all_of[0].get("$ref") if all_of else None
    if not reference:
        return node, ""
    name = str(reference).rpartition("/")[2]
    return schemas[name], name.rpartition(".")[2]


def apply(document: Map, patch: Any, schema: PatchSchema) -> Map:
    """The document with the patch merged in. Neither argument is changed; what stays the same is shared.

    Raises BadRequest for a patch that is no object or misuses a directive, Invalid for a list of lists, and
    ApiError with code 500 and no reason for the rest, as upstream does: an unknown directive, a list item without
    its merge key, an order that does not fit the list.
    """
    if not isinstance(patch, dict):
        kinds = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}
        kind = kinds.get(type(patch))
        if kind is not None:
            raise BadRequest(f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
        return document
    return _merge_map(document, patch, schema)


def _merge_map(original: Map, patch: Map, schema: PatchSchema) -> Map:
    if _DIRECTIVE in patch:
        return _directed(patch)
    patch = dict(patch)
    out = _retain_keys(dict(original), patch)
    for name in [name for name in patch if name.startswith(_SET_ORDER)]:
        _merge_in_order(out, patch, name, schema)
    for name, value in patch.items():
        deletes = name.startswith(_DELETE_FROM)
        key = _suffix(name, _DELETE_FROM, "invalid patch format of primitive list") if deletes else name
        if value is None:
            out.pop(key, None)
        elif not deletes:
            _merge_field(out, key, value, schema)
        elif isinstance(out.get(key), list) and isinstance(value, list):
            out[key] = _merge_list(out[key], value, schema.lookup(key), deletes=True)
    return out


def _directed(patch: Map) -> Map:
    directive = patch[_DIRECTIVE]
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, where: Map) -> ApiError:
    text = (
        directive if isinstance(directive, str) else f"%!s({govalue.type_name(directive)}={govalue.plain(directive)})"
    )
    return ApiError(f"unknown patch type: {text} in map: {govalue.plain(where)}")


def _retain_keys(original: Map, patch: Map) -> Map:
    """Takes the directive out of the patch and drops from the original what it does not name."""
    if _RETAIN_KEYS not in patch:
        return original
    names = patch.pop(_RETAIN_KEYS)
    bad = BadRequest("invalid patch format of retainKeys")
    if not isinstance(names, list):
        raise bad
    for name, value in patch.items():
        if value is not None and not name.startswith((_DELETE_FROM, _SET_ORDER)) and name not in names:
            raise bad
    return {name: value for name, value in original.items() if name in names}


def _merge_field(out: Map, name: str, value: Any, schema: PatchSchema) -> None:
    before = out.get(name)
    if isinstance(before, dict) and isinstance(value, dict):
        meta = schema.lookup(name)
        out[name] = value if meta.strategy == "replace" else _merge_map(before, value, meta.schema)
    elif isinstance(before, list) and isinstance(value, list):
        out[name] = _merge_list(before, value, schema.lookup(name), deletes=False)
    elif isinstance(value, dict) and _DIRECTIVE in value:
        out.pop(name, None)
    else:
        out[name] = _without_directives(_without_nulls(value))


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_directives(item) for name, item in value.items() if not _is_directive(item)}
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _is_directive(item)]
    return value


def _merge_list(original: list[Any], patch: list[Any], meta: FieldSchema, *, deletes: bool) -> list[Any]:
    if meta.strategy != "merge" and not deletes:
        return patch
    if not original and not patch:
        return original
    if not _holds_maps(original, patch):
        if deletes:
            return [item for item in original if not element_order.contains(patch, item)]
        merged = element_order.deduplicated([*original, *patch])
        return element_order.arrange(merged, patch, patch, original, "")
    if not meta.merge_key:
        raise ApiError("cannot merge lists without merge key for struct")
    original, patch = _special_elements(original, patch, meta.merge_key)
    merged = _merge_elements(original, patch, meta)
    for item in merged:
        _key(item, meta.merge_key)
    return element_order.arrange(merged, patch, patch, original, meta.merge_key)


def _holds_maps(*lists: list[Any]) -> bool:
    """Whether the items are maps; all must be of one kind, and no lists."""
    kinds = list(dict.fromkeys(type(item) for items in lists for item in items))
    if kinds[:1] == [list]:
        raise Invalid("the server rejected our request due to an error in our request", details={})
    if len(kinds) > 1:
        raise ApiError(f"list element types are not identical: {govalue.plain(list(lists))}")
    if not kinds:
        raise ApiError("no elements in any of the given slices")
    return dict in kinds


def _special_elements(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Carries out the directives among the items of a patch: what is left to merge into, and what to merge."""
    plain, replace = [], False
    for item in patch:
        directive = item.get(_DIRECTIVE)
        if _DIRECTIVE not in item:
            plain.append(item)
        elif directive == "delete":
            key = _key(item, merge_key)
            original = [other for other in original if not element_order.same(other.get(merge_key), key)]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise ApiError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, item)
    return (plain, []) if replace else (original, plain)


def _merge_elements(original: list[Any], patch: list[Any], meta: FieldSchema) -> list[Any]:
    out = list(original)
    for item in patch:
        key = _key(item, meta.merge_key)
        for position, other in enumerate(out):
            if element_order.same(other.get(meta.merge_key), key) and meta.merge_key in other:
                out[position] = _merge_map(other, item, meta.schema)
                break
        else:
            out.append(item)
    return out


def _key(item: Any, merge_key: str) -> Any:
    if not isinstance(item, dict):
        raise _wrong_type("map[string]interface {}", item)
    if merge_key not in item:
        raise ApiError(f"map: {govalue.plain(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _find(key: Any, order: list[Any], merge_key: str) -> None:
    """Looks for an item in a list; what is passed on the way must be a map."""
    for position, item in enumerate(order):
        if not isinstance(item, dict):
            raise ApiError(f"value for key {position} is not a map")
        if merge_key in item and element_order.same(item[merge_key], key):
            return


def _merge_in_order(out: Map, patch: Map, directive: str, schema: PatchSchema) -> None:
    """Merges the list that a $setElementOrder directive belongs to, and takes both out of the patch."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise _wrong_type("[]interface {}", order)
    name = _suffix(directive, _SET_ORDER, "invalid patch format of setElementOrder list")
    before, patched = out.get(name), patch.get(name)
    for items, there in ((before, name in out), (patched, name in patch)):
        if there and not isinstance(items, list):
            raise _wrong_type("[]interface {}", items)
    meta = schema.lookup(name)
    _check_order(patched or [], order, meta.merge_key)
    stored_order = before or []
    if isinstance(before, list) and isinstance(patched, list):
        merged = _merge_list(before, patched, meta, deletes=False)
        stored_order = _stored_order(before, patched, meta.merge_key)
    elif isinstance(patched, list):
        merged = _without_directives(patched)
    elif isinstance(before, list):
        merged = before
    else:
        return
    if meta.merge_key:
        for item in merged:
            _find(_key(item, meta.merge_key), order, meta.merge_key)
    _holds_maps(before or [], patched or [])
    out[name] = element_order.arrange(merged, order, order, stored_order, meta.merge_key)
    patch.pop(name, None)


def _stored_order(before: list[Any], patched: list[Any], merge_key: str) -> list[Any]:
    """The order of the stored list as upstream sees it after merging: new items have moved into the places of those
    that directives deleted."""
    if not merge_key:
        return before
    deleted = [item.get(merge_key) for item in patched if item.get(_DIRECTIVE) == "delete"]
    left = [item for item in before if not element_order.contains(deleted, item.get(merge_key))]
    names = [item.get(merge_key) for item in left]
    new = [item for item in patched if not _is_directive(item) and not element_order.contains(names, item[merge_key])]
    return left + new[: len(before) - len(left)]


def _check_order(patched: list[Any], order: list[Any], merge_key: str) -> None:
    """The items of the patch must appear in the order that the directive gives, deletions aside."""
    if not order or not patched:
        return
    rest = [item for item in patched if not (merge_key and _directive(item) == "delete")]
    found = expected = 0
    while found < len(rest) and expected < len(order):
        if _is_directive(rest[found]):
            found += 1
            continue
        pair = rest[found], order[expected]
        if element_order.same(*(_key(item, merge_key) if merge_key else item for item in pair)):
            found += 1
        expected += 1
    if found < len(rest) and expected >= len(order):
        raise ApiError(
            f"The order in patch list:\n{govalue.plain(patched)}\n "
            f"doesn't match {_SET_ORDER} list:\n{govalue.plain(order)}\n"
        )


def _directive(item: Any) -> Any:
    if not isinstance(item, dict):
        raise _wrong_type("map[string]interface {}", item)
    return item.get(_DIRECTIVE)


def _wrong_type(expected: str, value: Any) -> ApiError:
    received = "%!s(<nil>)" if value is None else govalue.type_name(value)
    return ApiError(f"expected a {expected}, but received a {received}")


def _suffix(name: str, prefix: str, message: str) -> str:
    before, slash, after = name.partition("/")
    if before != prefix or not slash:
        raise BadRequest(message)
    return after
