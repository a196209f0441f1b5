"""Names of container images: host, path, tag and digest.

Source: kubernetes `pkg/util/parsers/parsers.go`; github.com/distribution/reference `normalize.go`, `regexp.go`.
"""

from __future__ import annotations

import re2

from steersman._util.lazily import lazily

_HUB = "docker.io"
_MAX_PATH = 255
_MAX_TAG = 128
_HEX_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
_HOST_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_TAG = "[0-9A-Za-z_][0-9A-Za-z_.-]*"
_name = lazily(
    re2.compile, rf"{_HOST}/(?P<path>{_PATH_PART}(?:/{_PATH_PART})*)(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?"
)
_identifier = lazily(re2.compile, "[a-f0-9]{64}")


def image_tag(image: str) -> str:
    """The tag of an image's name, `latest` when it has neither tag nor digest.

    It is "" beside a digest alone, and where the text is no image's name at all.
    """
    found = None if _identifier.fullmatch(image) else _name.fullmatch(_with_host(image))
    if found is None or len(found["path"]) > _MAX_PATH:
        return ""
    tag, digest = found["tag"] or "", found["digest"] or ""
    if len(tag) > _MAX_TAG or (digest and not _known_digest(digest)):
        return ""
    return tag or ("" if digest else "latest")


def _with_host(image: str) -> str:
    """The name in full: what looks like no host is a part of the path on the hub."""
    first, slash, rest = image.partition("/")
    if not slash:
        return f"{_HUB}/library/{image}"
    if first not in (_HUB, "index.docker.io"):
        is_host = first == "localhost" or "." in first or ":" in first or first.lower() != first
        return image if is_host else f"{_HUB}/{image}"
    return f"{_HUB}/{rest}" if "/" in rest else f"{_HUB}/library/{rest}"


def _known_digest(digest: str) -> bool:
    algorithm, _, text = digest.partition(":")
    return len(text) == _HEX_LENGTHS.get(algorithm) and text == text.lower()
