"""Several authorizers in a row: the first with an opinion decides.

Source: apiserver `pkg/authorization/union/union.go`; kubernetes `pkg/kubeapiserver/authorizer/reload.go` for the group
that may do everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from steersman.apiserver.authn.user import SYSTEM_MASTERS, UserInfo
from steersman.apiserver.authz.attributes import ALLOWED, Attributes, Authorizer, Decision, Rules
from steersman.apiserver.authz.rbac import aggregate_errors


class Member(NamedTuple):
    """An authorizer under the name that refusals tell."""

    name: str
    authorizer: Authorizer


class Union:
    """Asks its members in order. Members of system:masters may do everything, whoever is asked.

    `reads_selectors` says whether a member wants to know the selectors of requests.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members: tuple[Member, ...] = ()
        self.reads_selectors = False
        self.replace(members)

    def replace(self, members: Sequence[Member]) -> None:
        """Ask others from now on."""
        self.members = tuple(members)
        self.reads_selectors = any(getattr(each.authorizer, "reads_selectors", False) for each in members)

    def authorize(self, attributes: Attributes) -> Decision:
        """The first opinion; without any, all that was said. Raises Undecided."""
        if SYSTEM_MASTERS in attributes.user.groups:
            return ALLOWED
        reasons: list[str] = []
        errors: list[str] = []
        for name, authorizer in self.members:
            decision = authorizer.authorize(attributes)
            if decision.allowed or decision.denied:
                return decision
            if decision.reason:
                reasons.append(f"{name}: {decision.reason}")
            if decision.error:
                errors.append(decision.error)
        return Decision(False, "\n".join(reasons), error=aggregate_errors(errors) if errors else "")

    def rules_for(self, user: UserInfo, namespace: str) -> Rules:
        """What all members tell."""
        found = [member.authorizer.rules_for(user, namespace) for member in self.members]
        return Rules(
            [rule for each in found for rule in each.rules],
            [error for each in found for error in each.errors],
            any(each.incomplete for each in found),
        )
