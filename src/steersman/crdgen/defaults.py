"""The defaults of models, as a schema can hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError

from steersman.crdgen.errors import SchemaError
from steersman.crdgen.markers import Node


def json_default(field: FieldInfo, where: str) -> tuple[bool, Any]:
    """Whether a field has a default that is always the same, and that as JSON: of models what was set in them."""
    if field.default_factory is None:
        value = field.default
    elif field.default_factory_takes_validated_data:
        return False, None
    else:
        value, again = field.default_factory(), field.default_factory()  # type: ignore[call-arg]
        if value != again:
            return False, None  # such as the time
    if value is None:
        return True, None
    kind: Any = field.annotation
    for each in field.metadata:
        kind = Annotated[kind, each]
    try:
        return True, TypeAdapter(kind).dump_python(
            value, mode="json", by_alias=True, exclude_unset=True, exclude_none=True, warnings="error"
        )
    except (PydanticSerializationError, PydanticUserError) as error:
        raise SchemaError(where, f"the default {value!r} cannot be written as JSON: {error}") from None


def has_defaults(node: Node) -> bool:
    """Whether an object that is empty gets anything by the schema's defaults."""
    return any("default" in child for child in _fields(node))


def _fields(node: Node) -> Iterator[Node]:
    yield from (node.get("properties") or {}).values()
