"""Warnings about files of one volume that hide each other.

Source: kubernetes `pkg/api/pod/warnings.go` (warningsForOverlappingVirtualPaths).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from steersman._util.gotext import quote

Object = Mapping[str, Any]


class _File(NamedTuple):
    path: str
    source: str

    def __str__(self) -> str:
        return f"{quote(self.path)} ({self.source})" if self.source else quote(self.path)


def overlap_warnings(volumes: Sequence[Object]) -> list[str]:
    """What to say of the paths in these volumes."""
    found: list[str] = []
    for volume in volumes:
        name = quote(volume.get("name") or "")
        for kind, text in _mapped(volume):
            files = (_File(item.get("path") or "", "") for item in volume[kind].get("items") or ())
            found += [f"volume {name} ({text}): overlapping paths: {each}" for each in _overlaps(files)]
        if volume.get("projected") is not None:
            found += _projected(name, volume["projected"].get("sources") or ())
    return found


def _mapped(volume: Object) -> Iterable[tuple[str, str]]:
    """The sources of a volume that map keys to paths, and how a warning calls them."""
    if (source := volume.get("configMap")) is not None:
        yield "configMap", f"ConfigMap {quote(source.get('name') or '')}"
    if (source := volume.get("secret")) is not None:
        yield "secret", f"Secret {quote(source.get('secretName') or '')}"
    if volume.get("downwardAPI") is not None:
        yield "downwardAPI", "DownwardAPI"


def _projected(name: str, sources: Sequence[Object]) -> list[str]:
    """Of a projected volume: its sources share one tree, and each is there."""
    found: list[str] = []
    files: list[_File] = []
    for source in sources:
        if not any(value is not None for value in source.values()):
            found.append(f"volume {name} (Projected) has no sources provided")
            continue
        for file in _files_of(source):
            hidden = _overlaps([file], files)
            found += [f"volume {name} (Projected): overlapping paths: {each}" for each in hidden]
    return found


def _files_of(source: Object) -> list[_File]:
    for key, kind in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
        items = (source.get(key) or {}).get("items")
        if items is not None:
            text = kind if key == "downwardAPI" else f"{kind} {quote(source[key].get('name') or '')}"
            return [_File(item.get("path") or "", text) for item in items]
    if (token := source.get("serviceAccountToken")) is not None:
        return [_File(token.get("path") or "", "ServiceAccountToken")]
    if (bundle := source.get("clusterTrustBundle")) is not None:
        named = bundle.get("name") if bundle.get("name") is not None else bundle.get("signerName")
        return [_File(bundle.get("path") or "", f"ClusterTrustBundle {quote(named or '')}")]
    certificate = source.get("podCertificate") or {}
    kinds = (("certificateChainPath", "chain"), ("keyPath", "key"), ("credentialBundlePath", "credential bundle"))
    return [_File(certificate[key], f"PodCertificate {text}") for key, text in kinds if certificate.get(key)]


def _overlaps(files: Iterable[_File], known: list[_File] | None = None) -> list[str]:
    """Each file that lies at, above or below one before it, and that one; the files are added to those known."""
    known = [] if known is None else known
    found = []
    for given in files:
        file = _File(given.path.rstrip("/"), given.source)
        found += [f"{file} with {other}" for other in known if file.path and other.path and _clash(file, other)]
        known.append(file)
    return found


def _clash(one: _File, other: _File) -> bool:
    return f"{one.path}/".startswith(f"{other.path}/") or f"{other.path}/".startswith(f"{one.path}/")
