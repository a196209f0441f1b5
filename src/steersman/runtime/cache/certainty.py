"""Whether a state that a write has made holds anything that its writer does not know.

A write that is not guarded by a resourceVersion may have met a state that nobody here has seen. The server's answer
tells: if it is what was known before with the write done to it, then nothing else is in it.
"""

from __future__ import annotations

from steersman.apimachinery.patch import merge_patch
from steersman.client.resources import Object

_BOOKKEEPING = frozenset({"resourceVersion", "generation", "managedFields"})


def is_explained(before: Object, change: Object, answer: Object, *, subresource: str | None) -> bool:
    """Whether `answer` is `before` with `change` done to it: a merge patch, or what is applied.

    A write to /status changes nothing but the status. False when in doubt: where the server has filled in or left out
    something, or merges lists item by item.
    """
    if subresource not in (None, "status"):
        return False
    told = {"status": change.get("status")} if subresource == "status" else change
    return _content(merge_patch.apply(before, told)) == _content(answer)


def _content(obj: Object) -> Object:
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _BOOKKEEPING}
    return {**obj, "metadata": metadata}
