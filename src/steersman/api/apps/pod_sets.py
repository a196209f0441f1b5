"""What workloads with a selector and a pod template have in common.

Source: kubernetes `pkg/apis/apps/validation/validation.go`, `pkg/registry/apps/*/strategy.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.core.pod_spec import template_errors
from steersman.api.core.pod_warnings import POD_NAMES, generation_changed, name_warnings, template_warnings
from steersman.api.strategy import Object, Strategy
from steersman.api.tables import age, container_cells
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import selectors
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.selectors import LabelSelector, SelectorError

MISSES = "`selector` does not match template `labels`"


class PodSetStrategy(BuiltinStrategy):
    """A kind whose pods are made from spec.template and found by spec.selector, which never changes.

    `noun` is how errors call the kind, `unfit` what they say of a selector that is none (None: nothing more), `pods_of`
    the kind that owns its pods when that is another. `counts` are the numbers of its status, of which none may be below
    zero, and the later ones no greater than the first.
    """

    noun = ""
    unfit: str | None = "invalid label selector"
    pods_of = ""
    counts: Sequence[str] = ()

    def validate_content(self, obj: Object) -> list[FieldError]:
        return self.spec_errors(obj.get("spec") or {})

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(new, old)
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        selector, fixed = (selectors.quoted(part.get("selector")) for part in (spec, before))
        return errors + checks.immutable(selector, fixed, "spec.selector")

    def spec_errors(self, spec: Object) -> list[FieldError]:
        """What is wrong with a spec."""
        return self.selector_errors(spec) + self.template_errors(spec)

    def selector_errors(self, spec: Object) -> list[FieldError]:
        selector = spec.get("selector")
        if selector is None:
            return [fe.required("spec.selector")]
        errors = selectors.validate_object(selector, "spec.selector")
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(
                fe.invalid("spec.selector", selectors.quoted(selector), f"empty selector is invalid for {self.noun}")
            )
        return errors

    def template_errors(self, spec: Object) -> list[FieldError]:
        try:
            selector = selectors.from_object(spec.get("selector"))
        except SelectorError:
            shown = selectors.quoted(spec.get("selector"))
            return [fe.invalid("spec.selector", shown, self.unfit)] if self.unfit is not None else []
        template = spec.get("template") or {}
        errors = selector_misses(selector, spec.get("selector"), template)
        errors += template_errors(template, "spec.template")
        return errors + always_restarted(template, self.pods_of or self.kind.kind)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        template = (obj.get("spec") or {}).get("template")
        if old is not None:
            return template_warnings(template, "spec.template") if generation_changed(obj, old) else []
        found = name_warnings(obj["metadata"].get("name") or "", POD_NAMES)
        return found + template_warnings(template, "spec.template")

    def subresource(self, name: str) -> Strategy:
        return PodSetStatusStrategy(self) if name == "status" else super().subresource(name)


class PodSetStatusStrategy(StatusStrategy):
    main: PodSetStrategy

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(new, old)
        status = new.get("status") or {}
        numbers = {key: status.get(key) or 0 for key in self.main.counts}
        for key in ("observedGeneration", *numbers):
            errors += checks.nonnegative(status.get(key) or 0, f"status.{key}")
        if "replicas" in numbers:
            errors += _comparisons(numbers)
        count, before = status.get("collisionCount"), (old.get("status") or {}).get("collisionCount")
        errors += checks.nonnegative(count, "status.collisionCount")
        if before is not None and (count is None or count < before):
            errors.append(fe.invalid("status.collisionCount", count or 0, "cannot be decremented"))
        return errors


def _comparisons(numbers: Mapping[str, int]) -> list[FieldError]:
    errors = [
        fe.invalid(f"status.{key}", value, "cannot be greater than status.replicas")
        for key, value in numbers.items()
        if value > numbers["replicas"] and key not in ("replicas", "unavailableReplicas", "terminatingReplicas")
    ]
    available, ready = numbers.get("availableReplicas", 0), numbers.get("readyReplicas", 0)
    if available > ready:
        errors.append(fe.invalid("status.availableReplicas", available, "cannot be greater than readyReplicas"))
    return errors


def replica_errors(spec: Object) -> list[FieldError]:
    """What is wrong with the numbers of a spec that asks for so many pods."""
    errors = checks.nonnegative(spec.get("replicas"), "spec.replicas")
    return errors + checks.nonnegative(spec.get("minReadySeconds") or 0, "spec.minReadySeconds")


def replica_row(obj: Object, now: datetime, selector: Callable[[Any], str]) -> list[Any]:
    """The row of a kind that keeps so many pods; `selector` writes its spec.selector."""
    meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    template = (spec.get("template") or {}).get("spec") or {}
    return [
        meta.get("name") or "",
        spec.get("replicas") or 0,
        status.get("replicas") or 0,
        status.get("readyReplicas") or 0,
        age(meta.get("creationTimestamp"), now),
        *container_cells(template.get("containers") or []),
        selector(spec.get("selector")),
    ]


def selector_misses(selector: LabelSelector, given: Any, template: Object) -> list[FieldError]:
    """The error for a template whose labels its own selector does not select; an empty selector is not asked."""
    labels = (template.get("metadata") or {}).get("labels")
    empty = given is not None and not given.get("matchLabels") and not given.get("matchExpressions")
    if empty or selector.matches(labels or {}):
        return []
    return [fe.invalid("spec.template.metadata.labels", labels, MISSES)]


def always_restarted(template: Object, kind: str) -> list[FieldError]:
    """Pods of these kinds run for good."""
    spec = template.get("spec") or {}
    errors = []
    if spec.get("restartPolicy") != "Always":
        policy = spec.get("restartPolicy") or ""
        errors.append(fe.not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        text = f"activeDeadlineSeconds in {kind} is not Supported"
        errors.append(fe.forbidden("spec.template.spec.activeDeadlineSeconds", text))
    return errors


def selector_text(selector: Any) -> str:
    """A selector as tables show it."""
    try:
        return str(selectors.from_object(selector)) or "<none>"
    except SelectorError:
        return "<invalid>"


def labels_text(labels: Mapping[str, str] | None) -> str:
    """Labels as tables show them: sorted, `<none>` when there are none."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"
