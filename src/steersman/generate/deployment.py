"""The Deployment of an operator, and what belongs to it.

It keeps to Pod Security's level "restricted", has requests and limits, spreads over nodes and zones, and ends in order:
what a node is drained by waits for it, and it does not wait for longer than the shortest notice (a Spot instance's two
minutes). Source: `k8s.io/pod-security-admission/policy`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steersman.generate.errors import GenerateError
from steersman.generate.webhooks import has_webhooks, port_for_all, service_of, webhook_port
from steersman.runtime.manager import Manager

HEALTH_PORT = 8081
USER = 65532
AFTER_GRACE = 15
"""Seconds after the manager's grace in which it closes what is open, and the process ends."""
LEAVING = 5
"""Seconds for which a Pod with webhooks still answers when it is to end: the API server may not know yet."""
SHORTEST_NOTICE = 120
"""Seconds in which a node may have to be empty: the notice that comes before a Spot instance is taken away."""

REQUESTS = {"cpu": "50m", "memory": "128Mi"}
LIMITS = {"cpu": "1", "memory": "256Mi"}

Object = dict[str, Any]


def selector(name: str) -> dict[str, str]:
    """The labels by which an operator's Pods are found."""
    return {"app.kubernetes.io/name": name, "app.kubernetes.io/component": "operator"}


def labels(name: str) -> dict[str, str]:
    """The labels of all that belongs to an operator."""
    return {**selector(name), "app.kubernetes.io/managed-by": "steersman"}


@dataclass(frozen=True, slots=True)
class Options:
    """`operator` is FILE_OR_MODULE[:NAME] as it is called in the image, whose entry point is `steersman`.

    `requests` and `limits` are of a container; `replicas` None: two where one is elected, else one.
    """

    name: str
    namespace: str
    image: str
    operator: str
    replicas: int | None = None
    requests: Mapping[str, str] = field(default_factory=lambda: REQUESTS)
    limits: Mapping[str, str] = field(default_factory=lambda: LIMITS)
    metrics_port: int | None = None
    crds: bool = True


def namespace(options: Options) -> Object:
    """The operator's namespace: Pods that are not `restricted` are refused in it."""
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "audit", "warn")}
    metadata = {"name": options.namespace, "labels": levels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def deployment(manager: Manager, options: Options) -> Object:
    """The Deployment. Raises GenerateError for a grace for which no Pod could wait, or controllers without a leader."""
    elects = manager.election is not None
    replicas = options.replicas if options.replicas is not None else (2 if elects else 1)
    if replicas > 1 and not elects and manager.controllers:
        raise GenerateError(f"{replicas} replicas would all work: give the Manager a leader_election")
    template = {
        "metadata": {"labels": labels(options.name)},
        "spec": _pod(manager, options),
    }
    # Controllers without an election: the next one starts when the last one has ended.
    strategy: Object = {"type": "Recreate"}
    if elects or not manager.controllers:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(options),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": selector(options.name)},
            "strategy": strategy,
            "template": template,
        },
    }


def budget(options: Options) -> Object:
    """At most one Pod is taken away at a time; one that does not work does not hold up a drain."""
    spec = {
        "maxUnavailable": 1,
        "selector": {"matchLabels": selector(options.name)},
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
    }
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(options),
        "spec": spec,
    }


def _metadata(options: Options) -> Object:
    return {"name": options.name, "namespace": options.namespace, "labels": labels(options.name)}


def termination_seconds(manager: Manager) -> int:
    """How long a Pod has to end: longer than the manager's grace, shorter than any draining of a node.

    Raises GenerateError if there is no such time.
    """
    before = LEAVING if has_webhooks(manager) else 0
    most = SHORTEST_NOTICE - AFTER_GRACE - before
    if manager.grace > most:
        raise GenerateError(
            f"the Manager's grace of {manager.grace:g} s is too long for a Pod: a node may have to be empty within "
            f"{SHORTEST_NOTICE} s; use at most grace={most}"
        )
    return math.ceil(manager.grace) + AFTER_GRACE + before


def _pod(manager: Manager, options: Options) -> Object:
    def spread(key: str) -> Object:
        return {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector(options.name)},
            "matchLabelKeys": ["pod-template-hash"],
        }

    return {
        "serviceAccountName": options.name,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": termination_seconds(manager),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")],
        "containers": [_container(manager, options)],
        # Certificates pass through files for a moment: never on a disk.
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }


def _container(manager: Manager, options: Options) -> Object:
    arguments, ports = _served(manager, options)

    def probe(path: str, **more: int) -> Object:
        return {"httpGet": {"path": path, "port": "health"}, **more}

    container: Object = {
        "name": "operator",
        "image": options.image,
        "args": ["run", options.operator, "--log-format", "json", *arguments],
        "env": [{"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}],
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()],
        "resources": {"requests": dict(options.requests), "limits": dict(options.limits)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "livenessProbe": probe("/healthz", initialDelaySeconds=10, periodSeconds=20, timeoutSeconds=5),
        "readinessProbe": probe(_ready(manager), periodSeconds=5, timeoutSeconds=5),
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 -- the Pod's own
    }
    if has_webhooks(manager):
        container["lifecycle"] = {"preStop": {"sleep": {"seconds": LEAVING}}}
    return container


def _ready(manager: Manager) -> str:
    # Objects in other versions are read through the operator itself: it must be reached before its caches fill.
    return "/readyz?exclude=caches" if manager.webhooks.converted else "/readyz"


def _served(manager: Manager, options: Options) -> tuple[list[str], dict[str, int]]:
    """What `steersman run` is told about addresses, and the ports."""
    arguments, ports = [], {"health": HEALTH_PORT}
    for name, port in (("health", HEALTH_PORT), ("metrics", options.metrics_port)):
        known = port_for_all(manager.listens.get(name))  # type: ignore[call-overload]
        if known:
            ports[name] = known
        elif port is not None:
            arguments += [f"--{name}", f":{port}"]
            ports[name] = port
    if has_webhooks(manager):
        port = ports["webhooks"] = webhook_port(manager)
        where, name = service_of(manager, options.name, options.namespace)
        arguments += ["--webhooks", f":{port}", "--webhook-service", f"{where}/{name}"]
    return arguments, ports
