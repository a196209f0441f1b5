"""Why manifests cannot be made."""

from __future__ import annotations


class GenerateError(Exception):
    """What of an operator cannot be said in manifests, and what to do about it."""
