"""Health, readiness and metrics over HTTP.

Source: controller-runtime `pkg/healthz/healthz.go`, `pkg/manager/manager.go` (HealthProbeBindAddress).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import parse_qs

from steersman._util.metric_types import CONTENT_TYPE
from steersman.net.http import Request, Response
from steersman.net.server import Server

Check = Callable[[], str | None]
"""What is wrong, or None. Called at each probe; must return at once."""

_TEXT = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))


def parse_address(text: str) -> tuple[str, int]:
    """(host, port) of "HOST:PORT" or ":PORT", which means all of the machine's addresses. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f'{text!r} is not an address: write it as "127.0.0.1:8081", or ":8081" for all interfaces')
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 -- asked for


class Endpoints:
    """`/healthz`, `/readyz` and `/metrics`, on one address or several.

    `/healthz/NAME` asks for one check only, `?exclude=NAME` leaves one out, `?verbose` names all.
    """

    def __init__(self, live: Mapping[str, Check], ready: Mapping[str, Check], metrics: Callable[[], bytes]) -> None:
        self._checks = {"healthz": live, "readyz": ready}
        self._metrics = metrics
        self._servers: list[Server] = []

    async def serve(self, address: str, *, health: bool, metrics: bool) -> Server:
        """Serve probes, or metrics, or both on an address. Raises ValueError, ListenError."""
        host, port = parse_address(address)

        async def handle(request: Request) -> Response:
            return self._answer(request, health, metrics)

        server = await Server.start(handle, host=host, port=port)
        self._servers.append(server)
        return server

    async def stop(self) -> None:
        for server in self._servers:
            await server.stop(0.2)
        self._servers.clear()

    def _answer(self, request: Request, health: bool, metrics: bool) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(405, _TEXT, b"method not allowed\n")
        group, _, name = request.path.strip("/").partition("/")
        if metrics and group == "metrics" and not name:
            return Response(200, (("Content-Type", CONTENT_TYPE),), self._metrics())
        if health and group in self._checks:
            return self._probe(group, name, parse_qs(request.query, keep_blank_values=True))
        return Response(404, _TEXT, b"404 page not found\n")

    def _probe(self, group: str, name: str, query: Mapping[str, list[str]]) -> Response:
        checks = self._checks[group]
        if name:
            if name not in checks:
                return Response(404, _TEXT, b"404 page not found\n")
            checks = {name: checks[name]}
        excluded = query.get("exclude", [])
        lines, failed = [], False
        for check, ask in checks.items():
            wrong = None if check in excluded else _ask(ask)
            failed = failed or wrong is not None
            mark = "excluded: ok" if check in excluded else "ok" if wrong is None else f"failed: {wrong}"
            lines.append(f"[{'-' if wrong else '+'}]{check} {mark}")
        if not failed and "verbose" not in query:
            return Response(200, _TEXT, b"ok")
        lines.append(f"{group} check {'failed' if failed else 'passed'}")
        return Response(500 if failed else 200, _TEXT, "\n".join([*lines, ""]).encode())


def _ask(check: Check) -> str | None:
    try:
        return check()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
