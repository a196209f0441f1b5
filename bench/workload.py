"""A resource as large as those of real operators: a schema of 200 fields, and objects of 5 KB that use most of it."""

from __future__ import annotations

import json
from typing import Any

GROUP, PLURAL, KIND = "bench.example.com", "workloads", "Workload"
Schema = dict[str, Any]

DNS_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
DURATION = "^([0-9]{1,5}(h|m|s|ms)){1,4}$"


def text(**more: Any) -> Schema:
    return {"type": "string", **more}


def number(**more: Any) -> Schema:
    return {"type": "integer", "format": "int32", **more}


def flag(**more: Any) -> Schema:
    return {"type": "boolean", **more}


def choice(*values: str, **more: Any) -> Schema:
    return {"type": "string", "enum": list(values), **more}


def struct(*required: str, **properties: Schema) -> Schema:
    found: Schema = {"type": "object", "properties": properties}
    return {**found, "required": list(required)} if required else found


def mapping(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def items(of: Schema, *keys: str, most: int = 64) -> Schema:
    found: Schema = {"type": "array", "items": of, "maxItems": most}
    if keys:
        found |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return found


def name(**more: Any) -> Schema:
    return text(maxLength=63, minLength=1, pattern=DNS_LABEL, **more)


def quantity() -> Schema:
    return {"anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": QUANTITY, "x-kubernetes-int-or-string": True}


def selector() -> Schema:
    expression = struct("key", "operator", key=text(), operator=text(), values=items(text()))
    return struct(matchLabels=mapping(text(maxLength=63)), matchExpressions=items(expression))


def key_of(what: str) -> Schema:
    return struct(
        "key", name=name(), key=text(maxLength=253), optional=flag(default=False), description=text(default=what)
    )


def probe() -> Schema:
    http = struct(
        "port",
        path=text(default="/"),
        port={"x-kubernetes-int-or-string": True},
        scheme=choice("HTTP", "HTTPS", default="HTTP"),
        host=text(),
    )
    return struct(
        httpGet=http,
        initialDelaySeconds=number(minimum=0),
        periodSeconds=number(minimum=1, default=10),
        timeoutSeconds=number(minimum=1, default=1),
        failureThreshold=number(minimum=1, default=3),
        successThreshold=number(minimum=1, default=1),
    )


def container() -> Schema:
    port = struct(
        "containerPort",
        name=name(),
        containerPort=number(minimum=1, maximum=65535),
        protocol=choice("TCP", "UDP", "SCTP", default="TCP"),
        hostPort=number(minimum=0, maximum=65535),
    )
    variable = struct(
        "name",
        name=text(pattern="^[-._a-zA-Z][-._a-zA-Z0-9]*$"),
        value=text(maxLength=4096),
        valueFrom=struct(secretKeyRef=key_of("secret"), configMapKeyRef=key_of("map")),
    )
    mount = struct("name", "mountPath", name=name(), mountPath=text(), readOnly=flag(default=False), subPath=text())
    security = struct(
        runAsUser={"type": "integer", "format": "int64", "minimum": 0},
        runAsNonRoot=flag(),
        readOnlyRootFilesystem=flag(default=False),
        allowPrivilegeEscalation=flag(),
        capabilities=struct(add=items(text()), drop=items(text())),
    )
    return struct(
        "name",
        "image",
        name=name(),
        image=text(minLength=1, maxLength=255),
        imagePullPolicy=choice("Always", "IfNotPresent", "Never", default="IfNotPresent"),
        command=items(text()),
        args=items(text()),
        workingDir=text(),
        env=items(variable, "name", most=128),
        ports=items(port, "containerPort", "protocol"),
        resources=struct(limits=mapping(quantity()), requests=mapping(quantity())),
        volumeMounts=items(mount, "mountPath"),
        livenessProbe=probe(),
        readinessProbe=probe(),
        startupProbe=probe(),
        securityContext=security,
        terminationMessagePath=text(default="/dev/termination-log"),
    )


def spec() -> Schema:
    toleration = struct(
        key=text(),
        operator=choice("Exists", "Equal", default="Equal"),
        value=text(),
        effect=text(),
        tolerationSeconds=number(),
    )
    volume = struct(
        "name",
        name=name(),
        secret=struct(secretName=name(), defaultMode=number(minimum=0, maximum=511, default=420)),
        configMap=struct(name=name(), defaultMode=number(minimum=0, maximum=511, default=420)),
        emptyDir=struct(medium=choice("", "Memory"), sizeLimit=quantity()),
    )
    spread = struct(
        "topologyKey",
        topologyKey=text(),
        maxSkew=number(minimum=1, default=1),
        whenUnsatisfiable=choice("DoNotSchedule", "ScheduleAnyway", default="DoNotSchedule"),
        labelSelector=selector(),
    )
    storage = struct(
        className=name(),
        size=quantity(),
        accessModes=items(choice("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany")),
        retain=flag(default=True),
    )
    backup = struct(
        schedule=text(maxLength=100),
        retention=text(pattern=DURATION, default="720h"),
        bucket=text(),
        endpoint=text(format="uri"),
        startedAfter=text(format="date-time"),
        encryption=struct(
            enabled=flag(default=True), key=key_of("key"), algorithm=choice("AES256", "AES128", default="AES256")
        ),
    )
    metrics = struct(
        enabled=flag(default=True),
        interval=text(pattern=DURATION, default="30s"),
        port=number(minimum=1, maximum=65535, default=9090),
        labels=mapping(text(maxLength=63)),
        ratio={"type": "number", "minimum": 0, "maximum": 1, "default": 0.5},
    )
    autoscaling = struct(
        "maxReplicas",
        minReplicas=number(minimum=0, default=1),
        maxReplicas=number(minimum=1),
        cpuPercent=number(minimum=1, maximum=100, default=80),
        cooldown=text(pattern=DURATION, default="5m"),
        behavior=struct(
            scaleUp=choice("Fast", "Slow", default="Fast"), scaleDown=choice("Fast", "Slow", default="Slow")
        ),
    )
    service_port = struct(
        "port",
        name=name(),
        port=number(minimum=1, maximum=65535),
        targetPort={"x-kubernetes-int-or-string": True},
        protocol=choice("TCP", "UDP", default="TCP"),
        appProtocol=text(),
    )
    service = struct(
        type=choice("ClusterIP", "NodePort", "LoadBalancer", default="ClusterIP"),
        ports=items(service_port, "port", "protocol"),
        annotations=mapping(text()),
        sessionAffinity=choice("None", "ClientIP", default="None"),
        externalTrafficPolicy=choice("Cluster", "Local", default="Cluster"),
    )
    tls = struct(
        "secretName",
        secretName=name(),
        dnsNames=items(text(maxLength=253, format="hostname")),
        duration=text(pattern=DURATION, default="2160h"),
        issuerRef=struct("name", name=name(), kind=text(default="Issuer"), group=text(default="example.com")),
        privateKey=struct(algorithm=choice("RSA", "ECDSA", default="RSA"), size=number(minimum=256, default=2048)),
    )
    term = struct("weight", weight=number(minimum=1, maximum=100), topologyKey=text(), labelSelector=selector())
    affinity = struct(
        preferred=items(term), required=items(struct("topologyKey", topologyKey=text(), labelSelector=selector()))
    )
    strategy = struct(
        type=choice("RollingUpdate", "Recreate", default="RollingUpdate"),
        rollingUpdate=struct(
            maxSurge={"x-kubernetes-int-or-string": True}, maxUnavailable={"x-kubernetes-int-or-string": True}
        ),
        pauseSeconds=number(minimum=0, default=0),
    )
    return struct(
        "replicas",
        "containers",
        replicas=number(minimum=0, maximum=1000, default=1),
        version=text(pattern=r"^v?[0-9]+\.[0-9]+\.[0-9]+$"),
        paused=flag(default=False),
        revisionHistoryLimit=number(minimum=0, default=10),
        selector=selector(),
        containers=items(container(), "name"),
        initContainers=items(struct("name", name=name(), image=text(), command=items(text())), "name"),
        volumes=items(volume, "name"),
        tolerations=items(toleration),
        topologySpreadConstraints=items(spread, "topologyKey", "whenUnsatisfiable"),
        nodeSelector=mapping(text(maxLength=63)),
        serviceAccountName=name(),
        priorityClassName=name(),
        storage=storage,
        backup=backup,
        metrics=metrics,
        autoscaling=autoscaling,
        service=service,
        tls=tls,
        affinity=affinity,
        strategy=strategy,
        config=mapping(text()),
    )


def status() -> Schema:
    condition = struct(
        "type",
        "status",
        type=text(maxLength=316),
        status=choice("True", "False", "Unknown"),
        reason=text(),
        message=text(maxLength=32768),
        lastTransitionTime=text(format="date-time"),
        observedGeneration={"type": "integer", "format": "int64", "minimum": 0},
    )
    return struct(
        replicas=number(),
        readyReplicas=number(),
        phase=text(),
        observedGeneration={"type": "integer", "format": "int64"},
        conditions=items(condition, "type"),
    )


SCHEMA: Schema = struct("spec", spec=spec(), status=status())


def fields(schema: Schema) -> int:
    """How many named fields there are in a schema."""
    below = [*schema.get("properties", {}).values()]
    below += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
    return len(schema.get("properties", ())) + sum(map(fields, below))


def definition() -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "singular": KIND.lower(), "kind": KIND, "listKind": f"{KIND}List"},
            "versions": [{**version, "schema": {"openAPIV3Schema": SCHEMA}}],
        },
    }


def sample_container(number: int) -> dict[str, Any]:
    return {
        "name": f"part-{number}",
        "image": f"registry.example.com/team/part-{number}:v1.{number}.0",
        "command": ["/bin/serve", "--config=/etc/part/config.yaml"],
        "args": ["--log-level=info", f"--shard={number}"],
        "env": [
            {"name": "MODE", "value": "production"},
            {"name": "REGION", "value": "eu-west-1"},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "credentials", "key": "password"}}},
            {"name": "FEATURES", "valueFrom": {"configMapKeyRef": {"name": "features", "key": f"part-{number}"}}},
        ],
        "ports": [
            {"name": "http", "containerPort": 8080 + number},
            {"name": "dns", "containerPort": 5353 + number, "protocol": "UDP"},
        ],
        "resources": {"limits": {"cpu": 2, "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "256Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/part"}, {"name": "scratch", "mountPath": "/tmp"}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "initialDelaySeconds": 5},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 8080 + number}, "periodSeconds": 5},
        "securityContext": {"runAsUser": 1000, "runAsNonRoot": True, "capabilities": {"drop": ["ALL"]}},
    }


def sample(name: str) -> dict[str, Any]:
    """An object as a client sends it; defaults come on top."""
    labels = {"app.kubernetes.io/name": "workload", "app.kubernetes.io/part-of": "bench", "shard": name[-1]}
    spec = {
        "replicas": 3,
        "version": "v1.12.3",
        "selector": {"matchLabels": labels},
        "containers": [sample_container(number) for number in range(3)],
        "initContainers": [
            {"name": "migrate", "image": "registry.example.com/team/migrate:v3", "command": ["migrate"]}
        ],
        "volumes": [
            {"name": "config", "configMap": {"name": "config"}},
            {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
            {"name": "credentials", "secret": {"secretName": "credentials"}},
        ],
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "bench", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [
            {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"shard": name[-1]}}}
        ],
        "nodeSelector": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
        "serviceAccountName": "workload",
        "storage": {"className": "fast", "size": "20Gi", "accessModes": ["ReadWriteOnce"]},
        "backup": {
            "schedule": "0 3 * * *",
            "bucket": "backups",
            "endpoint": "https://objects.example.com/backups",
            "startedAfter": "2026-01-01T00:00:00Z",
            "encryption": {"key": {"name": "backup-key", "key": "key"}},
        },
        "metrics": {"labels": {"team": "bench", "tier": "backend"}, "ratio": 0.25},
        "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        "autoscaling": {"maxReplicas": 12, "behavior": {"scaleUp": "Fast"}},
        "service": {"ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
        "tls": {"secretName": "workload-tls", "dnsNames": ["workload.example.com"], "issuerRef": {"name": "internal"}},
        "config": {f"setting-{number}": f"value of setting {number}" for number in range(8)},
    }
    metadata = {
        "name": name,
        "namespace": "default",
        "labels": labels,
        "annotations": {"example.com/owner": "team-bench"},
    }
    return {"apiVersion": f"{GROUP}/v1", "kind": KIND, "metadata": metadata, "spec": spec}


if __name__ == "__main__":
    print(f"{fields(SCHEMA)} fields; an object has {len(json.dumps(sample('w-000000'), separators=(',', ':')))} bytes")
