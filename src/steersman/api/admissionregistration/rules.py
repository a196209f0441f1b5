"""What webhooks and policies match: rules for resources, selectors, and conditions.

Source: kubernetes `pkg/apis/admissionregistration/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from steersman.api import checks
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, selectors
from steersman.apimachinery.field_errors import FieldError

if TYPE_CHECKING:
    from steersman.api.admissionregistration.expressions import Compiled

Part = Mapping[str, Any]

FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
STATIC_SUFFIX: Final = ".static.k8s.io"
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_MUTATING_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_MAX_CONDITIONS = 64
_RESERVED_NAME = (
    f'names ending with "{STATIC_SUFFIX}" are reserved for static manifest-based configurations and cannot be managed '
    "via the API"
)


def reserved_name_errors(name: str) -> list[FieldError]:
    """A name that only configuration from files may have."""
    return [fe.invalid("metadata.name", name, _RESERVED_NAME)] if name.endswith(STATIC_SUFFIX) else []


def reserved_name_warnings(name: str) -> list[str]:
    """The same for what has such a name already."""
    return [f"metadata.name: {_RESERVED_NAME}"] if name.endswith(STATIC_SUFFIX) else []


def rule_errors(rule: Part, field: str) -> list[FieldError]:
    """What is wrong with a RuleWithOperations."""
    operations = rule.get("operations") or []
    errors: list[FieldError] = []
    if not operations:
        errors.append(fe.required(f"{field}.operations"))
    if len(operations) > 1 and "*" in operations:
        detail = "if '*' is present, must not specify other operations"
        errors.append(fe.invalid(f"{field}.operations", operations, detail))
    for index, operation in enumerate(operations):
        errors += checks.supported(operation, _OPERATIONS, f"{field}.operations[{index}]")
    errors += _wildcard_errors(rule, "apiGroups", "API groups", field)
    errors += _wildcard_errors(rule, "apiVersions", "API versions", field)
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            errors.append(fe.required(f"{field}.apiVersions[{index}]"))
    errors += _resource_errors(rule.get("resources") or [], f"{field}.resources")
    if rule.get("scope") is not None:
        errors += checks.supported(rule["scope"], _SCOPES, f"{field}.scope")
    return errors


def _wildcard_errors(rule: Part, key: str, what: str, field: str) -> list[FieldError]:
    values = rule.get(key) or []
    if not values:
        return [fe.required(f"{field}.{key}")]
    if len(values) > 1 and "*" in values:
        return [fe.invalid(f"{field}.{key}", values, f"if '*' is present, must not specify other {what}")]
    return []


def _resource_errors(resources: list[str], field: str) -> list[FieldError]:
    errors = [] if resources else [fe.required(field)]
    whole: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, each in enumerate(resources):
        here = f"{field}[{index}]"
        if not each:
            errors.append(fe.required(here))
            continue
        resource, slash, subresource = each.partition("/")
        if not slash:
            plain = each != "*"  # upstream lets the last one decide
            continue
        if resource in whole:
            errors.append(fe.invalid(here, each, f"if '{resource}/*' is present, must not specify {each}"))
        if subresource in everywhere:
            errors.append(fe.invalid(here, each, f"if '*/{subresource}' is present, must not specify {each}"))
        if subresource == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        errors.append(fe.invalid(field, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        errors.append(fe.invalid(field, resources, detail))
    return errors


def match_resources_errors(match: Part | None, field: str) -> list[FieldError]:
    """What is wrong with the MatchResources of a policy or a binding; None is fine."""
    if match is None:
        return []
    errors: list[FieldError] = []
    policy = match.get("matchPolicy")
    if policy is None:
        errors.append(fe.required(f"{field}.matchPolicy"))
    else:
        errors += checks.supported(policy, MATCH_POLICIES, f"{field}.matchPolicy")
    for key in ("namespaceSelector", "objectSelector"):
        if match.get(key) is None:
            errors.append(fe.required(f"{field}.{key}"))
        else:
            errors += selectors.validate_object(match[key], f"{field}.{key}")
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(key) or ()):
            errors += _named_rule_errors(rule, f"{field}.{key}[{index}]")
    return errors


def _named_rule_errors(rule: Part, field: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, name in enumerate(rule.get("resourceNames") or ()):
        here = f"{field}.resourceNames[{index}]"
        errors += [fe.invalid(here, name, text) for text in names.path_segment_name(name)]
        if name in seen:
            errors.append(fe.duplicate(here, name))
        seen.add(name)
    return errors + rule_errors(rule, field)


def mutating_operation_errors(match: Part | None, field: str) -> list[FieldError]:
    """Operations that have no object to change, in the rules of a policy that changes objects."""
    here = f"{field}.resourceRules.operations"
    return [
        error
        for rule in (match or {}).get("resourceRules") or ()
        for operation in rule.get("operations") or ()
        for error in checks.supported(operation, _MUTATING_OPERATIONS, here)
    ]


def condition_errors(conditions: Sequence[Part], field: str, *, params: bool = False) -> list[FieldError]:
    """What is wrong with match conditions; `params` says whether they may read `params`."""
    errors: list[FieldError] = []
    if len(conditions) > _MAX_CONDITIONS:
        errors.append(fe.too_many(field, len(conditions), _MAX_CONDITIONS))
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        here = f"{field}[{index}]"
        expression = (condition.get("expression") or "").strip()
        if not expression:
            errors.append(fe.required(f"{here}.expression"))
        else:
            errors += _condition_expression_errors(expression, f"{here}.expression", params=params)
        name = condition.get("name") or ""
        errors += checks.qualified_name(name, f"{here}.name") if name else [fe.required(f"{here}.name")]
        if name and name in seen:
            errors.append(fe.duplicate(f"{here}.name", name))
        seen.add(name)
    return errors


def _condition_expression_errors(expression: str, field: str, *, params: bool) -> list[FieldError]:
    # deferred: it loads the compiler of expressions
    from steersman.api.admissionregistration.expressions import Names, compile_admission
    from steersman.apimachinery.schema.cel.types import BOOL

    return expression_errors(compile_admission(expression, (BOOL,), Names(params=params)), field)


def expression_errors(compiled: Compiled, field: str, shown: str | None = None) -> list[FieldError]:
    """What is wrong with an expression; `shown` is what the message quotes, if not what was compiled."""
    if not compiled.error:
        return []
    if compiled.internal:
        return [fe.internal(field, compiled.error)]
    return [fe.invalid(field, compiled.source if shown is None else shown, compiled.error)]
