"""Every error that the Kubernetes API can answer, one class per reason, and their `Status` objects.

Source: apimachinery `pkg/api/errors/errors.go` and `pkg/apis/meta/v1/types.go` (StatusReason).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from steersman._util.gotext import quote
from steersman.apimachinery.field_errors import FieldError, aggregate


class ApiError(Exception):
    """An answer of the API other than success.

    `code` is the HTTP status, `reason` the machine-readable cause ("" when upstream gives none), `details`
    the `Status.details` object or None, `headers` what to send beside the body (Retry-After), `list_meta` the
    Status's own metadata (a continue token that still works).
    """

    code: int = 500
    reason: str = ""
    classes: ClassVar[dict[str, type[ApiError]]] = {}

    def __init_subclass__(cls) -> None:
        if cls.reason:
            ApiError.classes.setdefault(cls.reason, cls)

    def __init__(
        self,
        message: str,
        *,
        details: dict[str, Any] | None = None,
        code: int | None = None,
        reason: str | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = details
        if code is not None:
            self.code = code
        if reason is not None:
            self.reason = reason
        self.headers = tuple(headers)
        self.list_meta: dict[str, Any] = {}

    def to_status(self) -> dict[str, Any]:
        """The `Status` object (v1) that carries this error over the wire."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.list_meta,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            status["reason"] = self.reason
        if self.details is not None:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @property
    def causes(self) -> list[dict[str, str]]:
        """`details.causes`: one `{reason, message, field}` for each thing that is wrong."""
        return list((self.details or {}).get("causes") or [])


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    """The credentials are missing, wrong, or expired."""

    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    """The user may not do this, or admission (a plugin, a policy, a webhook, a quota) has refused it."""

    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    """There is no such object, or no such resource."""

    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    """An object of this name exists; or a generated name was taken."""

    code, reason = 409, "AlreadyExists"


class Conflict(ApiError):
    """The write was made on a stale read, or on another object than the one named: re-read and try again."""

    code, reason = 409, "Conflict"


class Gone(ApiError):
    """What was asked for existed once; the base of Expired."""

    code, reason = 410, "Gone"


class Expired(Gone):
    """The requested resourceVersion or continue token is older than the history that is kept."""

    code, reason = 410, "Expired"


class RequestEntityTooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    """The object breaks rules of its kind: `causes` has each of them, with its field."""

    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    code, reason = 500, "InternalError"


class ServerTimeout(ApiError):
    code, reason = 500, "ServerTimeout"


class StoreReadError(ApiError):
    code, reason = 500, "StorageReadError"


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    code, reason = 504, "Timeout"


def details(group: str, resource_or_kind: str, name: str = "", **more: Any) -> dict[str, Any]:
    """`Status.details` in upstream's order: name, group, kind; empty parts are left out."""
    out: dict[str, Any] = {}
    if name:
        out["name"] = name
    if group:
        out["group"] = group
    if resource_or_kind:
        out["kind"] = resource_or_kind
    out.update(more)
    return out


def qualified(group: str, resource_or_kind: str) -> str:
    """`widgets.example.com`, or `pods` in the core group, as messages name a resource or a kind."""
    return f"{resource_or_kind}.{group}" if group else resource_or_kind


def not_found(group: str, resource: str, name: str) -> NotFound:
    return NotFound(f"{qualified(group, resource)} {quote(name)} not found", details=details(group, resource, name))


def no_such_resource() -> NotFound:
    """404 for a path of a built-in group that leads to no resource."""
    return NotFound("the server could not find the requested resource", details={})


def already_exists(group: str, resource: str, name: str) -> AlreadyExists:
    return AlreadyExists(
        f"{qualified(group, resource)} {quote(name)} already exists", details=details(group, resource, name)
    )


def conflict(group: str, resource: str, name: str, why: str) -> Conflict:
    message = f"Operation cannot be fulfilled on {qualified(group, resource)} {quote(name)}: {why}"
    return Conflict(message, details=details(group, resource, name))


def forbidden(group: str, resource: str, name: str, why: str) -> Forbidden:
    if not resource:
        message = f"forbidden: {why}"
    elif not name:
        message = f"{qualified(group, resource)} is forbidden: {why}"
    else:
        message = f"{qualified(group, resource)} {quote(name)} is forbidden: {why}"
    return Forbidden(message, details=details(group, resource, name))


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> Invalid:
    """422 with one cause per field error (upstream's NewInvalid)."""
    message = f"{qualified(group, kind)} {quote(name)} is invalid"
    if errors:
        message += f": {aggregate(errors)}"
    more: dict[str, Any] = {"causes": [error.cause() for error in errors]} if errors else {}
    return Invalid(message, details=details(group, kind, name, **more))


def method_not_supported(group: str, resource: str, action: str) -> MethodNotAllowed:
    message = f"{action} is not supported on resources of kind {quote(qualified(group, resource))}"
    return MethodNotAllowed(message, details=details(group, resource))


def internal(why: str) -> InternalError:
    """500 for what went wrong inside (upstream's NewInternalError)."""
    return InternalError(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})


def from_status(code: int, status: Mapping[str, Any] | None, text: str = "") -> ApiError:
    """The exception for an answer: by its reason, else by its HTTP code; `text` is a body that is no Status."""
    if status is None or status.get("kind") != "Status":
        return _by_code(code)(text.strip() or f"HTTP status {code}", code=code)
    reason = status.get("reason") or ""
    cls = ApiError.classes.get(reason) or (_by_code(code) if not reason else ApiError)
    return cls(
        status.get("message") or reason or f"HTTP status {code}",
        details=status.get("details"),
        code=status.get("code") or code,
        reason=reason,
    )


def _by_code(code: int) -> type[ApiError]:
    for cls in ApiError.classes.values():
        if cls.code == code and cls not in (AlreadyExists, ServerTimeout, StoreReadError):
            return cls
    return ApiError
