"""What others need to verify service-account tokens: the issuer's OpenID configuration and its public keys.

Source: kubernetes `pkg/routes/openidmetadata.go`, `pkg/serviceaccount/openidmetadata.go`; KEP-1393.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from steersman.apimachinery.errors import MethodNotAllowed
from steersman.apiserver.authn.service_accounts import ServiceAccountTokens
from steersman.apiserver.core import Core
from steersman.apiserver.endpoints import answers
from steersman.apiserver.exchange import Answer, Exchange
from steersman.net.http import Response

CONFIGURATION_PATH, KEYS_PATH = "/.well-known/openid-configuration", "/openid/v1/jwks"


def serve(core: Core, x: Exchange) -> Answer:
    """GET on one of the two paths; 404 for others near them. Raises MethodNotAllowed."""
    path = x.info.path.rstrip("/")
    if path not in (CONFIGURATION_PATH, KEYS_PATH):
        return answers.page_not_found()
    if x.info.method != "GET":
        raise MethodNotAllowed("the server does not allow this method on the requested resource", details={})
    return configuration(core, x) if path == CONFIGURATION_PATH else keys(core)


def configuration(core: Core, x: Exchange) -> Answer:
    """GET /.well-known/openid-configuration."""

    def content(accounts: ServiceAccountTokens) -> Any:
        return {
            "issuer": accounts.config.issuers[0],
            "jwks_uri": accounts.config.jwks_uri or f"https://{x.request.headers.get('host', '')}{KEYS_PATH}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted({key.algorithm for key in accounts.keys.verifying}),
        }

    return _answer(core, "application/json", content)


def keys(core: Core) -> Answer:
    """GET /openid/v1/jwks."""
    return _answer(
        core,
        "application/jwk-set+json",
        lambda accounts: {"keys": [key.jwk() for key in accounts.keys.verifying]},
    )


def _answer(core: Core, media_type: str, content: Callable[[ServiceAccountTokens], Any]) -> Answer:
    """Nothing is there unless the issuer is an https URL, as OpenID demands of it."""
    accounts = core.identity.accounts
    issuer = accounts.config.issuers[0]
    if not issuer.startswith("https://") or "?" in issuer or "#" in issuer:
        return answers.page_not_found()
    headers = (("Cache-Control", "public, max-age=3600"), ("Content-Type", media_type))
    return Response(200, headers, orjson.dumps(content(accounts)))
