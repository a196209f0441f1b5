"""Calls to the members of one etcd cluster: another member when one does not answer, deadlines, tokens.

Source of the error texts: etcd `api/v3rpc/rpctypes/error.go`.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what it has to say is in its errors

import grpc
import grpc.aio

from steersman.store.etcd import messages as pb
from steersman.store.etcd.settings import TLS, EtcdSettings
from steersman.store.interface import StoreFull, StoreUnavailable, UnknownOutcome

log = logging.getLogger("steersman.store.etcd")
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
]
PAUSE = 0.1
"""Seconds between two attempts."""
_NEVER_SENT = "failed to connect to all addresses"
_REFUSED = ("etcdserver: no leader", "etcdserver: too many requests", "etcdserver: not capable")
_COMPACTED = "required revision has been compacted"
_FUTURE = "required revision is a future revision"
_FULL = "database space exceeded"
_STALE_TOKEN = ("etcdserver: invalid auth token", "etcdserver: revision of auth store is old")
_AGAIN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
)


_PLAIN = (
    ("Connection refused", "connection refused"),
    ("Socket closed", "the connection was closed"),
    ("Connection reset", "the connection was closed"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted (see --etcd-cafile)"),
    ("WRONG_VERSION_NUMBER", "it speaks no TLS"),
    ("resolving", "no such host"),
    ("DNS resolution failed", "no such host"),
    ("user name is empty", "it wants a user (--etcd-user)"),
    ("invalid user ID or password", "wrong user or password"),
    ("certificate required", "it wants a client certificate (--etcd-certfile)"),
    ("Deadline Exceeded", "no answer in time"),
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
    """One member: its channel, made when it is first asked."""

    def __init__(self, address: str, tls: TLS | None) -> None:
        self.address = address
        self._tls = tls
        self._channel: grpc.aio.Channel | None = None
        self._callables: dict[str, Any] = {}

    @property
    def channel(self) -> grpc.aio.Channel:
        if self._channel is None:
            if self._tls is None:
                self._channel = grpc.aio.insecure_channel(self.address, options=_OPTIONS)
            else:
                credentials = grpc.ssl_channel_credentials(self._tls.ca, self._tls.key, self._tls.cert)
                self._channel = grpc.aio.secure_channel(self.address, credentials, options=_OPTIONS)
        return self._channel

    def unary(self, method: Method) -> Any:
        found = self._callables.get(method.path)
        if found is None:
            found = self._callables[method.path] = self.channel.unary_unary(
                method.path, request_serializer=_serialize, response_deserializer=method.response
            )
        return found

    def watch(self, metadata: list[tuple[str, str]]) -> Any:
        """A new stream of watches."""
        method = self.channel.stream_stream(
            WATCH, request_serializer=_serialize, response_deserializer=pb.WatchResponse.FromString
        )
        return method(metadata=metadata, wait_for_ready=False)

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()


def _serialize(message: Any) -> bytes:
    encoded: bytes = message.SerializeToString()
    return encoded


class EtcdClient:
    """The members of a cluster; the one that answered last is asked first. `trouble` says why the last call failed."""

    def __init__(self, settings: EtcdSettings) -> None:
        self.settings = settings
        self.members = [Member(address, settings.tls) for address in settings.endpoints]
        self._turn = 0
        self._met = False
        self.trouble = ""
        self._metadata: list[tuple[str, str]] = []

    @property
    def member(self) -> Member:
        return self.members[self._turn]

    @property
    def metadata(self) -> list[tuple[str, str]] | None:
        """Who we are, as a call's metadata."""
        return self._metadata or None

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
        doubtful, reason, failures = False, "", 0
        while (left := deadline - loop.time()) > 0:
            member = self.member
            try:
                await self._have_token()
                answer = await member.unary(method)(
                    request, timeout=min(left, self.settings.attempt), metadata=self.metadata
                )
                self.trouble = ""
                return Reply(answer, doubtful)
            except grpc.aio.AioRpcError as error:
                self.trouble = reason = f"{member.address}: {self._judge(error)}"
                doubtful = doubtful or (method.writes and not _was_refused(error))
                self.avoid(member)
            failures += 1
            if failures % len(self.members) == 0:
                await asyncio.sleep(min(PAUSE, max(deadline - loop.time(), 0)))
        raise _unavailable(reason, doubtful=doubtful)

    async def first_answer(self, method: Method, request: Any) -> Any:
        """What the first member that can be reached says, each asked once. Raises StoreUnavailable."""
        reasons: list[str] = []
        for _ in self.members:
            member = self.member
            try:
                await self._have_token()
                answer = await member.unary(method)(request, timeout=self.settings.attempt, metadata=self.metadata)
            except grpc.aio.AioRpcError as error:
                reasons.append(f"{member.address}: {self._judge(error)}")
                self.avoid(member)
            else:
                self._met = True
                return answer
        raise _unavailable("; ".join(reasons))

    async def watch(self) -> tuple[Member, Any]:
        """A stream of watches at a member, which ends when that member loses sight of the cluster."""
        member = self.member
        try:
            await self._have_token()
        except grpc.aio.AioRpcError as error:
            self.avoid(member)
            raise _unavailable(f"{member.address}: {self._judge(error)}") from None
        return member, member.watch([*self._metadata, ("hasleader", "true")])

    async def close(self) -> None:
        for member in self.members:
            await member.close()

    async def _have_token(self) -> None:
        """Log in, where that is not done. Raises AioRpcError."""
        if self._metadata or not self.settings.user:
            return
        request = pb.AuthenticateRequest(name=self.settings.user, password=self.settings.password)
        answer = await self.member.unary(AUTHENTICATE)(request, timeout=self.settings.attempt)
        self._metadata = [("token", answer.token)]

    def _judge(self, error: grpc.aio.AioRpcError) -> str:
        """Why an attempt failed, if another one may succeed; raises what will fail again."""
        code, text = error.code(), error.details() or ""
        if _COMPACTED in text:
            raise RevisionCompacted from None
        if _FUTURE in text:
            raise RevisionInFuture from None
        if _FULL in text:
            raise StoreFull(text) from None
        if any(known in text for known in _STALE_TOKEN) and self._metadata:
            self._metadata = []
        elif code not in _AGAIN and not any(known in text for known in _REFUSED):
            raise _unavailable(f"{self.member.address}: {self._readable(text, code)}") from None
        return self._readable(text, code)

    def _readable(self, text: str, code: grpc.StatusCode) -> str:
        """One line for people: gRPC's own texts begin with what was tried and end with what matters."""
        if "Socket closed" in text and not self._met:
            other = "speaks no TLS" if self.settings.tls is not None else "wants TLS (--etcd-cafile)"
            return f"it has closed the connection; perhaps it {other}"
        found = next((plain for known, plain in _PLAIN if known in text), "")
        return found or " ".join(text.split()) or code.name.lower()


def _was_refused(error: grpc.aio.AioRpcError) -> bool:
    """Whether it is certain that the call was not carried out."""
    text = error.details() or ""
    return any(known in text for known in (_NEVER_SENT, *_REFUSED, *_STALE_TOKEN))


def _unavailable(reason: str, *, doubtful: bool = False) -> StoreUnavailable:
    text = f"etcd cannot be used: {reason or 'no answer in time'}"
    return UnknownOutcome(f"{text}; it is not known whether it was written") if doubtful else StoreUnavailable(text)
