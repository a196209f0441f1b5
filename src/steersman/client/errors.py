"""Errors of the client itself. What the server answers is raised as `steersman.apimachinery.errors.ApiError`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """The base of all errors of the client itself."""


class ConfigError(ClientError):
    """The configuration cannot be used; the message is one line and says what to do."""


class CredentialsError(ClientError):
    """No credentials could be obtained: an exec plugin failed, or a token file cannot be read."""


class NoMatch(ClientError):
    """The server serves no such kind in this API version: the CRD is missing, or the version is not served."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no matches for kind "{kind}" in version "{api_version}"')
        self.api_version = api_version
        self.kind = kind


class DecodeError(ClientError):
    """An answer that is not what the API promises: `raw` is the object that does not fit its model, if there is one."""

    def __init__(self, message: str, raw: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.raw = raw
