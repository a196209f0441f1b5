"""Which resource an object is of, by its key in the store.

Source: kubernetes `pkg/kubeapiserver/default_storage_factory_builder.go`; apiextensions `pkg/apiserver/crdserver`.
"""

from __future__ import annotations

from functools import cache, lru_cache

from steersman.api.kinds import builtin_kinds

GroupResource = tuple[str, str]


def resource_of(key: bytes) -> GroupResource:
    """The group and resource of a key under `/registry/`."""
    parts = key.split(b"/", 4)
    return _resource(parts[2], parts[3]) if len(parts) > 3 else _resource(parts[-1], b"")


@lru_cache(4096)
def _resource(first: bytes, second: bytes) -> GroupResource:
    """That of keys that go on with these two parts; the second may be a namespace."""
    one, two = first.decode(errors="replace"), second.decode(errors="replace")
    table = _by_prefix()
    known = table.get(f"{one}/{two}") or table.get(one)
    if known is not None:
        return known
    return (one, two) if "." in one else ("", one)


@cache
def _by_prefix() -> dict[str, GroupResource]:
    stored = (kind.storage_kind for kind in builtin_kinds() if kind.stored)
    return {kind.storage_prefix: (kind.group, kind.plural) for kind in stored}
