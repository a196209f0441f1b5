"""The operations of the server itself: discovery and its version.

Source: apiserver `pkg/endpoints/discovery`, `pkg/server/routes/version.go`.
"""

from __future__ import annotations

from typing import Any

from steersman.apimachinery.openapi.names import operation_id, tag
from steersman.apimachinery.openapi.routes import META, Operation

_MEDIA = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
VERSION_INFO = "io.k8s.apimachinery.pkg.version.Info"
_VERSION_REQUIRED = (
    "major",
    "minor",
    "gitVersion",
    "gitCommit",
    "gitTreeState",
    "buildDate",
    "goVersion",
    "compiler",
    "platform",
)
_VERSION_OPTIONAL = ("emulationMajor", "emulationMinor", "minCompatibilityMajor", "minCompatibilityMinor")
VERSION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": list(_VERSION_REQUIRED),
    "properties": {
        **{name: {"type": "string", "default": ""} for name in _VERSION_REQUIRED},
        **{name: {"type": "string"} for name in _VERSION_OPTIONAL},
    },
}


def _discovery(path: str, group: str, version: str, id_: str, description: str, model: str) -> Operation:
    """A GET of a discovery document; `path` ends with a slash, as upstream registers it."""
    return Operation(
        method="get",
        path=path,
        id=id_,
        tag=tag(group, version),
        description=description,
        responses=((200, f"{META}{model}"),),
        produces=_MEDIA,
        consumes=_MEDIA,
    )


def version_resources(group: str, version: str) -> Operation:
    """GET /api/v1/ or /apis/GROUP/VERSION/."""
    path = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    id_ = operation_id("get", group, version, "APIResources")
    return _discovery(path, group, version, id_, "get available resources", "APIResourceList")


def group_information(group: str) -> Operation:
    """GET /apis/GROUP/; for "" GET /api/."""
    if not group:
        id_ = operation_id("get", "", "", "APIVersions")
        return _discovery("/api/", "", "", id_, "get available API versions", "APIVersions")
    id_ = operation_id("get", group, "", "APIGroup")
    return _discovery(f"/apis/{group}/", group, "", id_, "get information of a group", "APIGroup")


def all_groups() -> Operation:
    """GET /apis/."""
    return _discovery("/apis/", "apis", "", "getAPIVersions", "get available API versions", "APIGroupList")


def server_version() -> Operation:
    """GET /version/."""
    return Operation(
        method="get",
        path="/version/",
        id="getCodeVersion",
        tag="version",
        description="get the version information for this server",
        responses=((200, VERSION_INFO),),
        produces=_MEDIA[:1],
        consumes=_MEDIA[:1],
    )
