"""Calls of webhooks: a review is posted, and its answer's body comes back.

Source: apiserver `pkg/util/webhook/client.go`, client-go `rest/request.go`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steersman._util.gotext import quote
from steersman.apimachinery.unexpected import describe
from steersman.apiserver.webhooks.services import ServiceError, ServiceResolver
from steersman.net.calls import Caller, CallError

_OK = range(200, 207)


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
    """Asks webhooks. One for each server, so that connections are used again."""

    def __init__(self, resolve: ServiceResolver) -> None:
        self._resolve = resolve
        self._caller = Caller()

    async def call(self, config: ClientConfig, review: bytes, timeout: int) -> bytes:
        """The body of a webhook's successful answer; `timeout` is in seconds. Raises WebhookError."""
        url = f"{config.url}?timeout={timeout}s"
        try:
            address = None if config.service is None else self._resolve(*config.service)
            reply = await self._caller.post(url, review, ca=config.ca, address=address, timeout=float(timeout))
        except (ServiceError, CallError) as error:
            raise WebhookError(f"Post {quote(url)}: {error}") from None
        if reply.status not in _OK:
            raise WebhookError(describe(reply.status, reply.content_type, reply.body))
        if not reply.body:
            kind = reply.content_type or "application/json"
            raise WebhookError(f"0-length response with status code: {reply.status} and content type: {kind}")
        return reply.body

    async def close(self) -> None:
        await self._caller.close()


def _pem(bundle: Any) -> bytes | None:
    """A caBundle's text; one that is empty, or only white space, names no authority."""
    try:
        return base64.b64decode(bundle or "").strip() or None
    except (ValueError, binascii.Error):
        return None
