"""`steersman cel`: an expression's result, type and cost, on the objects in files."""

from __future__ import annotations

import argparse
import base64
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from steersman import cel
from steersman._util.commandline import explain
from steersman.api.kinds import builtin_kind
from steersman.apimachinery.errors import ApiError
from steersman.apimachinery.schema.pipeline import compile_schema
from steersman.cel import CompileError, Evaluation, EvaluationError, Expression
from steersman.offline.manifests import Manifest, Unusable, read_manifests
from steersman.offline.sources import read_texts

USAGE_STATUS = 2
Schema = Mapping[str, Any]
_GROUP = "apiextensions.k8s.io"


class _Wrong(Exception):
    """What was asked for makes no sense; the message says why."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `cel` to the subcommands."""
    parser = commands.add_parser(
        "cel",
        help="evaluate an expression as Kubernetes does",
        description="Evaluate a CEL expression, and tell its type and cost. With --crd, self has the type of the "
        "object's schema, and the defaults that the server fills in. Otherwise types are found when it runs.",
    )
    add = parser.add_argument
    add("expression", metavar="EXPRESSION", help="such as 'self.replicas > 1'")
    add(
        "-f",
        "--file",
        action="append",
        default=[],
        metavar="FILE",
        help="objects to be self, or - for stdin; may be repeated",
    )
    add("--old", metavar="FILE", help="an object to be oldSelf (default: there is none)")
    add("--crd", metavar="FILE", help="the definition with the schema of self (default: no schema)")
    add("--version", metavar="VERSION", help="which of its versions (default: the object's, else the stored one)")
    add(
        "--at",
        metavar="PATH",
        help="where in the object self is, such as spec.template (default: the object itself, or its spec if the "
        "expression only fits there)",
    )
    add("--optional-old-self", action="store_true", help="oldSelf is an optional, as under optionalOldSelf")
    add("-e", "--exit-status", action="store_true", help="exit with 1 also when a result is false")
    add("-o", "--output", choices=("text", "json"), default="text", help="lines, or JSON")
    explain(parser, _EXAMPLES, _STATUSES)
    parser.set_defaults(run=run)


_EXAMPLES = (
    ("the type and the cost of an expression", "steersman cel '[1, 2, 3].exists(x, x > 2)'"),
    ("a rule of a definition, on an object", "steersman cel 'self.replicas < 10' --crd crds/myapp.yaml -f app.yaml"),
    (
        "a rule of transition, in a script",
        "steersman cel -e 'self >= oldSelf' -f new.yaml --old old.yaml --at spec.replicas",
    ),
)
_STATUSES = {
    0: "the expression has a result",
    1: "it does not compile, or fails; with -e also when it is false",
    2: "something cannot be read, or the arguments are wrong",
}


def run(options: argparse.Namespace) -> int:
    """Evaluate, and print. Returns the exit status."""
    try:
        results = list(_results(options))
    except _Wrong as error:
        print(f"steersman cel: {error}", file=sys.stderr)
        return USAGE_STATUS
    if options.output == "json":
        print(orjson.dumps([each.json() for each in results], option=orjson.OPT_INDENT_2).decode())
    else:
        for each in results:
            each.print(named=len(results) > 1)
    failed = any(each.error for each in results)
    denied = options.exit_status and any(each.found is not None and each.found.value is False for each in results)
    return int(failed or denied)


@dataclass(frozen=True, slots=True)
class _Result:
    """What an expression came to on one object, or why to nothing; `place` is where self is in it."""

    about: str
    place: str
    expression: Expression | None
    found: Evaluation | None
    error: str

    def json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"object": self.about, "self": self.place}
        if self.expression is not None:
            out["type"] = self.expression.type
            out["estimatedCost"] = {"least": self.expression.least_cost, "most": self.expression.most_cost}
        if self.found is not None:
            out |= {"value": _json_value(self.found.value), "cost": self.found.cost}
        return out | ({"error": self.error} if self.error else {})

    def print(self, *, named: bool) -> None:
        if named:
            print(f"{self.about}:")
        indent = "  " if named else ""
        lines = [("self", f"the object's {self.place}")] if self.place else []
        if self.error:
            lines.append(("error", self.error.replace("\n", f"\n{indent}         ")))
        if self.found is not None:
            lines.append(("result", orjson.dumps(_json_value(self.found.value)).decode()))
        if self.expression is not None:
            least, most = self.expression.least_cost, self.expression.most_cost
            spent = f"{self.found.cost}, " if self.found is not None else ""
            lines += [("type", self.expression.type), ("cost", f"{spent}estimated {least} to {most}")]
        for name, text in lines:
            print(f"{indent}{name + ':':<8} {text}")


def _json_value(value: Any) -> Any:
    """A value as CEL writes it as JSON, which knows neither bytes nor all numbers, and only texts as keys."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key).lower(): _json_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(_json_value, value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        return float(value)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _results(options: argparse.Namespace) -> Iterator[_Result]:
    manifests = [each for name in options.file for each in _objects(name)]
    old = _objects(options.old) if options.old else []
    if len(old) > 1:
        raise _Wrong(f"--old {options.old} holds {len(old)} objects, and one can be oldSelf")
    crd = _definition(options.crd) if options.crd else None
    before = old[0].obj if old else None
    subjects: Sequence[Manifest | None] = manifests or [None]
    for manifest in subjects:
        yield _judge(options, crd, manifest, before)


def _judge(
    options: argparse.Namespace, crd: Mapping[str, Any] | None, manifest: Manifest | None, before: Any
) -> _Result:
    about = f"{manifest.source}: {manifest.kind}/{manifest.name}" if manifest is not None else "no object"
    schema = _schema(crd, options.version, manifest) if crd is not None else None
    obj = manifest.obj if manifest is not None else None
    if schema is not None:
        obj, before = (_completed(schema, each) for each in (obj, before))
    place, expression, error = _compiled(options, schema)
    if expression is None:
        return _Result(about, place, None, None, error)
    if manifest is None and expression.reads_self:
        raise _Wrong(
            f"the expression reads self, and there is no object in {', '.join(options.file)}"
            if options.file
            else "the expression reads self: name its object with -f"
        )
    if before is None and expression.needs_old:
        raise _Wrong("the expression reads oldSelf: name its object with --old")
    try:
        found = expression.evaluate(_part(obj, place), _part(before, place))
    except EvaluationError as failure:
        return _Result(about, place, expression, None, str(failure))
    return _Result(about, place, expression, found, "")


def _compiled(options: argparse.Namespace, schema: Schema | None) -> tuple[str, Expression | None, str]:
    """Where self is, and the expression compiled for that, or why it cannot be."""
    places = [options.at.strip(".")] if options.at is not None else [""]
    if options.at is None and schema is not None and "spec" in (schema.get("properties") or {}):
        places.append("spec")
    first = ""
    for place in places:
        part = _schema_part(schema, place) if schema is not None else None
        try:
            made = cel.compile(options.expression, part, root=not place, optional_old=options.optional_old_self)
        except (CompileError, ValueError) as error:
            first = first or str(error)
        else:
            return place, made, ""
    return places[0], None, first


def _objects(name: str) -> list[Manifest]:
    sources, unread = read_texts([name])
    for each in unread:
        raise _Wrong(f"{each.name} cannot be read: {each.why}")
    found = [item for source in sources for item in read_manifests(source)]
    for item in found:
        if isinstance(item, Unusable):
            raise _Wrong(f"{item.source}:{item.line}: {item.message}")
    return [item for item in found if isinstance(item, Manifest)]


def _definition(name: str) -> Mapping[str, Any]:
    found = [
        item.obj
        for item in _objects(name)
        if item.kind == "CustomResourceDefinition" and item.api_version == f"{_GROUP}/v1"
    ]
    if len(found) != 1:
        raise _Wrong(f"--crd {name} holds {len(found)} CustomResourceDefinitions, and one is needed")
    try:
        definition, _ = builtin_kind(_GROUP, "v1", "CustomResourceDefinition").decode(found[0])
    except ApiError as error:
        raise _Wrong(f"--crd {name}: {error.message}") from None
    return definition


def _schema(crd: Mapping[str, Any], wanted: str | None, manifest: Manifest | None) -> Schema:
    spec = crd.get("spec") or {}
    versions = [each for each in spec.get("versions") or () if isinstance(each, dict)]
    name = wanted
    if name is None and manifest is not None:
        group, _, name = manifest.api_version.rpartition("/")
        if group != spec.get("group"):
            where = f"of {group}" if group else "of the core group"
            raise _Wrong(f"{manifest.source}: {manifest.kind} is {where}, the schema of {spec.get('group')}")
    for version in versions:
        if version.get("name") == name or (name is None and version.get("storage")):
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if not isinstance(schema, dict):
                raise _Wrong(f"version {version.get('name')} of the CustomResourceDefinition has no schema")
            return schema
    raise _Wrong(f"the CustomResourceDefinition has no version {name or 'that is stored'}")


def _completed(schema: Schema, obj: Any) -> Any:
    """An object as rules see it: without unknown fields, with defaults."""
    if obj is None:
        return None
    pipeline = compile_schema(schema)
    pipeline.prune(obj, lenient=True)
    pipeline.default(obj)
    return obj


def _schema_part(schema: Schema, place: str) -> Schema:
    part: Any = schema
    for step in filter(None, place.split(".")):
        part = (part.get("properties") or {}).get(step)
        if not isinstance(part, dict):
            raise _Wrong(f"--at {place}: the schema has no {step} there")
    found: Schema = part
    return found


def _part(obj: Any, place: str) -> Any:
    for step in filter(None, place.split(".")):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj
