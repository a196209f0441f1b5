"""Discovery: groups, versions and resources, document by document or all at once (aggregated).

Source: apiserver `pkg/endpoints/discovery`, KEP-3352 (aggregated discovery).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from steersman.apimachinery.codec import json as codec
from steersman.apimachinery.codec.negotiate import JSON, parse_accept
from steersman.apimachinery.errors import no_such_resource
from steersman.apiserver.catalog import Catalog, Listed
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers
from steersman.apiserver.exchange import Answer, Exchange
from steersman.net.http import Response

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"


def api_versions(core: Core, x: Exchange) -> Answer:
    """GET /api."""
    answers.route(x.request.headers.get("accept", ""))
    if version := _wants_aggregated(x):
        return _aggregated(core, x, version, core_group=True)
    address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": x.request.headers.get("host", "")}]
    content = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address}
    return answers.value(200, answers.accepted(x, frozenset()), content)


def groups(core: Core, x: Exchange) -> Answer:
    """GET /apis."""
    if version := _wants_aggregated(x):
        return _aggregated(core, x, version, core_group=False)
    found = [_group(name, versions) for name, versions in core.catalog.groups().items() if name]
    return answers.value(
        200, answers.accepted(x, frozenset()), {"kind": "APIGroupList", "apiVersion": "v1", "groups": found}
    )


def group(core: Core, x: Exchange, name: str) -> Answer:
    """GET /apis/GROUP."""
    versions = core.catalog.groups().get(name)
    if not versions or not name:
        return answers.page_not_found()
    content = {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}
    return answers.value(200, answers.accepted(x, frozenset()), content)


def resources(core: Core, x: Exchange, group: str, version: str) -> Answer:
    """GET /api/v1 and /apis/GROUP/VERSION."""
    if core.catalog.is_builtin(group):
        answers.route(x.request.headers.get("accept", ""))
    scopes = core.catalog.listed(group, version)
    if not scopes:
        if core.catalog.is_builtin(group):
            raise no_such_resource()
        return answers.page_not_found()
    listed = [item for scope in scopes for item in _api_resources(scope)]
    content = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": sorted(listed, key=lambda item: item["name"]) if not scopes[0].custom else listed,
    }
    if not group:
        del content["apiVersion"]
    return answers.value(200, answers.accepted(x, frozenset()), content)


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _api_resources(scope: Listed) -> list[dict[str, Any]]:
    item: dict[str, Any] = {
        "name": scope.gvr.resource,
        "singularName": scope.singular,
        "namespaced": scope.namespaced,
        "kind": scope.kind,
        "verbs": _verbs(scope),
    }
    if scope.short_names:
        item["shortNames"] = list(scope.short_names)
    if scope.categories:
        item["categories"] = list(scope.categories)
    if scope.storage_version_hash:
        item["storageVersionHash"] = scope.storage_version_hash
    return [item, *(_subresource(scope, name, facts) for name, facts in scope.subresources.items())]


def _subresource(scope: Listed, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    item = {
        "name": f"{scope.gvr.resource}/{name}",
        "singularName": "",
        "namespaced": scope.namespaced,
        "kind": facts.get("kind", scope.kind),
        "verbs": list(facts["verbs"]),
    }
    if "group" in facts or "version" in facts:
        item["group"], item["version"] = facts.get("group", ""), facts["version"]
    return item


_CUSTOM_ORDER = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def _verbs(scope: Listed) -> list[str]:
    return [verb for verb in _CUSTOM_ORDER if verb in scope.verbs] if scope.custom else sorted(scope.verbs)


def _wants_aggregated(x: Exchange) -> str:
    """The version of aggregated discovery that the client prefers to plain JSON, or ""."""
    for term in parse_accept(x.request.headers.get("accept", "")):
        if term.type != JSON:
            continue
        parameters = term.parameters
        if not parameters.get("as"):
            return ""
        if (
            parameters.get("as") == "APIGroupDiscoveryList"
            and parameters.get("g") == "apidiscovery.k8s.io"
            and parameters.get("v") in ("v2", "v2beta1")
        ):
            return parameters["v"]
    return ""


def _aggregated(core: Core, x: Exchange, version: str, *, core_group: bool) -> Answer:
    name = ("aggregated discovery", version, core_group)
    body, etag = core.catalog.remembered(name, lambda: _document(core.catalog, version, core_group))
    headers = (
        ("Cache-Control", "public"),
        ("Content-Type", AGGREGATED.format(version=version)),
        ("ETag", etag),
        ("Vary", "Accept"),
    )
    if x.request.headers.get("if-none-match") == etag:
        return Response(304, headers)
    return Response(200, headers, body)


def _document(catalog: Catalog, version: str, core_group: bool) -> tuple[bytes, str]:
    """An aggregated document, and its ETag."""
    items = [
        _group_discovery(catalog, name, versions)
        for name, versions in catalog.groups().items()
        if (name == "") == core_group
    ]
    body = codec.encode(
        {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": f"apidiscovery.k8s.io/{version}",
            "metadata": {},
            "items": items,
        }
    )
    return body, f'"{hashlib.sha512(body).hexdigest().upper()}"'


def _group_discovery(catalog: Catalog, name: str, versions: list[str]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name} if name else {}
    return {
        "metadata": {**metadata, "creationTimestamp": None},
        "versions": [
            {
                "version": version,
                "resources": [_resource_discovery(scope) for scope in catalog.listed(name, version)],
                "freshness": "Current",
            }
            for version in versions
        ],
    }


def _resource_discovery(scope: Listed) -> dict[str, Any]:
    item: dict[str, Any] = {
        "resource": scope.gvr.resource,
        "responseKind": {"group": scope.gvr.group, "version": scope.gvr.version, "kind": scope.kind},
        "scope": "Namespaced" if scope.namespaced else "Cluster",
        "singularResource": scope.singular,
        "verbs": _verbs(scope),
    }
    if scope.short_names:
        item["shortNames"] = list(scope.short_names)
    if scope.categories:
        item["categories"] = list(scope.categories)
    if scope.subresources:
        item["subresources"] = [_subresource_discovery(scope, name, f) for name, f in scope.subresources.items()]
    return item


def _subresource_discovery(scope: Listed, name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    kind = {
        "group": facts.get("group", scope.gvr.group),
        "version": facts.get("version", scope.gvr.version),
        "kind": facts.get("kind", scope.kind),
    }
    return {"subresource": name, "responseKind": kind, "verbs": list(facts["verbs"])}
