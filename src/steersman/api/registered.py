"""Which kinds Kubernetes knows by name, served or not, and what it says to an object of the wrong one.

Source: apimachinery `pkg/runtime/{scheme,error}.go`, `pkg/runtime/serializer/versioning`.
"""

from __future__ import annotations

from steersman._util.gotext import quote
from steersman.api import _data
from steersman.apimachinery.gvk import split_api_version

_SCHEME = '"pkg/runtime/scheme.go:111"'
_PACKAGES = {"": "core", "events.k8s.io": "core", "internal.apiserver.k8s.io": "apiserverinternal"}
_OWN_SCHEMES = ("apiextensions.k8s.io", "apiregistration.k8s.io")
_IN_ANY_VERSION = frozenset({"Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"})
_IN_EVERY_VERSION = frozenset(
    {"ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions", "WatchEvent"}
)


def refusal(given: str, kind: str, api_version: str, expected: str) -> str:
    """Why an object of apiVersion `given` and `kind` is not taken where `expected` in `api_version` is."""
    if why := unconvertible(given, kind, api_version, expected):
        _, version = split_api_version(given)
        return f"{kind} in version {quote(version)} cannot be handled as a {expected}: {why}"
    return f"the API version in the data ({given}) does not match the expected API version ({api_version})"


def unconvertible(given: str, kind: str, api_version: str, expected: str) -> str:
    """Why such an object cannot be converted to the expected kind; "" when it can."""
    group, version = split_api_version(given)
    expected_group, _ = split_api_version(api_version)
    if not _is_known(given, kind, _scheme(expected_group)):
        return f"no kind {quote(kind)} is registered for version {quote(given)} in scheme {_SCHEME}"
    package = _package(expected_group)
    if kind == expected and (group == "extensions" or kind == "Scale" or _package(group) == package):
        return ""
    if kind in _IN_ANY_VERSION:
        version = "v1"
    return f"converting ({version}.{kind}) to ({package}.{expected}): unknown conversion"


def _is_known(api_version: str, kind: str, scheme: str) -> bool:
    if kind in _IN_ANY_VERSION:
        return True
    group, version = split_api_version(api_version)
    if _scheme(group) != scheme:
        return False
    served, old = _data.protobuf_schema().kinds, _data.load("versions")
    start = f"{group}/{version}/"
    if kind in _IN_EVERY_VERSION:
        return api_version in old or any(key.startswith(start) for key in served)
    one = kind.removesuffix("List")
    return (api_version, kind) == ("v1", "List") or start + one in served or one in old.get(api_version, ())


def _scheme(group: str) -> str:
    """Groups of servers that are linked into kube-apiserver have schemes of their own."""
    return group if group in _OWN_SCHEMES else ""


def _package(group: str) -> str:
    """The Go package of a group's types in the form that the server works with."""
    return _PACKAGES.get(group) or group.partition(".")[0]
