"""A client's end of an HTTP/2 connection, as gRPC uses it: many calls at a time, each with messages in both directions.

What is written within one turn of the event loop leaves in one piece, and headers that have been seen before are not
parsed again: a system call, and a parse, cost more than all the rest of a small call.

Source: RFC 9113.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from collections import deque
from collections.abc import Iterable
from typing import cast

import hpack

from steersman.net.http2 import frames as f
from steersman.net.http2.call import Call, ConnectionLost, Headers

_CALL_WINDOW, _WINDOW = 4 << 20, 64 << 20
_BACKLOG = 16
"""Messages that may wait to be read before a call's sender has to wait, too."""
_MOST_HEADERS = 1 << 16
_MOST_KNOWN = 256
_KEEPALIVE, _ACK_WITHIN = 10.0, 5.0
_DOUBTFUL = 2.0
_QUESTION = b"are you?"
_CLOSED = "the connection was closed"


class Connection(asyncio.Protocol):
    """One connection. `ready` is done when the peer has greeted, `gone` when its socket is closed, if it ever had one.

    `open` calls while it is `usable`.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.gone: asyncio.Future[None] = loop.create_future()
        self.usable = True
        self.calls: dict[int, Call] = {}
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes | memoryview] = []
        self._in = bytearray()
        self._block: tuple[int, int, bytearray] | None = None
        self._decoder = hpack.Decoder()
        self._known: dict[bytes, Headers] = {}
        self._next = 1
        self._window = self._call_window = f.DEFAULT_WINDOW
        self._frame = f.DEFAULT_FRAME
        self._most_calls = 1 << 31
        self._queue: deque[tuple[asyncio.Future[Call | None], bytes]] = deque()
        self._owed = 0
        self._heard = loop.time()
        self._pieces = 0
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, headers: bytes) -> Call:
        """Begin a call with an encoded block of headers. Raises ConnectionLost."""
        call = None
        if self.usable:
            call = self._begin(headers) if len(self.calls) < self._most_calls else await self._turn(headers)
        if call is None:
            raise ConnectionLost(_CLOSED, untouched=True)
        return call

    async def _turn(self, headers: bytes) -> Call | None:
        """Wait for what `_next_turns` has for the one who waits longest."""
        turn: asyncio.Future[Call | None] = self._loop.create_future()
        self._queue.append((turn, headers))
        try:
            return await turn
        except asyncio.CancelledError:
            if not turn.cancelled() and (call := turn.result()) is not None:
                self.cancel(call)
            raise

    def _begin(self, headers: bytes) -> Call:
        call = Call(self, self._next, self._call_window, self._loop.time(), self._pieces)
        self.calls[call.id] = call
        if call.id == 1:
            headers = f.NO_TABLE + headers
        self._next += 2
        if self._next > f.LAST_ID:
            self.usable = False
        kind = f.HEADERS
        while len(headers) > self._frame:
            self._send(kind, 0, call.id, headers[: self._frame])
            kind, headers = f.CONTINUATION, headers[self._frame :]
        self._send(kind, f.END_HEADERS, call.id, headers)
        return call

    def doubt(self, call: Call) -> None:
        """A call was not answered in time: when nothing else was heard since it began either, the peer is gone."""
        if self._pieces == call.before and call.began < self._loop.time() - _DOUBTFUL:
            self.lose("it does not answer")

    # What asyncio calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        settings = ((f.HEADER_TABLE_SIZE, 0), (f.ENABLE_PUSH, 0), (f.INITIAL_WINDOW, _CALL_WINDOW))
        self._transport.write(f.PREFACE)
        self._send(f.SETTINGS, 0, 0, b"".join(struct.pack(">HI", *each) for each in settings))
        self._send(f.WINDOW_UPDATE, 0, 0, struct.pack(">I", _WINDOW - f.DEFAULT_WINDOW))
        self._timer = self._loop.call_later(_KEEPALIVE, self._ask)

    def data_received(self, data: bytes) -> None:
        self._heard = self._loop.time()
        self._pieces += 1
        if self._in:
            self._in += data
            data = bytes(self._in)
            self._in.clear()
        start, size = 0, len(data)
        try:
            while size - start >= f.HEAD:
                length = int.from_bytes(data[start : start + 3], "big")
                if length > f.DEFAULT_FRAME:
                    raise ValueError("it does not speak HTTP/2")
                end = start + f.HEAD + length
                if end > size:
                    break
                number = int.from_bytes(data[start + 5 : start + f.HEAD], "big") & 0x7FFFFFFF
                self._frame_received(data[start + 3], data[start + 4], number, data[start + f.HEAD : end])
                start = end
        except (ValueError, IndexError, struct.error, hpack.HPACKError) as error:
            self.lose(f"it broke the protocol ({error})")
            return
        if start < size:
            self._in += data[start:]
        if self._owed >= _WINDOW // 4:
            self._send(f.WINDOW_UPDATE, 0, 0, struct.pack(">I", self._owed))
            self._owed = 0

    def connection_lost(self, error: Exception | None) -> None:
        self.lose(_CLOSED if error is None else reason(error))
        if not self.gone.done():
            self.gone.set_result(None)

    # Frames that come.

    def _frame_received(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._block is not None and kind != f.CONTINUATION:
            raise ValueError("headers were interrupted")
        if not self.ready.done():
            if kind != f.SETTINGS or flags & f.ACK:
                raise ValueError("it does not speak HTTP/2")
            self.ready.set_result(None)
        taker = _TAKERS.get(kind)
        if taker is not None:  # what is not known is not for us
            taker(self, flags, number, payload)

    def _take_data(self, flags: int, number: int, payload: bytes) -> None:
        self._owed += len(payload)
        call = self.calls.get(number)
        if call is None:
            return
        call.owed += len(payload)
        payload = f.unpadded(flags & ~f.PRIORITY, payload)
        if payload:
            call.take(payload)
        if flags & f.END_STREAM:
            self._answered(call)
        elif call.owed >= _CALL_WINDOW // 4:
            self.pay(call)

    def _take_headers(self, flags: int, number: int, payload: bytes) -> None:
        payload = f.unpadded(flags, payload)
        if flags & f.END_HEADERS:
            self._headers_complete(flags, number, payload)
        else:
            self._block = flags, number, bytearray(payload)

    def _take_continuation(self, flags: int, number: int, payload: bytes) -> None:
        if self._block is None or self._block[1] != number or len(self._block[2]) > _MOST_HEADERS:
            raise ValueError("headers go on that had not begun")
        first, _, block = self._block
        block += payload
        if flags & f.END_HEADERS:
            self._block = None
            self._headers_complete(first, number, bytes(block))

    def _headers_complete(self, flags: int, number: int, block: bytes) -> None:
        # We allow no table of headers: a block means the same each time, as soon as the peer knows of that.
        headers = None if self._decoder.header_table_size else self._known.get(block)
        if headers is None:
            headers = {str(name): str(value) for name, value in self._decoder.decode(block)}
            if not self._decoder.header_table_size and len(self._known) < _MOST_KNOWN:
                self._known[block] = headers
        call = self.calls.get(number)
        if call is None:
            return
        call.headers = {**call.headers, **headers} if call.headers else headers
        if flags & f.END_STREAM:
            self._answered(call)

    def _take_ping(self, flags: int, number: int, payload: bytes) -> None:
        if len(payload) != len(_QUESTION):
            raise ValueError("no such ping")
        if not flags & f.ACK:
            self._send(f.PING, f.ACK, 0, payload)

    def _take_push(self, flags: int, number: int, payload: bytes) -> None:
        raise ValueError("it pushes, which was not agreed on")

    def _take_settings(self, flags: int, number: int, payload: bytes) -> None:
        if flags & f.ACK:
            return
        for name, value in struct.iter_unpack(">HI", payload):
            if name == f.INITIAL_WINDOW:
                for call in self.calls.values():
                    call.window = f.allowed(call.window + value - self._call_window)
                self._call_window = f.allowed(value)
            elif name == f.MAX_FRAME:
                if not f.DEFAULT_FRAME <= value <= f.MOST_FRAME:
                    raise ValueError("no such size of frames")
                self._frame = value
            elif name == f.MAX_CALLS:
                self._most_calls = value
        self._send(f.SETTINGS, f.ACK, 0, b"")
        self._pump(list(self.calls.values()))
        self._next_turns()

    def _take_window(self, flags: int, number: int, payload: bytes) -> None:
        more = f.number(payload)
        if not number:
            self._window = f.allowed(self._window + more)
            self._pump([call for call in self.calls.values() if call.unsent])
        elif (call := self.calls.get(number)) is not None:
            call.window = f.allowed(call.window + more)
            self._pump([call])

    def _take_reset(self, flags: int, number: int, payload: bytes) -> None:
        [code] = struct.unpack(">I", payload)
        call = self.calls.get(number)
        if call is not None:
            untouched = code == f.REFUSED and not call.headers
            self._end(call, ConnectionLost(f"the call was reset (code {code})", untouched=untouched))

    def _take_goaway(self, flags: int, number: int, payload: bytes) -> None:
        """The peer takes no new calls, and says which one is the last that it has looked at."""
        self.usable, last = False, f.number(payload[:4])
        for call in [call for call in self.calls.values() if call.id > last]:
            self._end(call, ConnectionLost("the connection is being closed", untouched=not call.headers))
        self._next_turns()
        self._close_if_done()

    # Frames that go.

    def send(self, call: Call, message: bytes, *, last: bool) -> None:
        """For calls."""
        framed = b"\0" + len(message).to_bytes(4, "big") + message
        size = len(framed)
        if not call.unsent and size <= self._frame and size <= call.window and size <= self._window:
            call.window -= size
            self._window -= size
            self._send(f.DATA, f.END_STREAM if last else 0, call.id, framed)
            call.spoken = last
            return
        call.unsent.append((memoryview(framed), last))
        self._pump([call])

    def cancel(self, call: Call, why: str = "the call was cancelled") -> None:
        """For calls."""
        if not call.ended:
            self._reset(call, f.CANCEL)
            self._end(call, ConnectionLost(why))

    def pay(self, call: Call) -> None:
        """For calls: let the peer send as much more as has come, unless too much waits to be read."""
        if call.owed >= _CALL_WINDOW // 4 and len(call.messages) <= _BACKLOG and not call.ended:
            self._send(f.WINDOW_UPDATE, 0, call.id, struct.pack(">I", call.owed))
            call.owed = 0

    def _pump(self, calls: Iterable[Call]) -> None:
        """Send of what waits as much as the peer's windows allow."""
        for call in calls:
            while call.unsent and (room := min(call.window, self._window, self._frame)) > 0:
                data, last = call.unsent.popleft()
                piece, rest = data[:room], data[room:]
                call.window -= len(piece)
                self._window -= len(piece)
                if rest:
                    call.unsent.appendleft((rest, last))
                call.spoken = last and not rest
                self._send(f.DATA, f.END_STREAM if call.spoken else 0, call.id, piece)

    def _reset(self, call: Call, code: int) -> None:
        self._send(f.RST_STREAM, 0, call.id, struct.pack(">I", code))

    def _send(self, kind: int, flags: int, number: int, payload: bytes | memoryview) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out += (f.head(kind, flags, number, len(payload)), payload)

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(out))

    # Ends.

    def _answered(self, call: Call) -> None:
        """The peer has said all; until we have, too, or take that back, the call counts as one that runs."""
        if not call.spoken:
            self._reset(call, f.NO_ERROR)
        self._end(call)

    def _end(self, call: Call, why: ConnectionLost | None = None) -> None:
        if self.calls.pop(call.id, None) is None:
            return
        call.end(why)
        self._next_turns()
        if not self.usable:
            self._close_if_done()

    def _next_turns(self) -> None:
        while self._queue and not (self.usable and len(self.calls) >= self._most_calls):
            turn, headers = self._queue.popleft()
            if not turn.done():
                turn.set_result(self._begin(headers) if self.usable else None)

    def _close_if_done(self) -> None:
        if not self.calls:
            self.lose(_CLOSED)

    def lose(self, why: str) -> None:
        """End the connection at once, and all calls with it."""
        self.usable = False
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()  # to close it would be to wait, for a peer that may be gone
        if not self.ready.done():
            self.ready.set_exception(ConnectionLost(why, untouched=True))
            self.ready.exception()  # nobody may be waiting
        calls, self.calls = list(self.calls.values()), {}
        for call in calls:
            call.end(ConnectionLost(why))
        self._next_turns()

    def _ask(self) -> None:
        """When calls wait, and nothing has come for a while: ask whether the peer is there.

        Peers take it ill to be asked while nothing is called.
        """
        silence = self._loop.time() - self._heard
        if silence < _KEEPALIVE or not self.calls:
            self._timer = self._loop.call_later(_KEEPALIVE - silence if silence < _KEEPALIVE else _KEEPALIVE, self._ask)
            return
        self._send(f.PING, 0, 0, _QUESTION)
        self._timer = self._loop.call_later(_ACK_WITHIN, self._judge, self._loop.time())

    def _judge(self, asked: float) -> None:
        if self._heard >= asked:
            self._ask()
        else:
            self.lose("it does not answer")


def reason(error: Exception) -> str:
    """Why there is no connection, without numbers and addresses."""
    if isinstance(error, socket.gaierror):
        return "no such host"
    if isinstance(error, ssl.SSLError) or not isinstance(error, OSError) or error.errno is None:
        return str(error)
    return os.strerror(error.errno).lower()


_TAKERS = {
    f.DATA: Connection._take_data,
    f.HEADERS: Connection._take_headers,
    f.CONTINUATION: Connection._take_continuation,
    f.WINDOW_UPDATE: Connection._take_window,
    f.PING: Connection._take_ping,
    f.SETTINGS: Connection._take_settings,
    f.RST_STREAM: Connection._take_reset,
    f.GOAWAY: Connection._take_goaway,
    f.PUSH_PROMISE: Connection._take_push,
}
