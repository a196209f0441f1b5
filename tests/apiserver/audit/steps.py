"""Requests whose audit events were recorded, and what of those events is the same on every run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAPS = "/api/v1/namespaces/default/configmaps"
GROUP_VERSION = "audit.example.com/v1"
FOOS = f"/apis/{GROUP_VERSION}/namespaces/default/foos"
JSON, MERGE = "application/json", "application/merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
_CHANGING = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "token", "expirationTimestamp"}
)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")
_GENERATED = re.compile(r"^gen-[a-z0-9]{5}$")
TIMES = ("requestReceivedTimestamp", "stageTimestamp")


@dataclass(frozen=True, slots=True)
class Step:
    """One request; `body` is sent as JSON, or as it is when it is text."""

    method: str
    path: str
    body: Any = None
    media: str = JSON
    token: str = "admintoken"
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def sent(self) -> bytes:
        if self.body is None:
            return b""
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body).encode()

    @property
    def all_headers(self) -> dict[str, str]:
        found = {"User-Agent": "recorder", **self.headers}
        if self.body is not None:
            found["Content-Type"] = self.media
        if self.token:
            found["Authorization"] = f"Bearer {self.token}"
        return found


def config_map(**meta: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"k": "v"}}


STEPS = (
    Step("GET", f"{MAPS}?labelSelector=a"),
    Step("GET", f"{MAPS}/absent"),
    Step("POST", f"{MAPS}?fieldManager=m", {"metadata": {"name": "a"}, "data": {"k": "<v>"}}),
    Step("POST", MAPS, config_map(generateName="gen-")),
    Step("POST", MAPS, config_map(name="a")),
    Step("PUT", f"{MAPS}/a", config_map(name="a")),
    Step("PATCH", f"{MAPS}/a", {"data": {"k": "x"}}, MERGE),
    Step("PATCH", f"{MAPS}/a", '[ {"op":"add","path":"/data/z","value":"1 2"} ]', JSON_PATCH),
    Step("PATCH", f"{MAPS}/a", "{nonsense", MERGE),
    Step(
        "PATCH",
        f"{MAPS}/b?fieldManager=app&force=true",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
        APPLY,
    ),
    Step("PATCH", f"{MAPS}/a", {}, "application/x-foo"),
    Step("POST", MAPS, "nonsense"),
    Step("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}}),
    Step("DELETE", "/api/v1/namespaces/default/secrets/s"),
    Step("DELETE", f"{MAPS}/a", {"propagationPolicy": "Background"}),
    Step("DELETE", f"{MAPS}/b?gracePeriodSeconds=0"),
    Step("DELETE", f"{MAPS}?labelSelector=a%3Db"),
    Step("GET", f"{MAPS}?watch=true&timeoutSeconds=1"),
    Step("GET", "/version"),
    Step("GET", "/livez?verbose"),
    Step("GET", "/nope"),
    Step("GET", "/apis/nope.io/v1/foos"),
    Step("GET", "//api/v1/namespaces"),
    Step("GET", "/api/v1/namespaces/default/endpoints"),
    Step("POST", "/api/v1/namespaces/default/endpoints", {"metadata": {"name": "e"}}),
    Step("GET", "/api/v1/namespaces/default/pods", token="bobtoken", headers={"X-Forwarded-For": "1.2.3.4, 5.6.7.8"}),
    Step("GET", "/api/v1/namespaces/default/pods", token="bobtoken", headers={"User-Agent": "u" * 1100}),
    Step("GET", "/api/v1/namespaces/default/pods", token="bobtoken", headers={"X-Real-Ip": "1.2.3.4"}),
    Step("GET", "/api/v1/namespaces/default/pods", token="badtoken"),
    Step("GET", "/api/v1/namespaces/default/pods", token=""),
    Step("GET", "/api/v1/namespaces/default/pods/p?timeout=bad"),
    Step(
        "GET",
        "/api/v1/namespaces?limit=2",
        headers={"Audit-ID": "id-of-the-client", "Impersonate-User": "alice", "Impersonate-Extra-Scopes": "a"},
    ),
    Step("GET", "/api/v1/namespaces/default", headers={"Accept": "application/yaml"}),
    Step("GET", "/api/v1/namespaces/default", headers={"Accept": "application/vnd.kubernetes.protobuf"}),
    Step("POST", "/api/v1/namespaces?dryRun=All", {"metadata": {"name": "dry"}}),
    Step("POST", "/api/v1/namespaces", {"metadata": {"name": "Bad_Name"}}),
    Step(
        "PUT", "/apis/apps/v1/namespaces/default/deployments/d/scale", {"apiVersion": "apps/v1", "kind": "Deployment"}
    ),
    Step("OPTIONS", MAPS),
    Step("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "tt"}}),
    Step("POST", "/api/v1/namespaces/default/serviceaccounts/tt/token", {"spec": {"expirationSeconds": 600}}),
    Step(
        "POST", FOOS, {"apiVersion": "audit.example.com/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": {"x": 1}}
    ),
    Step("GET", f"{FOOS}/f"),
    Step("PUT", f"{FOOS}/f/scale", {"metadata": {"name": "f"}, "spec": {"replicas": 7}}),
    Step("DELETE", f"{FOOS}/f"),
)

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.audit.example.com"},
    "spec": {
        "group": "audit.example.com",
        "scope": "Namespaced",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"scale": {"specReplicasPath": ".spec.r", "statusReplicasPath": ".status.r"}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"a": {"type": "string", "default": "given"}, "r": {"type": "integer"}},
                            },
                            "status": {"type": "object", "properties": {"r": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


def normalised(event: Mapping[str, Any]) -> dict[str, Any]:
    """An event without what differs from run to run; `keys` has the order of its fields."""
    found = {key: _normalised(value) for key, value in event.items() if key not in TIMES}
    if found["auditID"] != "id-of-the-client":
        found["auditID"] = "ID"
    return {"keys": list(event), **found}


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _normalised(value: Any) -> Any:
    if isinstance(value, dict):
        found = {key: "X" if key in _CHANGING else _normalised(item) for key, item in value.items()}
        if isinstance(found.get("managedFields"), list):
            found["managedFields"] = sorted(found["managedFields"], key=_written)
        return found
    if isinstance(value, list):
        return [_normalised(item) for item in value]
    if isinstance(value, str):
        return _GENERATED.sub("gen-X", _UUID.sub("UUID", value))
    return value
