"""Options of requests: parsed from query parameters (or a DeleteOptions body), and validated.

Source: apimachinery `pkg/apis/meta/v1/validation/validation.go` and `pkg/apis/meta/internalversion/validation`.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from steersman._util.dataclass import dataclass
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.apply.names import validate_field_manager
from steersman.apimachinery.errors import BadRequest, invalid
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.request_info import RequestInfo

META_GROUP = "meta.k8s.io"
_FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
_INT64_DIGITS = 100
_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(slots=True)
class WriteOptions:
    """CreateOptions, UpdateOptions and PatchOptions: dry run, field manager, field validation, force (apply)."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: str = "Warn"
    force: bool | None = None


@dataclass(slots=True)
class ListOptions:
    """What a list, watch or deletecollection asks for; None or "" where the client left it out."""

    label_selector: str = ""
    field_selector: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None


@dataclass(slots=True)
class DeleteOptions:
    """`preconditions` may pin uid and resourceVersion; the policy is None, Foreground, Background or Orphan."""

    dry_run: bool = False
    grace_period_seconds: int | None = None
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    precondition_uid: str | None = None
    precondition_resource_version: str | None = None
    raw: dict[str, Any] = field(default_factory=dict)


def write_options(info: RequestInfo, kind: str) -> WriteOptions:
    """Options of a write; `kind` is CreateOptions, UpdateOptions or PatchOptions. Raises Invalid (422)."""
    query = info.query
    if not query:
        return WriteOptions()
    errors: list[FieldError] = []
    force = info.flag("force") if kind == "PatchOptions" and "force" in query else None
    dry_run = query.get("dryRun", [])
    manager = info.first("fieldManager")
    errors += validate_field_manager(manager)
    errors += _dry_run_errors(dry_run)
    level = info.first("fieldValidation")
    if level not in _FIELD_VALIDATION:
        errors.append(fe.not_supported("fieldValidation", level, _FIELD_VALIDATION))
    if errors:
        raise invalid(META_GROUP, kind, "", errors)
    return WriteOptions(bool(dry_run), manager, level or "Warn", force)


def options_object(info: RequestInfo) -> dict[str, Any]:
    """What the query says of a write, in the form of CreateOptions and its kin, without their kind."""
    found: dict[str, Any] = {}
    if "dryRun" in info.query:
        found["dryRun"] = list(info.query["dryRun"])
    for key in ("fieldManager", "fieldValidation"):
        if text := info.first(key):
            found[key] = text
    return found


def list_options(info: RequestInfo) -> ListOptions:
    """Options of a list or watch. Raises BadRequest for what does not parse, Invalid for what makes no sense."""
    query = info.query
    if not query:
        return ListOptions(watch=info.verb == "watch")
    options = ListOptions(
        label_selector=info.first("labelSelector"),
        field_selector=info.first("fieldSelector"),
        watch=info.verb == "watch",
        allow_watch_bookmarks=info.flag("allowWatchBookmarks"),
        resource_version=info.first("resourceVersion"),
        resource_version_match=info.first("resourceVersionMatch"),
        timeout_seconds=_integer(query, "timeoutSeconds"),
        limit=max(_integer(query, "limit") or 0, 0),
        continue_token=info.first("continue"),
        send_initial_events=info.flag("sendInitialEvents") if "sendInitialEvents" in query else None,
    )
    if errors := validate_list_options(options):
        raise invalid(META_GROUP, "ListOptions", "", errors)
    return options


def validate_list_options(options: ListOptions) -> list[FieldError]:
    match = options.resource_version_match
    if options.watch:
        return _watch_errors(options)
    errors: list[FieldError] = []
    if match:
        if not options.resource_version:
            errors.append(
                fe.forbidden(
                    "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
                )
            )
        if options.continue_token:
            errors.append(
                fe.forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
            )
        if match not in ("Exact", "NotOlderThan"):
            errors.append(fe.not_supported("resourceVersionMatch", match, ("Exact", "NotOlderThan", "")))
        if match == "Exact" and options.resource_version == "0":
            errors.append(
                fe.forbidden(
                    "resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
                )
            )
    if options.send_initial_events is not None:
        errors.append(fe.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    match = options.resource_version_match
    if options.send_initial_events is not None:
        if match != "NotOlderThan":
            errors.append(
                fe.forbidden(
                    "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                )
            )
            if match:
                errors.append(fe.not_supported("resourceVersionMatch", match, ("NotOlderThan",)))
    elif match:
        errors.append(
            fe.forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        )
    return errors


def delete_options(info: RequestInfo, body: dict[str, Any] | None) -> DeleteOptions:
    """Options of a delete, from its body or, without one, from the query. Raises BadRequest, Invalid."""
    raw = dict(body) if body is not None else _delete_query(info)
    preconditions = _typed(raw, "preconditions", dict, "Preconditions") or {}
    grace = raw.get("gracePeriodSeconds")
    if grace is not None and (isinstance(grace, bool) or not isinstance(grace, int)):
        raise BadRequest("json: cannot unmarshal into Go struct field DeleteOptions.gracePeriodSeconds of type int64")
    options = DeleteOptions(
        dry_run=bool(raw.get("dryRun")),
        grace_period_seconds=grace,
        propagation_policy=_typed(raw, "propagationPolicy", str, "DeletionPropagation"),
        orphan_dependents=_typed(raw, "orphanDependents", bool, "bool"),
        precondition_uid=preconditions.get("uid"),
        precondition_resource_version=preconditions.get("resourceVersion"),
        raw=raw,
    )
    if errors := _delete_errors(options):
        raise invalid(META_GROUP, "DeleteOptions", "", errors)
    return options


def _delete_query(info: RequestInfo) -> dict[str, Any]:
    raw: dict[str, Any] = {}
    if "gracePeriodSeconds" in info.query:
        raw["gracePeriodSeconds"] = _integer(info.query, "gracePeriodSeconds")
    if "propagationPolicy" in info.query:
        raw["propagationPolicy"] = info.first("propagationPolicy")
    if "orphanDependents" in info.query:
        raw["orphanDependents"] = info.flag("orphanDependents")
    if "dryRun" in info.query:
        raw["dryRun"] = info.query["dryRun"]
    return raw


def _delete_errors(options: DeleteOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    policy = options.propagation_policy
    if policy is not None and options.orphan_dependents is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(fe.invalid("propagationPolicy", policy, detail))
    if policy is not None and policy not in _POLICIES:
        errors.append(fe.not_supported("propagationPolicy", policy, (*_POLICIES, "nil")))
    errors += _dry_run_errors(options.raw.get("dryRun") or [])
    return errors


def _dry_run_errors(values: list[str]) -> list[FieldError]:
    if values and set(values) != {"All"}:
        return [fe.not_supported("dryRun", values, ("All",))]
    return []


def _integer(query: dict[str, list[str]], key: str) -> int | None:
    values = query.get(key)
    if not values:
        return None
    text = values[0]
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise BadRequest(f"strconv.ParseInt: parsing {fe.format_value(text)}: invalid syntax")
    if len(digits) > _INT64_DIGITS or not -(2**63) <= int(text) < 2**63:
        raise BadRequest(f"strconv.ParseInt: parsing {fe.format_value(text)}: value out of range")
    return int(text)


def _typed(raw: dict[str, Any], key: str, kind: type, go_type: str) -> Any:
    value = raw.get(key)
    if value is not None and not isinstance(value, kind):
        raise BadRequest(f"json: cannot unmarshal into Go struct field DeleteOptions.{key} of type v1.{go_type}")
    return value
