"""The filter stack: errors, request info, authentication, limits, authorization, then the endpoint.

Built once. The outermost filter is the only place where an exception becomes a Status.
Source: apiserver `pkg/server/config.go` (DefaultBuildHandlerChain).
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from steersman._util.goduration import duration_error, parse_nanoseconds
from steersman._util.gotext import quote
from steersman.apimachinery.errors import (
    ApiError,
    BadRequest,
    Forbidden,
    InternalError,
    ServiceUnavailable,
    Timeout,
    internal,
)
from steersman.apimachinery.request_info import RequestInfo, parse_request
from steersman.apiserver.authn.authenticator import Authenticator, header_warning
from steersman.apiserver.authn.impersonation import Impersonation
from steersman.apiserver.authz.attributes import Attributes, forbidden, without_html
from steersman.apiserver.authz.narrowing import with_selectors
from steersman.apiserver.authz.union import Union
from steersman.apiserver.authz.waiting import settle
from steersman.apiserver.core import Core
from steersman.apiserver.dispatch import dispatch
from steersman.apiserver.endpoints import answers
from steersman.apiserver.exchange import Answer, Exchange
from steersman.apiserver.filters.presenting import presented
from steersman.apiserver.filters.warnings import warning_headers
from steersman.apiserver.flowcontrol.fairness import Fairness, Rejected
from steersman.apiserver.flowcontrol.levels import Waiter
from steersman.apiserver.metrics import path_labels, request_labels
from steersman.net.http import Request, Response, Stream, StreamResponse
from steersman.store.interface import ReadOnlyStore, StoreError, StoreFull, UnknownOutcome

if TYPE_CHECKING:
    from steersman.apiserver.audit.auditor import Auditor
    from steersman.apiserver.faults import FaultPlan

log = logging.getLogger("steersman.apiserver")
REQUEST_SECONDS = 60.0
_LOGGED_ID = 64
_READS = frozenset({"get", "list", "watch"})


class Filters:
    """`handle` answers HTTP requests. `fairness` decides who waits, and who gets 429.

    Without it `max_reads` and `max_writes` bound how many run at once: more get 429. 0 bounds nothing. `faults` are
    what befalls requests that are allowed.
    """

    def __init__(
        self,
        core: Core,
        authenticator: Authenticator,
        authorizer: Union,
        *,
        max_reads: int = 400,
        max_writes: int = 200,
        auditor: Auditor | None = None,
        fairness: Fairness | None = None,
        faults: FaultPlan | None = None,
    ) -> None:
        self.core = core
        self.fairness = fairness
        self.auditor = auditor
        self.authenticator = authenticator
        self.authorizer = authorizer
        self._endpoint = partial(dispatch, core) if faults is None else partial(_with_faults, faults, core)
        self._impersonation = Impersonation(authorizer)
        self._limits = {True: max_reads, False: max_writes}
        self._running = {True: 0, False: 0}
        self._gauges = {
            True: core.metrics.inflight.cell(("readOnly",)),
            False: core.metrics.inflight.cell(("mutating",)),
        }

    async def handle(self, request: Request) -> Answer:
        """The outermost filter: whatever happens inside, the client gets an answer."""
        started = time.perf_counter()
        info = parse_request(request.method, request.path, request.query)
        x = Exchange(request, info, request.headers.get("audit-id") or _audit_id(), started)
        failed = False
        try:
            answer = await self._admitted(x)
        except ApiError as error:
            answer = self._failure(x, error)
        except ReadOnlyStore as error:
            answer = self._failure(x, Forbidden(str(error)))
        except UnknownOutcome as error:
            answer = self._failure(x, Timeout(f"the store failed: {error}"))
        except StoreFull as error:
            answer = self._failure(x, ApiError(str(error)))
        except StoreError as error:
            answer = self._failure(x, ServiceUnavailable(f"the store failed: {error}"))
        except Exception as error:
            failed = True
            log.exception("request failed", extra=_told(x))
            answer = self._failure(x, InternalError(f"Internal error occurred: {error}"))
        if self.auditor is not None:
            await self._audited(self.auditor, x, answer, failed)
        answer = await presented(x, answer)
        headers = [*answer.headers, ("Audit-Id", x.audit_id), *x.headers]
        headers.extend(("Warning", text) for text in warning_headers(x.warnings))
        answer.headers = headers
        self._record(x, answer, started)
        return answer

    async def _audited(self, auditor: Auditor, x: Exchange, answer: Answer, failed: bool) -> None:
        if x.audit is not None:
            await auditor.finish(x, x.audit, answer, failed=failed)
        elif not x.known:
            await auditor.unauthenticated(x, self._attributes(x, x.info), answer)

    def _failure(self, x: Exchange, error: ApiError) -> Response:
        return answers.error(error, x.request.headers.get("accept", ""))

    def _record(self, x: Exchange, answer: Answer, started: float) -> None:
        info = x.info
        if info.is_resource:
            labels = request_labels(info, x.request.headers.get("content-type", ""))
        else:
            labels = path_labels(info, _handler_path(info))
        if isinstance(answer, StreamResponse):
            self._watch_length(answer, self.core.metrics.start_long_running(labels))
            size = 0
        else:
            body = answer.body
            size = len(body) if isinstance(body, bytes) else sum(map(len, body))
        self.core.metrics.record_request(labels, answer.status, time.perf_counter() - started, size)

    @staticmethod
    def _watch_length(answer: StreamResponse, cell: list[float]) -> None:
        run = answer.run

        async def counted(stream: Stream) -> None:
            try:
                await run(stream)
            finally:
                cell[0] -= 1

        answer.run = counted

    async def _admitted(self, x: Exchange) -> Answer:
        """Authentication, impersonation, limits."""
        info = x.info
        seconds = _time_limit(info) if info.query and info.verb != "watch" else None
        header = x.request.headers.get("authorization")
        if header is not None and x.request.peer_certificate is None and (ignored := header_warning(header)):
            x.warnings.append(ignored)
        x.user = await self.authenticator.authenticate(x.request)
        x.known = True
        attributes = self._attributes(x, info)
        if self.auditor is not None:
            await self.auditor.begin(x, attributes)
        user = await settle(partial(self._impersonation.effective_user, x.request, attributes))
        if user is not x.user:
            if x.audit is not None:
                x.audit.impersonates(user, self._impersonation.constraint(x.user))
            x.user = user
            attributes = attributes._replace(user=user)
        if self.fairness is None:
            return _too_many() if self._is_full(info) else await self._authorized(x, attributes, seconds)
        return await self._fairly(self.fairness, x, attributes, seconds)

    async def _fairly(self, fairness: Fairness, x: Exchange, attributes: Attributes, seconds: float | None) -> Answer:
        found = fairness.classify(attributes)
        x.headers = found.headers
        level = found.level
        if level.exempt:
            return await self._authorized(x, attributes, seconds)
        waiter: Waiter | None = None
        began = x.started
        if not fairness.try_enter(level, began):
            try:
                waiter = await fairness.enter(found)
            except Rejected:
                return _too_many()
            began = time.perf_counter()
        try:
            return await self._authorized(x, attributes, seconds)
        finally:
            fairness.leave(level, waiter, began)

    def _is_full(self, info: RequestInfo) -> bool:
        """Whether the limit of requests at a time is reached, without fairness."""
        reads = info.verb in _READS or not info.is_resource
        limit = self._limits[reads]
        return bool(limit) and self._running[reads] >= limit and info.verb != "watch"

    async def _authorized(self, x: Exchange, attributes: Attributes, seconds: float | None) -> Answer:
        """Authorization, then the endpoint; `seconds` is what the client wants to wait at most."""
        info = x.info
        decision = await settle(partial(self.authorizer.authorize, attributes))
        if x.audit is not None:
            x.audit.decided(decision)
        if decision.error and not decision.allowed:
            return _undecidable(x, decision.error)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)
        if info.verb == "watch":
            return await self._endpoint(x)
        reads = info.verb in _READS or not info.is_resource
        self._running[reads] += 1
        gauge = self._gauges[reads]
        gauge[0] += 1
        try:
            if reads and seconds is None:
                return await self._endpoint(x)
            async with asyncio.timeout(REQUEST_SECONDS if seconds is None else seconds):
                return await self._endpoint(x)
        except TimeoutError:
            raise Timeout("Timeout: request did not complete within the allotted timeout", details={}) from None
        finally:
            self._running[reads] -= 1
            gauge[0] -= 1

    def _attributes(self, x: Exchange, info: RequestInfo) -> Attributes:
        if not info.is_resource:
            return Attributes(x.user, info.method.lower(), path=info.path, resource_request=False)
        attributes = Attributes(
            x.user,
            info.verb,
            info.group,
            info.version,
            info.resource,
            info.subresource,
            info.namespace if info.resource != "namespaces" or info.namespace else "",
            info.name,
        )
        return with_selectors(attributes, info) if self.authorizer.reads_selectors else attributes

    def authorize_create(self, x: Exchange) -> Callable[[], Awaitable[None]]:
        """What an update asks before it creates: the user needs the create verb too."""

        async def check() -> None:
            attributes = self._attributes(x, x.info)._replace(verb="create")
            decision = await settle(partial(self.authorizer.authorize, attributes))
            if decision.error and not decision.allowed:
                raise internal(decision.error)
            if not decision.allowed:
                raise forbidden(attributes, decision.reason)

        return check


async def _with_faults(faults: FaultPlan, core: Core, x: Exchange) -> Answer:
    return await faults.around(x, partial(dispatch, core, x), core.forget_history)


def _undecidable(x: Exchange, why: str) -> Response:
    """Whether a request is allowed could not be found out."""
    uri = x.request.path + (f"?{x.request.query}" if x.request.query else "")
    return answers.text(500, f"{without_html(f'Internal Server Error: {quote(uri)}: {why}')}\n")


def _too_many() -> Response:
    """Source: apiserver `pkg/server/filters/priority-and-fairness.go` (tooManyRequests)."""
    answer = answers.text(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests, please try again later.\n")
    answer.headers = (*answer.headers, ("Retry-After", "1"))
    return answer


def _told(x: Exchange) -> dict[str, str]:
    """What a log line says of a request. Its id is what the client was told, or has chosen: not all of it."""
    return {"method": x.request.method, "path": x.request.path, "auditID": x.audit_id[:_LOGGED_ID]}


def _time_limit(info: RequestInfo) -> float | None:
    """What the client asks for with ?timeout, in seconds; None for the default. Raises BadRequest.

    Source: apiserver `pkg/endpoints/filters/request_deadline.go`.
    """
    text = info.first("timeout") if info.query else ""
    if not text:
        return None
    wanted = parse_nanoseconds(text)
    if wanted is None:
        raise BadRequest(f"invalid timeout specified in the request URL - {duration_error(text)}")
    return min(wanted / 1e9, REQUEST_SECONDS) if wanted else None


def _handler_path(info: RequestInfo) -> str:
    first = info.path.strip("/").split("/")
    if first[0] in ("healthz", "livez", "readyz", "metrics", "version"):
        return f"/{first[0]}"
    if first[0] == "openapi":
        return "/".join(first[:2])
    return first[0] if first[0] in ("api", "apis") else ""


def _audit_id() -> str:
    raw = os.urandom(16).hex()
    return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-a{raw[17:20]}-{raw[20:]}"
