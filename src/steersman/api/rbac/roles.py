"""Roles and ClusterRoles: what a rule must say, and aggregation.

Source: kubernetes `pkg/apis/rbac/validation/validation.go`, `pkg/apis/rbac/v1/zz_generated.validations.go`.
"""

from __future__ import annotations

from steersman.api.builtin import BuiltinStrategy
from steersman.api.strategy import Object
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.selectors import validate_object


class RoleStrategy(BuiltinStrategy):
    def name_validator(self, name: str, prefix: bool) -> list[str]:
        return names.name_is_path_segment(name, prefix)

    def validate_content(self, obj: Object) -> list[FieldError]:
        return [
            error
            for index, rule in enumerate(obj.get("rules") or ())
            for error in _rule_errors(rule, f"rules[{index}]", namespaced=self.namespaced)
        ]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_create(new), *self.validate_meta_update(new, old)]

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        return [
            fe.required(f"rules[{index}].verbs")
            for index, rule in enumerate(new.get("rules") or ())
            if not rule.get("verbs")
        ]


class ClusterRoleStrategy(RoleStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        return [*super().validate_content(obj), *self._aggregation_errors(obj, lenient=False)]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        lenient = any(error for error in self._aggregation_errors(old, lenient=False) if error.type != fe.REQUIRED)
        content = [*super().validate_content(new), *self._aggregation_errors(new, lenient=lenient)]
        return [*self.validate_meta(new), *content, *self.validate_meta_update(new, old)]

    def _aggregation_errors(self, obj: Object, *, lenient: bool) -> list[FieldError]:
        rule = obj.get("aggregationRule")
        if rule is None:
            return []
        field = "aggregationRule.clusterRoleSelectors"
        selectors = rule.get("clusterRoleSelectors") or []
        if not selectors:
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            return [fe.required(field, detail)]
        errors: list[FieldError] = []
        for index, selector in enumerate(selectors):
            found = validate_object(selector, f"{field}[{index}]", allow_invalid_values=lenient)
            errors += found
            if found:
                errors.append(fe.invalid(f"{field}[{index}]", None, "invalid label selector."))
        return errors


def _rule_errors(rule: Object, field: str, *, namespaced: bool) -> list[FieldError]:
    urls = rule.get("nonResourceURLs") or []
    groups, resources = rule.get("apiGroups") or [], rule.get("resources") or []
    errors: list[FieldError] = []
    if urls:
        here = f"{field}.nonResourceURLs"
        if namespaced:
            errors.append(fe.invalid(here, urls, "namespaced rules cannot apply to non-resource URLs"))
        if groups or resources or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(fe.invalid(here, urls, detail))
        return errors
    if not groups:
        errors.append(fe.required(f"{field}.apiGroups", "resource rules must supply at least one api group"))
    if not resources:
        errors.append(fe.required(f"{field}.resources", "resource rules must supply at least one resource"))
    return errors
