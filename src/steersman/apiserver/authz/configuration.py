"""AuthorizationConfiguration: which authorizers are asked, in which order, from a file.

Source: apiserver `pkg/apis/apiserver/{v1/types.go,v1/defaults.go,validation/validation.go}`; kubernetes
`pkg/kubeapiserver/authorizer/config.go`.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from steersman._util.goduration import duration_error, format_nanoseconds, parse_nanoseconds
from steersman.api.authorization.match_conditions import Condition, ConditionError, compile_condition
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError, Struct
from steersman.apimachinery.go_types import TypeTable
from steersman.apimachinery.names import dns1123_subdomain
from steersman.apiserver.authz.settings import AuthorizerSettings, WebhookRules, WebhookSettings
from steersman.apiserver.config_files import ConfigFileError, decode_config

MODES: Final = ("ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook")
"""All modes of upstream; ABAC and Node are none of ours."""
SERVED: Final = ("AlwaysAllow", "AlwaysDeny", "RBAC", "Webhook")
_VERSIONS = ("v1", "v1beta1", "v1alpha1")
_KIND = "AuthorizationConfiguration"
_MAX_CONDITIONS = 64
_SECOND = 1_000_000_000
_MAX_TIMEOUT = 30 * _SECOND
_TYPES: dict[str, Any] = {
    _KIND: [["kind", 1, "string"], ["apiVersion", 1, "string"], ["authorizers", 0, "[]AuthorizerConfiguration"]],
    "AuthorizerConfiguration": [["type", 0, "string"], ["name", 0, "string"], ["webhook", 1, "*WebhookConfiguration"]],
    "WebhookConfiguration": [
        ["authorizedTTL", 1, "string"],
        ["cacheAuthorizedRequests", 1, "*bool"],
        ["unauthorizedTTL", 1, "string"],
        ["cacheUnauthorizedRequests", 1, "*bool"],
        ["timeout", 1, "string"],
        ["subjectAccessReviewVersion", 1, "string"],
        ["matchConditionSubjectAccessReviewVersion", 1, "string"],
        ["failurePolicy", 1, "string"],
        ["connectionInfo", 1, "WebhookConnectionInfo"],
        ["matchConditions", 1, "[]WebhookMatchCondition"],
    ],
    "WebhookConnectionInfo": [["type", 1, "string"], ["kubeConfigFile", 1, "*string"]],
    "WebhookMatchCondition": [["expression", 1, "string"]],
}
_TABLE = TypeTable(_TYPES)

Object = Mapping[str, Any]


def read_configuration(raw: bytes, required: Collection[str] = ()) -> list[AuthorizerSettings]:
    """The authorizers that a file's bytes name. Raises ConfigFileError.

    `required` are the modes other than Webhook that must still be there when a file is read again.
    """
    try:
        config = decode_config(raw, _KIND, _VERSIONS, _TABLE)
        _check_durations(config.get("authorizers") or ())
    except ConfigFileError as error:
        raise ConfigFileError(f"failed to load AuthorizationConfiguration from file: {error}") from None
    entries = [_completed(entry) for entry in config.get("authorizers") or ()]
    errors = _validate(entries)
    if errors:
        raise ConfigFileError(fe.aggregate(errors))
    _check_names(entries, required)
    return [_settings(entry) for entry in entries]


def _check_durations(entries: Sequence[Object]) -> None:
    for entry in entries:
        webhook = entry.get("webhook") or {}
        for key in ("authorizedTTL", "unauthorizedTTL", "timeout"):
            if _nanoseconds(webhook.get(key)) is None:
                raise ConfigFileError(duration_error(webhook[key]))


def _completed(entry: Object) -> dict[str, Any]:
    webhook = entry.get("webhook")
    if webhook is None:
        return dict(entry)
    default = {"authorizedTTL": "5m0s", "unauthorizedTTL": "30s"}
    filled = {key: text for key, text in default.items() if _nanoseconds(webhook.get(key)) == 0}
    return {**entry, "webhook": {**webhook, **filled}}


def _check_names(entries: Sequence[Object], required: Collection[str]) -> None:
    """Only webhooks have names of their own."""
    seen, problems = set(), []
    for entry in entries:
        mode = entry["type"]
        if mode == "Webhook":
            continue
        seen.add(mode)
        if entry["name"] != mode.lower():
            problems.append(f"expected name {mode.lower()} for authorizer {mode} instead of {entry['name']}")
    if missing := sorted(set(required) - seen):
        problems.append(f"missing required types: [{' '.join(missing)}]")
    if foreign := sorted(seen - set(SERVED)):
        problems.append(f"authorizer types that this server does not have: [{' '.join(foreign)}]")
    if problems:
        raise ConfigFileError(fe.aggregate_texts(problems))


def _settings(entry: Object) -> AuthorizerSettings:
    webhook = entry.get("webhook")
    if webhook is None:
        return AuthorizerSettings(entry["type"], entry["name"])
    rules = WebhookRules(
        _kept_seconds(webhook, "authorizedTTL", "cacheAuthorizedRequests"),
        _kept_seconds(webhook, "unauthorizedTTL", "cacheUnauthorizedRequests"),
        webhook["failurePolicy"] == "Deny",
        [compile_condition(each["expression"]) for each in webhook.get("matchConditions") or ()],
    )
    where = Path(webhook["connectionInfo"]["kubeConfigFile"])
    timeout = (_nanoseconds(webhook["timeout"]) or 0) / _SECOND
    return AuthorizerSettings(
        "Webhook", entry["name"], WebhookSettings(where, webhook["subjectAccessReviewVersion"], timeout, rules)
    )


def _kept_seconds(webhook: Object, key: str, switch: str) -> float:
    return 0.0 if webhook.get(switch) is False else (_nanoseconds(webhook[key]) or 0) / _SECOND


def _nanoseconds(text: str | None) -> int | None:
    return parse_nanoseconds(text) if text else 0


def _validate(entries: Sequence[Object]) -> list[FieldError]:
    if not entries:
        return [fe.required("authorizers", "at least one authorization mode must be defined")]
    errors: list[FieldError] = []
    modes: set[str] = set()
    names: set[str] = set()
    for index, entry in enumerate(entries):
        path, mode = f"authorizers[{index}]", entry.get("type") or ""
        if not mode:
            errors.append(fe.required(f"{path}.type"))
        elif mode not in MODES:
            errors.append(fe.not_supported(f"{path}.type", mode, MODES))
        elif mode in modes and mode != "Webhook":
            errors.append(fe.duplicate(f"{path}.type", mode))
        else:
            modes.add(mode)
            errors += _name_errors(entry.get("name") or "", names, f"{path}.name")
            names.add(entry.get("name") or "")
            errors += _kind_errors(entry, mode, path)
    return errors


def _name_errors(name: str, known: Collection[str], path: str) -> list[FieldError]:
    if not name:
        return [fe.required(path)]
    if name in known:
        return [fe.duplicate(path, name)]
    why = dns1123_subdomain(name)
    return [fe.invalid(path, name, f"authorizer name is invalid: {', '.join(why)}")] if why else []


def _kind_errors(entry: Object, mode: str, path: str) -> list[FieldError]:
    webhook = entry.get("webhook")
    if mode != "Webhook":
        why = "may only be specified when type=Webhook"
        return [] if webhook is None else [fe.invalid(f"{path}.webhook", "non-null", why)]
    if webhook is None:
        return [fe.required(f"{path}.webhook", "required when type=Webhook")]
    return [
        *_time_errors(webhook, path),
        *_version_errors(webhook, path),
        *_choice_errors(webhook, "failurePolicy", ("NoOpinion", "Deny"), path),
        *_connection_errors(webhook.get("connectionInfo") or {}, f"{path}.connectionInfo"),
        *_condition_errors(webhook.get("matchConditions") or (), f"{path}.matchConditions"),
    ]


def _time_errors(webhook: Object, path: str) -> list[FieldError]:
    errors = []
    for key, most, why in (
        ("timeout", _MAX_TIMEOUT, "must be > 0s and <= 30s"),
        ("authorizedTTL", None, "must be > 0s"),
        ("unauthorizedTTL", None, "must be > 0s"),
    ):
        given = _nanoseconds(webhook.get(key))
        assert given is not None
        if given == 0:
            errors.append(fe.required(f"{path}.{key}"))
        elif given < 0 or (most is not None and given > most):
            errors.append(fe.invalid(f"{path}.{key}", format_nanoseconds(given), why))
    return errors


def _version_errors(webhook: Object, path: str) -> list[FieldError]:
    errors = _choice_errors(webhook, "subjectAccessReviewVersion", ("v1", "v1beta1"), path)
    key = "matchConditionSubjectAccessReviewVersion"
    if webhook.get(key):
        return errors + _choice_errors(webhook, key, ("v1",), path)
    if webhook.get("matchConditions"):
        errors.append(fe.required(f"{path}.{key}", "required if match conditions are specified"))
    return errors


def _choice_errors(webhook: Object, key: str, allowed: Sequence[str], path: str) -> list[FieldError]:
    given = webhook.get(key)
    if not given:
        return [fe.required(f"{path}.{key}")]
    return [] if given in allowed else [fe.not_supported(f"{path}.{key}", given, allowed)]


def _connection_errors(connection: Object, path: str) -> list[FieldError]:
    given, file = connection.get("type") or "", connection.get("kubeConfigFile")
    if not given:
        return [fe.required(f"{path}.type")]
    if given == "InClusterConfig":
        why = "can only be set when type=KubeConfigFile"
        foreign = [fe.invalid(f"{path}.type", given, "this server runs in no cluster whose configuration it could use")]
        return foreign if file is None else [*foreign, fe.invalid(f"{path}.kubeConfigFile", file, why)]
    if given != "KubeConfigFile":
        whole = Struct(Type=given, KubeConfigFile=file)
        return [fe.not_supported(f"{path}.type", whole, ("InClusterConfig", "KubeConfigFile"))]
    return _file_errors(file, f"{path}.kubeConfigFile")


def _file_errors(file: str | None, path: str) -> list[FieldError]:
    if not file:
        return [fe.required(path)]
    if not Path(file).is_absolute():
        return [fe.invalid(path, file, "must be an absolute path")]
    try:
        mode = Path(file).stat().st_mode
    except OSError as error:
        return [fe.invalid(path, file, f"error loading file: stat {file}: {(error.strerror or '').lower()}")]
    return [] if stat.S_ISREG(mode) else [fe.invalid(path, file, "must be a regular file")]


def _condition_errors(conditions: Sequence[Object], path: str) -> list[FieldError]:
    if len(conditions) > _MAX_CONDITIONS:
        return [fe.too_many(path, len(conditions), _MAX_CONDITIONS)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        source, where = condition.get("expression") or "", f"{path}[{index}].expression"
        if not source.strip():
            errors.append(fe.required(where))
        elif source in seen:
            errors.append(fe.duplicate(where, source))
        else:
            errors += _expression_errors(source, where)
        seen.add(source)
    return errors


def _expression_errors(source: str, path: str) -> list[FieldError]:
    try:
        compiled: Condition = compile_condition(source)
    except ConditionError as error:
        return [fe.internal(path, str(error)) if error.internal else fe.invalid(path, source, str(error))]
    assert compiled.program is not None
    return []
