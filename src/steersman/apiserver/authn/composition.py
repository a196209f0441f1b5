"""The authenticators that ask others, made from a server's settings.

Source: kubernetes `pkg/kubeapiserver/authenticator/config.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from steersman.apiserver.authn.authenticator import RemoteAuthenticator
from steersman.apiserver.authn.configuration import read_configuration
from steersman.apiserver.authn.oidc import Issuer, Issuers
from steersman.apiserver.authn.settings import TokenSettings, TokenWebhook
from steersman.apiserver.authn.webhook import WebhookTokens
from steersman.apiserver.config_files import ConfigFileError, FollowedFile
from steersman.apiserver.webhooks.kubeconfig import KubeconfigError, load_service
from steersman.apiserver.webhooks.reviews import Reviewer
from steersman.net.calls import Caller


def remote_authenticators(
    settings: TokenSettings, audiences: Sequence[str], own_issuers: Collection[str], caller: Caller
) -> tuple[list[RemoteAuthenticator], list[FollowedFile]]:
    """The authenticators in their order, and what is followed for them. Raises ConfigFileError.

    `audiences` are the server's own, `own_issuers` sign its own tokens. The issuers are looked for from now on.
    """
    found: list[RemoteAuthenticator] = []
    followed: list[FollowedFile] = []
    if settings.issuers or settings.file is not None:
        issuers = Issuers([Issuer(each, caller) for each in settings.issuers], audiences, caller)
        found.append(issuers)
        if settings.file is not None:
            followed.append(_follow(settings, issuers, own_issuers))
    if settings.webhook is not None:
        found.append(_webhook(settings.webhook, audiences, caller))
    return found, followed


def _follow(settings: TokenSettings, issuers: Issuers, own_issuers: Collection[str]) -> FollowedFile:
    assert settings.file is not None
    path, raw = settings.file
    anonymous = read_configuration(raw, own_issuers).anonymous

    async def reload(content: bytes) -> None:
        config = read_configuration(content, own_issuers)
        if config.anonymous != anonymous:
            raise ConfigFileError("anonymous: Forbidden: changed from initial configuration file")
        await issuers.replace(config.issuers)

    return FollowedFile(path, raw, reload)


def _webhook(settings: TokenWebhook, audiences: Sequence[str], caller: Caller) -> WebhookTokens:
    try:
        service = load_service(settings.kubeconfig)
    except KubeconfigError as error:
        raise ConfigFileError(f"{settings.kubeconfig}: {error}") from None
    # Upstream bounds no call of its own accord; a request does not live longer than this.
    reviewer = Reviewer(caller, service, "authentication.k8s.io", settings.version, "TokenReview", timeout=30.0)
    return WebhookTokens(reviewer, audiences, settings.kept_seconds)
