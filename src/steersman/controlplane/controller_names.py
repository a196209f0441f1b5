"""Which controllers run: the syntax and the names of kube-controller-manager's --controllers.

Source: kubernetes `cmd/kube-controller-manager/{names,app}`, controller-manager `options/generic.go`, `app/helper.go`.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman._util.gotext import quote

CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "event-ttl-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "resourcequota-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "validatingadmissionpolicy-status-controller",
)
"""Those that this control plane has; kube-controller-manager has no `event-ttl-controller`."""
_ALIASES = {
    "clusterrole-aggregation": "clusterrole-aggregation-controller",
    "garbagecollector": "garbage-collector-controller",
    "namespace": "namespace-controller",
    "resourcequota": "resourcequota-controller",
    "root-ca-cert-publisher": "root-ca-certificate-publisher-controller",
    "serviceaccount": "serviceaccount-controller",
}
_ELSEWHERE = """
bootstrap-signer-controller certificatesigningrequest-approving-controller certificatesigningrequest-cleaner-controller
certificatesigningrequest-signing-controller cloud-node-lifecycle-controller cronjob-controller daemonset-controller
deployment-controller device-taint-eviction-controller disruption-controller endpoints-controller
endpointslice-controller endpointslice-mirroring-controller ephemeral-volume-controller
horizontal-pod-autoscaler-controller job-controller kube-apiserver-serving-clustertrustbundle-publisher-controller
legacy-serviceaccount-token-cleaner-controller node-ipam-controller node-lifecycle-controller node-route-controller
persistentvolume-attach-detach-controller persistentvolume-binder-controller persistentvolume-expander-controller
persistentvolume-protection-controller persistentvolumeclaim-protection-controller pod-garbage-collector-controller
podcertificaterequest-cleaner-controller podgroup-protection-controller replicaset-controller
replicationcontroller-controller resourceclaim-controller resourcepoolstatusrequest-controller
selinux-warning-controller service-cidr-controller service-lb-controller serviceaccount-token-controller
statefulset-controller storage-version-migrator-controller storageversion-garbage-collector-controller
taint-eviction-controller token-cleaner-controller ttl-after-finished-controller ttl-controller
volumeattributesclass-protection-controller
attachdetach bootstrapsigner cronjob csrapproving csrcleaner csrsigning daemonset deployment disruption endpoint
endpointslice endpointslicemirroring ephemeral-volume horizontalpodautoscaling job legacy-service-account-token-cleaner
nodeipam nodelifecycle persistentvolume-binder persistentvolume-expander podgc pv-protection pvc-protection replicaset
replicationcontroller resource-claim-controller serviceaccount-token statefulset storage-version-gc svm tokencleaner ttl
ttl-after-finished
"""
_KNOWN = {*CONTROLLERS, *_ALIASES, *_ELSEWHERE.split()}


def chosen(text: str) -> list[str]:
    """The names of the controllers to run: `*` for all, a name for one, `-name` for all but that; the first that says
    something about a controller counts. Raises ValueError with kube-controller-manager's words for unknown names."""
    said = [name.strip() for name in text.split(",") if name.strip()]
    unknown = dict.fromkeys(plain for name in said if name != "*" and (plain := name.removeprefix("-")) not in _KNOWN)
    if unknown:
        texts = [f"{quote(name)} is not in the list of known controllers" for name in unknown]
        raise ValueError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return [name for name in CONTROLLERS if _runs(name, said)]


def _runs(controller: str, said: Sequence[str]) -> bool:
    for name in said:
        if _ALIASES.get(name, name) == controller:
            return True
        if name.startswith("-") and _ALIASES.get(name[1:], name[1:]) == controller:
            return False
    return "*" in said
