"""PersistentVolumeClaims and PersistentVolumes.

Source: kubernetes `pkg/registry/core/{persistentvolume,persistentvolumeclaim}/strategy.go`,
`pkg/apis/core/validation/validation.go`, `plugin/pkg/admission/storage/storageobjectinuseprotection`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from steersman.api import checks
from steersman.api.builtin import BuiltinStrategy, StatusStrategy
from steersman.api.classes import CLAIM_PROTECTION, OLD_STORAGE_CLASS, VOLUME_PROTECTION, storage_class
from steersman.api.core.affinity import node_selector_errors
from steersman.api.core.claim_spec import VOLUME_MODES, access_mode_errors, claim_spec_errors, positive_errors
from steersman.api.core.pod_warnings import claim_warnings, volume_warning
from steersman.api.core.volumes import persistent_source_errors
from steersman.api.node_labels import term_warnings
from steersman.api.strategy import Object, Strategy
from steersman.api.tables import age
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery import quantity
from steersman.apimachinery.field_errors import FieldError

_USE_CLASS_NAME = 'deprecated since v1.8; use "storageClassName" attribute instead'
_VOLUME_ANNOTATIONS = {
    OLD_STORAGE_CLASS: _USE_CLASS_NAME,
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_RECYCLE = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning."
_VOLUME_KINDS = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
_SHORT_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_IMMUTABLE = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_CHANGED = "lastPhaseTransitionTime"
_POLICIES = ("Delete", "Recycle", "Retain")
_NOT_SOURCES = frozenset(
    {
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    }
)


class PersistentVolumeClaimStrategy(BuiltinStrategy):
    protection = CLAIM_PROTECTION

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        obj["spec"] = _with_sources(obj.get("spec") or {}, {})
        obj["status"] = {"phase": "Pending"}

    def prepare_for_update(self, new: Object, old: Object) -> None:
        super().prepare_for_update(new, old)
        new["spec"] = _with_sources(new.get("spec") or {}, old.get("spec") or {})

    def validate_content(self, obj: Object) -> list[FieldError]:
        return claim_spec_errors(obj.get("spec") or {}, "spec")

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = [*self.validate_meta_update(new, old), *self.validate_create(new)]
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        bound = (new.get("status") or {}).get("phase") == "Bound"
        if _fixed_part(spec, before, bound=bound) != _fixed_part(before, before, bound=bound):
            errors.append(fe.forbidden("spec", _IMMUTABLE))
        errors += _shrink_errors(spec, before, old.get("status") or {})
        return errors + checks.immutable(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        deprecated = OLD_STORAGE_CLASS in (obj["metadata"].get("annotations") or {})
        found = [f"metadata.annotations[{OLD_STORAGE_CLASS}]: {_USE_CLASS_NAME}"] if deprecated else []
        return found + claim_warnings(obj.get("spec") or {}, "spec")

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        phase = "Terminating" if meta.get("deletionTimestamp") else status.get("phase") or ""
        volume = spec.get("volumeName") or ""
        capacity = (status.get("capacity") or {}).get("storage") or "0" if volume else ""
        modes = _modes(status.get("accessModes") or ()) if volume else ""
        return [
            meta.get("name") or "",
            phase,
            volume,
            capacity,
            modes,
            storage_class(meta, spec),
            _or_unset(spec.get("volumeAttributesClassName")),
            age(meta.get("creationTimestamp"), now),
            spec.get("volumeMode") or "<unset>",
        ]


class PersistentVolumeStrategy(BuiltinStrategy):
    protection = VOLUME_PROTECTION

    def subresource(self, name: str) -> Strategy:
        return _VolumeStatus(self) if name == "status" else super().subresource(name)

    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        obj["status"] = {"phase": "Pending", _CHANGED: obj["metadata"].get("creationTimestamp")}

    def validate_content(self, obj: Object) -> list[FieldError]:
        spec = obj.get("spec") or {}
        modes = spec.get("accessModes") or []
        errors = access_mode_errors(modes, "spec.accessModes", "")
        capacity = spec.get("capacity") or {}
        if not capacity:
            errors.append(fe.required("spec.capacity"))
        if "storage" not in capacity or len(capacity) > 1:
            errors.append(fe.not_supported("spec.capacity", capacity or None, ("storage",)))
        for name, value in capacity.items():
            errors += positive_errors(value, f"spec.capacity[{name}]")
        policy = spec.get("persistentVolumeReclaimPolicy")
        errors += checks.supported(policy, _POLICIES, "spec.persistentVolumeReclaimPolicy")
        errors += _affinity_errors(spec.get("nodeAffinity"), "spec.nodeAffinity")
        errors += persistent_source_errors(spec, [key for key in spec if key not in _NOT_SOURCES], "spec")
        if name := spec.get("storageClassName"):
            errors += checks.dns_subdomain(name, "spec.storageClassName")
        mode = spec.get("volumeMode")
        errors += checks.supported(mode, VOLUME_MODES, "spec.volumeMode") if mode is not None else []
        return errors + _attributes_errors(spec, "spec")

    def warnings(self, obj: Object, old: Object | None = None) -> list[str]:
        spec, annotations = obj.get("spec") or {}, obj["metadata"].get("annotations") or {}
        texts = _VOLUME_ANNOTATIONS.items()
        found = [f"metadata.annotations[{key}]: {text}" for key, text in texts if key in annotations]
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            found.append(f"spec.persistentVolumeReclaimPolicy: {_RECYCLE}")
        terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
        for index, term in enumerate(terms):
            place = f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]"
            found += term_warnings(term, place, check_values=False)
        return found + [volume_warning("spec", key) for key in _VOLUME_KINDS if spec.get(key) is not None]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        errors = [*self.validate_meta_update(new, old), *self.validate_create(new)]
        spec, before = new.get("spec") or {}, old.get("spec") or {}
        sources = [{key: value for key, value in part.items() if key not in _NOT_SOURCES} for part in (spec, before)]
        if sources[0] != sources[1]:
            errors.append(
                fe.forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")
            )
        errors += checks.immutable(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")
        if before.get("nodeAffinity") is not None:
            errors += checks.immutable(spec.get("nodeAffinity"), before["nodeAffinity"], "spec.nodeAffinity")
        return errors

    def row(self, obj: Object, now: datetime) -> list[Any]:
        meta, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
        claim = spec.get("claimRef") or {}
        return [
            meta.get("name") or "",
            (spec.get("capacity") or {}).get("storage") or "",
            _modes(spec.get("accessModes") or ()),
            spec.get("persistentVolumeReclaimPolicy") or "",
            "Terminating" if meta.get("deletionTimestamp") else status.get("phase") or "",
            f"{claim.get('namespace') or ''}/{claim.get('name') or ''}" if claim else "",
            storage_class(meta, spec),
            _or_unset(spec.get("volumeAttributesClassName")),
            status.get("reason") or "",
            age(meta.get("creationTimestamp"), now),
            spec.get("volumeMode") or "<unset>",
        ]


class _VolumeStatus(StatusStrategy):
    def prepare_for_update(self, new: Object, old: Object) -> None:
        """The time of the last change of phase stays while the phase does; else it is that of the write."""
        super().prepare_for_update(new, old)
        status, before = new.get("status") or {}, old.get("status") or {}
        given, known = status.get(_CHANGED), before.get(_CHANGED)
        if status.get("phase") == before.get("phase"):
            time = given or known
        else:
            time = _time_of_write(new["metadata"]) if given in (None, known) else given
        if time and time != given:
            new["status"] = {**status, _CHANGED: time}


def _time_of_write(meta: Object) -> str | None:
    """The latest time among the entries of managedFields, where each write leaves its own."""
    return max((entry.get("time") or "" for entry in meta.get("managedFields") or ()), default=None)


def _affinity_errors(affinity: Object | None, place: str) -> list[FieldError]:
    if affinity is None:
        return []
    if affinity.get("required") is None:
        return [fe.required(f"{place}.required", "must specify required node constraints")]
    return node_selector_errors(affinity["required"], f"{place}.required")


def _attributes_errors(spec: Object, place: str) -> list[FieldError]:
    name = spec.get("volumeAttributesClassName")
    if name is None:
        return []
    field = f"{place}.volumeAttributesClassName"
    errors = checks.dns_subdomain(name, field) if name else [fe.required(field, "an empty string is disallowed")]
    if spec.get("csi") is None:
        errors.append(fe.required(f"{place}.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


def _with_sources(spec: Object, old: Object) -> Object:
    """dataSource and dataSourceRef say the same; only claims and snapshots may stand in the former alone."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and old.get("dataSourceRef") is None:
        spec, reference = {**spec, "dataSourceRef": None}, None  # its feature gate is off
    if source is None and reference is None:
        return spec
    if reference is None and source is not None:
        known = (source.get("apiGroup") or "", source.get("kind")) in _SOURCES
        if not known and old.get("dataSource") is None and old.get("dataSourceRef") is None:
            return {**spec, "dataSource": None}
        return {**spec, "dataSourceRef": source}
    if source is None and reference is not None and not reference.get("namespace"):
        return {**spec, "dataSource": reference}
    return spec


def _or_unset(value: str | None) -> str:
    return "<unset>" if value is None else value


def _modes(modes: Any) -> str:
    order = list(_SHORT_MODES)
    return ",".join(_SHORT_MODES[mode] for mode in order if mode in modes)


def _fixed_part(spec: Object, old: Object, *, bound: bool) -> Object:
    """What of a claim may not change; volumeName and storageClassName may be set once."""
    out = {key: value for key, value in spec.items() if value not in (None, {}, [], "")}
    for key in ("volumeName", "storageClassName"):
        if not old.get(key) and (key == "volumeName" or old.get(key) is None):
            out.pop(key, None)
    if bound:
        out.pop("volumeAttributesClassName", None)
        resources = dict(out.get("resources") or {})
        requests = {key: value for key, value in (resources.get("requests") or {}).items() if key != "storage"}
        out["resources"] = {**resources, "requests": requests}
    return out


def _shrink_errors(spec: Object, old: Object, status: Object) -> list[FieldError]:
    new_size, old_size = (
        quantity.parse(((part.get("resources") or {}).get("requests") or {}).get("storage") or "0")
        for part in (spec, old)
    )
    actual = quantity.parse((status.get("capacity") or {}).get("storage") or "0")
    if new_size < old_size and not actual < new_size:
        return [fe.forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")]
    return []
