"""Group, version, kind and resource: the coordinates of everything the API serves."""

from __future__ import annotations

from typing import NamedTuple


class GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return api_version(self.group, self.version)


class GroupVersionResource(NamedTuple):
    group: str
    version: str
    resource: str

    @property
    def api_version(self) -> str:
        return api_version(self.group, self.version)


def api_version(group: str, version: str) -> str:
    """`apps/v1`, or `v1` in the core group."""
    return f"{group}/{version}" if group else version


def split_api_version(text: str) -> tuple[str, str]:
    """(group, version) of an apiVersion. Raises ValueError, in upstream's words, for more than one slash."""
    if text in ("", "/"):
        return "", ""
    parts = text.split("/")
    if len(parts) == 1:
        return "", parts[0]
    if len(parts) == 2:
        return parts[0], parts[1]
    raise ValueError(f"unexpected GroupVersion string: {text}")
