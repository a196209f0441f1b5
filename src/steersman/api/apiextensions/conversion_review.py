"""ConversionReview: how a webhook is asked to convert custom resources, and what its answer must be.

Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steersman._util.gotext import quote
from steersman.api.apiextensions.conversion_rules import REVIEW_VERSIONS
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import yaml
from steersman.apimachinery.field_errors import aggregate
from steersman.apimachinery.go_values import json_kind
from steersman.apimachinery.meta import validate_annotations, validate_labels

Object = dict[str, Any]
GROUP = "apiextensions.k8s.io"
KIND = "ConversionReview"
_CHECKED = (
    ("labels", validate_labels, "metadata.labels"),
    ("annotations", validate_annotations, "metadata.annotation"),
)
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


class ConversionError(Exception):
    """The answer is not what was asked for. `whole` says that the text already tells what failed."""

    def __init__(self, text: str, *, whole: bool = False) -> None:
        super().__init__(text)
        self.whole = whole


def review_version(offered: Sequence[str]) -> str:
    """The first version of ConversionReview that the webhook offers and the server speaks."""
    for version in offered:
        if version in REVIEW_VERSIONS:
            return version
    raise ConversionError("no supported conversion review versions", whole=True)


def request(version: str, uid: str, api_version: str, objects: Sequence[Object]) -> bytes:
    """The review that asks for `objects` in `api_version`."""
    return codec.encode(
        {
            "kind": KIND,
            "apiVersion": f"{GROUP}/{version}",
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": list(objects)},
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
    )


def converted(version: str, uid: str, body: bytes) -> list[Any]:
    """The objects in a webhook's answer. Raises ConversionError."""
    review = _decoded(body)
    given = _text(review.get("apiVersion")), _text(review.get("kind"))
    if any(given) and given != (f"{GROUP}/{version}", KIND):
        _check_known(given, version)
    if version == "v1" and given != (f"{GROUP}/v1", KIND):
        raise ConversionError(f"expected webhook response of {_gvk(f'{GROUP}/v1', KIND)}, got {_gvk(*given)}")
    response = review.get("response")
    if response is None:
        raise ConversionError("no response provided")
    if not isinstance(response, dict):
        raise _mismatch(response, "ConversionReview.response", f"{version}.ConversionResponse")
    if version == "v1" and _text(response.get("uid")) != uid:
        raise ConversionError(f"expected response.uid={quote(uid)}, got {quote(_text(response.get('uid')))}")
    _check_result(response.get("result") or {})
    objects = response.get("convertedObjects")
    if objects is not None and not isinstance(objects, list):
        raise _mismatch(objects, "ConversionResponse.response.convertedObjects", "[]runtime.RawExtension")
    return objects or []


def check_object(original: Object, found: Any, api_version: str, index: int | None) -> Object:
    """A converted object with the metadata that a webhook may not change restored from the original.

    `index` is its place in a list, None if it is alone. Raises ConversionError.
    """
    _check_shape(found)
    where = "" if index is None else f" at index {index}"
    at = f" at index {index or 0}"
    what = "object" if index is None else "converted object"
    version, kind = _text(found.get("apiVersion")), _text(found.get("kind"))
    if version != api_version:
        text = f"returned invalid {what}{at}: invalid groupVersion (expected {api_version}, received {version})"
        raise ConversionError(text)
    if kind != original["kind"]:
        text = f"returned invalid {what}{at}: invalid kind (expected {original['kind']}, received {kind})"
        raise ConversionError(text)
    sent, given = original.get("metadata") or {}, found.get("metadata")
    for label, key in (("name", "name"), ("namespace", "namespace"), ("UID", "uid")):
        old, new = _text(sent.get(key)), _text(given.get(key)) if isinstance(given, dict) else ""
        if old != new:
            raise ConversionError(f"returned invalid {what}{where}: must have the same {label}: {old} != {new}")
    in_list = "" if index is None else f" in object at index {index}"
    try:
        return {**found, "metadata": _restored(sent, given)}
    except ConversionError as error:
        raise ConversionError(f"returned invalid metadata{in_list}: {error}") from None


def _decoded(body: bytes) -> Object:
    try:
        review = codec.decode(body)
    except codec.JsonError as error:
        try:
            review = yaml.decode(body)
        except yaml.YamlError:
            raise ConversionError(f"couldn't get version/kind; json parse error: {error}") from None
    if review is None:
        return {}
    if not isinstance(review, dict):
        why = f"json: cannot unmarshal {json_kind(review)} into Go value of type {_TYPE_META}"
        raise ConversionError(f"couldn't get version/kind; json parse error: {why}")
    return review


def _check_known(given: tuple[str, str], version: str) -> None:
    """Another kind than the expected one cannot become it."""
    api_version, kind = given
    group, _, other = api_version.rpartition("/")
    known = (group == GROUP and other in REVIEW_VERSIONS and kind == KIND) or (api_version, kind) == ("v1", "Status")
    if known:
        raise ConversionError(f"converting ({other}.{kind}) to ({version}.{KIND}): unknown conversion")
    if api_version and kind:
        why = f"no kind {quote(kind)} is registered for version {quote(api_version)}"
        raise ConversionError(f'{why} in scheme "pkg/runtime/scheme.go:111"')


def _check_result(result: Any) -> None:
    if not isinstance(result, dict):
        raise _mismatch(result, "ConversionResponse.response.result", "v1.Status")
    status = _text(result.get("status"))
    if status != "Success":
        raise ConversionError(_text(result.get("message")) or f"response.result.status was '{status}', not 'Success'")


def _check_shape(found: Any) -> None:
    if found is None:
        raise ConversionError("unexpected end of JSON input", whole=True)
    if not isinstance(found, dict):
        why = f"json: cannot unmarshal {json_kind(found)} into Go value of type map[string]interface {{}}"
        raise ConversionError(why, whole=True)
    if not _text(found.get("kind")):
        raise ConversionError(f"Object 'Kind' is missing in '{codec.encode(found).decode()}'", whole=True)


def _restored(sent: Object, given: Any) -> Object:
    """The original metadata with the labels and annotations of the converted object."""
    if given is None:
        raise ConversionError("missing metadata in converted object")
    meta = dict(sent)
    checks = {
        "labels": (validate_labels, "metadata.labels"),
        "annotations": (validate_annotations, "metadata.annotation"),
    }
    for key, (validate, path) in checks.items():
        values = given.get(key)
        if values is None:
            meta.pop(key, None)
            continue
        if not isinstance(values, dict):
            raise ConversionError(f"invalid metadata.{key} of type {_go_type(values)} in converted object")
        for name, item in values.items():
            if not isinstance(item, str):
                raise ConversionError(
                    f"metadata.{key}[{name}] must be a string, but is {_go_type(item)} in converted object"
                )
        if values != (sent.get(key) or {}) and (errors := validate(values, path)):
            raise ConversionError(aggregate(errors))
        meta[key] = values
    return meta


def _mismatch(value: Any, field: str, go_type: str) -> ConversionError:
    return ConversionError(f"json: cannot unmarshal {json_kind(value)} into Go struct field {field} of type {go_type}")


def _gvk(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _go_type(value: Any) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    for kind, name in ((str, "string"), (int, "int64"), (float, "float64"), (list, "[]interface {}")):
        if isinstance(value, kind):
            return name
    return "map[string]interface {}"
