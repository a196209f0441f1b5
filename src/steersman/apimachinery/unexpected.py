"""What a client makes of an answer that is no Status: the error for its HTTP code.

Source: apimachinery `pkg/api/errors/errors.go` (NewGenericServerResponse), client-go `rest/request.go`.
"""

from __future__ import annotations

from typing import Any

import orjson

from steersman._util.gotext import quote

UNKNOWN = "unknown"
_MAX_TEXT = 2048
_MESSAGES = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
_NOT_ACCEPTABLE = "the server was unable to respond with a content type that the client supports"


def describe(code: int, content_type: str, body: bytes) -> str:
    """The message of the error that an answer with another code than success stands for: its Status's own, if it is
    one, else what the code means."""
    if message := _status_message(body):
        return message
    text = UNKNOWN
    if not content_type or content_type.strip().lower().startswith("text/"):
        text = body[:_MAX_TEXT].decode(errors="replace").strip()
    if code in _MESSAGES:
        return _MESSAGES[code]
    if code in (403, 415):
        return text
    if code == 406:
        return _NOT_ACCEPTABLE if text in ("", UNKNOWN) else text
    if code >= 500:
        return f"an error on the server ({quote(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {code} but did not return more information"


def _status_message(body: bytes) -> str:
    try:
        status: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    if not isinstance(status, dict) or status.get("kind") != "Status" or status.get("status") == "Success":
        return ""
    return str(status.get("message") or "")
