import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steersman._util.logs import REDACTED, JsonFormatter, LogFormat, TextFormatter, configure

Start = Callable[..., io.StringIO]


@pytest.fixture
def start() -> Iterator[Start]:
    """Configures logging to a buffer; everything is set back afterwards."""
    root, own = logging.getLogger(), logging.getLogger("steersman")
    handlers, levels = list(root.handlers), (root.level, own.level)

    def configured(log_format: LogFormat, verbosity: int = 0) -> io.StringIO:
        stream = io.StringIO()
        configure(log_format, verbosity, stream)
        return stream

    yield configured
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    own.setLevel(levels[1])


def as_json(message: str, **fields: Any) -> dict[str, Any]:
    record = logging.makeLogRecord({"name": "steersman.x", "levelname": "INFO", "msg": message, "created": 1.25})
    vars(record).update(fields)
    line = JsonFormatter().format(record)
    assert "\n" not in line
    return json.loads(line)


def as_text(message: str, **fields: Any) -> str:
    record = logging.makeLogRecord({"name": "steersman.x", "levelname": "INFO", "msg": message, "created": 1.25})
    vars(record).update(fields)
    return TextFormatter().format(record)


def failure() -> Any:
    try:
        raise KeyError("gone")
    except KeyError:
        return sys.exc_info()


def test_a_line_of_json() -> None:
    assert as_json("served", code=200, resource={"group": "g"}) == {
        "time": "1970-01-01T00:00:01.250Z",
        "level": "info",
        "logger": "steersman.x",
        "msg": "served",
        "code": 200,
        "resource": {"group": "g"},
    }


def test_a_field_does_not_hide_another() -> None:
    assert as_json("served", time="now", level=3)["time"] == "1970-01-01T00:00:01.250Z"
    assert as_json("served", time="now")["time_"] == "now"


@pytest.mark.parametrize("value", ["\udc80", 2**70, {1, 2}, object(), b"raw", {3: {"a": 2**70}}])
def test_any_value_can_be_logged(value: object) -> None:
    assert "field" in as_json("served", field=value)


def test_an_exception_stays_on_its_line_of_json() -> None:
    assert as_json("failed", exc_info=failure())["exception"].endswith("KeyError: 'gone'")


def test_a_line_of_text() -> None:
    line = as_text("served", code=200, path="/a b", agent='x"y', empty="")
    assert line == ('1970-01-01T00:00:01.250Z INFO    steersman.x: served code=200 path="/a b" agent="x\\"y" empty=""')


def test_text_cannot_be_forged_by_what_a_client_sends() -> None:
    assert "\n" not in as_text("no such path /a\n1970 ERROR forged", user="x\ny")
    assert as_text("failed", exc_info=failure()).endswith("KeyError: 'gone'")


@pytest.mark.parametrize("form", [as_json, as_text])
@pytest.mark.parametrize("name", ["authorization", "Authorization", "token", "cookie", "password", "body"])
def test_secrets_are_not_written(form: Callable[..., object], name: str) -> None:
    for line in (form("served", **{name: "s3cret"}), form("served", headers={name: "s3cret", "accept": "x"})):
        assert "s3cret" not in str(line)
        assert REDACTED in str(line)


@pytest.mark.parametrize(
    ("verbosity", "shown"),
    [
        (0, ["own info", "lib info"]),
        (1, ["own info", "own debug", "lib info"]),
        (4, ["own info", "own debug", "lib info", "lib debug"]),
    ],
)
def test_verbosity(start: Start, verbosity: int, shown: list[str]) -> None:
    stream = start("json", verbosity)
    for name, logger in (("own", logging.getLogger("steersman.x")), ("lib", logging.getLogger("some.library"))):
        logger.info("%s info", name)
        logger.debug("%s debug", name)
    assert [json.loads(line)["msg"] for line in stream.getvalue().splitlines()] == shown


def test_configuring_again_replaces(start: Start) -> None:
    first = start("json")
    second = start("text")
    logging.getLogger("steersman.x").warning("careful", extra={"code": 500})
    assert first.getvalue() == ""
    assert second.getvalue().endswith("WARNING steersman.x: careful code=500\n")
