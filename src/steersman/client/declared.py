"""What a model class may say of its kind besides the name, for the CustomResourceDefinition that is made from it.

Source: `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

ColumnType = Literal["integer", "number", "string", "boolean", "date"]
RuleReason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule of the schema (`x-kubernetes-validations`). `at` is where self is: "" for the object, "spec"."""

    rule: str
    message: str | None = None
    at: str = ""
    reason: RuleReason | None = None
    field_path: str | None = None
    message_expression: str | None = None
    optional_old_self: bool = False

    def wire(self) -> dict[str, Any]:
        """The rule as it stands in a schema."""
        said = {
            "rule": self.rule,
            "message": self.message,
            "messageExpression": self.message_expression,
            "reason": self.reason,
            "fieldPath": self.field_path,
            "optionalOldSelf": self.optional_old_self or None,
        }
        return {key: value for key, value in said.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. A `priority` above 0 shows it with `-o wide` only."""

    name: str
    path: str
    type: ColumnType = "string"
    description: str | None = None
    format: str | None = None
    priority: int = 0

    def wire(self) -> dict[str, Any]:
        """The column as it stands in a definition."""
        found: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.format:
            found["format"] = self.format
        if self.description:
            found["description"] = self.description
        if self.priority:
            found["priority"] = self.priority
        return found


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale subresource: paths to the wanted number, the number that there is, and the Pods' selector as a text."""

    spec_path: str
    status_path: str
    selector: str | None = None

    def wire(self) -> dict[str, Any]:
        """The subresource as it stands in a definition."""
        found = {"specReplicasPath": self.spec_path, "statusReplicasPath": self.status_path}
        return found | ({"labelSelectorPath": self.selector} if self.selector else {})


@dataclass(frozen=True, slots=True)
class Declaration:
    """All that `@custom_resource` was told for the definition; `None` for `status` means: if the model has one."""

    singular: str | None = None
    list_kind: str | None = None
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    columns: Sequence[Column] = ()
    scale: Scale | None = None
    selectable_fields: Sequence[str] = ()
    status: bool | None = None
    rules: Sequence[Rule] = ()
    storage: bool | None = None
    served: bool = True
    deprecated: bool | str = False
