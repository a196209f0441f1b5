"""Telling the API server of webhooks: configurations of admission, and conversion in CustomResourceDefinitions.

Source: `k8s.io/api/admissionregistration/v1`, `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from steersman.apimachinery.errors import Invalid, NotFound
from steersman.client.client import Client
from steersman.client.resources import Object, Resource, ResourceMapping

CRD = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)


@dataclass(frozen=True, slots=True)
class Reach:
    """Where the API server reaches the webhooks: at a `url` (https://HOST:PORT), or through a Service.

    `bundle` (PEM) is who has signed their certificate; b"" leaves what is there.
    """

    url: str = ""
    service: tuple[str, str] | None = None
    port: int = 443
    bundle: bytes = b""

    def client_config(self, path: str) -> Object:
        """A WebhookClientConfig for a path. Raises ValueError where neither a URL nor a Service is known.

        There may be a URL or a Service, not both: with a Service, the URL is null, so that applying takes one away.
        """
        if self.service is not None:
            namespace, name = self.service
            service = {"namespace": namespace, "name": name, "path": path, "port": self.port}
            config: Object = {"url": None, "service": service}
        elif self.url:
            config = {"url": f"{self.url}{path}"}
        else:
            raise ValueError("webhooks need a url or a service to be registered")
        if self.bundle:
            config["caBundle"] = base64.b64encode(self.bundle).decode()
        return config


@dataclass(frozen=True, slots=True)
class AdmissionRule:
    """One webhook of a kind, as the API server is told of it."""

    phase: Literal["Validating", "Mutating"]
    name: str
    path: str
    mapping: ResourceMapping
    operations: Sequence[str] = ("CREATE", "UPDATE")
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    timeout: int = 10
    side_effects: Literal["None", "NoneOnDryRun"] = "None"
    match_conditions: Sequence[Mapping[str, str]] = ()
    namespace_selector: Mapping[str, Any] | None = None
    object_selector: Mapping[str, Any] | None = None
    subresources: Sequence[str] = field(default_factory=tuple)

    def entry(self, reach: Reach) -> Object:
        """The webhook in its configuration."""
        mapping = self.mapping
        group, _, version = mapping.api_version.rpartition("/")
        rule = {
            "apiGroups": [group],
            "apiVersions": [version],
            "operations": list(self.operations),
            "resources": [mapping.plural, *(f"{mapping.plural}/{name}" for name in self.subresources)],
            "scope": "Namespaced" if mapping.namespaced else "Cluster",
        }
        entry: Object = {
            "name": self.name,
            "clientConfig": reach.client_config(self.path),
            "rules": [rule],
            "failurePolicy": self.failure_policy,
            "timeoutSeconds": self.timeout,
            "sideEffects": self.side_effects,
            "admissionReviewVersions": ["v1"],
        }
        if self.match_conditions:
            entry["matchConditions"] = [dict(condition) for condition in self.match_conditions]
        if self.namespace_selector is not None:
            entry["namespaceSelector"] = dict(self.namespace_selector)
        if self.object_selector is not None:
            entry["objectSelector"] = dict(self.object_selector)
        return entry


def configurations(name: str, rules: Sequence[AdmissionRule], reach: Reach) -> list[Object]:
    """The webhook configurations of these rules, at most one of each phase."""
    found = []
    for phase in ("Validating", "Mutating"):
        entries = [rule.entry(reach) for rule in rules if rule.phase == phase]
        if entries:
            found.append(
                {
                    "apiVersion": "admissionregistration.k8s.io/v1",
                    "kind": f"{phase}WebhookConfiguration",
                    "metadata": {"name": name},
                    "webhooks": entries,
                }
            )
    return found


def conversion(crd: str, path: str, reach: Reach) -> Object:
    """What a CustomResourceDefinition is to say of its conversion, as an apply configuration."""
    webhook = {"clientConfig": reach.client_config(path), "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": CRD.api_version,
        "kind": CRD.kind,
        "metadata": {"name": crd},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}},
    }


async def register(client: Client, objects: Sequence[Object], manager: str) -> None:
    """Apply configurations; several replicas that do so at once want the same. Raises ApiError."""
    for obj in objects:
        if obj["kind"] == CRD.kind:
            # Apply would have to own the whole definition: its required fields are another's.
            await client.patch(CRD, obj["metadata"]["name"], _instead(obj), field_manager=manager)
        else:
            await _apply(client, obj, manager)


async def _apply(client: Client, obj: Object, manager: str) -> None:
    try:
        await client.apply(obj, field_manager=manager, force=True)
    except Invalid as invalid:
        wanted = {entry["name"]: entry["clientConfig"] for entry in obj["webhooks"]}
        if not any(config.get("url") for config in wanted.values()):
            raise

        def reach(found: Object) -> None:
            for entry in found.get("webhooks") or ():
                entry["clientConfig"] = wanted.get(entry["name"], entry["clientConfig"])

        # A Service that manifests have put there is taken away by no apply but theirs.
        kind = Resource(obj["apiVersion"], obj["kind"])
        try:
            await client.modify(kind, obj["metadata"]["name"], reach, field_manager=manager)
        except NotFound:
            raise invalid from None
        await client.apply(obj, field_manager=manager, force=True)


def _instead(crd: Object) -> Object:
    """A merge patch that takes away how the webhook was reached before: there may be a URL or a Service, not both."""
    webhook = crd["spec"]["conversion"]["webhook"]
    client_config = {"url": None, "service": None, **webhook["clientConfig"]}
    return {"spec": {"conversion": {"strategy": "Webhook", "webhook": {**webhook, "clientConfig": client_config}}}}
