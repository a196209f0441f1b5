"""Questions to the authorizer: what a user may do.

Source: apiserver `pkg/cel/library/authz.go`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from steersman.apimachinery.names import name_is_dns_label, name_is_dns_subdomain
from steersman.apimachinery.schema.cel import types as t
from steersman.apimachinery.schema.cel.errors import CelError
from steersman.apimachinery.schema.cel.library import Function
from steersman.apimachinery.schema.cel.values import Opaque


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: may the user (or a service account) use a verb on a path, or on a resource?

    `service_account` is (namespace, name), `path` is set for paths only; selectors are as they were written.
    """

    verb: str = ""
    path: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    field_selector: str = ""
    label_selector: str = ""
    service_account: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Decision(Opaque):
    """The answer; `error` is set when it could not be found out."""

    allowed: bool
    reason: str = ""
    error: str = ""
    cel_type = t.DECISION


Authorize = Callable[[Question], Decision]


@dataclass(frozen=True, slots=True)
class Authorizer(Opaque):
    """The `authorizer` variable: who is asked, and about whom."""

    authorize: Authorize
    service_account: tuple[str, str] | None = None
    cel_type = t.AUTHORIZER


@dataclass(frozen=True, slots=True)
class _Check(Opaque):
    authorize: Authorize
    question: Question


@dataclass(frozen=True, slots=True)
class PathCheck(_Check):
    cel_type = t.PATH_CHECK


@dataclass(frozen=True, slots=True)
class GroupCheck(_Check):
    cel_type = t.GROUP_CHECK


@dataclass(frozen=True, slots=True)
class ResourceCheck(_Check):
    cel_type = t.RESOURCE_CHECK


def _path(authorizer: Authorizer, path: str) -> PathCheck:
    if not path.strip():
        raise CelError("path must not be empty")
    return PathCheck(authorizer.authorize, Question(path=path, service_account=authorizer.service_account))


def _group(authorizer: Authorizer, group: str) -> GroupCheck:
    return GroupCheck(authorizer.authorize, Question(group=group, service_account=authorizer.service_account))


def _service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    if name_is_dns_subdomain(name, False):
        raise CelError("Invalid service account name")
    if name_is_dns_label(namespace, False):
        raise CelError("Invalid service account namespace")
    return replace(authorizer, service_account=(namespace, name))


def _resource(check: GroupCheck, resource: str) -> ResourceCheck:
    if not resource.strip():
        raise CelError("resource must not be empty")
    return ResourceCheck(check.authorize, replace(check.question, resource=resource))


def _narrowed(part: str) -> Function:
    def narrow(check: ResourceCheck, value: str) -> ResourceCheck:
        changed: Any = {part: value}
        return replace(check, question=replace(check.question, **changed))

    return narrow


def _check(check: _Check, verb: str) -> Decision:
    return check.authorize(replace(check.question, verb=verb))


OVERLOADS: dict[str, Function] = {
    "authorizer_path": _path,
    "authorizer_group": _group,
    "authorizer_serviceaccount": _service_account,
    "groupcheck_resource": _resource,
    "resourcecheck_subresource": _narrowed("subresource"),
    "resourcecheck_namespace": _narrowed("namespace"),
    "resourcecheck_name": _narrowed("name"),
    "authorizer_fieldselector": _narrowed("field_selector"),
    "authorizer_labelselector": _narrowed("label_selector"),
    "pathcheck_check": _check,
    "resourcecheck_check": _check,
    "decision_errored": lambda decision: bool(decision.error),
    "decision_error": lambda decision: decision.error,
    "decision_allowed": lambda decision: decision.allowed,
    "decision_reason": lambda decision: decision.reason,
}
