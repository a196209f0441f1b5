"""Defaults that depend on other fields, by type. Each function gives the struct with them; it never changes its own.

Source: kubernetes `pkg/apis/**/v1/defaults.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from steersman.api.image_names import image_tag
from steersman.apimachinery import quantity

Object = dict[str, Any]
RESOURCE_LIST = "api/core/v1.ResourceList"
RBAC_GROUP = "rbac.authorization.k8s.io"
_MAX_INT32 = 2**31 - 1
_CLAIM = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
_SCALE_UP = [
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
]
_SCALE_DOWN = [{"type": "Percent", "value": 100, "periodSeconds": 15}]


def _with(obj: Object, **fields: Any) -> Object:
    """The struct with the fields that it lacks."""
    missing = {key: value for key, value in fields.items() if obj.get(key) in (None, "")}
    return {**obj, **missing} if missing else obj


def _pull_policy(image: str) -> str:
    return "Always" if image_tag(image) == "latest" else "IfNotPresent"


def _container(obj: Object) -> Object:
    return obj if obj.get("imagePullPolicy") else {**obj, "imagePullPolicy": _pull_policy(obj.get("image") or "")}


def _ephemeral_container(obj: Object) -> Object:
    filled = _container(obj)
    return _with(filled, terminationMessagePath="/dev/termination-log", terminationMessagePolicy="File")


def _image_volume(obj: Object) -> Object:
    return obj if obj.get("pullPolicy") else {**obj, "pullPolicy": _pull_policy(obj.get("reference") or "")}


def _volume(obj: Object) -> Object:
    return {**obj, "emptyDir": {}} if all(key == "name" or obj[key] is None for key in obj) else obj


def _pod_spec(obj: Object) -> Object:
    """serviceAccount is the old name of serviceAccountName."""
    account = obj.get("serviceAccountName") or obj.get("serviceAccount")
    if account == obj.get("serviceAccountName") == obj.get("serviceAccount") or not account:
        return obj
    return {**obj, "serviceAccountName": account, "serviceAccount": account}


def _rolling_update(obj: Object) -> Object:
    if obj.get("type") == "RollingUpdate" and obj.get("rollingUpdate") is None:
        return {**obj, "rollingUpdate": {}}
    return obj


def _stateful_set(obj: Object) -> Object:
    """A StatefulSet that names the strategy's type gets no settings for it; its claims are of one kind only."""
    claims = obj.get("volumeClaimTemplates") or []
    if any(claim.get(key) not in (None, "", value) for claim in claims for key, value in _CLAIM.items()):
        obj = {**obj, "volumeClaimTemplates": [{**claim, **_CLAIM} for claim in claims]}
    strategy = obj.get("updateStrategy") or {}
    if strategy.get("type") or strategy.get("rollingUpdate") is not None:
        return obj
    return {**obj, "updateStrategy": {**strategy, "type": "RollingUpdate", "rollingUpdate": {}}}


def _service_port(obj: Object) -> Object:
    return {**obj, "targetPort": obj.get("port") or 0} if obj.get("targetPort") in (None, 0, "") else obj


def _service(obj: Object) -> Object:
    kind, affinity = obj["type"], obj["sessionAffinity"]
    out: Object = {}
    config = obj.get("sessionAffinityConfig")
    if affinity == "None" and config is not None:
        obj = {key: value for key, value in obj.items() if key != "sessionAffinityConfig"}
    elif affinity == "ClientIP" and ((config or {}).get("clientIP") or {}).get("timeoutSeconds") is None:
        out["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    outside = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and obj.get("externalIPs"))
    if outside and not obj.get("externalTrafficPolicy"):
        out["externalTrafficPolicy"] = "Cluster"
    if obj.get("internalTrafficPolicy") is None and kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        out["internalTrafficPolicy"] = "Cluster"
    if kind == "LoadBalancer" and obj.get("allocateLoadBalancerNodePorts") is None:
        out["allocateLoadBalancerNodePorts"] = True
    return {**obj, **out} if out else obj


def _load_balancer_ingress(obj: Object) -> Object:
    return {**obj, "ipMode": "VIP"} if obj.get("ip") and obj.get("ipMode") is None else obj


def _network_policy(obj: Object) -> Object:
    if obj.get("policyTypes"):
        return obj
    return {**obj, "policyTypes": ["Ingress", "Egress"] if obj.get("egress") else ["Ingress"]}


def _subject(obj: Object) -> Object:
    if obj.get("apiGroup") or obj.get("kind") not in ("User", "Group"):
        return obj
    return {**obj, "apiGroup": RBAC_GROUP}


def _limit_range_item(obj: Object) -> Object:
    if obj.get("type") != "Container":
        return obj
    default = {**(obj.get("max") or {}), **(obj.get("default") or {})}
    request = {**(obj.get("min") or {}), **default, **(obj.get("defaultRequest") or {})}
    found = {"default": default, "defaultRequest": request}
    return {**obj, **{key: value for key, value in found.items() if value or obj.get(key) is not None}}


def _hpa_behavior(obj: Object) -> Object:
    up, down = obj.get("scaleUp") or {}, obj.get("scaleDown") or {}
    return {
        **obj,
        "scaleUp": _with(up, stabilizationWindowSeconds=0, selectPolicy="Max", policies=_SCALE_UP),
        "scaleDown": _with(down, selectPolicy="Max", policies=_SCALE_DOWN),
    }


def _job(obj: Object) -> Object:
    """A Job itself; the template of a CronJob has no such defaults."""
    spec = obj.get("spec") or {}
    out: Object = {}
    if spec.get("completions") is None and spec.get("parallelism") is None:
        out["completions"] = 1
    per_index = spec.get("backoffLimitPerIndex") is not None
    policy = "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed"
    filled = _with(
        {**spec, **out},
        parallelism=1,
        backoffLimit=_MAX_INT32 if per_index else 6,
        completionMode="NonIndexed",
        suspend=False,
        podReplacementPolicy=policy,
        manualSelector=False,
    )
    return {**_with_labels(obj, spec), "spec": filled}


def _with_labels(obj: Object, spec: Object) -> Object:
    """Jobs and ReplicationControllers take the labels of their template when they have none."""
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not labels or obj["metadata"].get("labels"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def _replication_controller(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not labels:
        return obj
    selector = spec.get("selector") or labels
    return {**_with_labels(obj, spec), "spec": {**spec, "selector": selector}}


def _pod(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    out: Object = {} if spec.get("enableServiceLinks") is not None else {"enableServiceLinks": True}
    if (grace := spec.get("terminationGracePeriodSeconds")) is not None and grace < 0:
        out["terminationGracePeriodSeconds"] = 1
    for key in ("containers", "initContainers"):
        old = spec.get(key) or []
        new = [_pod_container(container, host=bool(spec.get("hostNetwork"))) for container in old]
        if any(a is not b for a, b in zip(new, old, strict=True)):
            out[key] = new
    return {**obj, "spec": {**spec, **out}} if out else obj


def _pod_container(container: Object, *, host: bool) -> Object:
    """In a Pod, but not in a template, limits are requests too, and host networking takes the container's ports."""
    out: Object = {}
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if limits.keys() - requests.keys():
        out["resources"] = {**resources, "requests": dict(sorted({**limits, **requests}.items()))}
    ports = container.get("ports") or []
    if host and any(not port.get("hostPort") for port in ports):
        out["ports"] = [{**port, "hostPort": port.get("hostPort") or port.get("containerPort")} for port in ports]
    return {**container, **out} if out else container


def _pod_status(obj: Object) -> Object:
    """podIP and the first of podIPs are one address; podIP wins."""
    ip, ips = obj.get("podIP"), obj.get("podIPs")
    if ip and (not ips or ips[0].get("ip") != ip):
        return {**obj, "podIPs": [{"ip": ip}]}
    if not ip and ips:
        return {**obj, "podIP": ips[0].get("ip")}
    return obj


def _node_spec(obj: Object) -> Object:
    """podCIDR and the first of podCIDRs are one network; podCIDR wins."""
    network, networks = obj.get("podCIDR"), obj.get("podCIDRs")
    if network and (not networks or networks[0] != network):
        return {**obj, "podCIDRs": [network]}
    return {**obj, "podCIDR": networks[0]} if networks and not network else obj


def _resource_list(amounts: Object) -> Object:
    """No amount is finer than a thousandth; they are rounded up."""
    fine = [name for name, amount in amounts.items() if amount[-1:] in ("n", "u") or "e-" in amount]
    if not fine:
        return amounts
    parsed = {name: quantity.parse(amounts[name]) for name in fine}
    rounded = {
        name: str(quantity.Quantity(amount.rounded_up(-3), -3, amount.format)) for name, amount in parsed.items()
    }
    return {**amounts, **rounded}


def _node_status(obj: Object) -> Object:
    if obj.get("allocatable") is None and obj.get("capacity") is not None:
        return {**obj, "allocatable": obj["capacity"]}
    return obj


def _device_request(obj: Object) -> Object:
    return _with(obj, count=1) if obj.get("allocationMode") == "ExactCount" else obj


def _persistent_volume(obj: Object) -> Object:
    status = obj.get("status") or {}
    return obj if status.get("phase") else {**obj, "status": {**status, "phase": "Pending"}}


RULES: Mapping[str, Callable[[Object], Object]] = {
    "api/apps/v1.DaemonSetUpdateStrategy": _rolling_update,
    "api/apps/v1.DeploymentStrategy": _rolling_update,
    "api/apps/v1.StatefulSetSpec": _stateful_set,
    "api/autoscaling/v2.HorizontalPodAutoscalerBehavior": _hpa_behavior,
    "api/batch/v1.Job": _job,
    "api/core/v1.Container": _container,
    "api/core/v1.EphemeralContainer": _ephemeral_container,
    "api/core/v1.ImageVolumeSource": _image_volume,
    "api/core/v1.LimitRangeItem": _limit_range_item,
    "api/core/v1.LoadBalancerIngress": _load_balancer_ingress,
    "api/core/v1.NodeSpec": _node_spec,
    "api/core/v1.NodeStatus": _node_status,
    "api/core/v1.PersistentVolume": _persistent_volume,
    "api/core/v1.Pod": _pod,
    "api/core/v1.PodSpec": _pod_spec,
    "api/core/v1.PodStatus": _pod_status,
    "api/core/v1.ReplicationController": _replication_controller,
    RESOURCE_LIST: _resource_list,
    "api/core/v1.ServicePort": _service_port,
    "api/core/v1.ServiceSpec": _service,
    "api/core/v1.Volume": _volume,
    "api/networking/v1.NetworkPolicySpec": _network_policy,
    "api/rbac/v1.Subject": _subject,
    "api/resource/v1.DeviceSubRequest": _device_request,
    "api/resource/v1.ExactDeviceRequest": _device_request,
}
