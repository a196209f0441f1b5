"""The names of kube-apiserver's admission plugins, and which of them run unless something else is said.

Source: kubernetes `pkg/kubeapiserver/options/plugins.go`, apiserver `pkg/server/options/admission.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from steersman._util.gotext import quote

OFF_BY_DEFAULT = frozenset(
    {
        "AlwaysAdmit",
        "AlwaysDeny",
        "AlwaysPullImages",
        "DenyServiceExternalIPs",
        "EventRateLimit",
        "ExtendedResourceToleration",
        "ImagePolicyWebhook",
        "LimitPodHardAntiAffinityTopology",
        "NamespaceAutoProvision",
        "NamespaceExists",
        "NodeRestriction",
        "OwnerReferencesPermissionEnforcement",
        "PodNodeSelector",
        "PodTolerationRestriction",
    }
)
HERE = frozenset(
    {
        "DefaultIngressClass",
        "DefaultStorageClass",
        "DefaultTolerationSeconds",
        "LimitRanger",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionWebhook",
        "NamespaceLifecycle",
        "OwnerReferencesPermissionEnforcement",
        "PersistentVolumeClaimResize",
        "PodSecurity",
        "Priority",
        "ResourceQuota",
        "StorageObjectInUseProtection",
        "TaintNodesByCondition",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionWebhook",
    }
)
"""Those that this server has."""
_ELSEWHERE = frozenset(
    {
        "CertificateApproval",
        "CertificateSigning",
        "CertificateSubjectRestriction",
        "ClusterTrustBundleAttest",
        "NodeDeclaredFeatureValidator",
        "PodGroupProtection",
        "PodResizeValidator",
        "PodTopologyLabels",
        "RuntimeClass",
        "ServiceAccount",
    }
)
KNOWN = OFF_BY_DEFAULT | HERE | _ELSEWHERE
"""All that kube-apiserver has, too."""


def problem(enabled: Sequence[str], disabled: Sequence[str], own: Collection[str] = ()) -> str:
    """What is wrong with the plugins that were named, as kube-apiserver says it, or "". `own` are further ones."""
    known = {*KNOWN, *own}
    found = [
        f"{flag}-admission-plugins plugin {quote(name)} is unknown"
        for flag, names in (("enable", enabled), ("disable", disabled))
        for name in names
        if name not in known
    ]
    if both := sorted({*enabled} & {*disabled}):
        found.append(f"[{' '.join(both)}] in enable-admission-plugins and disable-admission-plugins overlapped")
    found = list(dict.fromkeys(found))
    return f"[{', '.join(found)}]" if len(found) > 1 else "".join(found)


def left_out(enabled: Collection[str], disabled: Collection[str]) -> frozenset[str]:
    """The names of the plugins that are not to run."""
    return (OFF_BY_DEFAULT | frozenset(disabled)) - frozenset(enabled)
