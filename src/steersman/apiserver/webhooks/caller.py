"""Calls of webhooks: a review is posted, and its answer's body comes back.

Source: apiserver `pkg/util/webhook/client.go`, client-go `rest/request.go`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import posixpath
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman.apimachinery.schema.urls import escape_path, parse_url
from steersman.apimachinery.unexpected import describe
from steersman.apiserver.webhooks.services import ServiceError, ServiceResolver
from steersman.net.calls import BrokenAnswer, Caller, CallError, Reply

if TYPE_CHECKING:
    from steersman.apiserver.faults import FaultPlan

_OK = range(200, 207)
_RETRIES = 10


class WebhookError(Exception):
    """The webhook could not be asked, or its answer is none."""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """Where a webhook is: at a URL, or behind a service (`namespace`, `name`, `port`) at a path. `ca` is PEM."""

    url: str
    service: tuple[str, str, int] | None
    ca: bytes | None

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ClientConfig:
        """From a WebhookClientConfig."""
        ca = _pem(config.get("caBundle"))
        service = config.get("service")
        if service is None:
            return cls(config.get("url") or "", None, ca)
        namespace, name, port = service["namespace"], service["name"], service.get("port") or 443
        path = service.get("path") or "/"
        return cls(f"https://{name}.{namespace}.svc:{port}{path}", (namespace, name, port), ca)


class WebhookCaller:
    """Asks webhooks. One for each server, so that connections are used again. `faults` are what befalls calls."""

    def __init__(self, resolve: ServiceResolver, faults: FaultPlan | None = None) -> None:
        self._resolve = resolve
        self._caller = Caller()
        self._faults = faults

    async def call(self, config: ClientConfig, review: bytes, timeout: int, *, name: str) -> bytes:
        """The body of a webhook's successful answer; `timeout` is in seconds. Raises WebhookError.

        `name` is the webhook's, or that of the definition whose objects it converts. A webhook that says when to ask
        again is asked again, while there is time.
        """
        url = f"{_clean(config.url)}?timeout={timeout}s"
        try:
            async with asyncio.timeout(timeout):
                reply = await self._ask(url, config, review, float(timeout), name)
        except BrokenAnswer as error:
            raise WebhookError(broken(error)) from None
        except (ServiceError, CallError, TimeoutError) as error:
            why = str(error) or "context deadline exceeded"
            raise WebhookError(f"Post {quote(url)}: {why}") from None
        if reply.status not in _OK:
            raise WebhookError(describe(reply.status, reply.content_type, reply.body))
        if not reply.body:
            kind = reply.content_type or "application/json"
            raise WebhookError(f"0-length response with status code: {reply.status} and content type: {kind}")
        return reply.body

    async def _ask(self, url: str, config: ClientConfig, review: bytes, timeout: float, name: str) -> Reply:
        for left in reversed(range(_RETRIES + 1)):
            address = None if config.service is None else self._resolve(*config.service)
            post = partial(self._caller.post, url, review, ca=config.ca, address=address, timeout=timeout)
            reply = await (post() if self._faults is None else self._faults.around_webhook(name, post))
            wait = _retry_after(reply)
            if wait is None or not left:
                break
            await asyncio.sleep(wait)
        return reply

    async def close(self) -> None:
        await self._caller.close()


def broken(error: BrokenAnswer) -> str:
    """What is said of an answer whose body did not come whole."""
    return f"unexpected error when reading response body. Please retry. Original error: {error}"


def _retry_after(reply: Reply) -> int | None:
    """The seconds after which a webhook that is overloaded or out of order wants to be asked again."""
    if reply.status != 429 and reply.status < 500:
        return None
    try:
        return int(reply.retry_after)
    except ValueError:
        return None


def _clean(url: str) -> str:
    """The URL as it is called: no empty parts, dots or last slash in its path, which is escaped anew."""
    parts = parse_url(url)
    path = posixpath.normpath(f"/{parts.path.lstrip('/')}")
    return f"{parts.scheme}://{parts.host}{escape_path(path)}"


def _pem(bundle: Any) -> bytes | None:
    """A caBundle's text; one that is empty, or only white space, names no authority."""
    try:
        return base64.b64decode(bundle or "").strip() or None
    except (ValueError, binascii.Error):
        return None
