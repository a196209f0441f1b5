"""Requests as a hostile or broken client might make them, near enough to good ones to get somewhere."""

from __future__ import annotations

import json
from urllib.parse import quote

from hypothesis import strategies as st

CORE = "/api/v1/namespaces/default"
THINGS = "/apis/fuzz.example.com/v1/namespaces/default/things"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ROLE_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
KINDS = ("configmaps", "secrets", "events", "serviceaccounts", "services", "pods")

JUNK = st.text(max_size=8) | st.sampled_from(
    [
        "",
        ".",
        "..",
        "/",
        "%",
        "%00",
        "a/b",
        "A_B",
        "-",
        "0",
        "-1",
        "9" * 25,
        "true",
        "x" * 300,
        "é",
        "\0",
        "{}",
        "[",
        "=",
    ]
)
SEGMENTS = st.sampled_from(
    [
        "api",
        "apis",
        "v1",
        "apps",
        "namespaces",
        "default",
        "kube-system",
        "configmaps",
        "secrets",
        "leases",
        "a",
        "nope",
        "things",
        "fuzz.example.com",
        "coordination.k8s.io",
        "status",
        "scale",
        "finalize",
        "watch",
        "proxy",
        "deployments",
        "rbac.authorization.k8s.io",
        "roles",
        "events",
        "openapi",
        "v2",
        "v3",
        "healthz",
        "metrics",
        "version",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "things.fuzz.example.com",
    ]
)
KNOWN_PATHS = st.sampled_from(
    [
        CORE,
        f"{CORE}/finalize",
        f"{CORE}/status",
        "/api/v1/namespaces",
        f"{THINGS}/a/status",
        f"{THINGS}/a/scale",
        "/apis/apps/v1/deployments",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/view",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.fuzz.example.com",
        *(
            f"{collection}{item}"
            for collection in (THINGS, LEASES, DEPLOYMENTS, ROLE_BINDINGS, *(f"{CORE}/{kind}" for kind in KINDS))
            for item in ("", "/a", "/b")
        ),
    ]
)
PATHS = KNOWN_PATHS | st.lists(SEGMENTS | JUNK, max_size=8).map(lambda parts: "/" + "/".join(quote(p) for p in parts))
QUERIES = st.dictionaries(
    st.sampled_from(
        [
            "limit",
            "continue",
            "labelSelector",
            "fieldSelector",
            "resourceVersion",
            "resourceVersionMatch",
            "watch",
            "sendInitialEvents",
            "timeoutSeconds",
            "fieldManager",
            "fieldValidation",
            "force",
            "pretty",
            "dryRun",
            "allowWatchBookmarks",
            "propagationPolicy",
            "gracePeriodSeconds",
            "orphanDependents",
            "includeObject",
        ]
    ),
    JUNK
    | st.sampled_from(["All", "Strict", "Warn", "Exact", "NotOlderThan", "a=b", "a in (b)", "metadata.name=a", "me"]),
    max_size=4,
)
KEYS = st.sampled_from(
    [
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "fieldsV1",
        "manager",
        "spec",
        "status",
        "data",
        "binaryData",
        "immutable",
        "stringData",
        "replicas",
        "n",
        "s",
        "list",
        "any",
        "port",
        "rules",
        "roleRef",
        "subjects",
        "$patch",
        "$retainKeys",
        "$setElementOrder/list",
        "op",
        "path",
        "from",
        "value",
        "f:spec",
        ".",
        "k:{}",
        "holderIdentity",
        "acquireTime",
        "involvedObject",
        "template",
        "selector",
        "preconditions",
        "versions",
        "names",
        "scope",
        "group",
        "conversion",
        "schema",
        "openAPIV3Schema",
        "type",
        "properties",
        "served",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | JUNK
    | st.sampled_from(["v1", "ConfigMap", "fuzz.example.com/v1", "Thing", "a", "default", "Lease", "/spec/n", "delete"])
    | st.sampled_from(["2020-01-01T00:00:00Z", "add", "copy", "remove", "test", "/metadata/labels", "/spec", "", "/-"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | JUNK, inner, max_size=4), max_leaves=12
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(["v1", "fuzz.example.com/v1", "apps/v1", "coordination.k8s.io/v1", "a/b/c"])
        | VALUES,
        "kind": st.sampled_from(["ConfigMap", "Thing", "Lease", "Deployment", "Scale", "Namespace"]) | VALUES,
        "metadata": st.dictionaries(KEYS, VALUES, max_size=4).map(lambda meta: {"name": "a", **meta}) | VALUES,
        "spec": st.dictionaries(KEYS, VALUES, max_size=4) | VALUES,
        "status": VALUES,
        "data": VALUES,
        "rules": VALUES,
    },
)
OPERATIONS = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]) | VALUES},
        optional={
            "path": st.sampled_from(["", "/", "/spec", "/spec/n", "/metadata", "/metadata/labels/a", "/kind"]) | VALUES,
            "from": st.sampled_from(["", "/spec", "/metadata", "/metadata/name"]) | VALUES,
            "value": VALUES,
        },
    ),
    max_size=5,
)
BODIES = (
    (OBJECTS | OPERATIONS | VALUES).map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass"))
    | st.binary(max_size=40)
    | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.sampled_from([b"", b"{}", b"null", b"[", b"a: &a [*a]", b"- " * 2000, b"[" * 5000, b'{"a":1e999}'])
)
MEDIA = st.sampled_from(
    [
        "application/json",
        "application/yaml",
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "*/*",
        "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ]
)
HEADERS = st.fixed_dictionaries(
    {"content-type": MEDIA | JUNK},
    optional={
        "accept": MEDIA | JUNK,
        "user-agent": JUNK,
        "if-match": JUNK,
        "if-none-match": JUNK,
        "audit-id": st.text("abc-", max_size=9),
        "accept-encoding": st.sampled_from(["gzip", "identity", "*", ";q="]),
    },
)
METHODS = st.sampled_from(["GET", "POST", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS"])
