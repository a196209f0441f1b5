"""MutatingWebhookConfigurations and ValidatingWebhookConfigurations.

Source: kubernetes `pkg/registry/admissionregistration/{mutating,validating}webhookconfiguration/strategy.go`,
`pkg/apis/admissionregistration/validation/{validation,warnings}.go`, `pkg/kubeapiserver/admission/exclusion`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from steersman.api import checks
from steersman.api.admissionregistration.rules import (
    FAILURE_POLICIES,
    MATCH_POLICIES,
    REINVOCATION_POLICIES,
    Part,
    condition_errors,
    reserved_name_errors,
    reserved_name_warnings,
    rule_errors,
)
from steersman.api.apiextensions.conversion_rules import (
    REVIEW_VERSIONS,
    knows_review_version,
    review_version_errors,
    service_errors,
    url_errors,
)
from steersman.api.builtin import BuiltinStrategy
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, selectors
from steersman.apimachinery.field_errors import FieldError

UNSEEN: Final = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)
"""Groups and resources that no webhook and no policy ever sees."""
_HARMLESS = ("None", "NoneOnDryRun")
_SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")


@dataclass(frozen=True, slots=True)
class _Demands:
    """What webhooks have to fulfil; an update may keep what is stored already, although it does not."""

    conditions: bool = True
    harmless: bool = True
    known_version: bool = True
    unique_names: bool = True
    label_values: bool = True


class WebhookConfigurationStrategy(BuiltinStrategy):
    """The rules of both kinds; only mutating webhooks have a reinvocationPolicy."""

    def validate_create(self, obj: Object) -> list[FieldError]:
        errors = [*self.validate_meta(obj), *_errors(_webhooks(obj), _Demands())]
        return errors + reserved_name_errors(obj["metadata"].get("name") or "")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_meta(new), *_errors(_webhooks(new), _demands(_webhooks(new), _webhooks(old)))]

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta = obj["metadata"]
        return [meta.get("name") or "", len(_webhooks(obj)), age(meta.get("creationTimestamp"), now)]

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        reserved = reserved_name_warnings(obj["metadata"].get("name") or "") if old is not None else []
        return reserved + [
            f"webhooks[{index}].rules[{at}]: {text} is excluded from admission webhooks; this rule will have no effect"
            for index, webhook in enumerate(_webhooks(obj))
            for at, rule in enumerate(webhook.get("rules") or ())
            for text in _unseen(rule)
        ]


def _webhooks(obj: Object) -> Sequence[Part]:
    return obj.get("webhooks") or ()


def _unseen(rule: Part) -> list[str]:
    """The resources that a rule names though no webhook sees them."""
    groups, resources = rule.get("apiGroups") or (), rule.get("resources") or ()
    if "*" in groups or "*" in resources:
        return []
    found = [(group, resource) for group in groups for resource in resources if (group, resource) in UNSEEN]
    return [f"{resource}.{group}" for group, resource in dict.fromkeys(found)]


def _demands(new: Sequence[Part], old: Sequence[Part]) -> _Demands:
    listed = [webhook.get("name") or "" for webhook in old]
    return _Demands(
        conditions=list(map(_conditions, new)) != list(map(_conditions, old)),
        harmless=all(webhook.get("sideEffects") in _HARMLESS for webhook in old),
        known_version=all(knows_review_version(webhook.get("admissionReviewVersions") or ()) for webhook in old),
        unique_names=len(set(listed)) == len(listed),
        label_values=not any(_selector_errors(webhook, "", allow_invalid_values=False) for webhook in old),
    )


def _conditions(webhook: Part) -> Sequence[Part]:
    return webhook.get("matchConditions") or []


def _errors(webhooks: Sequence[Part], demands: _Demands) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, webhook in enumerate(webhooks):
        here = f"webhooks[{index}]"
        errors += _webhook_errors(webhook, demands, here)
        versions = webhook.get("admissionReviewVersions") or []
        detail = f"must specify one of {', '.join(REVIEW_VERSIONS)}"
        errors += review_version_errors(
            versions, f"{here}.admissionReviewVersions", require_known=demands.known_version, detail=detail
        )
        name = webhook.get("name") or ""
        if demands.unique_names and name in seen:
            errors.append(fe.duplicate(f"{here}.name", name))
        if name:
            seen.add(name)
    return errors


def _webhook_errors(webhook: Part, demands: _Demands, field: str) -> list[FieldError]:
    errors = _name_errors(webhook.get("name") or "", f"{field}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        errors += rule_errors(rule, f"{field}.rules[{index}]")
    for key, known in (("failurePolicy", FAILURE_POLICIES), ("matchPolicy", MATCH_POLICIES)):
        if webhook.get(key) is not None:
            errors += checks.supported(webhook[key], known, f"{field}.{key}")
    allowed = _HARMLESS if demands.harmless else _SIDE_EFFECTS
    if webhook.get("sideEffects") is None:
        errors.append(fe.required(f"{field}.sideEffects", f"must specify one of {', '.join(allowed)}"))
    else:
        errors += checks.supported(webhook["sideEffects"], allowed, f"{field}.sideEffects")
    timeout = webhook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        errors.append(fe.invalid(f"{field}.timeoutSeconds", timeout, detail))
    errors += _selector_errors(webhook, f"{field}.", allow_invalid_values=not demands.label_values)
    if webhook.get("reinvocationPolicy") is not None:
        known = REINVOCATION_POLICIES
        errors += checks.supported(webhook["reinvocationPolicy"], known, f"{field}.reinvocationPolicy")
    errors += _client_config_errors(webhook.get("clientConfig") or {}, f"{field}.clientConfig")
    if demands.conditions:
        errors += condition_errors(_conditions(webhook), f"{field}.matchConditions")
    return errors


def _name_errors(name: str, field: str) -> list[FieldError]:
    if not name:
        return [fe.required(field)]
    if found := names.dns1123_subdomain(name):
        return [fe.invalid(field, name, ",".join(found))]
    if name.count(".") < 2:
        return [fe.invalid(field, name, "should be a domain with at least three segments separated by dots")]
    return []


def _selector_errors(webhook: Part, prefix: str, *, allow_invalid_values: bool) -> list[FieldError]:
    return [
        error
        for key in ("namespaceSelector", "objectSelector")
        for error in selectors.validate_object(
            webhook.get(key), f"{prefix}{key}", allow_invalid_values=allow_invalid_values
        )
    ]


def _client_config_errors(config: Part, field: str) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [fe.required(field, "exactly one of url or service is required")]
    if url is not None:
        return url_errors(url, f"{field}.url")
    return service_errors(service or {}, f"{field}.service")
