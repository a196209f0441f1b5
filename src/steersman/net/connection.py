"""One client's connection: its requests are answered in order, one at a time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import isawaitable
from types import CoroutineType
from typing import Any

from .context import ServerContext, log
from .http import PeerCertificate, Request, Response, StreamResponse
from .messages import MessageStream
from .reader import BODY, DONE, HEAD, WAITING, RequestReader
from .stream import ChunkedStream
from .wire import BLOCK, CHUNKED, CLOSE, CONTINUE, HTTP_10, KEEP_ALIVE, blocks, encode_answer, has_body

_MAX_QUEUED = 32  # pipelined requests; beyond, the client is not read from
_PLAIN_TEXT = (("Content-Type", "text/plain; charset=utf-8"),)
_FAILED = Response(500, _PLAIN_TEXT, b"500 Internal Server Error")
_BUSY = Response(503, (*_PLAIN_TEXT, ("Retry-After", "1")), b"503 Service Unavailable: too many connections")


class Connection(RequestReader, asyncio.Protocol):
    """The server's asyncio protocol."""

    __slots__ = (
        "_blocks",
        "_blocks_mode",
        "_busy",
        "_closing",
        "_lingering",
        "_reading_paused",
        "_secure",
        "_stream",
        "paused",
        "transport",
        "write",
    )
    transport: asyncio.Transport

    def __init__(self, context: ServerContext) -> None:
        super().__init__(context)
        self.paused = False
        self._busy = False  # a request is being handled or its answer is not yet with the transport
        self._reading_paused = False
        self._lingering = False
        self._closing = False
        self._secure = False
        self._stream: ChunkedStream | None = None
        self._blocks: Iterator[bytes | memoryview] | None = None
        self._blocks_mode = KEEP_ALIVE
        self.write: Callable[[bytes | memoryview], None] = _discard

    # asyncio's callbacks.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self.transport = transport  # type: ignore[assignment]
        self.write = self.transport.write
        name = transport.get_extra_info("peername")
        if isinstance(name, tuple):
            self.peer = f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"
        secured: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        if secured is not None:
            self._secure = True
            der = secured.getpeercert(binary_form=True)
            if der is not None:
                self.peer_certificate = PeerCertificate(der, secured.getpeercert)
        context = self.context
        context.connections.add(self)
        limit = context.limits.max_connections
        if limit and len(context.connections) > limit:
            self._finish(_BUSY, CLOSE)
            self._next()

    def data_received(self, data: bytes) -> None:
        if type(self._stream) is MessageStream:
            self._stream.receive(data)
            return
        self.feed(data)
        if self.queue:
            if not self._busy:
                self._next()
            if len(self.queue) > _MAX_QUEUED and not self._reading_paused:
                self._reading_paused = True
                self.transport.pause_reading()
        if self.want_continue:
            self._continue()

    def eof_received(self) -> bool:
        """The client sends no more: what it has asked for is still answered, except behind TLS (asyncio can't)."""
        self.end()
        if not self._secure and not self._lingering and self._stream is None and (self._busy or self.queue):
            return True
        self._closing = True
        self.since = self.context.tick
        if self._stream is not None:
            self._stream.drop()
        return False

    def pause_writing(self) -> None:
        self.paused = True

    def resume_writing(self) -> None:
        self.paused = False
        # Not at once: a transport may call this from inside a write.
        self.context.loop.call_soon(self._resume)

    def connection_lost(self, exc: Exception | None) -> None:
        self.write = _discard
        self._closing = True
        self.forget()
        self._blocks = None
        if self._stream is not None:
            self._stream.drop()
        self.context.forget(self)

    # Answering.

    def _next(self) -> None:
        queue = self.queue
        while queue and not self._busy and not self.paused and not self._closing and not self._lingering:
            item, mode = queue.popleft()
            if type(item) is Request:
                self._handle(item, mode)
            else:
                self._answer(item, mode, with_body=True)  # type: ignore[arg-type]
        if self._reading_paused and len(queue) <= _MAX_QUEUED // 2 and not self._closing:
            self._reading_paused = False
            self.transport.resume_reading()

    def _handle(self, request: Request, mode: int) -> None:
        context = self.context
        try:
            outcome = context.handler(request)
            if isinstance(outcome, CoroutineType):
                outcome = context.runner.start(outcome)
        except (Exception, asyncio.CancelledError) as error:
            self._answer(_failed(request, error), mode, request.method != "HEAD")
            return
        if type(outcome) is Response:
            self._answer(outcome, mode, request.method != "HEAD")
        elif type(outcome) is StreamResponse:
            self._begin_stream(outcome, mode, request)
        elif isawaitable(outcome):
            self._busy = True
            context.spawn(outcome).add_done_callback(partial(self._handled, request, mode))
        else:
            self._answer(_failed(request, TypeError(f"a handler returned {outcome!r}")), mode, request.method != "HEAD")

    def _handled(self, request: Request, mode: int, task: asyncio.Future[Any]) -> None:
        """A handler that had to wait has finished; its client may have gone."""
        self._busy = False
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        outcome = _failed(request, error) if error is not None else task.result()
        if self._closing:
            return
        if type(outcome) is StreamResponse:
            self._begin_stream(outcome, mode, request)
        elif type(outcome) is Response:
            self._answer(outcome, mode, request.method != "HEAD")
        else:
            self._answer(_failed(request, TypeError(f"a handler returned {outcome!r}")), mode, request.method != "HEAD")
        self._next()
        if self.want_continue:
            self._continue()

    def _answer(self, response: Response, mode: int, with_body: bool) -> None:
        context = self.context
        if context.stopping:
            mode &= ~KEEP_ALIVE
        body = response.body
        if type(body) is bytes:
            size = len(body)
            parts: Sequence[bytes] = (body,)
        else:
            parts = body  # type: ignore[assignment]
            size = sum(map(len, parts))
        if size <= BLOCK or not with_body or not has_body(response.status):
            joined = b"" if not with_body else body if type(body) is bytes else b"".join(parts)
            self.write(encode_answer(response.status, response.headers, context.date, mode, size, joined))
            self._answered(mode)
        else:
            head = encode_answer(response.status, response.headers, context.date, mode, size)
            self._send_blocks((head, *parts), mode)

    def _send_blocks(self, parts: Sequence[bytes], mode: int) -> None:
        self._blocks = blocks(parts)
        self._blocks_mode = mode
        self._busy = True
        self._pump()

    def _pump(self) -> None:
        """Writes blocks for as long as the client takes them."""
        self.since = self.context.tick
        while self._blocks is not None and not self.paused:
            block = next(self._blocks, None)
            if block is not None:
                self.write(block)
            else:
                self._blocks = None
                self._busy = False
                self._answered(self._blocks_mode)

    def _resume(self) -> None:
        if self.paused or self._closing:
            return
        if self._stream is not None:
            self._stream.flush()
            return
        self._pump()
        if not self._busy:
            self._next()

    def _answered(self, mode: int) -> None:
        """The answer is with the transport: what becomes of the connection?"""
        self.since = self.context.tick
        if mode & KEEP_ALIVE and (self.phase != DONE or self.queue):
            return
        self.queue.clear()
        if self.unread:
            self._linger()
        else:
            self._close()

    def _close(self) -> None:
        self._closing = True
        self.since = self.context.tick
        self.end()
        self.transport.close()
        self.context.connection_changed()

    def _linger(self) -> None:
        """Ends the answer but reads on for a while: closing with unread data would reset it before it is read."""
        self.end()
        self._lingering = True
        if self._reading_paused:
            self._reading_paused = False
            self.transport.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()

    def _continue(self) -> None:
        """Asks for the body that a client holds back, when all earlier requests are answered."""
        if not self._busy and not self.queue and not self._closing:
            self.want_continue = False
            self.write(CONTINUE)

    # Streams.

    def _begin_stream(self, response: StreamResponse, mode: int, request: Request) -> None:
        if response.messages is not None:
            self._run(response, request, MessageStream(self, request, response.messages), CLOSE)
            return
        if self.context.stopping or mode & HTTP_10:
            mode &= ~KEEP_ALIVE
        head = encode_answer(response.status, response.headers, self.context.date, mode, CHUNKED)
        if request.method == "HEAD" or not has_body(response.status):
            self.write(head)
            self._answered(mode)
            return
        self._run(response, request, ChunkedStream(self, head, framed=not mode & HTTP_10), mode)

    def _run(self, response: StreamResponse, request: Request, stream: ChunkedStream, mode: int) -> None:
        self._busy = True
        self._stream = stream
        task = self.context.spawn(response.run(stream))
        task.add_done_callback(partial(self._stream_done, request, stream, mode))

    def _stream_done(self, request: Request, stream: ChunkedStream, mode: int, task: asyncio.Future[None]) -> None:
        self._stream = None
        self._busy = False
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            if isinstance(error, Exception):
                _failed(request, error)
            self.abort()  # an end without the last chunk: the client knows that the answer is cut short
        if self._closing:
            stream.drop()
            return
        if self.context.stopping:
            mode &= ~KEEP_ALIVE
        self._send_blocks(stream.finish(), mode)
        if not self._busy:
            self._next()
        if self.want_continue:
            self._continue()

    def unsent(self) -> int:
        """Bytes that the transport holds."""
        return 0 if self._closing else self.transport.get_write_buffer_size()

    def abort(self) -> None:
        """Drops the connection, with what is not sent yet."""
        if self.write is not _discard:
            self._closing = True
            self.write = _discard
            self.end()
            if self._stream is not None:
                self._stream.drop()
            self.transport.abort()

    # Time and the server's end.

    def sweep(self, now: float) -> None:
        """Ends the connection if its time is up."""
        limits = self.context.limits
        age = now - self.since - limits.sweep_interval()
        if self._lingering:
            if age > limits.linger_timeout:
                self._lingering = False
                self._close()
        elif self._closing or (self.paused and self._stream is None):
            if age > limits.write_timeout:
                self.abort()
        elif self._busy:
            return
        elif self.phase == WAITING:
            if age > (limits.head_timeout if self.fresh else limits.idle_timeout):
                self._close()
        elif (self.phase == HEAD and age > limits.head_timeout) or (self.phase == BODY and age > limits.body_timeout):
            self.time_out()
            self._next()

    def shut_down(self) -> None:
        """The server stops: an idle connection closes now, another after its answer; a stream is told to end."""
        if self._stream is not None:
            self._stream.tell_closed()
        elif self.phase == WAITING and not self._busy and not self.queue and not self._closing:
            self._close()

    def is_flushed(self) -> bool:
        """Closed, and all is with the kernel: only the client's goodbye is missing."""
        return self._closing and (self.write is _discard or not self.transport.get_write_buffer_size())


def _discard(data: bytes | memoryview) -> None:
    """Takes the place of a gone transport's write()."""


def _failed(request: Request, error: BaseException) -> Response:
    log.error("%s %s from %s failed", request.method, request.path, request.peer, exc_info=error)
    return _FAILED
