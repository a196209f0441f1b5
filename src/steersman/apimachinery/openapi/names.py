"""Operation ids, tags and the sentences that describe operations.

Source: apiserver `pkg/endpoints/openapi/openapi.go`, `pkg/endpoints/installer.go` (articles).
"""

from __future__ import annotations


def identifier(text: str, *, capitalize: bool) -> str:
    """The text without anything but letters, digits and `_`; a letter after what was left out is upper case."""
    out: list[str] = []
    for index, character in enumerate(text):
        if character.isalpha() or character == "_" or (index and character.isdigit()):
            out.append(character.upper() if capitalize else character)
            capitalize = False
        else:
            capitalize = True
    return "".join(out)


def _group(group: str) -> str:
    return group.removesuffix(".k8s.io") or "core"


def tag(group: str, version: str = "") -> str:
    """The tag that a group's operations carry: `core_v1`, `rbacAuthorization_v1`; `core` without a version."""
    text = identifier(_group(group), capitalize=False)
    return f"{text}_{identifier(version, capitalize=False)}" if version else text


def operation_id(verb: str, group: str, version: str, rest: str) -> str:
    """A unique id: `listCoreV1NamespacedPod` for list, "", v1, NamespacedPod."""
    prefix = identifier(_group(group), capitalize=True)
    return f"{verb}{prefix}{identifier(version, capitalize=True)}{identifier(rest, capitalize=True)}"


def with_article(kind: str) -> str:
    """The kind after `a`, `an` or, when it looks like a plural, nothing."""
    if kind.endswith("s") and not kind.endswith("ss"):
        return kind
    return f"an {kind}" if kind[0].lower() in "aeiou" else f"a {kind}"
