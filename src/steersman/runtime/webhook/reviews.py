"""AdmissionReview and ConversionReview as a webhook sees them: what is asked, and how it is answered.

Source: `k8s.io/api/admission/v1`, `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1`; controller-runtime
`pkg/webhook/admission`, `pkg/webhook/conversion`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from steersman.client.resources import Object

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


class ReviewError(Exception):
    """What was sent is no review that can be answered; says what is wrong with it."""


class Denied(Exception):
    """Raised by a webhook to refuse a request, with the message that the user sees.

    `field` names what is wrong (`spec.replicas`); `code` and `reason` are those of the Status.
    """

    def __init__(self, message: str, *, field: str = "", code: int = 403, reason: str = "Forbidden") -> None:
        super().__init__(message)
        self.message = str(message)  # an exception, often
        self.field = field
        self.code = code
        self.reason = reason

    def status(self) -> Object:
        """`metav1.Status`."""
        message = f"{self.field}: {self.message}" if self.field else self.message
        status: Object = {"status": "Failure", "message": message, "reason": self.reason, "code": self.code}
        if self.field:
            status["details"] = {
                "causes": [{"field": self.field, "message": self.message, "reason": "FieldValueInvalid"}]
            }
        return status


@dataclass(slots=True)
class AdmissionRequest:
    """What the API server asks: may this be done?

    `object` is the new state (None for DELETE), `old` the one before (None for CREATE). `dry_run`: nothing will be
    stored, so nothing else may be changed either. `warn` adds a warning that the user sees.
    """

    uid: str
    operation: Operation
    kind: Mapping[str, str]
    resource: Mapping[str, str]
    subresource: str
    name: str
    namespace: str
    user: Mapping[str, Any]
    object: Object | None
    old: Object | None
    dry_run: bool
    options: Object | None
    warnings: list[str] = field(default_factory=list)
    audit: dict[str, str] = field(default_factory=dict)
    """Audit annotations to add, by name."""

    def warn(self, text: str) -> None:
        """Have the user see a warning; at most some 120 characters of it are shown everywhere."""
        self.warnings.append(str(text))  # an exception, often


@dataclass(frozen=True, slots=True)
class Answer:
    """What a webhook says: allowed or not, with a Status if not, and a JSON patch of the object."""

    allowed: bool = True
    status: Object | None = None
    patch: Sequence[Object] = ()


def read_admission(body: bytes) -> AdmissionRequest:
    """The request in an AdmissionReview. Raises ReviewError; v1beta1 is refused: no API server sends it since 1.22."""
    request = _request(body, "admission.k8s.io/v1", "AdmissionReview")
    return AdmissionRequest(
        uid=request["uid"],
        operation=request.get("operation") or "CREATE",
        kind=request.get("kind") or {},
        resource=request.get("resource") or {},
        subresource=request.get("subResource") or "",
        name=request.get("name") or "",
        namespace=request.get("namespace") or "",
        user=request.get("userInfo") or {},
        object=request.get("object"),
        old=request.get("oldObject"),
        dry_run=bool(request.get("dryRun")),
        options=request.get("options"),
    )


def write_admission(request: AdmissionRequest, answer: Answer) -> bytes:
    """The AdmissionReview that answers a request."""
    response: Object = {"uid": request.uid, "allowed": answer.allowed}
    if answer.status is not None:
        response["status"] = answer.status
    if answer.allowed and answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(orjson.dumps(answer.patch)).decode()
    if request.warnings:
        response["warnings"] = request.warnings
    if request.audit:
        response["auditAnnotations"] = request.audit
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})


@dataclass(frozen=True, slots=True)
class ConversionRequest:
    """What the API server asks: these objects, in that version."""

    uid: str
    desired: str
    objects: Sequence[Object]


def read_conversion(body: bytes) -> ConversionRequest:
    """The request in a ConversionReview. Raises ReviewError."""
    request = _request(body, "apiextensions.k8s.io/v1", "ConversionReview")
    objects = request.get("objects") or []
    if not isinstance(objects, list) or not all(isinstance(item, dict) for item in objects):
        raise ReviewError("request.objects is not a list of objects")
    desired = request.get("desiredAPIVersion")
    if not isinstance(desired, str) or not desired:
        raise ReviewError("request.desiredAPIVersion is missing")
    return ConversionRequest(request["uid"], desired, objects)


def write_conversion(request: ConversionRequest, converted: Sequence[Object] | None, failure: str = "") -> bytes:
    """The ConversionReview that answers a request: the objects, or why there are none."""
    response: Object = {"uid": request.uid}
    if converted is None:
        response["result"] = {"status": "Failure", "message": failure}
    else:
        response |= {"convertedObjects": list(converted), "result": {"status": "Success"}}
    return orjson.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response})


def _request(body: bytes, api_version: str, kind: str) -> Object:
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ReviewError(f"the body is not JSON: {error}") from None
    if not isinstance(review, dict) or review.get("kind") != kind:
        raise ReviewError(f"the body is no {kind}")
    if review.get("apiVersion") != api_version:
        told = f"{kind} of {review.get('apiVersion')!r} is not spoken here"
        raise ReviewError(f"{told}: put {api_version.rpartition('/')[2]} into its reviewVersions")
    request = review.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str):
        raise ReviewError("the review has no request with a uid")
    return request
