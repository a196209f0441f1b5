"""Jobs and CronJobs: the selector and labels that a Job makes from its uid, and what may change.

Source: kubernetes `pkg/registry/batch/{job,cronjob}/strategy.go`, `pkg/apis/batch/validation/validation.go`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from steersman.api import checks
from steersman.api.apps.pod_sets import MISSES, selector_text
from steersman.api.batch.policies import failure_policy_errors, index_errors, success_policy_errors
from steersman.api.batch.schedule import schedule_errors, time_zone_errors
from steersman.api.builtin import BuiltinStrategy
from steersman.api.core.pod_spec import template_errors
from steersman.api.core.pod_warnings import POD_NAMES, generation_changed, name_warnings, template_warnings
from steersman.api.strategy import Object
from steersman.api.tables import age, container_cells, human_duration
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import names, selectors, times
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.meta import domain_prefixed_path
from steersman.apimachinery.selectors import SelectorError

NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")
UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NUMBERS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_IMMUTABLE = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_MANY_INDEXES = (
    "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes "
    "might not be able to track completedIndexes when a big number of indexes fail"
)
_ZONE_IN_SCHEDULE = (
    "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see "
    "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
)
_INDEXED_ONLY = "requires indexed completion mode"
_MAX_MANAGER = 63
_REPLACEMENT = ("Failed", "TerminatingOrFailed")
_STATES = ("Complete", "Failed", "Terminating", "Suspended", "FailureTarget", "SuccessCriteriaMet")


class JobStrategy(BuiltinStrategy):
    default_delete_policy: ClassVar[str] = "orphan"

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        spec, own = obj.get("spec") or {}, obj["metadata"].get("labels")
        shared = own is not None and own is _template_labels(spec)
        if not spec.get("manualSelector"):
            obj["spec"] = spec = _with_selector(spec, obj["metadata"])
        labels = _template_labels(spec)
        if labels and (shared or not own):  # labels that were taken from the template get what is added to these
            obj["metadata"]["labels"] = labels

    def validate_create(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        errors = [*self.validate_meta(obj), *_generated_errors(obj), *_spec_errors(spec), *_selector_errors(spec)]
        completions = spec.get("completions")
        if spec.get("completionMode") == "Indexed" and completions:
            name = obj["metadata"].get("name") or ""
            hostname = f"{name}-{completions - 1}"
            if names.dns1123_label(hostname):
                text = f"will not able to create pod with invalid DNS label: {hostname}"
                errors.append(fe.invalid("metadata.name", name, text))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        errors = [*self.validate_meta_update(new, old), *_spec_errors(spec), *_selector_errors(spec)]
        errors += _completions_errors(spec, before)
        selector, fixed = (selectors.quoted(part.get("selector")) for part in (spec, before))
        errors += checks.immutable(selector, fixed, "spec.selector")
        if _fixed_template(new, old) != _fixed_template(old, old):
            errors.append(fe.invalid("spec.template", spec.get("template"), "field is immutable"))
        for key in _IMMUTABLE:
            errors += checks.immutable(spec.get(key), before.get(key), f"spec.{key}")
        return errors

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        if old is not None:
            return _job_warnings(obj.get("spec") or {}, "spec") if generation_changed(obj, old) else []
        name = obj["metadata"].get("name") or ""
        return name_warnings(name, POD_NAMES) + _job_warnings(obj.get("spec") or {}, "spec")

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        template = (spec.get("template") or {}).get("spec") or {}
        done, wanted, parallel = status.get("succeeded") or 0, spec.get("completions"), spec.get("parallelism") or 0
        completions = f"{done}/{wanted}" if wanted is not None else f"{done}/1"
        if wanted is None and parallel > 1:
            completions = f"{done}/1 of {parallel}"
        return [
            meta.get("name") or "",
            _state(meta, status),
            completions,
            _duration(status, now),
            age(meta.get("creationTimestamp"), now),
            *container_cells(template.get("containers") or []),
            selector_text(spec.get("selector")),
        ]


def _job_warnings(spec: Object, place: str) -> list[str]:
    found = []
    many = (spec.get("completions") or 0) > 100_000 and (spec.get("parallelism") or 0) > 10_000
    if spec.get("completionMode") == "Indexed" and many:
        found.append(f"{place}: {_MANY_INDEXES}")
    return found + template_warnings(spec.get("template"), f"{place}.template")


class CronJobStrategy(BuiltinStrategy):
    def validate_content(self, obj: Object) -> list[FieldError]:
        return _cron_errors(obj.get("spec") or {}, None)

    def validate_create(self, obj: Object) -> list[FieldError]:
        errors = super().validate_create(obj)
        name = obj["metadata"].get("name") or ""
        if len(name.encode()) > 52:
            errors.append(fe.invalid("metadata.name", name, "must be no more than 52 characters"))
        return errors

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_meta_update(new, old), *_cron_errors(new.get("spec") or {}, old.get("spec") or {})]

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        spec, place = obj.get("spec") or {}, "spec.jobTemplate.spec"
        job = (spec.get("jobTemplate") or {}).get("spec") or {}
        if old is None:
            return name_warnings(obj["metadata"].get("name") or "", POD_NAMES) + _job_warnings(job, place)
        found = _job_warnings(job, place) if generation_changed(obj, old) else []
        return found + ([_ZONE_IN_SCHEDULE] if "TZ" in (spec.get("schedule") or "") else [])

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        job = (spec.get("jobTemplate") or {}).get("spec") or {}
        template = (job.get("template") or {}).get("spec") or {}
        last = status.get("lastScheduleTime")
        suspended = spec.get("suspend")
        zone = spec.get("timeZone")
        return [
            meta.get("name") or "",
            spec.get("schedule") or "",
            "<none>" if zone is None else zone,
            "<unset>" if suspended is None else str(suspended),
            len(status.get("active") or ()),
            age(last, now) if last else "<none>",
            age(meta.get("creationTimestamp"), now),
            *container_cells(template.get("containers") or []),
            selector_text(job.get("selector")),
        ]


def _template_labels(spec: Object) -> Object | None:
    labels: Object | None = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    return labels


def _with_selector(spec: Object, meta: Object) -> Object:
    """The spec with a selector for the Job's uid, and a template with the labels that it needs."""
    template = spec.get("template") or {}
    template_meta = template.get("metadata") or {}
    made = {label: meta.get("name") or "" for label in NAME_LABELS} | dict.fromkeys(UID_LABELS, meta["uid"])
    labels = dict(sorted({**made, **(template_meta.get("labels") or {})}.items()))
    selector = spec.get("selector") or {}
    matched = {UID_LABELS[1]: meta["uid"], **(selector.get("matchLabels") or {})}
    return {
        **spec,
        "selector": {**selector, "matchLabels": dict(sorted(matched.items()))},
        "template": {**template, "metadata": {**template_meta, "labels": labels}},
    }


def _generated_errors(obj: Object) -> list[FieldError]:
    """A template's labels must be those that the generated selector wants."""
    spec, meta = obj.get("spec") or {}, obj["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    wanted = {
        UID_LABELS[0]: meta["uid"],
        NAME_LABELS[0]: meta.get("name") or "",
        UID_LABELS[1]: meta["uid"],
        NAME_LABELS[1]: meta.get("name") or "",
    }
    errors = []
    for label, value in wanted.items():
        field = f"spec.template.metadata.labels[{label}]"
        if label not in labels:
            errors.append(fe.required(field, f"must be '{value}'"))
        elif labels[label] != value:
            errors.append(fe.invalid(field, labels, f"must be '{value}'"))
    try:
        selector = selectors.from_object(spec["selector"])
    except SelectorError:
        return errors
    if not selector.matches(wanted):
        errors.append(fe.invalid("spec.selector", selectors.quoted(spec["selector"]), "`selector` not auto-generated"))
    return errors


def _selector_errors(spec: Object) -> list[FieldError]:
    selector = spec.get("selector")
    errors = (
        [fe.required("spec.selector")] if selector is None else selectors.validate_object(selector, "spec.selector")
    )
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    try:
        matches = selectors.from_object(selector).matches(labels or {})
    except SelectorError:
        return errors
    return errors if matches else [*errors, fe.invalid("spec.template.metadata.labels", labels, MISSES)]


def _spec_errors(spec: Object, place: str = "spec") -> list[FieldError]:
    """A Job's spec without its selector, as CronJobs hold it too."""
    errors = []
    for key in _NUMBERS:
        errors += checks.nonnegative(spec.get(key), f"{place}.{key}")
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        errors.append(fe.required(f"{place}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if (manager := spec.get("managedBy")) is not None:
        errors += domain_prefixed_path(manager, f"{place}.managedBy")
        if len(manager.encode()) > _MAX_MANAGER:
            errors.append(fe.too_long(f"{place}.managedBy", _MAX_MANAGER))
    errors += _mode_errors(spec, place)
    if spec.get("podFailurePolicy") is not None:
        errors += failure_policy_errors(spec, f"{place}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        errors += success_policy_errors(spec, f"{place}.successPolicy")
    policy = spec.get("podReplacementPolicy")
    if policy is not None:
        allowed = _REPLACEMENT if spec.get("podFailurePolicy") is None else _REPLACEMENT[:1]
        errors += checks.supported(policy, allowed, f"{place}.podReplacementPolicy")
    errors += template_errors(spec.get("template") or {}, f"{place}.template")
    return errors + _restart_errors(spec, f"{place}.template.spec.restartPolicy")


def _mode_errors(spec: Object, place: str) -> list[FieldError]:
    mode = spec.get("completionMode")
    if mode == "Indexed":
        return index_errors(spec, place)
    if mode not in (None, "NonIndexed"):
        return [fe.not_supported(f"{place}.completionMode", mode, ("NonIndexed", "Indexed"))]
    given = (key for key in ("backoffLimitPerIndex", "maxFailedIndexes") if spec.get(key) is not None)
    return [fe.invalid(f"{place}.{key}", spec[key], _INDEXED_ONLY) for key in given]


def _restart_errors(spec: Object, field: str) -> list[FieldError]:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") or ""
    if policy in ("", "Always"):
        return [fe.required(field, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [fe.not_supported(field, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        return [fe.invalid(field, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _completions_errors(spec: Object, before: Object) -> list[FieldError]:
    """An indexed Job may be resized together with its parallelism."""
    new, old = spec.get("completions"), before.get("completions")
    if new == old:
        return []
    indexed = before.get("completionMode") == "Indexed" and new is not None
    if indexed and new == spec.get("parallelism") and old == before.get("parallelism"):
        return []
    text = f"can only be modified in tandem with {spec.get('parallelism')}" if indexed else "field is immutable"
    return [fe.invalid("spec.completions", new, text)]


def _fixed_template(job: Object, old: Object) -> Object:
    """What of the template may not change: all, but scheduling directives and resources of a Job not yet started."""
    template: Object = (job.get("spec") or {}).get("template") or {}
    status = old.get("status") or {}
    held = (old.get("spec") or {}).get("suspend") and not status.get("active")
    suspended = any(
        item.get("type") == "Suspended" and item.get("status") == "True" for item in status.get("conditions") or ()
    )
    if not held or (status.get("startTime") is not None and not suspended):
        return template
    loose = ("nodeSelector", "tolerations", "schedulingGates", "affinity")
    spec = {key: value for key, value in (template.get("spec") or {}).items() if key not in loose}
    affinity = {
        key: value
        for key, value in ((template.get("spec") or {}).get("affinity") or {}).items()
        if key != "nodeAffinity"
    }
    for key in ("containers", "initContainers"):
        spec[key] = [{**container, "resources": {}} for container in spec.get(key) or ()]
    return {"spec": {**spec, "affinity": affinity}}


def _cron_errors(spec: Object, before: Object | None) -> list[FieldError]:
    schedule, zone = spec.get("schedule") or "", spec.get("timeZone")
    if schedule:
        kept = before is not None and "TZ" in (before.get("schedule") or "")
        errors = schedule_errors(schedule, zone, "spec.schedule", zones_allowed=kept)
    else:
        errors = [fe.required("spec.schedule")]
    errors += checks.nonnegative(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    if before is None or before.get("timeZone") != zone:
        errors += time_zone_errors(zone, "spec.timeZone")
    allowed = ("Allow", "Forbid", "Replace")
    errors += checks.one_of(spec.get("concurrencyPolicy"), allowed, "spec.concurrencyPolicy")
    errors += _job_template_errors(spec.get("jobTemplate") or {})
    for key in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += checks.nonnegative(spec.get(key), f"spec.{key}")
    return errors


def _job_template_errors(template: Object) -> list[FieldError]:
    spec = template.get("spec") or {}
    errors = _spec_errors(spec, "spec.jobTemplate.spec")
    if spec.get("selector") is not None:
        text = "`selector` will be auto-generated"
        errors.append(fe.invalid("spec.jobTemplate.spec.selector", spec["selector"], text))
    if spec.get("manualSelector"):
        field = "spec.jobTemplate.spec.manualSelector"
        errors.append(fe.not_supported(field, True, ("nil", "false")))
    return errors


def _state(meta: Object, status: Object) -> str:
    found = {item.get("type") for item in status.get("conditions") or () if item.get("status") == "True"}
    if meta.get("deletionTimestamp"):
        found.add("Terminating")
    return next((state for state in _STATES if state in found), "Running")


def _duration(status: Object, now: datetime) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return human_duration((times.parse_time(end) if end else now) - times.parse_time(start))
