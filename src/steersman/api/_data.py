"""The package's data on built-in kinds, read once when first asked for; `tools/builtins` writes it."""

from __future__ import annotations

import pkgutil
from functools import cache
from typing import Any

import orjson

from steersman.apimachinery.codec import protobuf
from steersman.apimachinery.go_types import TypeTable


@cache
def load(name: str) -> Any:
    """The content of data/NAME.json; shared, so never to be changed."""
    content = pkgutil.get_data("steersman.api", f"data/{name}.json")
    assert content is not None
    return orjson.loads(content)


@cache
def type_table() -> TypeTable:
    """Go's types of all built-in kinds."""
    return TypeTable(load("types"))


@cache
def protobuf_schema() -> protobuf.Schema:
    """The protobuf messages of all built-in kinds, of their subresources, and of DeleteOptions."""
    content = load("protobuf")
    return protobuf.Schema(content["messages"], content["kinds"])
