"""FlowSchemas: which requests belong to which priority level.

Source: kubernetes `pkg/registry/flowcontrol/flowschema/strategy.go`, `pkg/apis/flowcontrol/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from steersman.api.builtin import BuiltinStrategy
from steersman.api.flowcontrol.fixed import MANDATORY, SCHEMAS, fixed, shown
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError, Struct
from steersman.apimachinery.names import dns1123_label, dns1123_subdomain

_MAX_PRECEDENCE = 10_000
_DISTINGUISHERS = ("ByNamespace", "ByUser")
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_NAMESPACES = "each member of this list must be '*' or a DNS-1123 label; "
_SUBJECTS = {"ServiceAccount": "serviceAccount", "User": "user", "Group": "group"}


class FlowSchemaStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        name, spec = obj["metadata"].get("name") or "", obj.get("spec") or {}
        errors = list(_spec_errors(name, spec))
        if name in MANDATORY and spec != fixed(SCHEMAS)[name]:
            errors.append(fe.invalid("spec", shown(SCHEMAS, spec), f"spec of '{name}' must equal the fixed value"))
        return errors

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec = obj["metadata"], obj.get("spec") or {}
        method = spec.get("distinguisherMethod")
        dangling = [item for item in (obj.get("status") or {}).get("conditions") or () if item["type"] == "Dangling"]
        return [
            meta.get("name") or "",
            spec["priorityLevelConfiguration"]["name"],
            spec.get("matchingPrecedence") or 0,
            method["type"] if method else "<none>",
            age(meta.get("creationTimestamp"), now),
            dangling[0].get("status") or "" if dangling else "?",
        ]


def _spec_errors(name: str, spec: Mapping[str, Any]) -> Iterator[FieldError]:
    precedence = spec.get("matchingPrecedence") or 0
    path = "spec.matchingPrecedence"
    if precedence <= 0:
        yield fe.invalid(path, precedence, "must be a positive value")
    if precedence > _MAX_PRECEDENCE:
        yield fe.invalid(path, precedence, f"must not be greater than {_MAX_PRECEDENCE}")
    if precedence == 1 and name != "exempt":
        yield fe.invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
    method = spec.get("distinguisherMethod")
    if method is not None and method["type"] not in _DISTINGUISHERS:
        yield fe.not_supported("spec.distinguisherMethod.type", Struct(Type=method["type"]), _DISTINGUISHERS)
    level, path = spec["priorityLevelConfiguration"]["name"], "spec.priorityLevelConfiguration.name"
    if not level:
        yield fe.required(path, "must reference a priority level")
    for why in dns1123_subdomain(level) if level else ():
        yield fe.invalid(path, level, why)
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _rule_errors(rule, f"spec.rules[{index}]")


def _rule_errors(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    if not rule.get("subjects"):
        yield fe.required(f"{path}.subjects", "subjects must contain at least one value")
    for index, subject in enumerate(rule.get("subjects") or ()):
        yield from _subject_errors(subject, f"{path}.subjects[{index}]")
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        yield fe.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, item in enumerate(rule.get("resourceRules") or ()):
        yield from _resource_rule_errors(item, f"{path}.resourceRules[{index}]")
    for index, item in enumerate(rule.get("nonResourceRules") or ()):
        yield from _path_rule_errors(item, f"{path}.nonResourceRules[{index}]")


def _subject_errors(subject: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    kind = subject["kind"]
    own = _SUBJECTS.get(kind)
    if own is None:
        yield fe.not_supported(f"{path}.kind", kind, sorted(_SUBJECTS))
        return
    named = subject.get(own)
    if named is None:
        yield fe.required(f"{path}.{own}", f"{own} is required when subject kind is '{kind}'")
    else:
        yield from _named_errors(own, named, f"{path}.{own}")
    for other_kind, other in _SUBJECTS.items():
        if other != own and subject.get(other) is not None:
            yield fe.forbidden(f"{path}.{other}", f"{other} is forbidden when subject kind is not '{other_kind}'")


def _named_errors(field: str, named: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    name = named["name"]
    if not name:
        yield fe.required(f"{path}.name")
    if field != "serviceAccount":
        return
    for why in dns1123_subdomain(name) if name not in ("", "*") else ():
        yield fe.invalid(f"{path}.name", name, why)
    namespace = named["namespace"]
    if not namespace:
        yield fe.required(f"{path}.namespace", "must specify namespace for service account")
    for why in dns1123_label(namespace) if namespace else ():
        yield fe.invalid(f"{path}.namespace", namespace, why)


def _resource_rule_errors(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    yield from _verb_errors(rule.get("verbs") or [], f"{path}.verbs")
    for key, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values = rule.get(key) or []
        if not values:
            yield fe.required(f"{path}.{key}", f"resource rules must supply at least one {one}")
        elif len(values) > 1 and "*" in values:
            yield fe.invalid(f"{path}.{key}", values, f"if '*' is present, must not specify other {many}")
    namespaces = rule.get("namespaces") or []
    if not namespaces and not rule.get("clusterScope"):
        why = "resource rules that are not cluster scoped must supply at least one namespace"
        yield fe.required(f"{path}.namespaces", why)
    elif "*" in namespaces:
        if len(namespaces) > 1:
            why = "if '*' is present, must not specify other namespaces"
            yield fe.invalid(f"{path}.namespaces", namespaces, why)
    else:
        yield from _each(namespaces, f"{path}.namespaces", lambda name: [_NAMESPACES + w for w in dns1123_label(name)])


def _path_rule_errors(rule: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    yield from _verb_errors(rule.get("verbs") or [], f"{path}.verbs")
    urls = rule.get("nonResourceURLs") or []
    if not urls:
        yield fe.required(f"{path}.nonResourceURLs", "nonResourceURLs must contain at least one value")
    elif "*" in urls:
        if len(urls) > 1:
            why = "if '*' is present, must not specify other non-resource URLs"
            yield fe.invalid(f"{path}.nonResourceURLs", urls, why)
    else:
        yield from _each(urls, f"{path}.nonResourceURLs", _url_problem)


def _verb_errors(verbs: Sequence[str], path: str) -> Iterator[FieldError]:
    if not verbs:
        yield fe.required(path, "verbs must contain at least one value")
    elif "*" in verbs:
        if len(verbs) > 1:
            yield fe.invalid(path, verbs, "if '*' is present, must not specify other verbs")
    elif not set(verbs) <= set(_VERBS):
        yield fe.not_supported(path, verbs, _VERBS)


def _each(values: Sequence[str], path: str, problems: Callable[[str], Sequence[str]]) -> Iterator[FieldError]:
    for index, value in enumerate(values):
        for why in problems(value):
            yield fe.invalid(f"{path}[{index}]", value, why)


def _url_problem(url: str) -> list[str]:
    if not url:
        return ["must not be empty"]
    if url == "/":
        return []
    if not url.startswith("/"):
        return ["must start with slash"]
    if " " in url:
        return ["must not contain white-space"]
    if "//" in url:
        return ["must not contain double slash"]
    wildcards = url.count("*")
    return ["wildcard can only do suffix matching"] if wildcards > 1 or (wildcards and url[-2:] != "/*") else []
