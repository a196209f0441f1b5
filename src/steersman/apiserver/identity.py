"""Who makes requests and what they may do: composed from a server's settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

from steersman._util.dataclass import dataclass
from steersman.apiserver.authn.authenticator import BearerTokens
from steersman.apiserver.authn.service_accounts import ServiceAccountTokens
from steersman.apiserver.authz.attributes import AlwaysAllow
from steersman.apiserver.authz.composition import follow, members
from steersman.apiserver.authz.rbac import RbacAuthorizer
from steersman.apiserver.authz.settings import AuthorizerSettings
from steersman.apiserver.authz.union import Member, Union
from steersman.apiserver.catalog import Catalog
from steersman.apiserver.config_files import FollowedFile
from steersman.apiserver.rbac_feed import feed_rbac
from steersman.net.calls import Caller


@dataclass(slots=True)
class Permissions:
    """`authorizer` decides what users may do; `rbac` is what roles say, whether it is asked or not (None: there are
    no roles). `caller` asks webhooks; `followed` are the files that change who is asked."""

    authorizer: Union
    rbac: RbacAuthorizer | None
    caller: Caller
    followed: Sequence[FollowedFile] = ()


@dataclass(slots=True)
class Identity:
    """`tokens` knows users by their bearer tokens, `accounts` makes those of service accounts."""

    tokens: BearerTokens
    accounts: ServiceAccountTokens
    permissions: Permissions
    followed: Sequence[FollowedFile] = field(default_factory=tuple)

    @property
    def authorizer(self) -> Union:
        return self.permissions.authorizer

    def start(self) -> None:
        """Follow the files that say who is who and who may do what."""
        for each in (*self.permissions.followed, *self.followed):
            each.start()

    async def close(self) -> None:
        for each in (*self.permissions.followed, *self.followed):
            await each.stop()
        await self.tokens.close()
        await self.permissions.caller.close()


def permissions(
    authorizers: Sequence[AuthorizerSettings], file: tuple[Path, bytes] | None, catalog: Catalog
) -> Permissions:
    """Who decides, from a server's settings. Raises ConfigFileError."""
    caller, rbac = Caller(), feed_rbac(catalog)
    union = Union(members(authorizers, rbac, caller))
    followed = [follow(*file, union, rbac, caller)] if file is not None else []
    return Permissions(union, rbac, caller, followed)


def everything() -> Permissions:
    """Everyone may do everything, and there are no roles."""
    return Permissions(Union([Member("alwaysallow", AlwaysAllow())]), None, Caller())
