"""Bodies of writes: from bytes to a decoded object in the kind's form.

Source: apiserver `pkg/endpoints/handlers/{create,update,rest}.go`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from steersman._util.gotext import quote
from steersman.api.kinds import protobuf_schema
from steersman.api.registered import refusal
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import protobuf, spelled, yaml
from steersman.apimachinery.codec.negotiate import JSON, PROTOBUF, YAML, content_type
from steersman.apimachinery.errors import (
    BadRequest,
    RequestEntityTooLarge,
    UnsupportedMediaType,
)
from steersman.apimachinery.go_values import DecodeError, cannot_be_handled, json_kind
from steersman.apimachinery.gvk import split_api_version
from steersman.apimachinery.meta import dedup_owner_references
from steersman.apiserver.exchange import Exchange
from steersman.apiserver.scope import ResourceScope
from steersman.apiserver.strategy import Object, Strategy
from steersman.net.http import Request

_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
MAX_BODY = 3 * 1024 * 1024


def read(request: Request) -> bytes:
    """The body. Raises RequestEntityTooLarge (413)."""
    if request.too_large:
        raise RequestEntityTooLarge(f"Request entity too large: limit is {MAX_BODY}")
    return request.body


def decode(x: Exchange, scope: ResourceScope, strategy: Strategy, level: str, *, also: str = "") -> Object:
    """The object in a create's or update's body, normalised and with defaults.

    `level` is fieldValidation: Strict refuses unknown and duplicate fields (400), Warn warns of them, Ignore drops
    them. `also` is an old apiVersion of the same fields, which is taken too.
    """
    body = read(x.request)
    obj, duplicates = _parse(x, scope, body, level)
    if also and obj.get("apiVersion") == also:
        obj["apiVersion"] = scope.api_version
    _check_kind(scope, obj, body, level, is_yaml=content_type_of(x) == YAML)
    try:
        obj = finish(x, scope, strategy, obj, duplicates, level)
    except BadRequest as error:
        if scope.custom or not _is_of_number(error.__cause__) or content_type_of(x) != JSON:
            raise
        strategy.decode(spelled.decode(body))  # fails in the same way, and says how the number was written
        raise
    if obj["apiVersion"] != scope.api_version:
        raise BadRequest(
            f"the API version in the data ({obj['apiVersion']}) does not match the expected API version "
            f"({scope.api_version})"
        )
    if x.audit is not None:
        x.audit.request_object(obj)
    return obj


def _is_of_number(error: BaseException | None) -> bool:
    return isinstance(error, DecodeError) and error.mismatch is not None and error.mismatch.what.startswith("number ")


def content_type_of(x: Exchange) -> str:
    return content_type(x.request.headers.get("content-type", ""))


def finish(
    x: Exchange, scope: ResourceScope, strategy: Strategy, obj: Object, duplicates: list[str], level: str
) -> Object:
    """Normalise and default a decoded object, telling of fields that it should not have."""
    obj, unknown = strategy.decode(obj)
    problems = duplicates + [f"unknown field {quote(path)}" for path in unknown]
    report(x, scope, problems, level, obj)
    x.warnings += dedup_owner_references(obj["metadata"])
    strategy.default(obj)
    return obj


def report(x: Exchange, scope: ResourceScope, problems: list[str], level: str, obj: Object) -> None:
    if not problems or level == "Ignore":
        return
    if level == "Strict":
        why = f"strict decoding error: {', '.join(problems)}"
        raise cannot_be_handled(obj.get("kind") or scope.kind, _version(scope, obj), why)
    x.warnings.extend(problems)


def _parse(x: Exchange, scope: ResourceScope, body: bytes, level: str) -> tuple[Object, list[str]]:
    media = content_type_of(x)
    if media == PROTOBUF and not scope.custom:
        return _from_protobuf(scope, body), []
    if media not in (JSON, YAML):
        raise UnsupportedMediaType(unknown_format())
    duplicates: list[str] = []
    try:
        if media == YAML:
            obj, repeated = yaml.decode_with_duplicates(body)
            if repeated and level != "Ignore":
                duplicates = [yaml.strict_error(repeated)] if level == "Strict" else repeated
        else:
            obj = codec.decode(body)
            repeated = codec.duplicate_keys(body, obj)
            if "kind" in repeated or "apiVersion" in repeated:
                _check_repeated(scope, body)
            if level != "Ignore":
                duplicates = [f"duplicate field {quote(path)}" for path in repeated]
    except codec.NumberError as error:
        if isinstance(error.value, dict):
            _interpret(scope, error.value, body)
            if not scope.custom:
                scope.strategy.decode(spelled.decode(body))  # names the field, if there is one
            if kind := error.value.get("kind"):
                raise cannot_be_handled(scope.kind, _version(scope, error.value), str(error), given=kind) from None
        raise unrecognized(scope, body, str(error)) from None
    except (codec.JsonError, yaml.YamlError) as error:
        prefix = "" if media == YAML else "couldn't get version/kind; json parse error: "
        raise unrecognized(scope, body, f"{prefix}{error}") from None
    if obj is None:
        obj = {}
    if not isinstance(obj, dict):
        raise unrecognized(scope, body, no_object(obj))
    return obj, duplicates


def _from_protobuf(scope: ResourceScope, body: bytes) -> Object:
    try:
        unknown = protobuf.envelope(body)
    except protobuf.ProtobufError as error:
        raise unrecognized(scope, body, str(error)) from None
    api_version, kind = unknown.api_version or scope.api_version, unknown.kind or scope.kind
    _, version = split_api_version(api_version)
    try:
        return protobuf.decode(protobuf.Unknown(api_version, kind, unknown.raw), protobuf_schema())
    except protobuf.UnknownKindError:
        where = f'version {quote(api_version)} in scheme "pkg/runtime/scheme.go:111"'
        why = f"no kind {quote(kind)} is registered for {where}"
    except protobuf.ProtobufError as error:
        why = str(error)
    raise BadRequest(f"{kind} in version {quote(version)} cannot be handled as a {scope.kind}: {why}")


def unknown_format(media: str = f"{JSON}, {YAML}, {PROTOBUF}") -> str:
    return f"the body of the request was in an unknown format - accepted media types include: {media}"


def unrecognized(scope: ResourceScope, body: bytes, why: str) -> BadRequest:
    return BadRequest(f"the object provided is unrecognized (must be of type {scope.kind}): {why} ({summary(body)})")


def summary(body: bytes) -> str:
    """The first 30 bytes of a body, as upstream quotes one that it could not read."""
    if not body:
        return "<empty>"
    text = body[:30].decode(errors="replace") if body[:1] == b"{" else body[:30].hex()
    return f"{text} ..." if len(body) > 30 else text


def _check_repeated(scope: ResourceScope, body: bytes) -> None:
    """Of a version or kind that stands twice, the last one counts; the others must be readable, too."""
    fields = [(key, {} if isinstance(value, codec.Pairs) else value) for key, value in codec.pairs(body)]
    _check_readable(scope, fields, body)


def _check_readable(scope: ResourceScope, fields: Iterable[tuple[str, Any]], body: bytes) -> None:
    if why := unreadable(fields):
        raise unrecognized(scope, body, why)


def unreadable(fields: Iterable[tuple[str, Any]]) -> str:
    """What keeps the version and kind of an object from being read, "" if nothing does."""
    for key, value in fields:
        if key in ("apiVersion", "kind") and value is not None and not isinstance(value, str):
            why = f"json: cannot unmarshal {json_kind(value)} into Go struct field .{key} of type string"
            return f"couldn't get version/kind; json parse error: {why}"
    return ""


def no_object(value: Any) -> str:
    """What is wrong with a body that holds another JSON value than an object."""
    why = f"json: cannot unmarshal {json_kind(value)} into Go value of type {_TYPE_META}"
    return f"couldn't get version/kind; json parse error: {why}"


def _interpret(scope: ResourceScope, obj: dict[str, Any], body: bytes) -> None:
    """Refuse what tells its version and kind in a form that cannot be read."""
    _check_readable(scope, obj.items(), body)
    try:
        split_api_version(obj.get("apiVersion") or "")
    except ValueError as error:
        raise unrecognized(scope, body, str(error)) from None


def _check_kind(scope: ResourceScope, obj: dict[str, Any], body: bytes, level: str, *, is_yaml: bool) -> None:
    _interpret(scope, obj, body)
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not scope.custom:
        _check_builtin_kind(scope, obj, api_version, kind, body)
        return
    if not kind:
        if level == "Ignore" and is_yaml:  # the decoder sees JSON then, too
            body = codec.encode(obj)
        why = f"Object 'Kind' is missing in '{body.decode(errors='replace')}'"
        if level == "Ignore":
            raise cannot_be_handled(scope.kind, _version(scope, obj), why)
        raise unrecognized(scope, body, why)
    if "apiVersion" in obj and api_version is None:
        why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
        raise cannot_be_handled(scope.kind, "", why)
    obj.setdefault("apiVersion", "")


def _version(scope: ResourceScope, obj: Object) -> str:
    """The version that a body is in: what it says, or else the endpoint's."""
    group, version = split_api_version(obj.get("apiVersion") or "")
    return scope.gvr.version if not version and group in ("", scope.group) else version


def _check_builtin_kind(scope: ResourceScope, obj: dict[str, Any], api_version: Any, kind: Any, body: bytes) -> None:
    """Built-in bodies may leave apiVersion and kind out; what they name must be the endpoint's."""
    given, kind = api_version or scope.api_version, kind or scope.kind
    if (given, kind) == (scope.api_version, scope.kind):
        obj["apiVersion"], obj["kind"] = given, kind
        return
    raise BadRequest(refusal(given, kind, scope.api_version, scope.kind))
