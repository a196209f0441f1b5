"""The rules of built-in kinds: what all of them share, flags by kind, and which kinds have rules of their own.

Source: kubernetes `pkg/registry/**/strategy.go`, `pkg/apis/core/validation/validation.go`, `pkg/apis/**/conversion.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import Any

from steersman.api import defaults, tables
from steersman.api.kinds import BuiltinKind
from steersman.api.strategy import Object, Strategy, distinct, restore
from steersman.apimachinery import names
from steersman.apimachinery.field_errors import FieldError
from steersman.apimachinery.field_selectors import FieldSelector
from steersman.apimachinery.meta import validate_standard_finalizer
from steersman.apimachinery.selectors import SelectorError

GroupKind = tuple[str, str]

_CREATE_ON_UPDATE = frozenset(
    {
        ("", "Endpoints"),
        ("", "Event"),
        ("", "LimitRange"),
        ("", "Service"),
        ("coordination.k8s.io", "Lease"),
        ("events.k8s.io", "Event"),
        ("node.k8s.io", "RuntimeClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
    }
)
_CONDITIONAL_UPDATE = frozenset(
    {
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("certificates.k8s.io", "PodCertificateRequest"),
        ("coordination.k8s.io", "Lease"),
        ("node.k8s.io", "RuntimeClass"),
        ("policy", "PodDisruptionBudget"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "CSIStorageCapacity"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
    }
)
_GENERATION_FIELDS: Mapping[GroupKind, tuple[str, ...]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): ("spec",),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): ("spec",),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): ("spec",),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): ("webhooks",),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): ("spec",),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): ("spec",),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): ("webhooks",),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("spec",),
    ("apps", "DaemonSet"): ("spec",),
    ("apps", "Deployment"): ("spec", "metadata.annotations"),
    ("apps", "ReplicaSet"): ("spec",),
    ("apps", "StatefulSet"): ("spec",),
    ("autoscaling", "HorizontalPodAutoscaler"): ("spec",),
    ("batch", "CronJob"): ("spec",),
    ("batch", "Job"): ("spec",),
    ("discovery.k8s.io", "EndpointSlice"): ("addressType", "endpoints", "ports", "metadata.labels"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): ("spec",),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): ("spec",),
    ("networking.k8s.io", "Ingress"): ("spec",),
    ("networking.k8s.io", "IngressClass"): ("spec",),
    ("networking.k8s.io", "NetworkPolicy"): ("spec",),
    ("policy", "PodDisruptionBudget"): ("spec",),
    ("resource.k8s.io", "DeviceClass"): ("spec",),
    ("resource.k8s.io", "DeviceTaintRule"): ("spec",),
    ("resource.k8s.io", "ResourceSlice"): ("spec",),
    ("scheduling.k8s.io", "PriorityClass"): (),
}
_STATUS_ALONE = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiregistration.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "resource.k8s.io",
        "storagemigration.k8s.io",
        ("certificates.k8s.io", "PodCertificateRequest"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("storage.k8s.io", "VolumeAttachment"),
    }
)
"""Groups and kinds of whose metadata nothing can be changed through `/status`."""

_DNS_LABEL_NAMES = frozenset({("", "Namespace"), ("", "Service")})
_REPEATED_ERRORS_GROUPS = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
_ANY_FINALIZER_GROUPS = frozenset(
    {"admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "coordination.k8s.io"}
)
_META_FIELDS = ("metadata.name", "metadata.namespace")
_FIELD_LABELS: Mapping[GroupKind, tuple[str, ...]] = {
    ("", "Namespace"): ("status.phase", "metadata.name"),
    ("", "Node"): ("metadata.name", "spec.unschedulable"),
    ("", "Pod"): (
        *_META_FIELDS,
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ),
    ("", "ReplicationController"): (*_META_FIELDS, "status.replicas"),
    ("", "Secret"): (*_META_FIELDS, "type"),
    ("", "Service"): (*_META_FIELDS, "spec.clusterIP", "spec.type"),
    ("batch", "Job"): (*_META_FIELDS, "status.successful"),
    ("certificates.k8s.io", "CertificateSigningRequest"): ("metadata.name", "spec.signerName"),
    ("certificates.k8s.io", "ClusterTrustBundle"): ("metadata.name", "spec.signerName"),
    ("certificates.k8s.io", "PodCertificateRequest"): (
        "metadata.name",
        "spec.signerName",
        "spec.podName",
        "spec.nodeName",
    ),
    ("resource.k8s.io", "ResourceSlice"): ("metadata.name", "spec.nodeName", "spec.driver", "spec.pool.name"),
}
_FALSE_FIELDS = frozenset({"spec.unschedulable", "spec.hostNetwork"})
_OWN_RULES: Mapping[GroupKind, str] = {
    ("", "ConfigMap"): "core.configmap:ConfigMapStrategy",
    ("", "Endpoints"): "core.endpoints:EndpointsStrategy",
    ("", "Event"): "core.event:EventStrategy",
    ("", "LimitRange"): "core.cluster:LimitRangeStrategy",
    ("", "Namespace"): "core.namespace:NamespaceStrategy",
    ("", "Node"): "core.cluster:NodeStrategy",
    ("", "PersistentVolume"): "core.volume_kinds:PersistentVolumeStrategy",
    ("", "PersistentVolumeClaim"): "core.volume_kinds:PersistentVolumeClaimStrategy",
    ("", "Pod"): "core.pod:PodStrategy",
    ("", "PodTemplate"): "core.cluster:PodTemplateStrategy",
    ("", "ReplicationController"): "apps.sets:ReplicationControllerStrategy",
    ("", "ResourceQuota"): "core.cluster:ResourceQuotaStrategy",
    ("", "Secret"): "core.secret:SecretStrategy",
    ("", "Service"): "core.service:ServiceStrategy",
    ("", "ServiceAccount"): "core.serviceaccount:ServiceAccountStrategy",
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicy",
    ): "admissionregistration.strategies:MutatingAdmissionPolicyStrategy",
    (
        "admissionregistration.k8s.io",
        "MutatingAdmissionPolicyBinding",
    ): "admissionregistration.strategies:MutatingAdmissionPolicyBindingStrategy",
    (
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
    ): "admissionregistration.webhook_configuration:WebhookConfigurationStrategy",
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicy",
    ): "admissionregistration.strategies:ValidatingAdmissionPolicyStrategy",
    (
        "admissionregistration.k8s.io",
        "ValidatingAdmissionPolicyBinding",
    ): "admissionregistration.strategies:ValidatingAdmissionPolicyBindingStrategy",
    (
        "admissionregistration.k8s.io",
        "ValidatingWebhookConfiguration",
    ): "admissionregistration.webhook_configuration:WebhookConfigurationStrategy",
    ("apiextensions.k8s.io", "CustomResourceDefinition"): "apiextensions.strategy:CustomResourceDefinitionStrategy",
    ("apps", "ControllerRevision"): "apps.controllerrevision:ControllerRevisionStrategy",
    ("apps", "DaemonSet"): "apps.sets:DaemonSetStrategy",
    ("apps", "Deployment"): "apps.deployment:DeploymentStrategy",
    ("apps", "ReplicaSet"): "apps.deployment:ReplicaSetStrategy",
    ("apps", "StatefulSet"): "apps.sets:StatefulSetStrategy",
    ("autoscaling", "HorizontalPodAutoscaler"): "autoscaling.hpa:strategy",
    ("batch", "CronJob"): "batch.jobs:CronJobStrategy",
    ("batch", "Job"): "batch.jobs:JobStrategy",
    ("coordination.k8s.io", "Lease"): "coordination.lease:LeaseStrategy",
    ("discovery.k8s.io", "EndpointSlice"): "discovery.endpointslice:EndpointSliceStrategy",
    ("events.k8s.io", "Event"): "core.event:NewEventStrategy",
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"): "flowcontrol.flowschema:FlowSchemaStrategy",
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): "flowcontrol.prioritylevel:PriorityLevelStrategy",
    ("networking.k8s.io", "Ingress"): "networking.ingress:IngressStrategy",
    ("networking.k8s.io", "IngressClass"): "networking.ingress:IngressClassStrategy",
    ("networking.k8s.io", "NetworkPolicy"): "networking.networkpolicy:NetworkPolicyStrategy",
    ("node.k8s.io", "RuntimeClass"): "node.runtimeclass:RuntimeClassStrategy",
    ("policy", "PodDisruptionBudget"): "policy.disruptionbudget:PodDisruptionBudgetStrategy",
    ("rbac.authorization.k8s.io", "ClusterRole"): "rbac.roles:ClusterRoleStrategy",
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): "rbac.bindings:ClusterRoleBindingStrategy",
    ("rbac.authorization.k8s.io", "Role"): "rbac.roles:RoleStrategy",
    ("rbac.authorization.k8s.io", "RoleBinding"): "rbac.bindings:RoleBindingStrategy",
    ("scheduling.k8s.io", "PriorityClass"): "scheduling.priorityclass:PriorityClassStrategy",
    ("storage.k8s.io", "CSIDriver"): "storage.csidriver:CSIDriverStrategy",
    ("storage.k8s.io", "StorageClass"): "storage.storageclass:StorageClassStrategy",
}


class BuiltinStrategy(Strategy):
    """The rules of a built-in kind that has none of its own: flags by kind, and metadata."""

    def __init__(self, kind: BuiltinKind) -> None:
        super().__init__(namespaced=kind.namespaced)
        self.kind = kind
        key = (kind.group, kind.kind)
        self.allow_create_on_update = key in _CREATE_ON_UPDATE
        self.allow_unconditional_update = key not in _CONDITIONAL_UPDATE
        self.has_status = kind.has_status
        self.reset_fields = (("status",),) if kind.has_status else ()
        self.generation_fields = _GENERATION_FIELDS.get(key)
        self.field_labels = _FIELD_LABELS.get(key)
        self._name_rule = names.name_is_dns_label if key in _DNS_LABEL_NAMES else names.name_is_dns_subdomain
        self._any_finalizer = kind.group in _ANY_FINALIZER_GROUPS
        self._repeats_errors = kind.group in _REPEATED_ERRORS_GROUPS
        self._fill, self._drop = defaults.filler(kind.type), defaults.dropper(kind.type)

    def name_validator(self, name: str, prefix: bool) -> list[str]:
        return self._name_rule(name, prefix)

    def default(self, obj: Object) -> None:
        if self._fill is not None and (filled := self._fill(obj)) is not obj:
            obj.update(filled)

    def before_create(self, obj: Object) -> list[FieldError]:
        self.drop_gated(obj)
        return super().before_create(obj)

    def before_update(self, new: Object, old: Object) -> list[FieldError]:
        self.drop_gated(new)
        return super().before_update(new, old)

    def drop_gated(self, obj: Object) -> None:
        """Take out the fields whose feature gates are off."""
        if self._drop is not None and (kept := self._drop(obj)) is not obj:
            obj.update(kept)

    def validate_create(self, obj: Object) -> list[FieldError]:
        return [*self.validate_meta(obj), *self.validate_content(obj)]

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*self.validate_meta_update(new, old), *self.validate_content(new)]

    def validate_content(self, obj: Object) -> list[FieldError]:
        """What is wrong with the object beside its metadata, whether it is new or changed."""
        return []

    def validate_meta(self, obj: Object) -> list[FieldError]:
        return [*super().validate_meta(obj), *self._finalizer_errors(obj)]

    def validate_meta_update(self, new: Object, old: Object) -> list[FieldError]:
        return [*super().validate_meta_update(new, old), *self._finalizer_errors(new)]

    def _finalizer_errors(self, obj: Object) -> list[FieldError]:
        if self._any_finalizer:
            return []
        return [
            error
            for index, name in enumerate(obj["metadata"].get("finalizers") or ())
            for error in validate_standard_finalizer(name, f"metadata.finalizers[{index}]")
        ]

    def reset_status(self, obj: Object) -> None:
        obj.pop("status", None)
        if "status" in (zero := self.kind.decode({})[0]):
            obj["status"] = zero["status"]

    def merge_errors(self, errors: list[FieldError]) -> list[FieldError]:
        return errors if self._repeats_errors else distinct(errors)

    def subresource(self, name: str) -> Strategy:
        """The rules for an update through a subresource; `status` for every kind that has one."""
        if name != "status" or not self.has_status:
            raise KeyError(name)
        return StatusStrategy(self)

    def to_storage(self, obj: Object) -> Object:
        """The object, of this kind, in the form of `kind.storage_kind`."""
        return obj

    def from_storage(self, obj: Object) -> Object:
        """The object, of `kind.storage_kind`, in this kind's form."""
        return obj

    def convert_field(self, label: str, value: str) -> tuple[str, str]:
        """A field selector's term over this kind; SelectorError for a field that it cannot be selected by."""
        if self.field_labels is None:
            if label in _META_FIELDS:
                return label, value
            known = '"metadata.name", "metadata.namespace"'
            raise SelectorError(f'"{label}" is not a known field selector: only {known}')
        if label not in self.field_labels:
            raise SelectorError(f"field label not supported: {label}")
        return label, value

    def select(self, selector: FieldSelector) -> FieldSelector:
        """A parsed field selector over this kind's fields; SelectorError for a field that it lacks."""
        return selector.transform(self.convert_field)

    def field(self, obj: Object, label: str) -> str:
        """The text of a selectable field of an object in this kind's form, "" when it is absent."""
        found: Any = obj
        for key in label.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, bool):
            return "true" if found else "false"
        if found is None:
            return "false" if label in _FALSE_FIELDS else ""
        return str(found)

    def fields_of(self, obj: Object) -> Callable[[str], str]:
        """What a FieldSelector reads the fields of an object in this kind's form with."""
        return lambda label: self.field(obj, label)

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The columns of this kind's Table."""
        return tables.columns(self.kind.group, self.kind.kind)

    def row(self, obj: Object, now: datetime) -> list[Any]:
        """The cells of one object in this kind's form, one for each column; `now` is what ages are counted to."""
        return tables.default_row(self.columns, obj, now)


class StatusStrategy(Strategy):
    """Updates through `/status`: everything but status stays as it was, metadata too in some kinds."""

    def __init__(self, main: BuiltinStrategy) -> None:
        super().__init__(namespaced=main.namespaced)
        self.main = main
        self.allow_unconditional_update = main.allow_unconditional_update
        kind = main.kind
        self._keeps_meta = kind.group in _STATUS_ALONE or (kind.group, kind.kind) in _STATUS_ALONE
        self.reset_fields = (("spec",), ("metadata",)) if self._keeps_meta else (("spec",),)

    def name_validator(self, name: str, prefix: bool) -> list[str]:
        return self.main.name_validator(name, prefix)

    def default(self, obj: Object) -> None:
        self.main.default(obj)

    def before_update(self, new: Object, old: Object) -> list[FieldError]:
        self.main.drop_gated(new)
        return super().before_update(new, old)

    def prepare_for_update(self, new: Object, old: Object) -> None:
        for key in set(new) | set(old):
            if key not in ("status", "metadata", "kind", "apiVersion"):
                restore(new, old, key)
        if self._keeps_meta:
            for key in ("labels", "annotations", "finalizers", "ownerReferences"):
                restore(new["metadata"], old["metadata"], key)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.main.validate_meta_update(new, old)

    def canonicalize(self, obj: Object) -> None:
        self.main.canonicalize(obj)

    def merge_errors(self, errors: list[FieldError]) -> list[FieldError]:
        return self.main.merge_errors(errors)


@cache
def strategy_of(kind: BuiltinKind) -> BuiltinStrategy:
    """The rules of a kind: its own, or those that all kinds share."""
    own = _OWN_RULES.get((kind.group, kind.kind))
    if own is None:
        return BuiltinStrategy(kind)
    module, _, name = own.partition(":")
    strategy: BuiltinStrategy = getattr(import_module(f"steersman.api.{module}"), name)(kind)
    return strategy
