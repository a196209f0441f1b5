"""RoleBindings and ClusterRoleBindings: subjects, and a roleRef that never changes.

Source: kubernetes `pkg/apis/rbac/{validation/validation.go,v1/defaults.go,v1/zz_generated.validations.go}`,
`pkg/printers/internalversion/printers.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from steersman.api.builtin import BuiltinStrategy
from steersman.api.strategy import Object
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError

GROUP = "rbac.authorization.k8s.io"


class RoleBindingStrategy(BuiltinStrategy):
    role_kinds: ClassVar[tuple[str, ...]] = ("Role", "ClusterRole")

    def name_validator(self, name: str, prefix: bool) -> list[str]:
        return names.name_is_path_segment(name, prefix)

    def validate_content(self, obj: Object) -> list[FieldError]:
        errors = self._role_ref_errors(obj.get("roleRef") or {})
        for index, subject in enumerate(obj.get("subjects") or ()):
            errors += _subject_errors(subject, f"subjects[{index}]", namespaced=self.namespaced)
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = [*self.validate_create(new), *self.validate_meta_update(new, old)]
        return errors + self._role_ref_changed(new, old)

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        return [
            fe.required(f"subjects[{index}].name")
            for index, subject in enumerate(new.get("subjects") or ())
            if not subject.get("name")
        ]

    def _role_ref_errors(self, reference: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        group, kind, name = (reference.get(key) or "" for key in ("apiGroup", "kind", "name"))
        if group != GROUP:
            errors.append(fe.not_supported("roleRef.apiGroup", group, (GROUP,)))
        if kind not in self.role_kinds:
            errors.append(fe.not_supported("roleRef.kind", kind, self.role_kinds))
        if not name:
            errors.append(fe.required("roleRef.name"))
        return errors + [fe.invalid("roleRef.name", name, text) for text in names.path_segment_name(name)]

    def _role_ref_changed(self, new: Object, old: Object) -> list[FieldError]:
        """The value is quoted by the names that its fields have in Go."""
        if new.get("roleRef") == old.get("roleRef"):
            return []
        reference = new.get("roleRef") or {}
        shown = fe.Struct((name, reference.get(key) or "") for name, key in _GO_NAMES)
        return [fe.invalid("roleRef", shown, "field is immutable")]

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, reference = obj["metadata"], obj.get("roleRef") or {}
        subjects = obj.get("subjects") or []
        users, groups = (_named(subjects, kind) for kind in ("User", "Group"))
        accounts = ", ".join(
            f"{subject.get('namespace') or ''}/{subject.get('name') or ''}"
            for subject in subjects
            if subject.get("kind") == "ServiceAccount"
        )
        role = f"{reference.get('kind') or ''}/{reference.get('name') or ''}"
        return [meta.get("name") or "", role, age(meta.get("creationTimestamp"), now), users, groups, accounts]


class ClusterRoleBindingStrategy(RoleBindingStrategy):
    role_kinds: ClassVar[tuple[str, ...]] = ("ClusterRole",)


_GO_NAMES = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))


def _named(subjects: list[Object], kind: str) -> str:
    return ", ".join(subject.get("name") or "" for subject in subjects if subject.get("kind") == kind)


def _subject_errors(subject: Object, field: str, *, namespaced: bool) -> list[FieldError]:
    kind, name, group = (subject.get(key) or "" for key in ("kind", "name", "apiGroup"))
    errors: list[FieldError] = []
    match kind:
        case "ServiceAccount":
            if name:
                errors += [fe.invalid(f"{field}.name", name, text) for text in names.dns1123_subdomain(name)]
            if group:
                errors.append(fe.not_supported(f"{field}.apiGroup", group, ("",)))
            if not namespaced and not subject.get("namespace"):
                errors.append(fe.required(f"{field}.namespace"))
        case "User" | "Group":
            if group != GROUP:
                errors.append(fe.not_supported(f"{field}.apiGroup", group, (GROUP,)))
        case _:
            errors.append(fe.not_supported(f"{field}.kind", kind, ("ServiceAccount", "User", "Group")))
    return errors
