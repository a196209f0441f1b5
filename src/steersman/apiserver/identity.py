"""Who someone is and what they may do, for the endpoints that answer just that."""

from __future__ import annotations

from dataclasses import dataclass

from steersman.apiserver.authn.authenticator import BearerTokens
from steersman.apiserver.authn.service_accounts import ServiceAccountTokens
from steersman.apiserver.authz.attributes import Authorizer


@dataclass(slots=True)
class Identity:
    """`tokens` knows users by their bearer tokens, `accounts` makes those of service accounts.

    `authorizer` decides what users may do.
    """

    tokens: BearerTokens
    accounts: ServiceAccountTokens
    authorizer: Authorizer
