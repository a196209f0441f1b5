"""StatefulSets, DaemonSets and ReplicationControllers.

Source: kubernetes `pkg/registry/apps/{statefulset,daemonset}/strategy.go`,
`pkg/registry/core/replicationcontroller/strategy.go`, `pkg/apis/apps/validation/validation.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from steersman.api import checks
from steersman.api.apps.deployment import internal_rolling, internal_strategy
from steersman.api.apps.pod_sets import (
    MISSES,
    PodSetStrategy,
    always_restarted,
    labels_text,
    replica_errors,
    replica_row,
    selector_text,
)
from steersman.api.core.claim_spec import claim_spec_errors
from steersman.api.core.pod_spec import template_errors
from steersman.api.core.pod_warnings import claim_warnings, generation_changed, template_warnings
from steersman.api.strategy import Object
from steersman.api.tables import age, container_cells
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError

TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_ALL_REVISIONS = (
    "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
)
_RETENTION = ("Retain", "Delete")


class StatefulSetStrategy(PodSetStrategy):
    noun = "statefulset"
    unfit = ""
    counts = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")

    def name_validator(self, name: str, prefix: bool) -> list[str]:
        return names.name_is_dns_label(name, prefix)

    def spec_errors(self, spec: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        management = spec.get("podManagementPolicy") or ""
        if management not in ("OrderedReady", "Parallel"):
            text = "must be 'OrderedReady' or 'Parallel'"
            errors.append(fe.invalid("spec.podManagementPolicy", management, text))
        errors += _rolling_errors(spec.get("updateStrategy") or {})
        retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
        for key in ("whenDeleted", "whenScaled"):
            field = f"spec.persistentVolumeClaimRetentionPolicy.{key}"
            errors += checks.supported(retention.get(key), _RETENTION, field)
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            errors += claim_spec_errors(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
        errors += checks.nonnegative(spec.get("replicas"), "spec.replicas")
        errors += checks.nonnegative(spec.get("minReadySeconds") or 0, "spec.minReadySeconds")
        errors += checks.nonnegative((spec.get("ordinals") or {}).get("start"), "spec.ordinals.start")
        if spec.get("serviceName"):
            errors += checks.dns_label(spec["serviceName"], "spec.serviceName")
        return errors + self.selector_errors(spec) + self.template_errors(_with_claims(spec))

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(new, old)
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        for key in ("volumeClaimTemplates", "serviceName", "podManagementPolicy"):
            errors += checks.immutable(spec.get(key), before.get(key), f"spec.{key}")
        return errors

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        spec, changed = obj.get("spec") or {}, old is None or generation_changed(obj, old)
        found = template_warnings(spec.get("template"), "spec.template") if changed else []
        below = "" if old is None else ".Spec"  # as upstream spells it
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            found += claim_warnings(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}]{below}")
        if (spec.get("revisionHistoryLimit") or 0) < 0:
            found.append(_ALL_REVISIONS)
        return found

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        template = (spec.get("template") or {}).get("spec") or {}
        return [
            meta.get("name") or "",
            f"{status.get('readyReplicas') or 0}/{spec.get('replicas') or 0}",
            age(meta.get("creationTimestamp"), now),
            *container_cells(template.get("containers") or []),
        ]


class DaemonSetStrategy(PodSetStrategy):
    noun = "daemonset"
    unfit = None
    counts = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
    )

    def default(self, obj: Object) -> None:
        super().default(obj)
        annotations = obj["metadata"].get("annotations") or {}
        if TEMPLATE_GENERATION not in annotations:
            merged = {**annotations, TEMPLATE_GENERATION: "0"}
            obj["metadata"]["annotations"] = dict(sorted(merged.items()))

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        _set_template_generation(obj, 1)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        super().prepare_for_update(new, old)
        generation = _template_generation(old)
        changed = (new.get("spec") or {}).get("template") != (old.get("spec") or {}).get("template")
        _set_template_generation(new, generation + changed)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        if old is not None and _template_generation(obj) == _template_generation(old):
            return []
        return template_warnings((obj.get("spec") or {}).get("template"), "spec.template")

    def selector_errors(self, spec: Object) -> list[FieldError]:
        return [] if spec.get("selector") is None else super().selector_errors(spec)

    def spec_errors(self, spec: Object) -> list[FieldError]:
        errors = super().spec_errors(spec)
        errors += checks.nonnegative(spec.get("minReadySeconds") or 0, "spec.minReadySeconds")
        errors += _daemon_strategy_errors(spec.get("updateStrategy") or {})
        return errors + checks.nonnegative(spec.get("revisionHistoryLimit"), "spec.revisionHistoryLimit")

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        template = (spec.get("template") or {}).get("spec") or {}
        return [
            meta.get("name") or "",
            status.get("desiredNumberScheduled") or 0,
            status.get("currentNumberScheduled") or 0,
            status.get("numberReady") or 0,
            status.get("updatedNumberScheduled") or 0,
            status.get("numberAvailable") or 0,
            labels_text(template.get("nodeSelector")),
            age(meta.get("creationTimestamp"), now),
            *container_cells(template.get("containers") or []),
            selector_text(spec.get("selector")),
        ]


class ReplicationControllerStrategy(PodSetStrategy):
    default_delete_policy: ClassVar[str] = "orphan"
    counts = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_meta_update(new, old), *self.validate_content(new)]

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        """Upstream judges the template that an update replaces, not the new one."""
        if old is None:
            return super().warnings(obj)
        template = (old.get("spec") or {}).get("template")
        return template_warnings(template, "spec.template") if generation_changed(obj, old) else []

    def spec_errors(self, spec: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        selector, template = spec.get("selector") or {}, spec.get("template")
        if not selector:
            errors.append(fe.required("spec.selector"))
        if template is None:
            return [*errors, fe.required("spec.template")]
        labels = (template.get("metadata") or {}).get("labels") or {}
        if not selector.items() <= labels.items():
            errors.append(fe.invalid("spec.template.metadata.labels", labels or None, MISSES))
        errors += template_errors(template, "spec.template")
        return errors + always_restarted(template, self.kind.kind)

    def validate_declared(self, new: Object, old: Object | None) -> list[FieldError]:
        return replica_errors(new.get("spec") or {})

    def row(self, obj: Object, now: datetime) -> list[Any]:
        return replica_row(obj, now, labels_text)


def _rolling_errors(strategy: Object) -> list[FieldError]:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    place = "spec.updateStrategy"
    if kind == "OnDelete":
        text = "only allowed for updateStrategy 'RollingUpdate'"
        return [fe.invalid(f"{place}.rollingUpdate", internal_rolling(rolling), text)] if rolling is not None else []
    if kind != "RollingUpdate":
        text = "must be 'RollingUpdate' or 'OnDelete'"
        return [fe.invalid(place, internal_strategy(strategy), text)] if kind else [fe.required(place)]
    if rolling is None:
        return []
    errors = checks.nonnegative(rolling.get("partition") or 0, f"{place}.rollingUpdate.partition")
    unavailable, field = rolling.get("maxUnavailable"), f"{place}.rollingUpdate.maxUnavailable"
    if unavailable is not None:
        errors += checks.int_or_percent(unavailable, field)
        if checks.amount(unavailable) == 0:
            errors.append(fe.invalid(field, unavailable, "cannot be 0"))
        errors += checks.at_most_100_percent(unavailable, field)
    return errors


def _with_claims(spec: Object) -> Object:
    """The spec with a volume for each claim template, which the template's containers may mount."""
    claims = [claim["metadata"].get("name") or "" for claim in spec.get("volumeClaimTemplates") or ()]
    template = spec.get("template") or {}
    pod = {key: value for key, value in (template.get("spec") or {}).items() if key not in ("subdomain", "hostname")}
    if claims:
        made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
        pod["volumes"] = made + [volume for volume in pod.get("volumes") or () if volume.get("name") not in claims]
    return {**spec, "template": {**template, "spec": pod}}


def _daemon_strategy_errors(strategy: Object) -> list[FieldError]:
    kind, place = strategy.get("type"), "spec.updateStrategy.rollingUpdate"
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        allowed = ("RollingUpdate", "OnDelete")
        return [fe.not_supported("spec.updateStrategy", internal_strategy(strategy), allowed)]
    rolling = strategy.get("rollingUpdate") or {}
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    errors = checks.int_or_percent(unavailable, f"{place}.maxUnavailable")
    errors += checks.int_or_percent(surge, f"{place}.maxSurge")
    errors += checks.at_most_100_percent(unavailable, f"{place}.maxUnavailable")
    errors += checks.at_most_100_percent(surge, f"{place}.maxSurge")
    some, more = checks.amount(unavailable) != 0, checks.amount(surge) != 0
    if some and more:
        errors.append(fe.invalid(f"{place}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not some and not more:
        errors.append(fe.required(f"{place}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def _template_generation(obj: Object) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION) or ""
    return int(text) if text.isascii() and text.isdigit() else 0


def _set_template_generation(obj: Object, generation: int) -> None:
    annotations = {**(obj["metadata"].get("annotations") or {}), TEMPLATE_GENERATION: str(generation)}
    obj["metadata"]["annotations"] = dict(sorted(annotations.items()))
