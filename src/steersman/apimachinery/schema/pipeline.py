"""What a version's schema does to every object of that version: prune, default, validate.

Source: apiextensions `pkg/apiserver/customresource_handler.go` (unstructuredSchemaCoercer, unstructuredDefaulter) and
`pkg/registry/customresource/{strategy,status_strategy,validator}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.schema.check import NO_FIELD, Checker
from steersman.apimachinery.schema.correlation import Correlation
from steersman.apimachinery.schema.defaulting import make_filler
from steersman.apimachinery.schema.embedded import check_embedded, coerce, has_embedded
from steersman.apimachinery.schema.fastpath import valid_test
from steersman.apimachinery.schema.list_types import check_list_types, has_list_types, has_unaddressable_items
from steersman.apimachinery.schema.pruning import clean_test, drop_nulls, prune
from steersman.apimachinery.schema.structural import Node, read_schema

if TYPE_CHECKING:
    from steersman.apimachinery.schema.cel import RuleTree

RULES_SKIPPED = fe.invalid(
    NO_FIELD,
    None,
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
_BLOCKING = frozenset({fe.NOT_SUPPORTED, fe.REQUIRED, fe.TOO_LONG, fe.TOO_MANY, fe.TYPE_INVALID})


class SchemaPipeline:
    """The schema of one served version, compiled; made by `compile_schema`, shared by all requests.

    A request's order is prune, default, validate. Nothing is kept between calls.
    """

    def __init__(self, node: Node, *, preserve_unknown_fields: bool = False) -> None:
        self.node = node
        self._prunes = not preserve_unknown_fields
        self._is_clean = clean_test(node, root=True)
        self._fill = make_filler(node)
        self._is_valid = valid_test(node)
        self._embeds = has_embedded(node)
        self._has_list_types = has_list_types(node)
        self.implies_types = not has_unaddressable_items(node)
        """Whether valid objects have the types that field ownership needs."""
        self._rules = _rule_tree(node) if has_rules(node) else None

    def prune(self, obj: dict[str, Any], *, lenient: bool = False) -> list[str]:
        """Remove in place fields that the schema does not know, and optional nulls that it does not allow.

        The returned paths of unknown fields (`spec.foo`, `spec.list[0].bar`) are sorted, those in the metadata of
        embedded resources last; dropped nulls are not among them. Top-level apiVersion, kind and metadata stay as
        they are. Raises SchemaDecodeError when an embedded resource's apiVersion, kind or metadata has a wrong
        type; `lenient`, for objects read from storage, drops such fields.
        """
        unknown: list[str] = []
        if self._prunes and not self._is_clean(obj):
            prune(obj, self.node, "", unknown, root=True)
            unknown.sort()
            drop_nulls(obj, self.node, root=True)
        if self._embeds:
            strange: list[str] = []
            coerce(obj, self.node, "", strange, lenient=lenient)
            unknown += sorted(strange)
        return unknown

    @property
    def fills(self) -> bool:
        """Whether there are defaults."""
        return self._fill is not None

    def default(self, obj: dict[str, Any]) -> None:
        """Fill in defaults in place, also for nulls where the schema is not nullable. Objects never share them."""
        if self._fill is not None:
            self._fill(obj)

    def is_valid(self, obj: dict[str, Any]) -> bool:
        """Whether an object has what the schema asks for, but for its rules; False also where that is not sure."""
        return self._is_valid(obj)

    def validate(
        self,
        obj: dict[str, Any],
        old: dict[str, Any] | None = None,
        *,
        metadata: Sequence[FieldError] = (),
        scale: Sequence[FieldError] = (),
        instead: Sequence[FieldError] = (),
    ) -> list[FieldError]:
        """All that is wrong with an object; with `old`, the object it replaces, unchanged values are forgiven.

        Values are correlated by field and, in map-type lists, by keys. Embedded resources are judged anew each time;
        duplicates in set and map lists are forgiven when `old` had any. `metadata` and `scale` are what was found wrong
        there: the errors take their places among the others, and can keep rules from being checked as those can. Errors
        `instead` leave values unjudged, but for embedded resources, lists and rules.
        """
        if instead:
            return self._check_structure(list(instead), obj, old)
        if self._is_valid(obj):
            return self._check_rules([*metadata, *scale], obj, old)
        correlation = Correlation(obj, old, self.node) if old is not None else None
        errors = [*metadata, *Checker().check(self.node, obj, "", correlation).errors.values(), *scale]
        return self._check_structure(errors, obj, old)

    def validate_status(
        self,
        obj: dict[str, Any],
        old: dict[str, Any],
        *,
        metadata: Sequence[FieldError] = (),
        scale: Sequence[FieldError] = (),
    ) -> list[FieldError]:
        """All that is wrong with an object written through /status: only `status` is judged, and list types.

        The field paths start with `status`, while the paths in the messages start below it, as upstream has them.
        `metadata` and `scale` are as for `validate`.
        """
        if self._is_valid(obj):
            return self._check_rules([*metadata, *scale], obj, old)
        errors = list(metadata)
        node = self.node.properties.get("status")
        removed = obj.get("status") is None and old.get("status") is None  # null or left out: for upstream no change
        if node is not None and not removed and "status" in obj:
            whole = Correlation(obj, old, self.node)
            errors += Checker("status").check(node, obj["status"], "", whole.key("status")).errors.values()
        errors += scale
        return self._check_rules(errors + self._check_lists(obj, old), obj, old)

    def _check_structure(
        self, errors: list[FieldError], obj: dict[str, Any], old: dict[str, Any] | None
    ) -> list[FieldError]:
        if self._embeds:
            errors += check_embedded(obj, self.node)
        return self._check_rules(errors + self._check_lists(obj, old), obj, old)

    def _check_lists(self, obj: dict[str, Any], old: dict[str, Any] | None) -> list[FieldError]:
        if not self._has_list_types:
            return []
        errors = check_list_types(self.node, obj)
        return errors if errors and not (old is not None and check_list_types(self.node, old)) else []

    def _check_rules(
        self, errors: list[FieldError], obj: dict[str, Any], old: dict[str, Any] | None
    ) -> list[FieldError]:
        """The errors, and what `x-kubernetes-validations` adds to them; every verdict of this class ends here.

        Rules see only objects whose types, required fields, enums and sizes are right; otherwise one error says that
        they were passed over.
        """
        if self._rules is None:
            return errors
        if any(error.type in _BLOCKING for error in errors):
            return [*errors, RULES_SKIPPED]
        return errors + self._rules.check(obj, old)


def _rule_tree(node: Node) -> RuleTree:
    # loaded when a schema has rules: most servers serve built-in kinds at first
    from steersman.apimachinery.schema.cel import RuleTree

    return RuleTree(node)


def has_rules(node: Node) -> bool:
    """Whether a schema, or one below it, has expressions."""
    below = [*node.properties.values(), node.additional_schema, node.items]
    return bool(node.rules) or any(child is not None and has_rules(child) for child in below)


def compile_schema(
    openapi_v3_schema: Mapping[str, Any] | None, *, preserve_unknown_fields: bool = False
) -> SchemaPipeline:
    """Compile a version's `openAPIV3Schema`; None lets anything pass.

    `preserve_unknown_fields` is the CRD's `spec.preserveUnknownFields`: nothing is pruned at all.
    """
    if openapi_v3_schema is None:
        return SchemaPipeline(Node(preserve=True), preserve_unknown_fields=True)
    return SchemaPipeline(read_schema(openapi_v3_schema), preserve_unknown_fields=preserve_unknown_fields)
