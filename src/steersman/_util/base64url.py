"""Base64url without padding, as JSON Web Tokens and Keys use it (RFC 7515, appendix C)."""

from __future__ import annotations

import base64

_FOREIGN = frozenset("+/=")
"""What base64 has, and base64url without padding has not."""


def encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode(text: str) -> bytes | None:
    """The bytes; None for what is no base64url, or has padding."""
    if not _FOREIGN.isdisjoint(text):
        return None
    try:
        return base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError:
        return None
