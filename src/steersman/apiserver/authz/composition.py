"""The authorizers of a server, made from its settings.

Source: kubernetes `pkg/kubeapiserver/authorizer/{config,reload}.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from steersman.apiserver.authz.attributes import AlwaysAllow, AlwaysDeny, Authorizer
from steersman.apiserver.authz.rbac import RbacAuthorizer
from steersman.apiserver.authz.settings import AuthorizerSettings
from steersman.apiserver.authz.union import Member, Union
from steersman.apiserver.config_files import ConfigFileError, FollowedFile
from steersman.net.calls import Caller


def members(settings: Sequence[AuthorizerSettings], rbac: RbacAuthorizer, caller: Caller) -> list[Member]:
    """The authorizers that the settings name. Raises ConfigFileError for a webhook's kubeconfig that is none."""
    return [Member(each.name, _authorizer(each, rbac, caller)) for each in settings]


def _authorizer(settings: AuthorizerSettings, rbac: RbacAuthorizer, caller: Caller) -> Authorizer:
    if settings.webhook is not None:
        # Deferred: few servers ask webhooks who may do what.
        from steersman.apiserver.authz.webhook import WebhookAuthorizer
        from steersman.apiserver.webhooks.kubeconfig import KubeconfigError, load_service
        from steersman.apiserver.webhooks.reviews import Reviewer

        webhook = settings.webhook
        try:
            service = load_service(webhook.kubeconfig)
        except KubeconfigError as error:
            raise ConfigFileError(f"{webhook.kubeconfig}: {error}") from None
        reviewer = Reviewer(
            caller, service, "authorization.k8s.io", webhook.version, "SubjectAccessReview", timeout=webhook.timeout
        )
        return WebhookAuthorizer(reviewer, webhook.rules)
    if settings.mode == "RBAC":
        return rbac
    return AlwaysDeny() if settings.mode == "AlwaysDeny" else AlwaysAllow()


def follow(path: Path, raw: bytes, union: Union, rbac: RbacAuthorizer, caller: Caller) -> FollowedFile:
    """Keep a union as a file says; `raw` is what the file held when its settings were read.

    Modes other than Webhook cannot be left out of the file while the server runs.
    """
    return FollowedFile(path, raw, partial(_reload, union, rbac, caller, _modes(union)))


def _modes(union: Union) -> frozenset[str]:
    names = {"rbac": "RBAC", "alwaysallow": "AlwaysAllow", "alwaysdeny": "AlwaysDeny"}
    return frozenset(names[member.name] for member in union.members if member.name in names)


async def _reload(union: Union, rbac: RbacAuthorizer, caller: Caller, required: frozenset[str], raw: bytes) -> None:
    from steersman.apiserver.authz.configuration import read_configuration

    union.replace(members(read_configuration(raw, required), rbac, caller))
