"""What admission adds to built-in objects: priorities, tolerations, protecting finalizers, default classes.

Source: kubernetes `plugin/pkg/admission/{priority,defaulttolerationseconds,storage/storageobjectinuseprotection,
storage/storageclass/setdefault,
storage/persistentvolume/resize,network/defaultingressclass,nodetaint}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from steersman.api.classes import (
    CLAIM_PROTECTION,
    DEFAULT_INGRESS_CLASS,
    OLD_INGRESS_CLASS,
    OLD_STORAGE_CLASS,
    SYSTEM_PRIORITIES,
    VOLUME_PROTECTION,
    is_default_storage_class,
    storage_class,
)
from steersman.apimachinery import quantity
from steersman.apimachinery.errors import forbidden
from steersman.apiserver.admission.chain import Attributes, Plugin
from steersman.apiserver.strategy import Object
from steersman.apiserver.watchcache import ResourceCache

Look = Callable[[str, str], ResourceCache]
"""The cache of a group's resource, in version v1."""

_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_SECONDS = 300


def builtin_plugins(look: Look) -> list[Plugin]:
    """All of them, in kube-apiserver's order."""
    return [
        NodeTaint(),
        Priority(look),
        DefaultTolerationSeconds(),
        DefaultStorageClass(look),
        StorageProtection(),
        DefaultIngressClass(look),
        ClaimResize(look),
    ]


def _keep_priority(attributes: Attributes) -> None:
    """An update that leaves out what this plugin has set does not change it."""
    scope, pod, old = attributes.scope, attributes.obj, attributes.old
    if (scope.group, scope.resource) != ("", "pods") or attributes.subresource or pod is None or old is None:
        return
    spec, before = pod.get("spec") or {}, old.get("spec") or {}
    kept = {key: before[key] for key in ("priority", "preemptionPolicy") if spec.get(key) is None and key in before}
    if kept:
        pod["spec"] = {**spec, **kept}


def _creates(attributes: Attributes, group: str, resource: str) -> Object | None:
    """The object, when it is one of that resource and being created."""
    scope = attributes.scope
    if attributes.operation == "CREATE" and (scope.group, scope.resource) == (group, resource):
        return None if attributes.subresource else attributes.obj
    return None


class NodeTaint:
    """New nodes are not ready until somebody says so."""

    name = "TaintNodesByCondition"

    async def admit(self, attributes: Attributes) -> None:
        node = _creates(attributes, "", "nodes")
        if node is None:
            return
        spec = node.get("spec") or {}
        taint = {"key": _NOT_READY, "effect": "NoSchedule"}
        if taint not in (spec.get("taints") or ()):
            node["spec"] = {**spec, "taints": [*(spec.get("taints") or ()), taint]}


class Priority:
    """A Pod gets and keeps the number and the preemption policy of its PriorityClass, or of the global default."""

    name = "Priority"

    def __init__(self, look: Look) -> None:
        self._look = look

    async def admit(self, attributes: Attributes) -> None:
        pod = _creates(attributes, "", "pods")
        if pod is None:
            _keep_priority(attributes)
            return
        spec = dict(pod.get("spec") or {})
        name, value, policy = self._resolve(spec.get("priorityClassName") or "", attributes.name)
        if spec.get("priority") is not None and spec["priority"] != value:
            why = (
                f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; "
                f"priority admission controller computed {value} from the given PriorityClass name"
            )
            raise forbidden("", "pods", attributes.name, why)
        if spec.get("preemptionPolicy") not in (None, policy):
            why = (
                f"the string value of PreemptionPolicy ({spec['preemptionPolicy']}) must not be provided in pod spec; "
                f"priority admission controller computed {policy} from the given PriorityClass name"
            )
            raise forbidden("", "pods", attributes.name, why)
        if name:
            spec["priorityClassName"] = name
        pod["spec"] = {**spec, "priority": value, "preemptionPolicy": policy}

    def _resolve(self, name: str, pod: str) -> tuple[str, int, str]:
        """The class that counts ("" for none), its value and its preemption policy."""
        classes = self._look("scheduling.k8s.io", "priorityclasses")
        found: Object | None = None
        if name:
            entry = classes.get(name)
            if entry:
                found = entry.decode()
            elif name in SYSTEM_PRIORITIES:
                found = {"value": SYSTEM_PRIORITIES[name]}
            else:
                raise forbidden("", "pods", pod, f"no PriorityClass with name {name} was found")
        else:
            defaults = [item for item in _all(classes, b'"globalDefault":true') if item.get("globalDefault")]
            found = min(defaults, key=lambda item: item.get("value") or 0, default=None)
            name = found["metadata"]["name"] if found else ""
        found = found or {}
        return name, found.get("value") or 0, found.get("preemptionPolicy") or "PreemptLowerPriority"


class DefaultTolerationSeconds:
    """Pods stay for five minutes on a node that is not ready or not reachable."""

    name = "DefaultTolerationSeconds"

    async def admit(self, attributes: Attributes) -> None:
        scope, pod = attributes.scope, attributes.obj
        if (scope.group, scope.resource) != ("", "pods") or pod is None or attributes.subresource:
            return
        spec = pod.get("spec") or {}
        tolerations = list(spec.get("tolerations") or ())
        for key in (_NOT_READY, _UNREACHABLE):
            if not any(_tolerates(item, key) for item in tolerations):
                tolerations.append(
                    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _SECONDS}
                )
        if len(tolerations) > len(spec.get("tolerations") or ()):
            pod["spec"] = {**spec, "tolerations": tolerations}


def _tolerates(toleration: Object, key: str) -> bool:
    keys, effects = (toleration.get("key") or "", key), (toleration.get("effect") or "", "NoExecute")
    return keys[0] in ("", key) and effects[0] in ("", "NoExecute")


class StorageProtection:
    """Claims and volumes are not deleted while they are used: a finalizer holds them."""

    name = "StorageObjectInUseProtection"

    async def admit(self, attributes: Attributes) -> None:
        for resource, finalizer in (
            ("persistentvolumeclaims", CLAIM_PROTECTION),
            ("persistentvolumes", VOLUME_PROTECTION),
        ):
            obj = _creates(attributes, "", resource)
            if obj is not None and finalizer not in (obj["metadata"].get("finalizers") or ()):
                obj["metadata"]["finalizers"] = [*(obj["metadata"].get("finalizers") or ()), finalizer]


class DefaultStorageClass:
    """Claims that name no class get the default one, the newest if there are several."""

    name = "DefaultStorageClass"

    def __init__(self, look: Look) -> None:
        self._look = look

    async def admit(self, attributes: Attributes) -> None:
        claim = _creates(attributes, "", "persistentvolumeclaims")
        if claim is None:
            return
        spec, annotations = claim.get("spec") or {}, claim["metadata"].get("annotations") or {}
        if spec.get("storageClassName") is not None or OLD_STORAGE_CLASS in annotations:
            return
        classes = _all(self._look("storage.k8s.io", "storageclasses"), b"is-default-class")
        name = _newest(item for item in classes if is_default_storage_class(item["metadata"].get("annotations") or {}))
        if name:
            claim["spec"] = {**spec, "storageClassName": name}


class ClaimResize:
    """A bound claim may ask for more only where its StorageClass says so."""

    name = "PersistentVolumeClaimResize"

    def __init__(self, look: Look) -> None:
        self._look = look

    async def admit(self, attributes: Attributes) -> None:
        scope, new, old = attributes.scope, attributes.obj, attributes.old
        if (scope.group, scope.resource) != ("", "persistentvolumeclaims") or new is None or old is None:
            return
        bound = (old.get("status") or {}).get("phase") == "Bound"
        if attributes.subresource or not bound or not _size(old) < _size(new):
            return
        name = storage_class(new["metadata"], new.get("spec") or {})
        entry = self._look("storage.k8s.io", "storageclasses").get(name) if name else None
        same = name == storage_class(old["metadata"], old.get("spec") or {})
        if entry is None or not same or not entry.decode().get("allowVolumeExpansion"):
            why = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must "
                "support resize"
            )
            raise forbidden("", "persistentvolumeclaims", attributes.name, why)


def _size(claim: Object) -> quantity.Quantity:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return quantity.parse(requests.get("storage") or "0")


class DefaultIngressClass:
    """Ingresses that name no class get the default one."""

    name = "DefaultIngressClass"

    def __init__(self, look: Look) -> None:
        self._look = look

    async def admit(self, attributes: Attributes) -> None:
        ingress = _creates(attributes, "networking.k8s.io", "ingresses")
        if ingress is None:
            return
        spec, annotations = ingress.get("spec") or {}, ingress["metadata"].get("annotations") or {}
        if spec.get("ingressClassName") is not None or OLD_INGRESS_CLASS in annotations:
            return
        classes = _all(self._look("networking.k8s.io", "ingressclasses"), b"is-default-class")
        name = _newest(
            item for item in classes if (item["metadata"].get("annotations") or {}).get(DEFAULT_INGRESS_CLASS) == "true"
        )
        if name:
            ingress["spec"] = {**spec, "ingressClassName": name}


def _all(cache: ResourceCache, word: bytes) -> list[Object]:
    """The objects whose encoded form has a word."""
    return [entry.decode() for entry in cache.entries.values() if word in entry.stored]


def _newest(objects: Iterable[Object]) -> str:
    """The name of the object created last, the first by name among several; "" when there is none."""
    by_name = sorted(objects, key=lambda item: item["metadata"]["name"])
    found = max(by_name, key=lambda item: item["metadata"]["creationTimestamp"], default=None)
    return found["metadata"]["name"] if found else ""
