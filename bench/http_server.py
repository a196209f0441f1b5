"""CPU per request of the HTTP server beside a bare httptools protocol, and the cost of a watch's fan-out.

    python bench/http_server.py [--seconds 2] [--rounds 3] [--connections 16] [--loop uvloop|asyncio]

Uses wrk for the load when it is installed, otherwise a small client of its own. Prints, for each case, the best CPU
time per request of both servers over interleaved rounds and their ratio. The fan-out writes 200 events of 2 KB to 100
open TLS streams and prints the server's CPU time per delivered event.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httptools

from steersman.net.http import Request, Response, Stream, StreamResponse, chunk
from steersman.net.loop import new_event_loop
from steersman.net.pki import load_or_create
from steersman.net.server import Server
from steersman.net.tls import server_ssl_context

BODY = b'{"kind":"Sample","spec":{"replicas":3,"text":"' + b"x" * 90 + b'"}}'
UPLOAD = b'{"kind":"Sample","spec":"' + b"x" * 2020 + b'"}'
HEADERS = (("Content-Type", "application/json"), ("Cache-Control", "no-cache, private"))
REQUEST_HEADERS = {
    "Accept": "application/json, */*",
    "User-Agent": "bench/1.0 (linux/amd64)",
    "Accept-Encoding": "gzip",
    "Authorization": "Bearer 0123456789abcdef0123456789abcdef",
}
STREAMS, EVENTS = 100, 200
EVENT = b'{"type":"MODIFIED","object":"' + b"x" * 2000 + b'"}\n'


class Bare(asyncio.Protocol):
    """The least that answers: what the event loop, httptools and Python cost by themselves."""

    def __init__(self) -> None:
        self.parser = httptools.HttpRequestParser(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.parser.feed_data(data)

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers: dict[str, str] = {}
        self.body = b""

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        method = self.parser.get_method().decode()
        body = self.body if method == "PUT" else BODY
        self.transport.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-cache, private\r\n"
            b"Date: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        )


streams: set[Stream] = set()


async def fan_out() -> None:
    """Writes in bursts of ten, as a store's writer delivers them; a client that lags is waited for."""
    for start in range(0, EVENTS, 10):
        for _ in range(start, start + 10):
            framed = chunk(EVENT)
            for stream in streams:
                stream.write_chunk(framed)
        while any(stream.buffered > 1 << 20 for stream in streams):  # noqa: ASYNC110 - a reader has no event
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)


async def run(stream: Stream) -> None:
    streams.add(stream)
    await stream.closed()
    streams.discard(stream)


async def handler(request: Request) -> Response | StreamResponse:
    if request.path == "/watch":
        return StreamResponse(200, run, HEADERS)
    if request.path == "/fan-out":
        await fan_out()
    return Response(200, HEADERS, request.body or BODY)


async def serve(kind: str, certificates: str) -> None:
    context = None
    if certificates:
        pair = load_or_create(Path(certificates), ["127.0.0.1"])
        context = server_ssl_context(pair.cert, pair.key)
    if kind == "bare":
        listener = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", 0, ssl=context, backlog=1024)
        port = listener.sockets[0].getsockname()[1]
    else:
        port = (await Server.start(handler, ssl=context)).port
    print(port, flush=True)
    threading.Thread(target=report_cpu, daemon=True).start()
    await asyncio.Event().wait()


def report_cpu() -> None:
    for _ in sys.stdin:
        print(time.process_time(), flush=True)


class Child:
    """A server in a process of its own."""

    def __init__(self, kind: str, certificates: str, loop: str) -> None:
        command = [sys.executable, __file__, "--serve", kind, "--certificates", certificates, "--loop", loop]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._line())

    def _line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline()

    def cpu(self) -> float:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self._line())

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def request_bytes(method: str) -> bytes:
    body = UPLOAD if method == "PUT" else b""
    head = "".join(f"{name}: {value}\r\n" for name, value in REQUEST_HEADERS.items())
    size = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} /api/samples/one?x=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}{size}\r\n".encode() + body


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def own_load(port: int, method: str, secure: bool, connections: int, seconds: int) -> int:
    """Requests answered to as many clients as there are connections."""
    request, end, count = request_bytes(method), time.monotonic() + seconds, 0

    async def client() -> None:
        nonlocal count
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=unverified() if secure else None)
        while time.monotonic() < end:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(size)
            count += 1
        writer.transport.abort()

    await asyncio.gather(*(client() for _ in range(connections)))
    return count


def wrk_load(port: int, method: str, secure: bool, connections: int, seconds: int) -> int:
    headers = "".join(f'wrk.headers["{name}"] = "{value}"\n' for name, value in REQUEST_HEADERS.items())
    body = f"wrk.body = [[{UPLOAD.decode()}]]\n" if method == "PUT" else ""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f'wrk.method = "{method}"\n{headers}{body}')
        script.flush()
        url = f"{'https' if secure else 'http'}://127.0.0.1:{port}/api/samples/one?x=1"
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", script.name, url]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in output or "Socket errors" in output:
        sys.exit(output)
    return int(output.split(" requests in ")[0].split()[-1])


def measure(child: Child, method: str, secure: bool, options: argparse.Namespace) -> tuple[float, float]:
    """Microseconds of CPU per request, and requests per second."""
    before, began = child.cpu(), time.monotonic()
    if shutil.which("wrk"):
        count = wrk_load(child.port, method, secure, options.connections, options.seconds)
    else:
        count = asyncio.run(own_load(child.port, method, secure, options.connections, options.seconds))
    took = time.monotonic() - began
    return (child.cpu() - before) / count * 1e6, count / took


def compare(method: str, certificates: str, options: argparse.Namespace) -> None:
    children = {kind: Child(kind, certificates, options.loop) for kind in ("bare", "server")}
    best = {}
    for kind, child in list(children.items()) * options.rounds:
        cost, rate = measure(child, method, bool(certificates), options)
        best[kind] = min(best.get(kind, (cost, rate)), (cost, rate))
    for child in children.values():
        child.stop()
    (bare, bare_rate), (server, rate) = best["bare"], best["server"]
    print(
        f"{method:4} {'TLS' if certificates else 'plain':5} bare {bare:5.1f} us ({bare_rate:6.0f}/s)   "
        f"server {server:5.1f} us ({rate:6.0f}/s)   ratio {server / bare:.2f}",
        flush=True,
    )


async def watch_all(child: Child, secure: bool) -> float:
    """Opens all streams, has the events sent and reads them all; the server's CPU seconds for the events."""
    tls = unverified() if secure else None

    async def ask(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", child.port, ssl=tls)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return reader, writer

    async def read_all(reader: asyncio.StreamReader) -> None:
        left = EVENTS * len(chunk(EVENT))
        while left:
            left -= len(await reader.read(left))

    watchers = [await ask("/watch") for _ in range(STREAMS)]
    for reader, _ in watchers:
        await reader.readuntil(b"\r\n\r\n")
    before = child.cpu()
    watchers.append(await ask("/fan-out"))
    await asyncio.gather(*(read_all(reader) for reader, _ in watchers[:-1]))
    spent = child.cpu() - before
    for _, writer in watchers:
        writer.transport.abort()
    return spent


def fan(certificates: str, options: argparse.Namespace) -> None:
    costs = []
    for _ in range(options.rounds):
        child = Child("server", certificates, options.loop)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            spent = runner.run(watch_all(child, bool(certificates)))
        costs.append(spent / (STREAMS * EVENTS) * 1e6)
        child.stop()
    print(f"fan  {'TLS' if certificates else 'plain':5} {min(costs):.1f} us per delivery")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--loop", choices=["uvloop", "asyncio"], default="uvloop")
    parser.add_argument("--serve", choices=["bare", "server"], help=argparse.SUPPRESS)
    parser.add_argument("--certificates", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        factory = new_event_loop if options.loop == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(serve(options.serve, options.certificates))
    with tempfile.TemporaryDirectory() as directory:
        load_or_create(Path(directory), ["127.0.0.1"])
        for certificates in ("", directory):
            for method in ("GET", "PUT"):
                compare(method, certificates, options)
            fan(certificates, options)


if __name__ == "__main__":
    main()
