"""A process's log: one line a message on stderr, as JSON objects or as text.

Messages carry their facts as `extra` fields (`logger.info("served", extra={"code": 200})`). Fields that name a secret
or a body are never written, whatever they hold.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

import orjson

LogFormat = Literal["json", "text"]

REDACTED = "--- REDACTED ---"
_SECRET_FIELDS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "token",
        "password",
        "secret",
        "private_key",
        "body",
    }
)
# The keys of formatting (message, asctime) are set by other handlers' formatters on the same record.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure(log_format: LogFormat = "text", verbosity: int = 0, stream: TextIO | None = None) -> logging.Handler:
    """Sends all logging of this process to `stream` (default: stderr) and returns the handler that does.

    `verbosity` as with `-v`: 0 shows information, warnings and errors; from 1 also the server's debug messages; from
    4 those of libraries too. A second call replaces what the first set up.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    for old in [found for found in root.handlers if isinstance(found.formatter, JsonFormatter | TextFormatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if verbosity >= 4 else logging.INFO)
    logging.getLogger("steersman").setLevel(logging.DEBUG if verbosity >= 1 else logging.INFO)
    return handler


class JsonFormatter(logging.Formatter):
    """`{"time", "level", "logger", "msg", extra fields..., "exception"}`; an extra field never hides one of those."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        for name, value in _fields(record).items():
            line[name if name not in line else f"{name}_"] = value
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        except TypeError:  # lone surrogates, integers of more than 64 bits
            return json.dumps(line, default=str, separators=(",", ":"))


class TextFormatter(logging.Formatter):
    """`TIME LEVEL LOGGER: message field=value ...`, then the lines of the exception, if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname:<7} {record.name}: {_one_line(record.getMessage())}"
        line += "".join(f" {name}={_word(value)}" for name, value in _fields(record).items())
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return _without_secrets({name: value for name, value in vars(record).items() if name not in _STANDARD})


def _without_secrets(fields: Mapping[Any, Any]) -> dict[Any, Any]:
    return {
        name: REDACTED
        if str(name).lower() in _SECRET_FIELDS
        else _without_secrets(value)
        if isinstance(value, Mapping)
        else value
        for name, value in fields.items()
    }


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def _one_line(text: str) -> str:
    # A message may quote what a client sent: it must not be able to start a line of its own.
    return text if text.isprintable() else "".join(ch if ch.isprintable() else repr(ch)[1:-1] for ch in text)


def _word(value: object) -> str:
    text = str(value)
    return text if text.isprintable() and text and not set(text) & {" ", '"', "="} else json.dumps(text)
