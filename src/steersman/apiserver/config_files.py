"""Configuration files of the API server: decoded strictly, and read again when they change.

Source: apiserver `pkg/apis/apiserver/load`, `pkg/util/filesystem`; apimachinery `pkg/runtime/serializer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

from steersman._util.gotext import quote
from steersman.apimachinery.codec import json, yaml
from steersman.apimachinery.go_types import TypeTable
from steersman.apimachinery.go_values import DecodeError, json_kind

log = logging.getLogger("steersman.apiserver")
_ONLY_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_NO_TYPE = "couldn't get version/kind; json parse error"
GROUP = "apiserver.config.k8s.io"
INTERVAL = 1.0
"""Seconds between looks at a file."""


class ConfigFileError(ValueError):
    """A configuration file cannot be used; the message says why, in upstream's words."""


def decode_config(raw: bytes, kind: str, versions: Collection[str], table: TypeTable) -> dict[str, Any]:
    """The object in a file's bytes, of a kind of apiserver.config.k8s.io whose fields `table` has under its name.

    Raises ConfigFileError, for fields that are not known or written twice, too.
    """
    value, duplicates = _parsed(raw)
    given = {} if value is None else value
    if not isinstance(given, dict):
        why = f"json: cannot unmarshal {json_kind(value)} into Go value of type {_ONLY_TYPE}"
        raise ConfigFileError(f"{_NO_TYPE}: {why}")
    for key, called in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if not given.get(key):
            raise ConfigFileError(f"Object '{called}' is missing in '{raw.decode(errors='replace')}'")
    group, _, version = str(given["apiVersion"]).rpartition("/")
    if (group, given["kind"]) != (GROUP, kind) or version not in versions:
        where = f'version {quote(str(given["apiVersion"]))} in scheme "pkg/runtime/scheme.go:111"'
        raise ConfigFileError(f"no kind {quote(str(given['kind']))} is registered for {where}")
    try:
        decoded, unknown = table.decode(kind, value)
    except DecodeError as error:
        raise ConfigFileError(str(error)) from None
    problems = [yaml.strict_error(duplicates)] if duplicates else []
    problems += [f"unknown field {quote(name)}" for name in unknown]
    if problems:
        raise ConfigFileError(f"strict decoding error: {', '.join(problems)}")
    found: dict[str, Any] = decoded
    return found


def _parsed(raw: bytes) -> tuple[Any, list[str]]:
    """The value, and what is said of keys that stand twice."""
    try:
        if raw.lstrip().startswith(b"{"):
            return json.decode(raw), []
        return yaml.decode_with_duplicates(raw)
    except (json.JsonError, yaml.YamlError) as error:
        raise ConfigFileError(f"{_NO_TYPE}: {error}") from None


class NotYetError(ConfigFileError):
    """What a file says cannot be done now, but may be later."""


class FollowedFile:
    """Reads a file again when it has changed: its bytes go to `apply`, whose ConfigFileError is logged.

    The file is looked at every second. One that cannot be read, or used, changes nothing.
    """

    def __init__(self, path: Path, held: bytes, apply: Callable[[bytes], Awaitable[None]]) -> None:
        self._path = path
        self._held = held
        self._apply = apply
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL)
            try:
                await self.look()
            except Exception:
                log.exception("following a configuration file failed", extra={"path": str(self._path)})

    async def look(self) -> None:
        """Apply the file's content if it is another than before."""
        try:
            raw = self._path.read_bytes()
        except OSError as error:
            log.error("a configuration file cannot be read", extra={"path": str(self._path), "why": error.strerror})
            return
        if raw == self._held:
            return
        before, self._held = self._held, raw
        try:
            await self._apply(raw)
        except ConfigFileError as error:
            if isinstance(error, NotYetError):
                self._held = before
            log.error("a configuration file was not reloaded", extra={"path": str(self._path), "why": str(error)})
        else:
            log.info("a configuration file was reloaded", extra={"path": str(self._path)})
