"""Requests to the Kubernetes API: who we are, when to try again, errors by reason, warnings.

Source: client-go `rest/request.go`, `rest/with_retry.go`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import lru_cache
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import orjson

from steersman.apimachinery.errors import ApiError, from_status
from steersman.client.config.credentials import Anonymous, Credentials
from steersman.client.config.model import Impersonation
from steersman.client.errors import DecodeError
from steersman.client.transport import (
    ConnectError,
    Headers,
    RawResponse,
    RawStream,
    Transport,
    TransportError,
    TransportTimeout,
    header,
)
from steersman.client.warning import Warnings

logger = logging.getLogger("steersman.client")

Query = Iterable[tuple[str, str]]
T = TypeVar("T", bound=RawResponse | RawStream)

JSON = "application/json"

MAX_RETRIES = 10
"""How often a request is sent again because the server said Retry-After (client-go: 10)."""

_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class RestClient:
    """Sends requests over a transport and gives JSON, or raises the ApiError for what the server answered.

    What is sent again: after 429 with Retry-After anything, since the server refused to begin; after 5xx with
    Retry-After what is idempotent; after 401 anything, once, if the credentials could be renewed; after a lost
    connection a GET, once. Nothing else: a write whose answer was lost is reported, since it may have happened.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        credentials: Credentials | None = None,
        impersonate: Impersonation | None = None,
        user_agent: str = "steersman",
        timeout: float | None = None,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self._transport = transport
        self._credentials = credentials or Anonymous()
        self._fixed = [("User-Agent", user_agent)]
        self._fixed += impersonate.headers() if impersonate else []
        self._timeout = timeout
        self._warnings = Warnings(on_warning)
        self.on_attempt: Callable[[str, str, bool], None] | None = None
        """Told of each request that was sent: its method, the answer's status ("<error>" if there was none), and
        whether it is sent again."""

    async def json(
        self,
        method: str,
        path: str,
        query: Query = (),
        body: Any = None,
        *,
        content_type: str = "application/json",
        accept: str | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Send a request, `body` as JSON, and give the answer's JSON.

        `accept` asks for another form of the answer, in JSON too. `timeout` is in seconds, for every single attempt.
        Raises ApiError, TransportError, CredentialsError,
        DecodeError.
        """
        text = encode_query(query)
        data = None if body is None else orjson.dumps(body)
        limit = self._timeout if timeout is None else timeout

        async def send(headers: Headers) -> RawResponse:
            extra = [("Accept", accept or JSON)]
            if data is not None:
                extra.append(("Content-Type", content_type))
            return await self._transport.request(method, path, text, [*headers, *extra], data, limit)

        response = await self._attempts(method, send)
        if response.status >= 400:
            raise error_of(response)
        try:
            return orjson.loads(response.body)
        except orjson.JSONDecodeError as error:
            raise DecodeError(f"{method} {path}: the answer ({response.status}) is not JSON: {error}") from error

    @asynccontextmanager
    async def stream(self, path: str, query: Query = (), *, accept: str | None = None) -> AsyncIterator[RawStream]:
        """Send a GET and give the answer as it arrives. Raises as `json`; the stream itself raises TransportError."""
        text = encode_query(query)
        form = ("Accept", accept or JSON)
        async with AsyncExitStack() as stack:

            async def send(headers: Headers) -> RawStream:
                await stack.aclose()  # an earlier attempt's
                return await stack.enter_async_context(
                    self._transport.stream("GET", path, text, [*headers, form], None, self._timeout)
                )

            stream = await self._attempts("GET", send)
            if stream.status >= 400:
                body = b"".join([chunk async for chunk in stream.chunks])
                raise error_of(RawResponse(stream.status, stream.headers, body))
            yield stream

    async def _attempts(self, method: str, send: Callable[[Headers], Awaitable[T]]) -> T:
        retries, renewed, reconnected = 0, False, False
        while True:
            authorization = await self._credentials.authorization()
            certificate = await self._credentials.certificate()
            headers = [*self._fixed, *([("Authorization", authorization)] if authorization else [])]
            try:
                response = await send(headers)
            except TransportError as error:
                again = method == "GET" and not reconnected and not isinstance(error, ConnectError | TransportTimeout)
                self._sent(method, "<error>", again)
                if not again:
                    raise
                logger.debug("sending again on a new connection: %s", error)
                reconnected = True
                continue
            self._warnings.read(response.headers)
            unauthorized = response.status == 401 and not renewed
            if unauthorized and await self._credentials.refused(authorization, certificate):
                self._sent(method, "401", True)
                renewed = True
                continue
            delay = retry_after(method, response) if retries < MAX_RETRIES else None
            self._sent(method, str(response.status), delay is not None)
            if delay is None:
                return response
            retries += 1
            await asyncio.sleep(delay)

    def _sent(self, method: str, code: str, again: bool) -> None:
        if self.on_attempt is not None:
            self.on_attempt(method, code, again)


def retry_after(method: str, response: RawResponse | RawStream) -> float | None:
    """Seconds to wait before the request may be sent again; None when it may not."""
    refused = response.status == 429
    if not refused and not (response.status >= 500 and method in _IDEMPOTENT):
        return None
    text = header(response.headers, "retry-after")
    return float(text) if text is not None and text.strip().isdecimal() else None


def error_of(response: RawResponse) -> ApiError:
    """The ApiError for an answer that is none of success; `headers` are the answer's."""
    try:
        status = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        status = None
    text = response.body[:1024].decode("utf-8", "replace")
    error = from_status(response.status, status if isinstance(status, dict) else None, text)
    error.headers = tuple(response.headers)
    return error


def encode_query(query: Query) -> str:
    return _encoded(tuple(query))


@lru_cache(maxsize=256)
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query, quote_via=quote, safe="")
