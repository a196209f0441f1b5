"""One request on its way through the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TYPE_CHECKING

from steersman._util.dataclass import dataclass
from steersman.apimachinery.request_info import RequestInfo
from steersman.apiserver.authn.user import UserInfo
from steersman.net.http import Request, Response, StreamResponse

if TYPE_CHECKING:
    from steersman.apiserver.audit.events import Record
    from steersman.apiserver.resting import Resting
    from steersman.apiserver.scope import ResourceScope

ANONYMOUS = UserInfo("system:anonymous", "", ("system:unauthenticated",))


@dataclass(slots=True)
class Exchange:
    """A request, what the filters found out about it, and the warnings that its answer will carry.

    `audit_id` names it in headers, logs and audit events; `known` says that its user is. `audit` is its audit record,
    None when it is not recorded. `started` is a time.perf_counter(); `headers` are the filters' own, for its answer.
    `resting` is what its write rests on, as long as it is not known what other servers have written.
    """

    request: Request
    info: RequestInfo
    audit_id: str = ""
    started: float = 0.0
    user: UserInfo = ANONYMOUS
    scope: ResourceScope | None = None
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)
    known: bool = False
    audit: Record | None = None
    headers: tuple[tuple[str, str], ...] = ()
    resting: Resting | None = None


Answer = Response | StreamResponse
Endpoint = Callable[[Exchange], Awaitable[Answer]]
