"""What is asked of an authorizer, and its answer.

Source: apiserver `pkg/authorization/authorizer/interfaces.go`,
`pkg/endpoints/handlers/responsewriters/errors.go` for the 403.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from steersman._util.dataclass import dataclass
from steersman._util.gotext import quote
from steersman.apimachinery import errors
from steersman.apiserver.authn.user import UserInfo


class SelectorRequirement(NamedTuple):
    """One condition of a selector that narrows a request: `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The requirement as SubjectAccessReviews carry it."""
        out: dict[str, Any] = {"key": self.key, "operator": self.operator}
        return {**out, "values": list(self.values)} if self.values else out


class Attributes(NamedTuple):
    """One request as an authorizer sees it.

    For a resource request `verb` is Kubernetes' (get, list, watch, create, ...), and `namespace` is "" at the cluster
    scope. Otherwise (`resource_request` False) `verb` is the lower-case HTTP method and only `path` counts. `fields`
    and `labels` are what selectors restrict the request to, for the authorizers that read them.
    """

    user: UserInfo
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    resource_request: bool = True
    fields: tuple[SelectorRequirement, ...] = ()
    labels: tuple[SelectorRequirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether the request may go on, and why, in upstream's words ("" when there is nothing to say).

    One that is neither allowed nor `denied` is no opinion: the next authorizer is asked, and the last one's no opinion
    is a refusal. `error` is why there is no opinion, or a denial, that was not thought over.
    """

    allowed: bool
    reason: str = ""
    denied: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that apply to a user in a namespace, as PolicyRule objects, and what could not be resolved.

    `incomplete`: there are others, which cannot be listed.
    """

    rules: Sequence[Mapping[str, Any]]
    errors: Sequence[str] = ()
    incomplete: bool = False


class Authorizer(Protocol):
    """Decides who may do what."""

    def authorize(self, attributes: Attributes) -> Decision:
        """The decision. Raises Undecided (`steersman.apiserver.authz.waiting`) when someone has to be asked first."""
        ...

    def rules_for(self, user: UserInfo, namespace: str) -> Rules:
        """What the user may do in a namespace ("": at the cluster scope), for SelfSubjectRulesReview."""
        ...


ALLOWED = Decision(True)


class AlwaysAllow:
    """Lets everyone do everything (`--authorization-mode=AlwaysAllow`)."""

    def authorize(self, attributes: Attributes) -> Decision:
        return ALLOWED

    def rules_for(self, user: UserInfo, namespace: str) -> Rules:
        return Rules(
            [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
        )


class AlwaysDeny:
    """Lets no one do anything (`--authorization-mode=AlwaysDeny`)."""

    def authorize(self, attributes: Attributes) -> Decision:
        return Decision(False, "Everything is forbidden.")

    def rules_for(self, user: UserInfo, namespace: str) -> Rules:
        return Rules(())


def forbidden(attributes: Attributes, reason: str = "") -> errors.Forbidden:
    """The 403 for a request that was not allowed; `reason` is the decision's."""
    why = without_html(_refusal(attributes))
    error = errors.forbidden(
        attributes.group, attributes.resource, attributes.name, f"{why}: {reason}" if reason else why
    )
    error.headers = (("X-Content-Type-Options", "nosniff"),)
    return error


def _refusal(attributes: Attributes) -> str:
    cannot = f"User {quote(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.resource_request:
        return f"{cannot} path {quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    what = f"{cannot} resource {quote(resource)} in API group {quote(attributes.group)}"
    if attributes.namespace:
        return f"{what} in the namespace {quote(attributes.namespace)}"
    return f"{what} at the cluster scope"


def without_html(text: str) -> str:
    """The text with nothing in it that a browser would take for markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
