"""Pods: status on create, what may change, quality of service, bindings and graceful deletion.

Source: kubernetes `pkg/registry/core/pod/{strategy.go,storage/storage.go}`, `pkg/apis/core/helper/qos/qos.go`,
`pkg/apis/core/validation/validation.go` (ValidatePodCreate, ValidatePodUpdate).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.core.affinity import tolerations_errors
from steersman.api.core.pod_row import pod_row
from steersman.api.core.pod_spec import pod_spec_errors
from steersman.api.core.pod_warnings import name_warnings, pod_warnings
from steersman.api.core.profile_annotations import annotation_changes, annotation_errors, mismatches
from steersman.api.core.profiles import adopt, adoption_warnings
from steersman.api.strategy import Object, Strategy, restore
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import quantity
from steersman.apimachinery.field_errors import FieldError

_UPDATABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)
_SPACE = "must not have leading or trailing whitespace"
_TOLERATION = "existing toleration can not be modified except its tolerationSeconds"
_OWN_CONDITIONS = frozenset({"PodScheduled", "Ready", "Initialized"})


class PodStrategy(BuiltinStrategy):
    def prepare_for_create(self, obj: Object) -> None:
        obj["metadata"]["generation"] = 1
        adopt(obj)
        spec = obj.get("spec") or {}
        status: Object = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastProbeTime": None,
                    "lastTransitionTime": None,
                }
            ]
        obj["status"] = status

    def validate_create(self, obj: Object) -> list[FieldError]:
        errors = [*self.validate_meta(obj), *_spec_errors(obj)]
        spec = obj.get("spec") or {}
        if spec.get("ephemeralContainers"):
            errors.append(fe.forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            text = "cannot be set until all schedulingGates have been cleared"
            errors.append(fe.forbidden("spec.nodeName", text))
        return errors + mismatches(obj["metadata"].get("annotations") or {}, spec, "spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        errors = [*self.validate_meta_update(new, old), *self.validate_meta(new), *_spec_errors(new)]
        errors += annotation_changes(new, old)
        errors += _ephemeral_unchanged(spec, before)
        for key in ("containers", "initContainers"):
            if len(spec.get(key) or ()) != len(before.get(key) or ()):
                return [*errors, fe.forbidden(f"spec.{key}", "pod updates may not add or remove containers")]
        deadline = _deadline_errors(spec, before)
        errors += deadline
        if deadline and spec.get("activeDeadlineSeconds") is not None:
            return errors
        errors += _tolerations_errors(spec.get("tolerations") or (), before.get("tolerations") or ())
        errors += _gates_errors(spec.get("schedulingGates") or (), before.get("schedulingGates") or ())
        if _fixed(spec, before) != _fixed(before, before):
            errors.append(fe.forbidden("spec", _UPDATABLE))
        return errors

    def first_warnings(self, obj: Object) -> list[str]:
        return adoption_warnings(obj)

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        if old is not None:
            return []
        return name_warnings(obj["metadata"].get("name") or "", "the Pod's hostname") + pod_warnings(obj)

    def subresource(self, name: str) -> Strategy:
        """The rules for `status`, for `ephemeralcontainers`, and for the change that a binding makes."""
        if name == "binding":
            return BindingStrategy(namespaced=True)
        if name == "ephemeralcontainers":
            return EphemeralContainersStrategy(self)
        return PodStatusStrategy(self) if name == "status" else super().subresource(name)

    def row(self, obj: Object, now: datetime) -> list[Any]:
        return pod_row(obj, now)


class PodStatusStrategy(StatusStrategy):
    def __init__(self, main: BuiltinStrategy) -> None:
        super().__init__(main)
        self.reset_fields = (("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))

    def prepare_for_update(self, new: Object, old: Object) -> None:
        super().prepare_for_update(new, old)
        restore(new["metadata"], old["metadata"], "ownerReferences")
        status, before = new.get("status") or {}, old.get("status") or {}
        if not status.get("qosClass") and before.get("qosClass"):
            new["status"] = {**status, "qosClass": before["qosClass"]}

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = super().validate_update(new, old) + annotation_changes(new, old)
        status, before = new.get("status") or {}, old.get("status") or {}
        for index, condition in enumerate(status.get("conditions") or ()):
            kind = condition.get("type") or ""
            if kind not in _OWN_CONDITIONS:
                errors += checks.qualified_name(kind, f"status.conditions[{index}].Type")
        nominated = status.get("nominatedNodeName")
        if nominated:
            errors += checks.dns_subdomain(nominated, "status.nominatedNodeName")
        errors += checks.immutable(status.get("qosClass"), before.get("qosClass"), "status.qosClass")
        for key in ("podIPs", "hostIPs"):
            errors += _addresses_errors(status.get(key) or (), f"status.{key}")
        return errors


class EphemeralContainersStrategy(Strategy):
    """Updates through `/ephemeralcontainers`: such containers may be added, and nothing else changed."""

    def __init__(self, main: PodStrategy) -> None:
        super().__init__(namespaced=True)
        self.main = main

    def default(self, obj: Object) -> None:
        self.main.default(obj)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        spec = dict(old.get("spec") or {})
        restore(spec, new.get("spec") or {}, "ephemeralContainers")
        for key in ("deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences"):
            restore(new["metadata"], old["metadata"], key)
        changed = spec != old.get("spec")
        new["spec"] = spec
        restore(new, old, "status")
        if changed:
            new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = [*self.main.validate_meta_update(new, old), *_spec_errors(new), *annotation_changes(new, old)]
        current = {item.get("name"): item for item in new["spec"].get("ephemeralContainers") or ()}
        for container in (old.get("spec") or {}).get("ephemeralContainers") or ():
            name = container.get("name")
            if name not in current:
                text = f"existing ephemeral containers {fe.format_value(name)} may not be removed\n"
                errors.append(fe.forbidden("spec.ephemeralContainers", text))
            elif current[name] != container:
                text = f"existing ephemeral containers {fe.format_value(name)} may not be changed\n"
                errors.append(fe.forbidden("spec.ephemeralContainers", text))
        return errors

    def merge_errors(self, errors: list[FieldError]) -> list[FieldError]:
        return self.main.merge_errors(errors)


class BindingStrategy(Strategy):
    """What a binding changes is made by the server, and judged by `binding_errors`."""


def grace_period(pod: Object, wanted: int | None) -> int:
    """How long, in seconds, a Pod is given to end: what was asked, or its own setting; 0 when nothing runs."""
    spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase")
    if not spec.get("nodeName") or phase in ("Failed", "Succeeded"):
        return 0
    period = wanted if wanted is not None else spec.get("terminationGracePeriodSeconds") or 0
    return 1 if period < 0 else period


def binding_errors(binding: Object) -> list[FieldError]:
    target = binding.get("target") or {}
    errors: list[FieldError] = []
    if target.get("kind") not in (None, "", "Node"):
        errors.append(fe.not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        errors.append(fe.required("target.name"))
    return errors


def bind(pod: Object, binding: Object, now: str) -> None:
    """Place a Pod on the node that a Binding names, changing its top level."""
    pod["spec"] = {**(pod.get("spec") or {}), "nodeName": binding["target"]["name"]}
    for key in ("annotations", "labels"):
        if given := binding["metadata"].get(key):
            merged = {**(pod["metadata"].get(key) or {}), **given}
            pod["metadata"][key] = dict(sorted(merged.items()))
    status = pod.get("status") or {}
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    others = [item for item in status.get("conditions") or () if item.get("type") != "PodScheduled"]
    pod["status"] = {**status, "conditions": [*others, condition]}


def quality_of_service(spec: Object) -> str:
    """BestEffort, Burstable or Guaranteed, by cpu and memory of all containers."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    if spec.get("resources"):
        containers = [{"resources": spec["resources"]}]
    any_set, guaranteed = False, True
    for container in containers:
        resources = container.get("resources") or {}
        requests, limits = (_compute(resources.get(key) or {}) for key in ("requests", "limits"))
        any_set = any_set or bool(requests or limits)
        guaranteed = guaranteed and len(limits) == 2 and {**limits, **requests} == limits
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def _compute(resources: Mapping[str, str]) -> dict[str, quantity.Quantity]:
    zero = quantity.parse("0")
    found = {key: quantity.parse(resources[key]) for key in ("cpu", "memory") if key in resources}
    return {key: value for key, value in found.items() if zero < value}


def _spec_errors(pod: Object) -> list[FieldError]:
    spec = pod.get("spec") or {}
    errors = annotation_errors(pod["metadata"].get("annotations") or {}, spec, "metadata.annotations")
    errors += pod_spec_errors(spec, "spec", pod_name=pod["metadata"].get("name") or "", is_pod=True)
    if not spec.get("serviceAccountName"):
        text = "must not be specified when serviceAccountName is not set"
        for index, volume in enumerate(spec.get("volumes") or ()):
            for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    field = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                    errors.append(fe.forbidden(field, text))
    errors += checks.nonnegative(spec.get("terminationGracePeriodSeconds"), "spec.terminationGracePeriodSeconds")
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                errors.append(fe.invalid(f"spec.{key}[{index}].image", image, _SPACE))
    return errors


def _ephemeral_unchanged(spec: Object, before: Object) -> list[FieldError]:
    if (spec.get("ephemeralContainers") or []) == (before.get("ephemeralContainers") or []):
        return []
    return [fe.forbidden("spec.ephemeralContainers", "may only be changed through the ephemeralcontainers subresource")]


def _deadline_errors(spec: Object, before: Object) -> list[FieldError]:
    new, old = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    field = "spec.activeDeadlineSeconds"
    if new is None:
        text = "must not update from a positive integer to nil value"
        return [fe.invalid(field, None, text)] if old is not None else []
    if old is not None and old < new:
        return [fe.invalid(field, new, "must be less than or equal to previous value")]
    return []


def _tolerations_errors(new: Sequence[Object], old: Sequence[Object]) -> list[FieldError]:
    def bare(toleration: Object) -> Object:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [bare(toleration) for toleration in new]
    if any(bare(toleration) not in kept for toleration in old):
        return [fe.forbidden("spec.tolerations", _TOLERATION)]
    return tolerations_errors(new, "spec.tolerations")


def _gates_errors(new: Sequence[Object], old: Sequence[Object]) -> list[FieldError]:
    known = {gate.get("name") for gate in old}
    return [
        fe.forbidden(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(new)
        if gate.get("name") not in known
    ]


def _fixed(spec: Object, old: Object) -> Object:
    """What of a spec may not change."""
    loose = {"activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"}
    out = {key: value for key, value in spec.items() if key not in loose and value not in (None, [], {}, "")}
    for key in ("containers", "initContainers"):
        if out.get(key):
            out[key] = [{**container, "image": ""} for container in out[key]]
    grace = old.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and out.get("terminationGracePeriodSeconds") == 1:
        out["terminationGracePeriodSeconds"] = grace
    return out


def _addresses_errors(addresses: Sequence[Object], place: str) -> list[FieldError]:
    errors = []
    for index, address in enumerate(addresses):
        errors += checks.ip(address.get("ip") or "", f"{place}[{index}]")
    families = [parsed.version for item in addresses if (parsed := checks.parse_ip(item.get("ip") or ""))]
    if len(addresses) > 2 or len(set(families)) < len(families):
        shown = [item.get("ip") or "" for item in addresses]
        errors.append(fe.invalid(place, shown, "may specify no more than one IP for each IP family"))
    return errors
