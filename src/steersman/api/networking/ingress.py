"""Ingresses and IngressClasses.

Source: kubernetes `pkg/registry/networking/{ingress,ingressclass}/strategy.go`,
`pkg/apis/networking/validation/validation.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.classes import DEFAULT_INGRESS_CLASS, OLD_INGRESS_CLASS
from steersman.api.core.service_rules import ingress_status_errors
from steersman.api.strategy import Object, Strategy
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError

_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES = ("/..", "/.")
_WILDCARD = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_WILDCARD_PATTERN = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_DEPRECATED = f"annotation \"{OLD_INGRESS_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"
_SHOWN = 3


class IngressStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        return _spec_errors(obj.get("spec") or {})

    def validate_create(self, obj: Object) -> list[FieldError]:
        errors = super().validate_create(obj)
        given = (obj["metadata"].get("annotations") or {}).get(OLD_INGRESS_CLASS)
        wanted = (obj.get("spec") or {}).get("ingressClassName")
        if given is not None and wanted is not None and given != wanted:
            text = "must match `ingressClassName` when both are specified"
            errors.append(fe.invalid(f"annotations.{OLD_INGRESS_CLASS}", given, text))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_meta_update(new, old), *self.validate_meta(new), *self.validate_content(new)]

    def subresource(self, name: str) -> Strategy:
        return IngressStatusStrategy(self) if name == "status" else super().subresource(name)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        return [_DEPRECATED] if old is None and OLD_INGRESS_CLASS in (obj["metadata"].get("annotations") or {}) else []

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec = obj["metadata"], obj.get("spec") or {}
        rules = spec.get("rules") or []
        hosts = [rule["host"] for rule in rules if rule.get("host")]
        more = f" + {len(rules) - _SHOWN} more..." if len(hosts) > _SHOWN else ""
        ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        addresses = sorted({item.get("ip") or item.get("hostname") for item in ingress} - {None, ""})
        name = spec.get("ingressClassName")
        return [
            meta.get("name") or "",
            "<none>" if name is None else name,
            ",".join(hosts[:_SHOWN]) + more if hosts else "*",
            ",".join(addresses),
            "80, 443" if spec.get("tls") else "80",
            age(meta.get("creationTimestamp"), now),
        ]


class IngressStatusStrategy(StatusStrategy):
    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        ingress, known = (
            ((item.get("status") or {}).get("loadBalancer") or {}).get("ingress") or [] for item in (new, old)
        )
        errors = super().validate_update(new, old)
        return errors + ingress_status_errors(ingress, known, "status.loadBalancer.ingress")


class IngressClassStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        controller = spec.get("controller") or ""
        errors = []
        if not controller:
            errors.append(fe.required("spec.controller"))
        elif len(controller.encode()) > 250:
            errors.append(fe.too_long("spec.controller", 250))
        else:
            errors += _domain_prefixed("spec.controller", controller)
        parameters = spec.get("parameters")
        if parameters is not None:
            errors += _reference_errors(parameters, "spec.parameters", required=False)
            errors += _scope_errors(parameters, "spec.parameters")
        return errors

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        parameters = (new.get("spec") or {}).get("parameters")
        if parameters is None:
            return []
        return [fe.required(f"spec.parameters.{key}") for key in ("kind", "name") if not parameters.get(key)]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        errors = [*self.validate_meta_update(new, old), *self.validate_create(new)]
        return errors + checks.immutable(spec.get("controller"), before.get("controller"), "spec.controller")

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec = obj["metadata"], obj.get("spec") or {}
        default = (meta.get("annotations") or {}).get(DEFAULT_INGRESS_CLASS) == "true"
        given = spec.get("parameters")
        text = "<none>"
        if given is not None:
            group = f".{given['apiGroup']}" if given.get("apiGroup") is not None else ""
            text = f"{given.get('kind') or ''}{group}/{given.get('name') or ''}"
        name = meta.get("name") or ""
        created = age(meta.get("creationTimestamp"), now)
        return [f"{name} (default)" if default else name, spec.get("controller") or "", text, created]


def _scope_errors(parameters: Object, place: str) -> list[FieldError]:
    scope, namespace, field = parameters.get("scope"), parameters.get("namespace"), f"{place}.namespace"
    if scope is None:
        return [fe.required(f"{place}.scope")]
    errors = checks.supported(scope, ("Cluster", "Namespace"), f"{place}.scope")
    if scope == "Namespace" and namespace is None:
        errors.append(fe.required(field, "`parameters.scope` is set to 'Namespace'"))
    elif scope == "Namespace":
        errors += [fe.invalid(field, namespace, text) for text in names.name_is_dns_label(str(namespace), False)]
    elif scope == "Cluster" and namespace is not None:
        errors.append(fe.forbidden(field, "`parameters.scope` is set to 'Cluster'"))
    return errors


def _reference_errors(reference: Object, place: str, *, required: bool = True) -> list[FieldError]:
    """A reference to an object of any kind; whether what is `required` is there may be told elsewhere."""
    group, errors = reference.get("apiGroup"), []
    if group is not None:
        errors += checks.dns_subdomain(group, f"{place}.apiGroup")
    for key in ("kind", "name"):
        field, value = f"{place}.{key}", reference.get(key) or ""
        errors += [fe.invalid(field, value, text) for text in names.path_segment_name(value)]
        errors += [fe.required(field)] if required and not value else []
    return errors


def _domain_prefixed(field: str, value: str) -> list[FieldError]:
    domain, slash, path = value.partition("/")
    if not slash or not domain or not path:
        return [fe.invalid(field, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    return [fe.invalid(field, domain, text) for text in names.dns1123_subdomain(domain)]


def _spec_errors(spec: Object) -> list[FieldError]:
    rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
    errors: list[FieldError] = []
    if not rules and backend is None:
        text = "either `defaultBackend` or `rules` must be specified"
        errors.append(fe.invalid("spec", spec.get("rules"), text))
    if backend is not None:
        errors += _backend_errors(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        errors += _rule_errors(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(spec.get("tls") or ()):
        for number, host in enumerate(tls.get("hosts") or ()):
            errors += _host_errors(host, f"spec.tls[{index}].hosts[{number}]")
        if name := tls.get("secretName"):
            texts = names.name_is_dns_subdomain(name, False)
            errors += [fe.invalid(f"spec.tls[{index}].secretName", name, text) for text in texts]
    if (name := spec.get("ingressClassName")) is not None:
        texts = names.name_is_dns_subdomain(name, False)
        errors += [fe.invalid("spec.ingressClassName", name, text) for text in texts]
    return errors


def _host_errors(host: str, field: str) -> list[FieldError]:
    if "*" not in host:
        return checks.dns_subdomain(host, field)
    if host.startswith("*.") and not names.dns1123_subdomain(host[2:]):
        return []
    return [fe.invalid(field, host, names.regex_message(_WILDCARD, _WILDCARD_PATTERN, "*.example.com"))]


def _rule_errors(rule: Object, place: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if host := rule.get("host"):
        if checks.parse_ip(host) is not None:
            errors.append(fe.invalid(f"{place}.host", host, "must be a DNS name, not an IP address"))
        errors += _host_errors(host, f"{place}.host")
    http = rule.get("http")
    if http is None:
        return errors
    paths = http.get("paths") or []
    if not paths:
        errors.append(fe.required(f"{place}.http.paths"))
    for index, path in enumerate(paths):
        errors += _path_errors(path, f"{place}.http.paths[{index}]")
    return errors


def _path_errors(path: Object, place: str) -> list[FieldError]:
    kind, text, field = path.get("pathType"), path.get("path") or "", f"{place}.path"
    if kind is None:
        return [fe.required(f"{place}.pathType", "pathType must be specified")]
    errors: list[FieldError] = []
    if kind not in _PATH_TYPES:
        errors.append(fe.not_supported(f"{place}.pathType", kind, _PATH_TYPES))
    elif not text.startswith("/") and (text or kind != "ImplementationSpecific"):
        errors.append(fe.invalid(field, text, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        errors += [fe.invalid(field, text, f"must not contain '{part}'") for part in _SEQUENCES if part in text]
        errors += [fe.invalid(field, text, f"cannot end with '{end}'") for end in _SUFFIXES if text.endswith(end)]
    return errors + _backend_errors(path.get("backend") or {}, f"{place}.backend")


def _backend_errors(backend: Object, place: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        return [fe.invalid(place, "", "cannot set both resource and service backends")]
    if resource is not None:
        return _reference_errors(resource, f"{place}.resource")
    if service is None:
        return [fe.invalid(place, "", "resource or service backend is required")]
    name, port = service.get("name") or "", service.get("port") or {}
    errors = []
    if name:
        texts = names.name_is_dns_label(name, False)
        errors += [fe.invalid(f"{place}.service.name", name, text) for text in texts]
    else:
        errors.append(fe.required(f"{place}.service.name"))
    number, label = port.get("number") or 0, port.get("name") or ""
    field = f"{place}.service.port"
    if number and label:
        return [*errors, fe.invalid(place, "", "cannot set both port name & port number")]
    if label:
        return errors + checks.port_name(label, f"{field}.name")
    if number:
        return errors + checks.port_number(number, f"{field}.number")
    return [*errors, fe.required(place, "port name or number is required")]
