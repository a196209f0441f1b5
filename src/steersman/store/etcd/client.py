"""Calls to the members of one etcd cluster: another member when one does not answer, deadlines, tokens.

Source of the error texts: etcd `api/v3rpc/rpctypes/error.go`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from steersman.net.grpc import CallFailed, Channel, Code, Metadata, Stream
from steersman.net.tls import client_ssl_context
from steersman.store.etcd import messages as pb
from steersman.store.etcd.settings import TLS, EtcdSettings
from steersman.store.interface import StoreFull, StoreUnavailable, UnknownOutcome

log = logging.getLogger("steersman.store.etcd")
PAUSE = 0.1
"""Seconds between two attempts."""
_REFUSED = ("etcdserver: no leader", "etcdserver: too many requests", "etcdserver: not capable")
_COMPACTED = "required revision has been compacted"
_FUTURE = "required revision is a future revision"
_FULL = "database space exceeded"
_STALE_TOKEN = ("etcdserver: invalid auth token", "etcdserver: revision of auth store is old")
_AGAIN = (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.CANCELLED, Code.UNKNOWN)
_UNCERTAIN = (*_AGAIN, Code.ABORTED, Code.INTERNAL, Code.DATA_LOSS)
_NOT_UNDERSTOOD = ("closed", "reset by peer", "does not speak HTTP/2")
_PLAIN = (
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted (see --etcd-cafile)"),
    ("WRONG_VERSION_NUMBER", "it speaks no TLS"),
    ("RECORD_LAYER_FAILURE", "it speaks no TLS"),
    ("user name is empty", "it wants a user (--etcd-user)"),
    ("invalid user ID or password", "wrong user or password"),
    ("certificate required", "it wants a client certificate (--etcd-certfile)"),
)


class RevisionCompacted(Exception):
    """etcd has forgotten the revision; `revision` is the oldest that it has, 0 where it does not say."""

    def __init__(self, revision: int = 0) -> None:
        super().__init__("the revision has been compacted")
        self.revision = revision


class RevisionInFuture(Exception):
    """The revision has not happened yet."""


@dataclass(frozen=True, slots=True)
class Method:
    """One unary method of etcd's API; `writes` says that a repetition is not the same as the call itself."""

    path: str
    response: Callable[[bytes], Any]
    writes: bool = False


def _method(service: str, name: str, response: Any, *, writes: bool = False) -> Method:
    return Method(f"/{pb.PACKAGE}.{service}/{name}", response.FromString, writes)


RANGE = _method("KV", "Range", pb.RangeResponse)
TXN = _method("KV", "Txn", pb.TxnResponse, writes=True)
_LOOK = _method("KV", "Txn", pb.TxnResponse)
COMPACT = _method("KV", "Compact", pb.CompactionResponse)
LEASE_GRANT = _method("Lease", "LeaseGrant", pb.LeaseGrantResponse)
STATUS = _method("Maintenance", "Status", pb.StatusResponse)
AUTHENTICATE = _method("Auth", "Authenticate", pb.AuthenticateResponse)
WATCH = f"/{pb.PACKAGE}.Watch/Watch"
NOWHERE = pb.RangeRequest(key=b"\0")
"""What to ask RANGE for to learn the current revision: a key that nobody writes."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What was answered. `doubtful`: an attempt before this one may have been carried out, too."""

    message: Any
    doubtful: bool


class Member:
    """One member, connected to when it is first asked."""

    def __init__(self, address: str, tls: ssl.SSLContext | None, attempt: float) -> None:
        self.address = address
        parts = urlsplit(f"//{address}")
        assert parts.hostname is not None
        assert parts.port is not None
        self._channel = Channel(parts.hostname, parts.port, tls, attempt)

    async def unary(self, method: Method, request: Any, timeout: float, metadata: Metadata) -> Any:
        """The answer to a call. Raises CallFailed."""
        answer = await self._channel.unary(method.path, request.SerializeToString(), timeout=timeout, metadata=metadata)
        return method.response(answer)

    async def watch(self, metadata: Metadata) -> Stream:
        """A new stream of watches. Raises CallFailed."""
        return await self._channel.stream(WATCH, metadata)

    async def close(self) -> None:
        await self._channel.close()


class EtcdClient:
    """The members of a cluster; the one that answered last is asked first. `trouble` says why the last call failed."""

    def __init__(self, settings: EtcdSettings) -> None:
        self.settings = settings
        context = None if settings.tls is None else _context(settings.tls)
        self.members = [Member(address, context, settings.attempt) for address in settings.endpoints]
        self._turn = 0
        self._met = False
        self._closed = False
        self.trouble = ""
        self.metadata: Metadata = ()

    @property
    def member(self) -> Member:
        return self.members[self._turn]

    def avoid(self, member: Member) -> None:
        """Ask another member next, if there is one."""
        if member is self.member:
            self._turn = (self._turn + 1) % len(self.members)

    async def call(self, method: Method, request: Any) -> Reply:
        """Have a member carry out a call. Raises StoreUnavailable, RevisionCompacted, RevisionInFuture.

        Calls are repeated until one is answered or the time is up; a Reply says if that is in doubt for a write.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.settings.timeout
        doubtful, reason, failures, used = False, "", 0, self.metadata
        while (left := deadline - loop.time()) > 0 and not self._closed:
            member = self.member
            try:
                used = await self._token()
                answer = await member.unary(method, request, min(left, self.settings.attempt), used)
                self.trouble = ""
                return Reply(answer, doubtful)
            except CallFailed as error:
                doubtful = doubtful or (method.writes and not _was_refused(error))
                if method is TXN and _FULL in error.details and not doubtful:
                    doubtful = not await self._unchanged(request)
                self.trouble = reason = f"{member.address}: {self._judge(error, used, doubtful=doubtful)}"
                self.avoid(member)
            failures += 1
            if failures % len(self.members) == 0:
                await asyncio.sleep(min(PAUSE, max(deadline - loop.time(), 0)))
        raise _unavailable(reason, doubtful=doubtful)

    async def _unchanged(self, request: Any) -> bool:
        """Whether what a transaction compares is still so, and hence nothing of it was written.

        An etcd that becomes full carries out what it had begun with, and says that there is no room all the same
        (`server/etcdserver/apply/quota.go`).
        """
        nowhere = pb.RequestOp(request_range=NOWHERE)  # without a read etcd would not ask the other members
        look = pb.TxnRequest(compare=request.compare, success=[nowhere], failure=[nowhere])
        try:
            return len(request.compare) > 0 and (await self.call(_LOOK, look)).message.succeeded is True
        except (StoreUnavailable, StoreFull):
            return False

    async def first_answer(self, method: Method, request: Any) -> Any:
        """What the first member that can be reached says, each asked once. Raises StoreUnavailable."""
        reasons: list[str] = []
        for _ in self.members:
            member, used = self.member, self.metadata
            try:
                used = await self._token()
                answer = await member.unary(method, request, self.settings.attempt, used)
            except CallFailed as error:
                reasons.append(f"{member.address}: {self._judge(error, used)}")
                self.avoid(member)
            else:
                self._met = True
                return answer
        raise _unavailable("; ".join(reasons))

    async def watch(self) -> tuple[Member, Stream]:
        """A stream of watches at a member, which ends when that member loses sight of the cluster."""
        member, used = self.member, self.metadata
        try:
            used = await self._token()
            return member, await member.watch((*used, ("hasleader", "true")))
        except CallFailed as error:
            self.avoid(member)
            raise _unavailable(f"{member.address}: {self._judge(error, used)}") from None

    async def close(self) -> None:
        """End all connections; calls that run fail."""
        self._closed = True
        for member in self.members:
            await member.close()

    async def _token(self) -> Metadata:
        """Who we are, as a call's metadata; log in, where that is not done. Raises CallFailed."""
        if not self.metadata and self.settings.user:
            request = pb.AuthenticateRequest(name=self.settings.user, password=self.settings.password)
            answer = await self.member.unary(AUTHENTICATE, request, self.settings.attempt, ())
            self.metadata = (("token", answer.token),)
        return self.metadata

    def _judge(self, error: CallFailed, used: Metadata, *, doubtful: bool = False) -> str:
        """Why an attempt failed, if another one may succeed; raises what will fail again.

        `used` is who it said that we are. `doubtful`: this attempt, or one before it, may have been carried out.
        """
        text = error.details
        if _COMPACTED in text:
            raise RevisionCompacted from None
        if _FUTURE in text:
            raise RevisionInFuture from None
        if _FULL in text:
            raise (_unavailable(text, doubtful=True) if doubtful else StoreFull(text)) from None
        if any(known in text for known in _STALE_TOKEN):
            if self.metadata is used:  # else another call has logged in since
                self.metadata = ()
        elif error.code not in _AGAIN and not any(known in text for known in _REFUSED):
            raise _unavailable(f"{self.member.address}: {self._readable(text)}", doubtful=doubtful) from None
        return self._readable(text)

    def _readable(self, text: str) -> str:
        """One line for people."""
        if not self._met and any(known in text for known in _NOT_UNDERSTOOD):
            other = "speaks no TLS" if self.settings.tls is not None else "wants TLS (--etcd-cafile)"
            return f"it has closed the connection; perhaps it {other}"
        return next((plain for known, plain in _PLAIN if known in text), text)


def _context(tls: TLS) -> ssl.SSLContext:
    return client_ssl_context(tls.ca, tls.cert, tls.key, protocol="h2")


def _was_refused(error: CallFailed) -> bool:
    """Whether it is certain that the call was not carried out."""
    known = error.untouched or error.code not in _UNCERTAIN
    return known or any(known in error.details for known in (*_REFUSED, *_STALE_TOKEN))


def _unavailable(reason: str, *, doubtful: bool = False) -> StoreUnavailable:
    text = f"etcd cannot be used: {reason or 'no answer in time'}"
    return UnknownOutcome(f"{text}; it is not known whether it was written") if doubtful else StoreUnavailable(text)
