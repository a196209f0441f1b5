"""From the constraints of pydantic fields to the keywords of a schema."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from typing import Any

import re2
from annotated_types import Ge, GroupedMetadata, Gt, Le, Lt, MaxLen, MinLen, MultipleOf
from pydantic import Strict
from pydantic.fields import FieldInfo
from pydantic.networks import UrlConstraints
from pydantic.types import AllowInfNan, FailFast

from steersman.apimachinery.schema.patterns import PatternError, compile_pattern
from steersman.client.declared import Rule
from steersman.crdgen.errors import SchemaError
from steersman.crdgen.markers import Marker, Node, Ruled

_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
_OF_TEXTS = ("strip_whitespace", "to_lower", "to_upper", "coerce_numbers_to_str")
_HARMLESS = frozenset({"strict", "allow_inf_nan", "union_mode", "fail_fast"})


def flattened(metadata: Iterable[Any]) -> Iterator[Any]:
    """The single things that an annotation says."""
    for each in metadata:
        if isinstance(each, FieldInfo):
            yield from flattened(each.metadata)
        elif isinstance(each, GroupedMetadata):
            yield from flattened(each)
        elif isinstance(each, Rule):
            yield Ruled(each)
        else:
            yield each


def constrain(node: Node, said: Any, where: str) -> None:
    """Put one thing that an annotation says into a schema. Raises SchemaError for what no schema can say."""
    if isinstance(said, Marker):
        if (why := said.apply(node)) is not None:
            raise SchemaError(where, why)
        if "pattern" in node:
            _check_pattern(node["pattern"], where)
    elif isinstance(said, Ge | Gt | Le | Lt | MultipleOf):
        _number(node, said, where)
    elif isinstance(said, MinLen | MaxLen):
        _length(node, said, where)
    elif isinstance(said, UrlConstraints):
        _url(node, said, where)
    elif said is None or isinstance(said, Strict | AllowInfNan | FailFast | str):
        return  # JSON has the types that a schema names, no infinities, and no use for remarks; conint() says None
    elif _is_general(said):
        for key, value in vars(said).items():
            if value is not None and value is not False:
                _general(node, key, value, where)
    else:
        raise SchemaError(where, f"{_name(said)} is nothing that a schema can say: {_ADVICE.get(_name(said), _ELSE)}")


_ELSE = "use raw_schema(...) for the whole field, or say it as a rule(...)"
_CODE = "it is Python code, which the server cannot run: say it as rule(...) or pattern(...), or in a @field_validator"
_ADVICE = dict.fromkeys(("AfterValidator", "BeforeValidator", "PlainValidator", "WrapValidator", "Predicate"), _CODE)


def _is_general(said: Any) -> bool:
    return type(said).__name__.lstrip("_") == "PydanticGeneralMetadata"


def _name(said: Any) -> str:
    return type(said).__name__ if not isinstance(said, type) else said.__name__


def _number(node: Node, said: Ge | Gt | Le | Lt | MultipleOf, where: str) -> None:
    if node.get("type") not in ("integer", "number") and "x-kubernetes-int-or-string" not in node:
        raise SchemaError(where, f"{_name(said)} is for numbers, not for {node.get('type', 'this')}")
    limit: Any = astuple(said)[0]
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not math.isfinite(limit):
        raise SchemaError(where, f"{limit!r} is no limit that JSON can hold")
    if isinstance(said, MultipleOf):
        node["multipleOf"] = limit
    elif isinstance(said, Ge | Gt):
        node["minimum"] = limit
        if isinstance(said, Gt):
            node["exclusiveMinimum"] = True
    else:
        node["maximum"] = limit
        if isinstance(said, Lt):
            node["exclusiveMaximum"] = True


def _length(node: Node, said: MinLen | MaxLen, where: str) -> None:
    noun = _LENGTHS.get(node.get("type", ""))
    if noun is None:
        raise SchemaError(where, f"a length is for texts, lists and maps, not for {node.get('type', 'this')}")
    if isinstance(said, MinLen):
        if said.min_length:
            node[f"min{noun}"] = said.min_length
    else:
        node[f"max{noun}"] = said.max_length


def url_keywords(said: UrlConstraints) -> Node:
    """What pydantic's URL types demand, as far as it is about all URLs of the type."""
    found: Node = {}
    if said.max_length is not None:
        found["maxLength"] = said.max_length
    if said.allowed_schemes:
        found["pattern"] = f"^({'|'.join(re2.escape(each) for each in said.allowed_schemes)}):"
    return found


def _url(node: Node, said: UrlConstraints, where: str) -> None:
    if said.host_required or said.default_host or said.default_port or said.default_path:
        raise SchemaError(where, "what a URL must hold beside its scheme cannot be said: use a rule with url(self)")
    node.update(url_keywords(said))


def _general(node: Node, key: str, value: Any, where: str) -> None:
    if key in _HARMLESS:
        return
    if key == "pattern":
        if node.get("type") != "string":
            raise SchemaError(where, "a pattern is for texts")
        node["pattern"] = getattr(value, "pattern", value)
        _check_pattern(node["pattern"], where)
    elif key in _OF_TEXTS:
        raise SchemaError(where, f"{key} changes what the server holds: it can be no part of a schema")
    else:
        raise SchemaError(where, f"{key} is nothing that a schema can say")


def _check_pattern(expression: str, where: str) -> None:
    try:
        compile_pattern(expression)
    except PatternError as error:
        raise SchemaError(where, f"the pattern {expression!r} is none that the server takes: {error}") from None
