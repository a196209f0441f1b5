"""Why manifests cannot be made."""

from __future__ import annotations


class GenerateError(Exception):
    """What of an operator cannot be said in manifests, and what to do about it."""


def told(error: Exception) -> str:
    """An error as one line for the user."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)
