"""The AdmissionReview that a webhook gets, and its answer.

Source: apiserver `pkg/admission/plugin/webhook/request/admissionreview.go`, `pkg/admission/plugin/webhook/errors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from steersman._util.gotext import quote
from steersman.api import review_answers as answers
from steersman.api.review_answers import AnswerError, gvk, mismatch, text
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.errors import ApiError
from steersman.apimachinery.go_values import DecodeError, decode_base64, json_kind
from steersman.apimachinery.gvk import GroupVersionKind, GroupVersionResource

GROUP = "admission.k8s.io"
KIND = "AdmissionReview"
VERSIONS = ("v1", "v1beta1")
Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """One request as a webhook sees it: `kind` and `resource` may be those of another version than was asked for."""

    kind: GroupVersionKind
    resource: GroupVersionResource
    request_kind: GroupVersionKind
    request_resource: GroupVersionResource
    subresource: str
    name: str
    namespace: str
    operation: str
    user: Object
    obj: Object | None
    old: Object | None
    dry_run: bool
    options: Object | None

    def request(self, uid: str) -> Object:
        """The AdmissionRequest, without the parts that are empty."""
        found: Object = {"uid": uid, "kind": _kind(self.kind), "resource": _resource(self.resource)}
        if self.subresource:
            found["subResource"] = self.subresource
        found |= {"requestKind": _kind(self.request_kind), "requestResource": _resource(self.request_resource)}
        if self.subresource:
            found["requestSubResource"] = self.subresource
        found |= {key: item for key, item in (("name", self.name), ("namespace", self.namespace)) if item}
        return found | {
            "operation": self.operation,
            "userInfo": self.user,
            "object": self.obj,
            "oldObject": self.old,
            "dryRun": self.dry_run,
            "options": self.options,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """A webhook's answer. `patch` is the text of a JSON patch, "" for none; `status` is what a refusal says."""

    allowed: bool
    patch: bytes = b""
    patch_type: str = ""
    status: Mapping[str, Any] | None = None
    warnings: Sequence[str] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)


def review_version(offered: Sequence[str]) -> str:
    """The first version of AdmissionReview that the webhook takes and the server speaks. Raises AnswerError."""
    for version in offered:
        if version in VERSIONS:
            return version
    raise AnswerError("webhook does not accept known AdmissionReview versions (v1, v1beta1)")


def review(version: str, uid: str, question: Question) -> bytes:
    """The review to send."""
    return orjson.dumps({"kind": KIND, "apiVersion": f"{GROUP}/{version}", "request": question.request(uid)})


def response(version: str, body: bytes) -> tuple[Object, Object | None]:
    """The review in an answer's body, and its response. Raises AnswerError for what is no review at all."""
    found = answers.decode(body, GROUP, version, KIND, VERSIONS)
    given = found.get("response")
    if given is not None and not isinstance(given, dict):
        raise mismatch(given, "AdmissionReview.response", f"{version}.AdmissionResponse")
    if given is not None:
        _check_types(given, version)
    return found, given


def verdict(found: Object, given: Object | None, version: str, uid: str, *, mutating: bool) -> Verdict:
    """What a response means. Raises AnswerError for one that is not allowed."""
    if given is None:
        raise AnswerError("webhook response was absent")
    if version == "v1":
        _check_identity(found, given, uid)
    patch, patch_type = _patch(given), given.get("patchType")
    if version == "v1":
        _check_patch(patch, patch_type, mutating)
    else:
        patch, patch_type = (patch, "JSONPatch" if patch else "") if mutating else (b"", "")
    return Verdict(
        bool(given.get("allowed")),
        patch,
        patch_type or "",
        given.get("status"),
        given.get("warnings") or (),
        given.get("auditAnnotations") or {},
    )


def refusal(webhook: str, status: Mapping[str, Any] | None) -> ApiError:
    """The error for a denied request: the webhook's own Status, under its name."""
    given = dict(status or {})
    denied = f"admission webhook {quote(webhook)} denied the request"
    why = given.get("message") or given.get("reason")
    error = ApiError(
        f"{denied}: {why}" if why else f"{denied} without explanation",
        details=given.get("details"),
        code=_status_code(given),
        reason=given.get("reason") or "",
    )
    error.list_meta = dict(given.get("metadata") or {})
    return error


def _status_code(given: Mapping[str, Any]) -> int:
    """What a refusal is answered with: not less than 400, and a number that HTTP has room for."""
    code = max(int(given.get("code") or 0), 400)
    return code if code < 1000 else 500


def no_dry_run(webhook: str) -> str:
    """Why a dry run is refused where a webhook may have side effects."""
    return f"admission webhook {quote(webhook)} does not support dry run"


def decode_patch(patch: bytes) -> list[Any]:
    """The operations of a JSON patch. Raises AnswerError."""
    try:
        found = codec.decode(patch)
    except codec.JsonError as error:
        raise AnswerError(f"received undecodable patch in webhook response: {error}") from None
    wrong, go_type = found, "jsonpatch.Patch"
    if isinstance(found, list):
        odd = [item for item in found if item is not None and not isinstance(item, dict)]
        if not odd:
            return found
        wrong, go_type = odd[0], "jsonpatch.Operation"
    elif found is None:
        return []
    why = f"json: cannot unmarshal {json_kind(wrong)} into Go value of type {go_type}"
    raise AnswerError(f"received undecodable patch in webhook response: {why}")


def _check_identity(found: Object, given: Object, uid: str) -> None:
    if text(given.get("uid")) != uid:
        raise AnswerError(f"expected response.uid={quote(uid)}, got {quote(text(given.get('uid')))}")
    kind = text(found.get("apiVersion")), text(found.get("kind"))
    if kind != (f"{GROUP}/v1", KIND):
        raise AnswerError(f"expected webhook response of {gvk(f'{GROUP}/v1', KIND)}, got {gvk(*kind)}")


def _check_patch(patch: bytes, patch_type: str | None, mutating: bool) -> None:
    if not mutating:
        if patch:
            raise AnswerError("validating webhook may not return response.patch")
        if patch_type is not None:
            raise AnswerError("validating webhook may not return response.patchType")
        return
    if patch and patch_type is None:
        raise AnswerError("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise AnswerError("webhook returned response.patchType but not response.patch")
    if patch_type == "":
        raise AnswerError('webhook returned invalid response.patchType of ""')


def _patch(given: Object) -> bytes:
    """The text of the patch. Raises AnswerError for one that Go's decoder does not take."""
    patch = given.get("patch")
    if isinstance(patch, list):
        for item in patch:
            _check_type(item, int, _PATCH_FIELD, "uint8")
        return bytes(item & 0xFF for item in patch if item is not None)
    _check_type(patch, str, _PATCH_FIELD, "[]uint8")
    try:
        return decode_base64(patch or "")
    except DecodeError as error:
        raise AnswerError(str(error)) from None


_PATCH_FIELD = "AdmissionResponse.response.patch"
_TYPES: Mapping[str, tuple[type, str]] = {
    "uid": (str, "types.UID"),
    "allowed": (bool, "bool"),
    "patchType": (str, "{version}.PatchType"),
    "status": (dict, "v1.Status"),
    "warnings": (list, "[]string"),
    "auditAnnotations": (dict, "map[string]string"),
}
_STATUS_TYPES: Mapping[str, tuple[type, str]] = {
    "status": (str, "string"),
    "message": (str, "string"),
    "reason": (str, "v1.StatusReason"),
    "details": (dict, "v1.StatusDetails"),
    "code": (int, "int32"),
    "metadata": (dict, "v1.ListMeta"),
}


def _check_types(given: Object, version: str) -> None:
    """Wrong JSON types, as Go's decoder meets them."""
    _patch(given)
    for key, (kind, go_type) in _TYPES.items():
        _check_type(given.get(key), kind, f"AdmissionResponse.response.{key}", go_type.format(version=version))
    for key, (kind, go_type) in _STATUS_TYPES.items():
        _check_type((given.get("status") or {}).get(key), kind, f"Status.response.status.{key}", go_type)
    for item in given.get("warnings") or ():
        _check_type(item, str, "AdmissionResponse.response.warnings", "string")
    for item in (given.get("auditAnnotations") or {}).values():
        _check_type(item, str, "AdmissionResponse.response.auditAnnotations", "string")


def _check_type(value: Any, kind: type, field_name: str, go_type: str) -> None:
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        raise mismatch(value, field_name, go_type)


def _kind(kind: GroupVersionKind) -> Object:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _resource(resource: GroupVersionResource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.resource}
