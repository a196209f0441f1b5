"""YAML as sigs.k8s.io/yaml reads it (YAML 1.1 scalars, no timestamps, keys as strings), and as it writes it."""

from __future__ import annotations

import base64
from collections.abc import Generator
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import orjson

from steersman._util.gotext import format_float, format_json_float
from steersman.apimachinery.codec import yaml_scalars
from steersman.apimachinery.codec.json import check_depth, duplicate_keys, json_number

_FREE_NODES, _MOST_NODES = 400_000, 4_000_000
_OPEN = -1
_ESCAPE = "found unknown escape character"
_TAG = "tag:yaml.org,2002:"
_PLAIN, _MERGE = f"{_TAG}plain", f"{_TAG}merge"


class YamlError(ValueError):
    """The text is no YAML, or no document that JSON can express.

    `problem` is the message without its place, `line` the line that it is about, from 1; 0 when no line is known.
    """

    def __init__(self, message: str, problem: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.problem = problem or message
        self.line = line


class _UnwritableError(ValueError):
    """The document has a value that JSON has no form for."""


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
        """Scalars resolve as go-yaml v2 does; tags that it does not know mean nothing."""

        duplicates: ClassVar[list[tuple[int, str]]] = []

    Loader.yaml_implicit_resolvers = {"<": [(_MERGE, re.compile("<<$"))], None: [(_PLAIN, re.compile(""))]}
    Loader.yaml_constructors = {_MERGE: _text, f"{_TAG}binary": _binary, None: _construct}
    return Loader


def _construct(loader: Any, node: Any) -> Any:
    if node.id == "mapping":
        return _mapping(loader, node)
    if node.id == "sequence":
        return _sequence(loader, node)
    tag = "" if node.tag == _PLAIN else node.tag.replace(_TAG, "!!")
    return yaml_scalars.resolve(tag, node.value)


def _text(loader: Any, node: Any) -> Any:
    return node.value


def _sequence(loader: Any, node: Any) -> Any:
    value: list[Any] = []
    yield value
    value.extend(loader.construct_object(each) for each in node.value)


def _binary(loader: Any, node: Any) -> str:
    """!!binary: the text that the base64 stands for."""
    try:
        content = base64.b64decode(node.value.replace("\n", "").replace("\r", ""), validate=True)
    except ValueError:
        raise ValueError("!!binary value contains invalid base64 data") from None
    return content.decode("utf-8", "replace")


def _mapping(loader: Any, node: Any) -> Any:
    value: dict[str, Any] = {}
    yield value
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        found = loader.construct_object(key_node, deep=True)
        key = yaml_scalars.key_text(found)
        if key is None:
            raise YamlError(f"unsupported map key {found!r}", line=key_node.start_mark.line + 1)
        if key in value:
            loader.duplicates.append((value_node.start_mark.line + 1, key))
        value[key] = loader.construct_object(value_node, deep=True)


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
    found = _read_as_json(raw)
    if found is not None:
        return found, []
    documents = decode_documents(raw)
    document = next(documents, None)
    documents.close()
    if document is None:
        return None, []
    return document.value, [f'line {line}: key "{key}" already set in map' for line, key in document.duplicates]


def _read_as_json(raw: bytes) -> dict[str, Any] | None:
    """What most clients send is JSON, which is read faster; None where YAML may have another meaning, or none."""
    if not raw.lstrip().startswith(b"{") or _not_json_alone().search(raw) is not None:
        return None
    try:
        value = orjson.loads(raw)
        if not isinstance(value, dict) or duplicate_keys(raw, value):
            return None
        check_depth(value)
    except (orjson.JSONDecodeError, RecursionError, ValueError):
        return None
    found: dict[str, Any] = _through_json(value)
    return found


@lru_cache(maxsize=1)
def _not_json_alone() -> Any:
    """Tabs, what is no ASCII, escapes that YAML reads otherwise, the merge key, and keys longer than YAML lets be."""
    import re

    return re.compile(rb'[\x7f-\xff\t]|\\[^"\\bfnrt]|"<<"|"(?:[^"\\]|\\.){1000,}"\s*:')


def decode_documents(raw: bytes) -> Generator[Document, None, None]:
    """The documents of a YAML stream, one after another, empty ones too. Raises YamlError, as go-yaml words it."""
    import yaml

    try:
        loader = _loader()(raw)
        try:
            while loader.check_node():
                loader.duplicates = []
                node = loader.get_node()
                if rb"\/" in raw:
                    _check_escapes(raw)
                if b"*" in raw:
                    _check_aliases(node)
                value = loader.construct_document(node)
                check_depth(value)
                yield Document(_through_json(value), node, loader.duplicates)
        finally:
            loader.dispose()
    except _UnwritableError as error:
        raise YamlError(str(error)) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else getattr(error, "line", 0)
        problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
        raise YamlError(f"yaml: {_problem(error)}", problem, line) from None


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
            raise _UnwritableError(f"json: unsupported value: {format_float(value)}")
        text = format_json_float(value)  # with zeros in place of digits that do not matter
        return json_number(text)
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


def _check_escapes(raw: bytes) -> None:
    """Refuse an escape that YAML 1.2 took from JSON and go-yaml does not know."""
    import yaml

    text = raw.decode("utf-8", "replace")
    for token in yaml.scan(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(token, yaml.ScalarToken) and token.style == '"':
            shown = text[token.start_mark.index : token.end_mark.index]
            if "\\/" in shown.replace("\\\\", ""):
                line = token.start_mark.line + 1 if token.start_mark.line else 0
                raise ValueError(f"line {line}: {_ESCAPE}" if line else _ESCAPE)


def _problem(error: Exception) -> str:
    """The first problem as go-yaml puts it: it counts a parser's lines from zero, and never names the first line."""
    mark, context = (getattr(error, name, None) for name in ("problem_mark", "context_mark"))
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    line = 0
    if mark is not None and mark.line:
        line = mark.line + (type(error).__name__ == "ScannerError")
    elif context is not None:
        line = context.line
    return f"line {line}: {problem}" if line else str(problem)


def encode(value: Any) -> bytes:
    """YAML with sorted keys."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(
        value, Dumper=dumper, default_flow_style=False, allow_unicode=True, sort_keys=True, width=1 << 30
    )
    return text.encode()
