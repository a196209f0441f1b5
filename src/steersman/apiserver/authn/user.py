"""Who makes a request.

Source: apiserver `pkg/authentication/user/user.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

from steersman._util.dataclass import dataclass

ANONYMOUS = "system:anonymous"
ALL_AUTHENTICATED = "system:authenticated"
ALL_UNAUTHENTICATED = "system:unauthenticated"
SYSTEM_MASTERS = "system:masters"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
NODE_PREFIX = "system:node:"
NODES_GROUP = "system:nodes"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_UID = "authentication.kubernetes.io/node-uid"
POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"


@dataclass(frozen=True, slots=True)
class UserInfo:
    """A user as the authenticators found them. `extra` is not to be changed: users are shared between requests."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """The `UserInfo` object of authentication.k8s.io/v1; empty parts are left out."""
        out: dict[str, Any] = {}
        if self.name:
            out["username"] = self.name
        if self.uid:
            out["uid"] = self.uid
        if self.groups:
            out["groups"] = list(self.groups)
        if self.extra:
            out["extra"] = {key: list(values) for key, values in self.extra.items()}
        return out


ANONYMOUS_USER = UserInfo(ANONYMOUS, groups=(ALL_UNAUTHENTICATED,))


def service_account_name(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, str]:
    """The groups of every service account of a namespace."""
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def with_authenticated_group(user: UserInfo) -> UserInfo:
    """The user, also in system:authenticated: all but the anonymous, and those who are in it or its opposite already.

    Source: apiserver `pkg/authentication/group/authenticated_group_adder.go`.
    """
    if user.name == ANONYMOUS or ALL_AUTHENTICATED in user.groups or ALL_UNAUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, ALL_AUTHENTICATED))
