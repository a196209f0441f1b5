"""The audit policy: which requests are recorded, and how much of them.

Source: apiserver `pkg/audit/policy/{reader,checker}.go`, `pkg/apis/audit/validation/validation.go`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from steersman._util.gotext import quote
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec import yaml
from steersman.apimachinery.go_types import TypeTable
from steersman.apimachinery.go_values import DecodeError, json_kind
from steersman.apimachinery.names import dns1123_subdomain
from steersman.apiserver.authz.attributes import Attributes

log = logging.getLogger("steersman.apiserver.audit")

NONE, METADATA, REQUEST, REQUEST_RESPONSE = range(4)
LEVELS = ("None", "Metadata", "Request", "RequestResponse")
RECEIVED, STARTED, COMPLETE, PANIC = "RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"
STAGES = (RECEIVED, STARTED, COMPLETE, PANIC)
API_VERSION = "audit.k8s.io/v1"

_ONLY_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_KINDS = frozenset({"Event", "EventList", "PolicyList"})
_TABLE = TypeTable(
    {
        "v1.Policy": [
            ["kind", 1, "string"],
            ["apiVersion", 1, "string"],
            ["metadata", 1, "map[string]any"],
            ["rules", 0, "[]v1.PolicyRule"],
            ["omitStages", 1, "[]v1.Stage"],
            ["omitManagedFields", 1, "bool"],
        ],
        "v1.PolicyRule": [
            ["level", 0, "v1.Level"],
            ["users", 1, "[]string"],
            ["userGroups", 1, "[]string"],
            ["verbs", 1, "[]string"],
            ["resources", 1, "[]v1.GroupResources"],
            ["namespaces", 1, "[]string"],
            ["nonResourceURLs", 1, "[]string"],
            ["omitStages", 1, "[]v1.Stage"],
            ["omitManagedFields", 1, "*bool"],
        ],
        "v1.GroupResources": [
            ["group", 1, "string"],
            ["resources", 1, "[]string"],
            ["resourceNames", 1, "[]string"],
        ],
        "v1.Level": "string",
        "v1.Stage": "string",
        "any": "!RawExtension",
    }
)


class PolicyError(ValueError):
    """The policy cannot be used; the message is upstream's, in one line."""


class Verdict(NamedTuple):
    """How a request is recorded: its level, the stages that are left out, and whether field ownership is."""

    level: int
    omitted: frozenset[str]
    without_managed_fields: bool


@dataclass(frozen=True, slots=True)
class _Resources:
    group: str
    resources: Sequence[str]
    names: frozenset[str]

    def match(self, attributes: Attributes) -> bool:
        if self.group not in (attributes.group, "*"):
            return False
        if not self.resources:
            return True
        if self.names and attributes.name not in self.names:
            return False
        resource, subresource = attributes.resource, attributes.subresource
        whole = f"{resource}/{subresource}" if subresource else resource
        accepted = {whole, "*", f"{resource}/*"}
        if subresource:
            accepted.add(f"*/{subresource}")
        return not accepted.isdisjoint(self.resources)


@dataclass(frozen=True, slots=True)
class _Rule:
    verdict: Verdict
    users: frozenset[str]
    groups: frozenset[str]
    verbs: frozenset[str]
    namespaces: frozenset[str]
    resources: Sequence[_Resources]
    paths: Sequence[str]

    def match(self, attributes: Attributes) -> bool:
        user = attributes.user
        if self.users and user.name not in self.users:
            return False
        if self.groups and self.groups.isdisjoint(user.groups):
            return False
        if self.verbs and attributes.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return self._match_resource(attributes)
        if self.paths:
            return not attributes.resource_request and any(_path_matches(attributes.path, path) for path in self.paths)
        return True

    def _match_resource(self, attributes: Attributes) -> bool:
        if not attributes.resource_request or (self.namespaces and attributes.namespace not in self.namespaces):
            return False
        return not self.resources or any(each.match(attributes) for each in self.resources)


def _path_matches(path: str, pattern: str) -> bool:
    if pattern in ("*", path):
        return True
    return pattern.endswith("*") and path.startswith(pattern.rstrip("*"))


class Policy:
    """The rules, in order: the first that matches a request decides; none means that it is not recorded."""

    def __init__(self, rules: Sequence[_Rule]) -> None:
        self._rules = rules

    def verdict(self, attributes: Attributes) -> Verdict | None:
        """How to record a request; None: not at all."""
        for rule in self._rules:
            if rule.match(attributes):
                return rule.verdict if rule.verdict.level else None
        return None


def parse_policy(raw: bytes) -> Policy:
    """The policy in a file, JSON or YAML. Unknown fields are logged and ignored. Raises PolicyError."""
    document = _decoded(raw)
    if errors := list(_errors(document)):
        raise PolicyError(fe.aggregate(errors))
    if not document.get("rules"):
        raise PolicyError("loaded illegal policy with 0 rules")
    omitted = frozenset(document.get("omitStages") or ())
    default = bool(document.get("omitManagedFields"))
    return Policy([_rule(item, omitted, default) for item in document["rules"]])


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        value = codec.decode(raw) if raw.lstrip()[:1] == b"{" else yaml.decode(raw)
    except codec.JsonError as error:
        raise PolicyError(f"failed decoding: couldn't get version/kind; json parse error: {error}") from None
    except yaml.YamlError as error:
        raise PolicyError(f"failed decoding: {error}") from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        why = f"json: cannot unmarshal {json_kind(value)} into Go value of type {_ONLY_TYPE}"
        raise PolicyError(f"failed decoding: couldn't get version/kind; json parse error: {why}")
    _check_kind(value)
    try:
        decoded, unknown = _TABLE.decode("v1.Policy", value)
    except DecodeError as error:
        raise PolicyError(f"failed decoding: {error}") from None
    if unknown:
        log.warning("unknown fields in the audit policy are ignored", extra={"fields": ", ".join(unknown)})
    found: dict[str, Any] = decoded
    return found


def _check_kind(value: Mapping[str, Any]) -> None:
    version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if not version and not kind:
        raise PolicyError("unknown group version field audit.k8s.io/__internal, Kind=Policy in policy")
    if (version, kind) == (API_VERSION, "Policy"):
        return
    if version == API_VERSION and kind in _KINDS:
        raise PolicyError(f"failed decoding: converting (v1.{kind}) to (audit.Policy): unknown conversion")
    where = f'version {quote(str(version))} in scheme "pkg/runtime/scheme.go:111"'
    raise PolicyError(f"failed decoding: no kind {quote(str(kind))} is registered for {where}")


def _rule(item: Mapping[str, Any], omitted: frozenset[str], default: bool) -> _Rule:
    own = item.get("omitManagedFields")
    stages = omitted | frozenset(item.get("omitStages") or ())
    users, groups, verbs, namespaces = (
        frozenset(item.get(key) or ()) for key in ("users", "userGroups", "verbs", "namespaces")
    )
    resources = [
        _Resources(each.get("group") or "", each.get("resources") or (), frozenset(each.get("resourceNames") or ()))
        for each in item.get("resources") or ()
    ]
    verdict = Verdict(LEVELS.index(item["level"]), stages, default if own is None else own)
    return _Rule(verdict, users, groups, verbs, namespaces, resources, item.get("nonResourceURLs") or ())


def _errors(document: Mapping[str, Any]) -> Iterator[fe.FieldError]:
    yield from _stage_errors(document.get("omitStages"), "omitStages")
    for index, rule in enumerate(document.get("rules") or ()):
        yield from _rule_errors(rule, f"rules[{index}]")


def _rule_errors(rule: Mapping[str, Any], path: str) -> Iterator[fe.FieldError]:
    level = rule["level"]
    if not level:
        yield fe.required(f"{path}.level")
    elif level not in LEVELS:
        yield fe.not_supported(f"{path}.level", level, LEVELS)
    yield from _url_errors(rule.get("nonResourceURLs") or (), f"{path}.nonResourceURLs")
    for item in rule.get("resources") or ():
        group = item.get("group") or ""
        if group and group != "*" and (problems := dns1123_subdomain(group)):
            yield fe.invalid(f"{path}.resources.group", group, ",".join(problems))
        if item.get("resourceNames") and not item.get("resources"):
            why = "using resourceNames requires at least one resource"
            yield fe.invalid(f"{path}.resources.resourceNames", item["resourceNames"], why)
    yield from _stage_errors(rule.get("omitStages"), f"{path}.omitStages")
    if rule.get("nonResourceURLs") and (rule.get("resources") or rule.get("namespaces")):
        why = "rules cannot apply to both regular resources and non-resource URLs"
        yield fe.invalid(f"{path}.nonResourceURLs", rule["nonResourceURLs"], why)


def _url_errors(urls: Sequence[str], path: str) -> Iterator[fe.FieldError]:
    for index, url in enumerate(urls):
        if url != "*" and not url.startswith("/"):
            why = "non-resource URL rules must begin with a '/' character"
            yield fe.invalid(f"{path}[{index}]", url, why)
        if "*" in url[:-1]:
            why = "non-resource URL wildcards '*' must be the final character of the rule"
            yield fe.invalid(f"{path}[{index}]", url, why)


def _stage_errors(stages: Sequence[str] | None, path: str) -> Iterator[fe.FieldError]:
    for index, stage in enumerate(stages or ()):
        if stage not in STAGES:
            yield fe.invalid(f"{path}[{index}]", stage, f"allowed stages are {','.join(STAGES)}")
