"""Impersonation: a user acts as another one, named in `Impersonate-*` headers, when it is permitted to.

There are five modes. Four are constrained (KEP-5284): each asks for `impersonate-on:MODE:VERB` on what the request is
about, and for `impersonate:MODE` on every part of the identity. The last asks for `impersonate` on every part alone.
The first mode that permits it decides; when none does, the first refusal is the answer.
Source: apiserver `pkg/endpoints/filters/impersonation/{constrained_impersonation,mode}.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from urllib.parse import unquote

import re2

from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman._util.lazily import lazily
from steersman.apimachinery import field_errors as fe
from steersman.apimachinery.errors import BadRequest, Forbidden
from steersman.apimachinery.meta import domain_prefixed_path
from steersman.apimachinery.names import dns1123_label, dns1123_subdomain
from steersman.apiserver.authn.user import (
    ALL_AUTHENTICATED,
    ALL_UNAUTHENTICATED,
    ANONYMOUS,
    NODE_NAME,
    NODE_PREFIX,
    NODES_GROUP,
    SERVICE_ACCOUNT_PREFIX,
    SYSTEM_MASTERS,
    UserInfo,
    service_account_groups,
)
from steersman.apiserver.authz.attributes import Attributes, Authorizer, forbidden
from steersman.net.http import Request

_PREFIX = "impersonate-"
_USER, _UID, _GROUP, _EXTRA = (_PREFIX + part for part in ("user", "uid", "group", "extra-"))
_MANY = 4
_MAX_REMEMBERED = 10_000
_AUTHENTICATION = "authentication.k8s.io"
_bad_escape = lazily(re2.compile, "%(?:[^0-9a-f]|[0-9a-f](?:[^0-9a-f]|$)|$)")


def wanted_user(request: Request) -> UserInfo | None:
    """The identity that the headers name, as they name it; None without any.

    Raises BadRequest when they name a group, uid or extra without a user.
    """
    names = [name for name in request.headers if name.startswith(_PREFIX)]
    if not names:
        return None
    user, uid = _first(request, _USER), _first(request, _UID)
    groups = tuple(request.header_values(_GROUP))
    extra: dict[str, tuple[str, ...]] = {}
    for name in names:
        if name.startswith(_EXTRA):
            key = _unescape(name[len(_EXTRA) :])
            extra[key] = (*extra.get(key, ()), *request.header_values(name))
    wanted = UserInfo(user, uid, groups, extra)
    if user:
        return wanted
    if uid or groups or extra:
        raise BadRequest(f"requested {_go_literal(wanted)} without impersonating a user name")
    return None


def _first(request: Request, name: str) -> str:
    return request.header_values(name)[0] if name in request.headers else ""


def _unescape(key: str) -> str:
    return key if _bad_escape.search(key) else unquote(key)


def _go_literal(user: UserInfo) -> str:
    """The user as Go's %#v prints it."""
    groups = _go_strings(user.groups) if user.groups else "[]string(nil)"
    extra = ", ".join(f"{quote(key)}:{_go_strings(user.extra[key])}" for key in sorted(user.extra))
    literal = f"map[string][]string{{{extra}}}" if extra else "map[string][]string(nil)"
    return f"&user.DefaultInfo{{Name:{quote(user.name)}, UID:{quote(user.uid)}, Groups:{groups}, Extra:{literal}}}"


def _go_strings(values: tuple[str, ...]) -> str:
    return f"[]string{{{', '.join(map(quote, values))}}}"


@dataclass(frozen=True, slots=True)
class _Mode:
    """`name` is "" for the mode without constraints; `applies` gets the wanted user and who asks."""

    name: str
    applies: Callable[[UserInfo, UserInfo], bool]

    @property
    def verb(self) -> str:
        return f"impersonate:{self.name}" if self.name else "impersonate"


def _is_associated_node(wanted: UserInfo, requestor: UserInfo) -> bool:
    node = _node_name(wanted.name)
    return (
        bool(node)
        and _only_name(wanted)
        and _service_account(requestor.name) is not None
        and tuple(requestor.extra.get(NODE_NAME, ())) == (node,)
    )


_ASSOCIATED_NODE = _Mode("associated-node", _is_associated_node)
_MODES = (
    _ASSOCIATED_NODE,
    _Mode("arbitrary-node", lambda wanted, _: _only_name(wanted) and bool(_node_name(wanted.name))),
    _Mode("serviceaccount", lambda wanted, _: _only_name(wanted) and _service_account(wanted.name) is not None),
    _Mode("user-info", lambda wanted, _: not _node_name(wanted.name) and _service_account(wanted.name) is None),
    _Mode("", lambda wanted, _: True),
)


class Impersonation:
    """Judges impersonations. The mode that a user last succeeded with is tried first."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._last: dict[str, _Mode] = {}

    def effective_user(self, request: Request, attributes: Attributes) -> UserInfo:
        """Who the request is made as; `attributes` are the request's, of the user who makes it.

        Raises BadRequest for headers that name no user, Forbidden for what the user may not do, and Undecided.
        """
        wanted = wanted_user(request)
        return attributes.user if wanted is None else self._judge(wanted, attributes)

    def constraint(self, requestor: UserInfo) -> str:
        """The mode in which a user last succeeded, "" for the one without constraints."""
        mode = self._last.get(requestor.name)
        return mode.name if mode is not None else ""

    def _judge(self, wanted: UserInfo, attributes: Attributes) -> UserInfo:
        requestor = attributes.user
        last = self._last.get(requestor.name)
        refusal: Forbidden | None = None
        for mode in sorted(_MODES, key=lambda mode: mode is not last):
            if not mode.applies(wanted, requestor):
                continue
            try:
                user = self._as(mode, wanted, attributes)
            except Forbidden as error:
                refusal = refusal or error
                continue
            if len(self._last) >= _MAX_REMEMBERED:
                self._last.clear()
            self._last[requestor.name] = mode
            return user
        raise refusal or forbidden(attributes, "all impersonation modes failed")

    def _as(self, mode: _Mode, wanted: UserInfo, attributes: Attributes) -> UserInfo:
        if mode.name:
            self._check(attributes._replace(verb=f"impersonate-on:{mode.name}:{attributes.verb}"))
        for question in _questions(mode, wanted, attributes.user):
            if question.wildcard is not None and self._authorizer.authorize(question.wildcard).allowed:
                continue
            for each in question.each:
                self._check(each)
        return _effective(mode, wanted)

    def _check(self, attributes: Attributes) -> None:
        decision = self._authorizer.authorize(attributes)
        if not decision.allowed:
            said = [part for part in (decision.error, decision.reason) if part]
            raise forbidden(attributes, ": ".join(said))


@dataclass(frozen=True, slots=True)
class _Question:
    """All of `each` must be allowed; `wildcard` stands for them all."""

    each: tuple[Attributes, ...]
    wildcard: Attributes | None = None


def _questions(mode: _Mode, wanted: UserInfo, requestor: UserInfo) -> Iterator[_Question]:
    """What must be allowed for each part of the wanted identity; raises Forbidden for parts that no one may have."""
    group = _AUTHENTICATION if mode.name else ""

    def about(resource: str, name: str = "", group: str = group, namespace: str = "") -> Attributes:
        return Attributes(requestor, mode.verb, group, "v1", resource, namespace=namespace, name=name)

    yield _Question((_about_name(mode, wanted, about),))
    if wanted.uid:
        yield _Question((about("uids", wanted.uid, _AUTHENTICATION),))
    if wanted.groups:
        if mode.name:
            _refuse_groups(wanted.groups, about)
        many = mode.name and len(wanted.groups) >= _MANY
        yield _Question(tuple(about("groups", name) for name in wanted.groups), about("groups", "*") if many else None)
    if wanted.extra:
        plain = about("userextras", "", _AUTHENTICATION)
        if mode.name and (problem := _extra_problem(wanted.extra)):
            raise forbidden(plain, problem)
        pairs = [(key, value) for key, values in wanted.extra.items() for value in values]
        many = mode.name and (len(pairs) >= _MANY or len(wanted.extra) >= _MANY)
        yield _Question(
            tuple(plain._replace(subresource=key, name=value) for key, value in pairs),
            plain._replace(subresource="*", name="*") if many else None,
        )


def _about_name(mode: _Mode, wanted: UserInfo, about: Callable[..., Attributes]) -> Attributes:
    account = _service_account(wanted.name)
    if account is not None:
        return about("serviceaccounts", account[1], namespace=account[0])
    node = _node_name(wanted.name) if mode.name else ""
    if node:
        # Which of its nodes it is does not matter where only the one the requestor runs on is in question.
        return about("nodes", "*" if mode is _ASSOCIATED_NODE else node)
    return about("users", wanted.name)


def _refuse_groups(groups: tuple[str, ...], about: Callable[..., Attributes]) -> None:
    if "" in groups:
        raise forbidden(about("groups"), "impersonating the empty string group is not allowed")
    if SYSTEM_MASTERS in groups:
        why = f"impersonating the {SYSTEM_MASTERS} group is not allowed"
        raise forbidden(about("groups", SYSTEM_MASTERS), why)


def _extra_problem(extra: Mapping[str, tuple[str, ...]]) -> str:
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        if errors := domain_prefixed_path(key, "extra.key"):
            return f"impersonating an invalid key in extra is not allowed: {fe.aggregate(errors)}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        if not values:
            return "impersonating empty values in extra is not allowed"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _effective(mode: _Mode, wanted: UserInfo) -> UserInfo:
    groups = wanted.groups
    account = _service_account(wanted.name)
    if account is not None and not groups:
        groups = service_account_groups(account[0])
    elif mode.name and _node_name(wanted.name):
        groups = (NODES_GROUP,)
    if wanted.name == ANONYMOUS:
        groups = _with(groups, ALL_UNAUTHENTICATED)
    elif ALL_UNAUTHENTICATED not in groups:
        groups = _with(groups, ALL_AUTHENTICATED)
    return replace(wanted, groups=groups)


def _with(groups: tuple[str, ...], group: str) -> tuple[str, ...]:
    return groups if group in groups else (*groups, group)


def _only_name(user: UserInfo) -> bool:
    return not (user.uid or user.groups or user.extra)


def _node_name(name: str) -> str:
    """The node that a user name stands for, "" when it is no node's."""
    node = name.removeprefix(NODE_PREFIX)
    return node if node != name and not dns1123_subdomain(node) else ""


def _service_account(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user name stands for."""
    parts = name.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
    if not name.startswith(SERVICE_ACCOUNT_PREFIX) or len(parts) != 2:
        return None
    namespace, account = parts
    return None if dns1123_label(namespace) or dns1123_subdomain(account) else (namespace, account)
