"""Fields behind feature gates that are off in this Kubernetes version: what a client writes there is not stored.

The writer owns them all the same: ownership is found before they are dropped.
Source: kubernetes `pkg/api/pod/util.go` (dropDisabledFields), `pkg/registry/{core/node,batch/job}/strategy.go`,
`pkg/features/kube_features.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Object = dict[str, Any]

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "api/batch/v1.JobSpec": ("scheduling",),
    "api/core/v1.ClusterTrustBundleProjection": ("user",),
    "api/core/v1.ConfigMapVolumeSource": ("defaultUser",),
    "api/core/v1.DownwardAPIVolumeFile": ("user",),
    "api/core/v1.DownwardAPIVolumeSource": ("defaultUser",),
    "api/core/v1.EmptyDirVolumeSource": ("mode",),
    "api/core/v1.GRPCAction": ("mode",),
    "api/core/v1.HTTPGetAction": ("protocol",),
    "api/core/v1.KeyToPath": ("user",),
    "api/core/v1.NodeSpec": ("configSource", "podPreemptionPolicy"),
    "api/core/v1.NodeStatus": ("config",),
    "api/core/v1.PersistentVolumeClaimStatus": ("healthStatus",),
    "api/core/v1.PodCertificateProjection": ("user",),
    "api/core/v1.PodSpec": ("evictionResponders", "schedulingGroup"),
    "api/core/v1.PodStatus": ("volumeHealth",),
    "api/core/v1.ProjectedVolumeSource": ("defaultUser",),
    "api/core/v1.SecretVolumeSource": ("defaultUser",),
    "api/core/v1.ServiceAccountTokenProjection": ("user",),
    "api/core/v1.VolumeMount": ("bindMountOptions",),
}


def _without(*fields: str) -> Callable[[Object], Object]:
    def drop(obj: Object) -> Object:
        return obj if obj.keys().isdisjoint(fields) else {k: v for k, v in obj.items() if k not in fields}

    return drop


def _container(obj: Object) -> Object:
    """A lifecycle that was a signal only goes with it."""
    lifecycle = obj.get("lifecycle")
    if not lifecycle or "stopSignal" not in lifecycle:
        return obj
    kept = {key: value for key, value in lifecycle.items() if key != "stopSignal"}
    if any(value is not None for value in kept.values()):
        return {**obj, "lifecycle": kept}
    return {key: value for key, value in obj.items() if key != "lifecycle"}


RULES: Mapping[str, Callable[[Object], Object]] = {
    **{name: _without(*fields) for name, fields in _FIELDS.items()},
    "api/core/v1.Container": _container,
    "api/core/v1.EphemeralContainer": _container,
}
