"""What a caller may name a kind by, and where its objects live in the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar
from urllib.parse import quote

Object: TypeAlias = dict[str, Any]
"""An untyped object: the JSON of the API, as it came."""

T_co = TypeVar("T_co", covariant=True)


class Kind(Protocol[T_co]):
    """What a client's methods take for a kind, and what its objects are then.

    A model class decorated with `@custom_resource` gives instances of itself, a `Resource` gives plain dicts.
    """

    def api_kind(self) -> Resource:
        """The kind's name. Raises TypeError for a model class that has none."""
        ...

    def from_wire(self, obj: Mapping[str, Any], /) -> T_co:
        """The object for the JSON of the API."""
        ...


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind without a model: its objects are plain dicts. `Resource("myorg.io/v1", "MyApp")`.

    `plural` and `namespaced` are asked of the server (discovery) where they are not given; where both are given no
    discovery happens.
    """

    api_version: str
    kind: str
    plural: str | None = None
    namespaced: bool | None = None

    def __post_init__(self) -> None:
        if not self.kind or not self.api_version:
            raise ValueError(
                f'a Resource needs an apiVersion and a kind, as in Resource("apps/v1", "Deployment"): {self}'
            )

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Resource:
        """The kind of an untyped object. Raises ValueError when it lacks apiVersion or kind."""
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
            raise ValueError("an untyped object needs apiVersion and kind, as in a manifest")
        return cls(api_version, kind)

    def api_kind(self) -> Resource:
        return self

    def from_wire(self, obj: Mapping[str, Any], /) -> Object:
        return obj if isinstance(obj, dict) else dict(obj)

    @property
    def group(self) -> str:
        """The API group, "" for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version in `api_version`: "v1" of "apps/v1"."""
        return self.api_version.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class ResourceMapping:
    """A kind as the server serves it."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool

    def path(self, namespace: str | None, name: str | None = None, subresource: str | None = None) -> str:
        """The percent-encoded URL path of the collection, an object, or one of its subresources.

        Raises ValueError for a name that cannot be one, as "" (the path would be the collection's) or "..".
        """
        root = "/apis" if "/" in self.api_version else "/api"
        parts = [root, self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name is not None:
            parts.append(_segment(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def _segment(name: str) -> str:
    """Source: apimachinery `pkg/api/validation/path/name.go` (IsValidPathSegmentName)."""
    if not name:
        raise ValueError("resource name may not be empty")
    if name in (".", "..") or "/" in name or "%" in name:
        raise ValueError(f"invalid resource name {name!r}: it may not be '.' or '..', nor contain '/' or '%'")
    return name if name.isascii() and name.replace("-", "").replace(".", "").isalnum() else quote(name, safe="")
