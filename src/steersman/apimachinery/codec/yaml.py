"""YAML as sigs.k8s.io/yaml reads it (YAML 1.1 scalars, no timestamps, keys as strings), and as it writes it."""

from __future__ import annotations

import base64
from collections.abc import Generator
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from steersman._util.gotext import format_float
from steersman.apimachinery.codec.json import check_depth

_FREE_NODES, _MOST_NODES = 400_000, 4_000_000
_OPEN = -1
_MOST_DIGITS = 300


class YamlError(ValueError):
    """The text is no YAML, or no document that JSON can express.

    `problem` is the message without its place, `line` the line that it is about, from 1; 0 when no line is known.
    """

    def __init__(self, message: str, problem: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.problem = problem or message
        self.line = line


class Document(NamedTuple):
    """One document of a YAML stream: its value, its node (with the places of everything), and keys that stand twice.

    `duplicates` are (line of the value, key), lines from 1.
    """

    value: Any
    node: Any
    duplicates: list[tuple[int, str]]


@lru_cache(maxsize=1)
def _loader() -> Any:
    import re

    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        """Scalars resolve as go-yaml v2 does: no timestamps, no base-60 numbers, 1e3 is a number."""

        duplicates: ClassVar[list[tuple[int, str]]] = []

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rpartition(":")[2] in ("bool", "null", "merge")]
        for first, resolvers in base.yaml_implicit_resolvers.items()
    }
    integer = re.compile(r"^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|(?:0|[1-9][0-9_]*))$")
    number = re.compile(
        r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    )
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))
    Loader.add_constructor(
        "tag:yaml.org,2002:bool", lambda loader, node: node.value.lower() in ("y", "yes", "on", "true")
    )
    Loader.add_implicit_resolver("tag:yaml.org,2002:int", integer, list("-+0123456789"))
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+0123456789."))
    Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: _float(node.value))
    Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: _integer(node.value.replace("_", "")))
    Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
    Loader.add_constructor("tag:yaml.org,2002:binary", _binary)
    return Loader


def _integer(text: str) -> int | float | str:
    """As go-yaml: what fits no 64-bit integer is a float, what fits no float stays text."""
    sign = -1 if text.startswith("-") else 1
    digits = text.lstrip("+-")
    if len(digits) > _MOST_DIGITS:
        return text
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit():
        return sign * int(digits, 8)
    number = sign * int(digits, 0)
    return number if -(2**63) <= number < 2**64 else float(number)


def _float(text: str) -> float | str:
    """As go-yaml: what fits no float stays text, but for the infinities that are written so."""
    number = float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text if abs(number) == float("inf") and "inf" not in text.lower() else number


def _binary(loader: Any, node: Any) -> str:
    """!!binary: the text that the base64 stands for."""
    return base64.b64decode(loader.construct_scalar(node)).decode("utf-8", "replace")


def _mapping(loader: Any, node: Any) -> Any:
    value: dict[str, Any] = {}
    yield value
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        key = _key(loader.construct_object(key_node, deep=True))
        if key in value:
            loader.duplicates.append((value_node.start_mark.line + 1, key))
        value[key] = loader.construct_object(value_node, deep=True)


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str):
        return key
    if isinstance(key, int | float):
        return str(key)
    raise YamlError(f"unsupported map key {key!r}")


def decode(raw: bytes) -> Any:
    """The first document of a YAML text; a key that stands twice is an error. Raises YamlError."""
    value, duplicates = decode_with_duplicates(raw)
    if duplicates:
        raise YamlError(strict_error(duplicates))
    return value


def strict_error(duplicates: list[str]) -> str:
    """What strict decoding says of keys that stand twice."""
    return "yaml: unmarshal errors:\n  " + "\n  ".join(duplicates)


def decode_with_duplicates(raw: bytes) -> tuple[Any, list[str]]:
    """The first document of a YAML text, and `line N: key "K" already set in map` for each key that stands twice.

    The last of the values counts. Raises YamlError, as go-yaml words it.
    """
    documents = decode_documents(raw)
    found = next(documents, None)
    documents.close()
    if found is None:
        return None, []
    return found.value, [f'line {line}: key "{key}" already set in map' for line, key in found.duplicates]


def decode_documents(raw: bytes) -> Generator[Document, None, None]:
    """The documents of a YAML stream, one after another, empty ones too. Raises YamlError, as go-yaml words it."""
    import yaml

    try:
        loader = _loader()(raw)
        try:
            while loader.check_node():
                loader.duplicates = []
                node = loader.get_node()
                if b"*" in raw:
                    _check_aliases(node)
                value = loader.construct_document(node)
                check_depth(value)
                yield Document(_through_json(value), node, loader.duplicates)
        finally:
            loader.dispose()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = str(getattr(error, "problem", None) or error)
        raise YamlError(f"yaml: {_problem(error)}", problem, 0 if mark is None else mark.line + 1) from None


def _through_json(value: Any) -> Any:
    """Numbers as they are after the way through JSON, which writes 1.0 as 1 and knows no NaN; in place."""
    kind = type(value)
    if kind is dict:
        for key, item in value.items():
            if type(item) in (int, float, dict, list):
                value[key] = _through_json(item)
    elif kind is list:
        value[:] = map(_through_json, value)
    elif kind is float:
        if value - value != 0:
            raise YamlError(f"json: unsupported value: {format_float(value)}")
        return int(value) if value.is_integer() and -(2**63) <= value < 2**63 else value
    elif kind is int and not -(2**63) <= value < 2**63:
        return float(value)
    return value


def _check_aliases(root: Any) -> None:
    """Refuse a document that grows too much when its aliases are written out, before any of it is.

    Source: go-yaml v2 `decode.go` (allowedAliasRatio): the more nodes, the smaller the part that aliases may make up.
    """
    sizes: dict[int, int] = {}
    size = _written_out(root, sizes)
    aliased = size - len(sizes)
    growth = min(max((size - _FREE_NODES) / (_MOST_NODES - _FREE_NODES), 0.0), 1.0)
    if aliased > 100 and size > 1000 and aliased / size > 0.99 - 0.89 * growth:
        raise YamlError("document contains excessive aliasing")


def _written_out(node: Any, sizes: dict[int, int]) -> int:
    """How many nodes there are below and with `node`; `sizes` remembers those of each node met."""
    known = sizes.get(id(node))
    if known == _OPEN:
        raise YamlError("anchor value contains itself")
    if known is not None:
        return known
    sizes[id(node)] = _OPEN
    size = 1
    if node.id == "mapping":
        size += sum(_written_out(key, sizes) + _written_out(value, sizes) for key, value in node.value)
    elif node.id == "sequence":
        size += sum(_written_out(item, sizes) for item in node.value)
    sizes[id(node)] = size
    return size


def decode_all(raw: bytes) -> list[Any]:
    """Every document of a YAML stream that is not empty. Raises YamlError."""
    import yaml

    try:
        return [_through_json(item) for item in yaml.load_all(raw, Loader=_loader()) if item is not None]
    except (yaml.YAMLError, RecursionError, UnicodeDecodeError) as error:
        raise YamlError(f"yaml: {_problem(error)}") from None


def _problem(error: Exception) -> str:
    """The first problem; go-yaml counts a parser's lines from zero, a scanner's from one."""
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    line = 0 if mark is None else mark.line + (type(error).__name__ == "ScannerError")
    return f"line {line}: {problem}" if line else str(problem)


def encode(value: Any) -> bytes:
    """YAML with sorted keys."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(
        value, Dumper=dumper, default_flow_style=False, allow_unicode=True, sort_keys=True, width=1 << 30
    )
    return text.encode()
