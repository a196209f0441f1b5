"""The auditor: decides whether a request is recorded, and gives its events to the backends.

Source: apiserver `pkg/endpoints/filters/{audit,authn_audit}.go`.
"""

from __future__ import annotations

from collections.abc import Sequence

from steersman.apimachinery.errors import internal
from steersman.apiserver.audit.backends import Backend
from steersman.apiserver.audit.events import Record
from steersman.apiserver.audit.policy import COMPLETE, PANIC, RECEIVED, STARTED, Policy
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import Attributes
from steersman.apiserver.exchange import Answer, Exchange
from steersman.net.http import Stream, StreamResponse

_NOBODY = UserInfo("")
_DEPRECATED = "k8s.io/deprecated"


class Auditor:
    """One for each server with an audit policy."""

    def __init__(self, policy: Policy, backends: Sequence[Backend]) -> None:
        self._policy = policy
        self._backends = list(backends)

    async def begin(self, x: Exchange, attributes: Attributes) -> None:
        """Start the record of an authenticated request, if there is to be one. Raises InternalError in strict mode,
        when that fails."""
        verdict = self._policy.verdict(attributes)
        if verdict is None:
            return
        record = x.audit = Record(x, attributes.user, verdict)
        if not await self._process(x, record, RECEIVED):
            raise internal("failed to store audit event")

    async def unauthenticated(self, x: Exchange, attributes: Attributes, answer: Answer) -> None:
        """The one event of a request whose user is not known."""
        verdict = self._policy.verdict(attributes._replace(user=_NOBODY))
        if verdict is not None:
            await self._process(x, Record(x, None, verdict), STARTED, answer)

    async def finish(self, x: Exchange, record: Record, answer: Answer, *, failed: bool) -> None:
        """The events of the answer; those of a stream come when it starts and when it ends.

        `failed` says that the server itself did, in a way that nobody foresaw.
        """
        if x.scope is not None and x.scope.deprecation:
            record.annotate(_DEPRECATED, "true")
        if isinstance(answer, StreamResponse):
            self._follow(x, record, answer)
            return
        if x.info.verb == "watch":
            await self._process(x, record, STARTED, answer)
        await self._process(x, record, PANIC if failed else COMPLETE, answer)

    def _follow(self, x: Exchange, record: Record, answer: StreamResponse) -> None:
        run = answer.run

        async def followed(stream: Stream) -> None:
            await self._process(x, record, STARTED, answer)
            try:
                await run(stream)
            finally:
                await self._process(x, record, COMPLETE, answer)

        answer.run = followed

    async def _process(self, x: Exchange, record: Record, stage: str, answer: Answer | None = None) -> bool:
        if stage in record.verdict.omitted:
            return True
        event = record.event(x, stage, answer)
        done = True
        for backend in self._backends:
            done = await backend.process(event, first=stage == RECEIVED) and done
        return done

    async def close(self) -> None:
        """Deliver what is buffered. Call it when no more requests come."""
        for backend in self._backends:
            await backend.close()
