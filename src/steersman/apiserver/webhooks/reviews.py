"""Reviews that are posted to remote services: SubjectAccessReview, TokenReview.

Source: apiserver `pkg/util/webhook/webhook.go`, client-go `rest/request.go`.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import orjson

from steersman._util.gotext import quote
from steersman.api import kinds
from steersman.api.review_answers import AnswerError, decode
from steersman.apimachinery.gvk import split_api_version
from steersman.apimachinery.unexpected import describe
from steersman.apiserver.webhooks.caller import broken
from steersman.apiserver.webhooks.kubeconfig import RemoteService
from steersman.net.calls import BrokenAnswer, Caller, CallError

ATTEMPTS = 5
PATIENCE = 60.0
_PAUSE, _FACTOR, _JITTER = 0.5, 1.5, 0.2
_AGAIN = frozenset({429, 500, 504})
_OK = range(200, 207)

Object = dict[str, Any]


class ReviewError(Exception):
    """The service gave no usable answer; the text says why."""

    def __init__(self, message: str, *, again: bool = False) -> None:
        super().__init__(message)
        self.again = again


class Reviewer:
    """Posts reviews of one kind to one service. `timeout` is in seconds, for each attempt."""

    def __init__(
        self, caller: Caller, service: RemoteService, group: str, version: str, kind: str, *, timeout: float = 30.0
    ) -> None:
        self._caller = caller
        self._service = service
        self.version = version
        self._group, self._kind = group, kind
        self._timeout = timeout

    async def review(self, spec: Object, status: Object) -> Object:
        """The status of the answer to a review of `spec`. Raises ReviewError.

        What may be a passing trouble (a broken connection, 429, 500, 504) is tried again, after longer and longer, but
        for no longer than a request may take.
        """
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._attempts(spec, status)
        except TimeoutError:
            raise ReviewError("context deadline exceeded") from None

    async def _attempts(self, spec: Object, status: Object) -> Object:
        pause = _PAUSE
        for left in reversed(range(ATTEMPTS)):
            try:
                return await self._once(spec, status)
            except ReviewError as error:
                if not error.again or not left:
                    raise
            await asyncio.sleep(pause * (1 + random.random() * _JITTER))  # noqa: S311
            pause *= _FACTOR
        raise AssertionError("unreachable")

    async def _once(self, spec: Object, status: Object) -> Object:
        api_version = f"{self._group}/{self.version}"
        review = {"kind": self._kind, "apiVersion": api_version, "metadata": {}, "spec": spec, "status": status}
        url = self._service.url
        try:
            reply = await self._caller.send(
                "POST",
                f"{url}?timeout={_go_seconds(self._timeout)}",
                orjson.dumps(review) + b"\n",
                trust=self._service.trust,
                headers=self._service.headers(),
                timeout=self._timeout,
            )
        except BrokenAnswer as error:
            raise ReviewError(broken(error)) from None
        except (CallError, OSError) as error:
            again = "connection reset" in str(error)
            raise ReviewError(f"Post {quote(url)}: {error}", again=again) from None
        if reply.status not in _OK:
            message = describe(reply.status, reply.content_type, reply.body)
            raise ReviewError(message, again=reply.status in _AGAIN)
        try:
            self._check_kind(reply.body)
            answer = decode(reply.body, self._group, self.version, self._kind, ("v1", "v1beta1"))
        except AnswerError as error:
            raise ReviewError(str(error)) from None
        found = answer.get("status")
        return found if isinstance(found, dict) else {}

    def _check_kind(self, body: bytes) -> None:
        """Another kind that Kubernetes has does not become the review. Raises AnswerError."""
        try:
            answer: Any = orjson.loads(body)
            given, kind = answer["apiVersion"], answer["kind"]
            group, version = split_api_version(given)
            kinds.builtin_kind(group, version, kind)
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        if (group, kind) != (self._group, self._kind):
            what = f"({version}.{kind}) to ({self.version}.{self._kind})"
            raise AnswerError(f"converting {what}: unknown conversion")


def _go_seconds(seconds: float) -> str:
    return f"{seconds:g}s"
