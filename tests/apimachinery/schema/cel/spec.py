"""The tests of the CEL specification: where they come from, and what the engine makes of each.

Source: cel-spec `tests/simple/testdata` and `proto/cel/expr/conformance/test/simple.proto`, in the Go module
`cel.dev/expr`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError, CompileError
from steersman.apimachinery.schema.cel.messages import MESSAGES, build
from steersman.apimachinery.schema.cel.program import ProgramError, Variable, compile_expression
from steersman.apimachinery.schema.cel.types import Type
from steersman.apimachinery.schema.cel.values import (
    Key,
    Uint,
    is_list,
    is_map,
    items_of,
    map_key,
    pairs_of,
)

from .textproto import Message, read

MODULE = "cel.dev/expr@v0.25.1"

_PRIMITIVES = {
    "BOOL": t.BOOL,
    "INT64": t.INT,
    "UINT64": t.UINT,
    "DOUBLE": t.DOUBLE,
    "STRING": t.STRING,
    "BYTES": t.BYTES,
}
_WELL_KNOWN = {"TIMESTAMP": t.TIMESTAMP, "DURATION": t.DURATION}


class SpecTest(NamedTuple):
    """One test; `name` is file/section/test."""

    name: str
    body: Message

    def text(self, field: str) -> str:
        return str(self.body[field][-1].decode()) if field in self.body else ""


@cache
def directory() -> Path | str:
    """Where the module is, fetched by `go` if need be; or why it is not to be had."""
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GO111MODULE": "on"}
    try:
        done = subprocess.run(
            ["go", "mod", "download", "-json", MODULE],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError:
        return "there is no go command to fetch the tests with"
    except subprocess.TimeoutExpired:
        return "fetching the tests took too long"
    answer = json.loads(done.stdout or "{}")
    if done.returncode or "Dir" not in answer:
        return f"{MODULE} cannot be fetched: {answer.get('Error') or done.stderr.strip()}"
    return Path(answer["Dir"]) / "tests" / "simple" / "testdata"


def load(folder: Path) -> Iterator[SpecTest]:
    """All tests, in order. Where names are used twice, the later ones get a number."""
    seen: dict[str, int] = {}
    for path in sorted(folder.glob("*.textproto")):
        for section in read(path.read_text()).get("section", []):
            for body in section.get("test", []):
                name = f"{path.stem}/{section['name'][0].decode()}/{body['name'][0].decode()}"
                seen[name] = seen.get(name, 0) + 1
                yield SpecTest(name if seen[name] == 1 else f"{name}#{seen[name]}", body)


def failure(test: SpecTest) -> str:
    """What is wrong with the engine's answer; nothing if it is as the test says."""
    wants_error = "eval_error" in test.body or "any_eval_errors" in test.body
    try:
        variables, values = _environment(test.body)
        checked = compile_expression(test.text("expr"), variables, {})
    except Unsupported as error:
        return str(error)
    except CompileError as error:
        # what the specification leaves to evaluation may be found earlier, but an unknown function is no error in it
        return "" if wants_error and "undeclared reference" not in str(error) else str(error)
    typed = test.body.get("typed_result", [{}])[0]
    if "deduced_type" in typed and checked.type != _type(typed["deduced_type"][0]):
        return f"the type is {checked.type}, not {_type(typed['deduced_type'][0])}"
    if "check_only" in test.body:
        return ""
    try:
        result, _ = checked.program().evaluate(*values)
    except ProgramError as error:
        result = CelError(str(error))
    if wants_error:
        return "" if isinstance(result, CelError) else f"no error but {result!r}"
    if isinstance(result, Exception):
        return f"an error: {result}"
    wanted = test.body.get("value") or typed.get("result")
    expected = _value(wanted[0]) if wanted else True
    found = _plain(result)
    return "" if _same(found, expected) else f"{found!r}, not {expected!r}"


class Unsupported(ValueError):
    """The test speaks of a type that the engine does not have."""


def _environment(body: Message) -> tuple[tuple[Variable, ...], list[Any]]:
    bindings = {each["key"][0].decode(): each["value"][0]["value"][0] for each in body.get("bindings", [])}
    variables, values = [], []
    for declared in body.get("type_env", []):
        if "ident" not in declared:
            raise Unsupported("functions cannot be declared")
        name = declared["name"][0].decode()
        variables.append(Variable(name, _type(declared["ident"][0]["type"][0])))
        values.append(_value(bindings[name]) if name in bindings else None)
    for name in bindings.keys() - {each.name for each in variables}:
        variables.append(Variable(name, t.DYN))
        values.append(_value(bindings[name]))
    return tuple(variables), values


def _type(message: Message) -> Type:
    (kind, (value, *_)), *_ = message.items()
    if kind == "primitive":
        return _PRIMITIVES[value]
    if kind == "wrapper":
        return t.nullable(_PRIMITIVES[value])
    if kind == "well_known" and value in _WELL_KNOWN:
        return _WELL_KNOWN[value]
    if kind == "message_type" and value.decode() in MESSAGES:
        return MESSAGES[value.decode()].type
    if kind in ("dyn", "null"):
        return t.DYN if kind == "dyn" else t.NULL
    if kind == "list_type":
        return t.list_of(_type(value["elem_type"][0]))
    if kind == "map_type":
        return t.map_of(_type(value["key_type"][0]), _type(value["value_type"][0]))
    if kind == "type":
        return t.type_of_type(_type(value)) if value else t.TYPE
    if kind == "abstract_type" and value["name"][0] == b"optional_type":
        return t.optional_of(_type(value["parameter_types"][0]))
    raise Unsupported(f"{kind} {value}")


def _value(message: Message) -> Any:
    """A value as the engine has it."""
    (kind, (value, *_)), *_ = message.items()
    if kind == "object_value":
        return _object(value)
    if kind == "list_value":
        return [_value(each) for each in value.get("values", [])]
    if kind == "map_value":
        entries = value.get("entries", [])
        return {map_key(_value(each["key"][0])): _value(each["value"][0]) for each in entries}
    if kind == "type_value":
        return ("type", value.decode())
    convert = _SCALARS.get(kind)
    if convert is None:
        raise Unsupported(f"{kind} {value}")
    return convert(value)


_SCALARS: dict[str, Any] = {
    "null_value": lambda text: None,
    "bool_value": lambda text: text in ("true", "True", "t", "1"),
    "int64_value": lambda text: int(text, 0),
    "uint64_value": lambda text: Uint(int(text, 0)),
    "double_value": float,
    "string_value": lambda text: text.decode(),
    "bytes_value": lambda text: text,
}


def _object(message: Message) -> Any:
    (name, (body, *_)), *_ = message.items()
    kind = name.rpartition("/")[2]
    if kind not in MESSAGES:
        raise Unsupported(f"message {kind}")
    return _message(kind, body)


def _message(kind: str, body: Message) -> Any:
    if kind == "google.protobuf.Any":
        return _object(body)
    return build(kind, {name: _field(MESSAGES[kind].fields[name].type.kind, values) for name, values in body.items()})


def _field(kind: str, values: list[Any]) -> Any:
    """A message's field; maps and lists are those of google.protobuf.Struct and ListValue."""
    if kind == "map":
        entries = values[0].get("fields", []) if "key" not in values[0] else values
        return {each["key"][0].decode(): _message("google.protobuf.Value", each["value"][0]) for each in entries}
    if kind == "list":
        items = values[0].get("values", [values[0]]) if len(values) == 1 else values
        return [_message("google.protobuf.Value", each) for each in items]
    (value,) = values
    if value == "NULL_VALUE":
        return 0
    return _SCALARS[f"{kind}{'64' if kind in ('int', 'uint') else ''}_value"](value)


def _plain(value: Any) -> Any:
    """A result with Python's lists and dicts, and types by their names."""
    if value.__class__ is Type:
        return ("type", value.name)
    if is_list(value):
        return list(map(_plain, items_of(value)))
    if is_map(value):
        return {map_key(key): _plain(item) for key, item in pairs_of(value)}
    return value


def _same(left: Any, right: Any) -> bool:
    """Whether values are of the same types and equal; NaN is itself here."""
    if left.__class__ is not right.__class__:
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, Key):
        return bool(left == right)
    return bool(left == right) or (left != left and right != right)
