"""Bytes to requests: one connection's parser, its limits, and what must be refused. No sockets."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from string import ascii_letters, digits
from typing import Any
from urllib.parse import urlsplit

import httptools

from .context import ServerContext
from .http import PeerCertificate, Request, Response, decode_value
from .wire import CLOSE, HTTP_10, KEEP_ALIVE

# Where in a request the connection is.
WAITING = 0  # between requests
HEAD = 1
BODY = 2
DONE = 3  # no further request is accepted on this connection

_METHODS = {name.encode(): name for name in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")}
_NAMES: dict[bytes, str] = {}  # header names as clients spell them -> lower case
_MAX_NAMES = 512
# Headers that say something about the connection, or more about the body than its length.
_SPECIAL = frozenset({"connection", "expect", "transfer-encoding", "upgrade"})
_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)
# What a Host header may have (Go's golang.org/x/net/http/httpguts, ValidHostHeader).
_HOST = frozenset(f"{ascii_letters}{digits}!$%&()*+,-.:;=[']_~")
_OVERHEAD = 64 * 1024
_MAX_REMEMBERED = 16 * 1024


class Refused(Exception):
    """The request can't be served: an answer, then the connection's end."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.response = Response(status, _TEXT, text.encode())


class RequestReader:
    """Feeds one connection's bytes to httptools and queues what comes out.

    `queue` holds, in order, (request or refusal, how the connection goes on). Nothing follows a request that closes.
    """

    __slots__ = (
        "_body_size",
        "_feed_parser",
        "_mode",
        "_offered",
        "_pairs",
        "_parser",
        "_parts",
        "_plain_headers",
        "_plain_pairs",
        "_reading",
        "_request",
        "_time",
        "_upgrade",
        "_url",
        "_whole",
        "context",
        "fresh",
        "peer",
        "peer_certificate",
        "phase",
        "queue",
        "received",
        "since",
        "unread",
        "want_continue",
    )

    def __init__(self, context: ServerContext) -> None:
        self.context = context
        self.queue: deque[tuple[Request | Response, int]] = deque()
        self.phase = WAITING
        self.fresh = True  # no request has been read yet
        self.unread = False  # a request was refused before its end
        self.since = context.tick  # when the phase began
        self.want_continue = False
        self.peer = ""
        self.peer_certificate: PeerCertificate | None = None
        self.received = 0  # bytes of the unfinished head or body that came after the read in which it began
        self._reading = 0
        self._whole = False  # the read begins with a request
        self._new_parser()
        self._upgrade: list[tuple[bytes, bytes]] = []
        self._offered = ""  # what the head would upgrade to that is parsed again without
        self._time = context.loop.time
        self._plain_pairs: list[tuple[bytes, bytes]] | None = None
        self._plain_headers: dict[str, str] = {}
        self._request: Request | None = None
        self._mode = KEEP_ALIVE
        self._url = b""
        self._pairs: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        self._body_size = 0

    def feed(self, data: bytes) -> None:
        """Takes what was read from the client; discards it once no further request is accepted."""
        if self.phase == DONE:
            return
        self._reading = len(data)
        self._whole = self.phase == WAITING
        try:
            self._feed_parser(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._parser_stopped(data, error)
        if self.phase == HEAD or self.phase == BODY:
            self._count(self._reading)

    def _parser_stopped(self, data: bytes, error: Exception) -> None:
        while self.phase != DONE:
            if isinstance(error, httptools.HttpParserCallbackError):
                raise error
            if not isinstance(error, httptools.HttpParserUpgrade):
                self._refuse(Refused(400, f"400 Bad Request: {error}"))
                return
            data = self._without_upgrade() + data[error.args[0] :]
            self._new_parser()
            try:
                self._feed_parser(data)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as next_error:
                error = next_error
            else:
                return

    def _new_parser(self) -> None:
        self._parser: Any = httptools.HttpRequestParser(self)
        self._feed_parser: Any = self._parser.feed_data

    def _without_upgrade(self) -> bytes:
        """The head that asked for an upgrade, written anew without.

        Some clients ask for h2c with each request, also with a body; httptools leaves what follows such a head
        unparsed. An upgrade that is not offered is ignored (RFC 9110 section 7.8): the request keeps the header, and
        who handles it decides.
        """
        pairs = self._upgrade
        lines = [b"%b: %b\r\n" % pair for pair in pairs if pair[0].lower() != b"upgrade"]
        self._upgrade = []
        self._offered = next(decode_value(value) for name, value in pairs if name.lower() == b"upgrade")
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (self._parser.get_method(), self._url, b"".join(lines))

    def _count(self, size: int) -> None:
        self.received += size
        if self.phase == HEAD:
            if self.received > self.context.limits.max_head:
                self._refuse(Refused(431, "431 Request Header Fields Too Large"))
        elif self.received > 8 * self._body_size + self.context.limits.max_head + _OVERHEAD:
            self._refuse(Refused(400, "400 Bad Request: chunked encoding contains too much non-data"))

    def _refuse(self, refused: Refused) -> None:
        if self.phase != DONE:
            self.unread = True
            self._finish(refused.response, CLOSE)

    def time_out(self) -> None:
        """Refuses the unfinished request."""
        self._refuse(Refused(408, "408 Request Timeout"))

    def end(self) -> None:
        """No further request is accepted."""
        self.phase = DONE
        self.want_continue = False

    def forget(self) -> None:
        """Drops what was read and breaks the cycle between the parser and this object."""
        self.end()
        self.queue.clear()
        self._parser = self._feed_parser = None
        self._request = None
        self._parts = []

    # httptools' callbacks.

    def on_message_begin(self) -> None:
        if self.phase != DONE:
            self.phase = HEAD
            # What shares a read with its forerunner is not counted.
            self.received = 0 if self._whole else -self._reading
            self._whole = False
            self.since = self.context.tick
            self._url = b""
            self._pairs = []

    def on_url(self, part: bytes) -> None:
        self._url += part

    def on_header(self, name: bytes, value: bytes) -> None:
        self._pairs.append((name, value))

    def on_headers_complete(self) -> None:
        if self.phase != HEAD:
            return
        pairs = self._pairs
        self._pairs = []  # trailers come to the same callback: they must not become headers
        try:
            if self.received + self._reading > self.context.limits.max_head:
                self._check_head(pairs)
            # Most requests of a connection repeat the headers of the one before.
            if pairs == self._plain_pairs and self._parser.should_keep_alive():
                headers = self._plain_headers
                plain = True
                self._mode = KEEP_ALIVE
            else:
                headers = _headers(pairs)
                if self._offered:
                    headers["upgrade"], self._offered = self._offered, ""
                self._mode = self._keep_alive(headers)
                plain = self._mode == KEEP_ALIVE and _SPECIAL.isdisjoint(headers) and not self._exceeds(headers)
                if plain and self._reading <= _MAX_REMEMBERED:
                    self._plain_pairs, self._plain_headers = pairs, headers
                elif "upgrade" in headers and self._parser.should_upgrade():
                    self._upgrade = pairs
                    return
            self._begin(pairs, headers, plain)
        except Refused as refused:
            self._refuse(refused)

    def _check_head(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Refuse a head that is too large; what was read may have had more than the head."""
        size = len(self._url) + sum(len(name) + len(value) for name, value in pairs)
        if size > self.context.limits.max_head:
            raise Refused(431, "431 Request Header Fields Too Large")

    def _begin(self, pairs: list[tuple[bytes, bytes]], headers: dict[str, str], plain: bool) -> None:
        raw_method = self._parser.get_method()
        method = _METHODS.get(raw_method) or _other_method(raw_method)
        path, query = _target(self._url)
        now = self._time()
        self._request = Request(method, path, query, headers, b"", self.peer, self.peer_certificate, False, now, pairs)
        self.phase = BODY
        self.received = -self._reading
        self.since = self.context.tick
        if not plain:
            self._expect_body(headers)

    def _exceeds(self, headers: dict[str, str]) -> bool:
        """Whether the announced body is longer than the limit."""
        return "content-length" in headers and int(headers["content-length"]) > self.context.limits.max_body

    def _expect_body(self, headers: dict[str, str]) -> None:
        """What the headers say about the body: too large, withheld, or framed in a way that is not served."""
        if "transfer-encoding" in headers and (
            self._mode & HTTP_10 or headers["transfer-encoding"].lower() != "chunked"
        ):
            raise Refused(501, "501 Not Implemented: unsupported transfer encoding")
        if self._exceeds(headers):
            self._too_large()
        elif "expect" in headers:
            if headers["expect"].lower() != "100-continue":
                raise Refused(417, "417 Expectation Failed")
            self.want_continue = not self._mode & HTTP_10

    def _keep_alive(self, headers: dict[str, str]) -> int:
        """How the connection goes on after this request; refuses other versions of HTTP."""
        keep: bool = self._parser.should_keep_alive()
        if keep and "connection" not in headers:
            mode = KEEP_ALIVE  # only HTTP/1.1 keeps alive unasked
        else:
            version = self._parser.get_http_version()
            if version not in ("1.1", "1.0"):
                raise Refused(505, "505 HTTP Version Not Supported")
            mode = (KEEP_ALIVE if keep else CLOSE) | (HTTP_10 if version == "1.0" else 0)
        if "host" not in headers:
            if not mode & HTTP_10:
                raise Refused(400, "400 Bad Request: missing required Host header")
        elif not _HOST.issuperset(headers["host"]):
            raise Refused(400, "400 Bad Request: malformed Host header")
        return mode

    def on_body(self, part: bytes) -> None:
        if self.phase != BODY:
            return
        self.want_continue = False
        self._parts.append(part)
        self._body_size += len(part)
        if self._body_size > self.context.limits.max_body:
            self._too_large()

    def _too_large(self) -> None:
        request = self._request
        assert request is not None
        request.too_large = True
        self.unread = True
        self._finish(request, self._mode & HTTP_10)

    def on_message_complete(self) -> None:
        if self.phase != BODY:
            return
        request = self._request
        assert request is not None
        if self._parts:
            request.body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._finish(request, self._mode)

    def _finish(self, item: Request | Response, mode: int) -> None:
        self.queue.append((item, mode))
        self.fresh = False
        self._request = None
        self.want_continue = False
        if self._parts:
            self._parts = []
            self._body_size = 0
        self.phase = WAITING if mode & KEEP_ALIVE else DONE


def _headers(pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    try:
        for name, value in pairs:
            headers[_NAMES.get(name) or _lower(name)] = value.decode().strip(" \t")
    except UnicodeDecodeError:
        return _joined(pairs)
    return headers if len(headers) == len(pairs) else _joined(pairs)


def _lower(name: bytes) -> str:
    lower = name.decode().lower()
    if len(_NAMES) < _MAX_NAMES:
        _NAMES[name] = lower
    return lower


def _joined(pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name.decode().lower(), []).append(decode_value(value))
    if len(values.get("host", ())) > 1:
        raise Refused(400, "400 Bad Request: too many Host headers")
    return {name: ", ".join(all_values) for name, all_values in values.items()}


def _other_method(raw_method: bytes) -> str:
    method = raw_method.decode()
    if method == "CONNECT":
        raise Refused(405, "405 Method Not Allowed: this is not a proxy")
    return method


def _target(url: bytes) -> tuple[str, str]:
    """Path and query of a request's target (RFC 9112 section 3.2)."""
    text = url.decode()
    if text[0] != "/":
        text = _other_target(text)
    path, _, query = text.partition("?")
    if "%" in path and not _is_escaped(path):
        raise Refused(400, "400 Bad Request: invalid URL escape")
    return path, query


def _other_target(text: str) -> str:
    """The origin form of "*" and of an absolute URL."""
    if text == "*":
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    if not parts.netloc:
        raise Refused(400, "400 Bad Request: invalid request target")
    return f"{parts.path}?{parts.query}"


def _is_escaped(path: str) -> bool:
    """Whether each "%" is followed by two hexadecimal digits."""
    return all(len(part) >= 2 and part[0] in _HEX_DIGITS and part[1] in _HEX_DIGITS for part in path.split("%")[1:])


_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
