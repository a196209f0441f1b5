"""Continue tokens of limited lists: where to go on, and in which snapshot.

Source: apiserver `pkg/storage/continue.go`. The layout is upstream's, so that its clients' tests read it.
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

import orjson

from steersman.apimachinery.errors import BadRequest


class ContinueToken(NamedTuple):
    """`revision` of the snapshot (-1: the newest data), `start` the first key still to be listed."""

    revision: int
    start: str


def encode_continue(revision: int, start: str) -> str:
    raw = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_continue(text: str) -> ContinueToken:
    """Raises BadRequest for a token that this API did not make."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        fields = orjson.loads(raw)
    except (binascii.Error, ValueError, orjson.JSONDecodeError):
        raise BadRequest("invalid continue token: continue key is not valid: it is none of this server's") from None
    if not isinstance(fields, dict) or fields.get("v") != "meta.k8s.io/v1":
        raise BadRequest("continue key is not valid: server does not recognize this encoded version")
    revision, start = fields.get("rv"), fields.get("start")
    if not isinstance(revision, int) or revision == 0:
        raise BadRequest("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise BadRequest("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    if ".." in start.split("/"):
        raise BadRequest("continue key is not valid")
    return ContinueToken(revision, start)
