"""ConversionReview: how a webhook is asked to convert custom resources, and what its answer must be.

Source: apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from steersman._util.gotext import quote
from steersman.api import review_answers as answers
from steersman.api.apiextensions.conversion_rules import REVIEW_VERSIONS
from steersman.api.review_answers import AnswerError, gvk, mismatch, text
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.field_errors import aggregate
from steersman.apimachinery.go_values import json_kind
from steersman.apimachinery.meta import validate_annotations, validate_labels
from steersman.apimachinery.unstructured import go_type

Object = dict[str, Any]
GROUP = "apiextensions.k8s.io"
KIND = "ConversionReview"
_CHECKED = (
    ("labels", validate_labels, "metadata.labels"),
    ("annotations", validate_annotations, "metadata.annotation"),
)


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
    return orjson.dumps(
        {
            "kind": KIND,
            "apiVersion": f"{GROUP}/{version}",
            "request": {"uid": uid, "desiredAPIVersion": api_version, "objects": list(objects)},
            "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
        }
    )


def converted(version: str, uid: str, body: bytes) -> list[Any]:
    """The objects in a webhook's answer. Raises ConversionError."""
    try:
        return _objects(answers.decode(body, GROUP, version, KIND, REVIEW_VERSIONS), version, uid)
    except AnswerError as error:
        raise ConversionError(f"failed: {error}") from None


def _objects(review: Object, version: str, uid: str) -> list[Any]:
    given = text(review.get("apiVersion")), text(review.get("kind"))
    if version == "v1" and given != (f"{GROUP}/v1", KIND):
        raise AnswerError(f"expected webhook response of {gvk(f'{GROUP}/v1', KIND)}, got {gvk(*given)}")
    response = review.get("response")
    if response is None:
        raise AnswerError("no response provided")
    if not isinstance(response, dict):
        raise mismatch(response, "ConversionReview.response", f"{version}.ConversionResponse")
    if version == "v1" and text(response.get("uid")) != uid:
        raise AnswerError(f"expected response.uid={quote(uid)}, got {quote(text(response.get('uid')))}")
    _check_result(response.get("result") or {})
    objects = response.get("convertedObjects")
    if objects is not None and not isinstance(objects, list):
        raise mismatch(objects, "ConversionResponse.response.convertedObjects", "[]runtime.RawExtension")
    return objects or []


def check_object(original: Object, found: Any, api_version: str, index: int | None) -> Object:
    """A converted object with the metadata that a webhook may not change restored from the original.

    `index` is its place in a list, None if it is alone. Raises ConversionError.
    """
    _check_shape(found)
    where = "" if index is None else f" at index {index}"
    at = f" at index {index or 0}"
    what = "object" if index is None else "converted object"
    version, kind = text(found.get("apiVersion")), text(found.get("kind"))
    if version != api_version:
        why = f"returned invalid {what}{at}: invalid groupVersion (expected {api_version}, received {version})"
        raise ConversionError(why)
    if kind != original["kind"]:
        why = f"returned invalid {what}{at}: invalid kind (expected {original['kind']}, received {kind})"
        raise ConversionError(why)
    sent, given = original.get("metadata") or {}, found.get("metadata")
    for label, key in (("name", "name"), ("namespace", "namespace"), ("UID", "uid")):
        old, new = text(sent.get(key)), text(given.get(key)) if isinstance(given, dict) else ""
        if old != new:
            raise ConversionError(f"returned invalid {what}{where}: must have the same {label}: {old} != {new}")
    in_list = "" if index is None else f" in object at index {index}"
    try:
        return {**found, "metadata": _restored(sent, given)}
    except ConversionError as error:
        raise ConversionError(f"returned invalid metadata{in_list}: {error}") from None


def _check_result(result: Any) -> None:
    if not isinstance(result, dict):
        raise mismatch(result, "ConversionResponse.response.result", "v1.Status")
    status = text(result.get("status"))
    if status != "Success":
        raise AnswerError(text(result.get("message")) or f"response.result.status was '{status}', not 'Success'")


def _check_shape(found: Any) -> None:
    if found is None:
        raise ConversionError("unexpected end of JSON input", whole=True)
    if not isinstance(found, dict):
        why = f"json: cannot unmarshal {json_kind(found)} into Go value of type map[string]interface {{}}"
        raise ConversionError(why, whole=True)
    if not text(found.get("kind")):
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
            raise ConversionError(f"invalid metadata.{key} of type {go_type(values)} in converted object")
        for name, item in values.items():
            if not isinstance(item, str):
                raise ConversionError(
                    f"metadata.{key}[{name}] must be a string, but is {go_type(item)} in converted object"
                )
        if values != (sent.get(key) or {}) and (errors := validate(values, path)):
            raise ConversionError(aggregate(errors))
        meta[key] = values
    return meta
