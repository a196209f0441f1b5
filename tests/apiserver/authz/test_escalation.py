from typing import Any

import pytest

from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import Attributes, Decision, Rules
from steersman.apiserver.authz.escalation import describe_rule, escalation, may_bind, may_do_everything, may_escalate
from steersman.apiserver.authz.rbac import RbacAuthorizer

GROUP = "rbac.authorization.k8s.io"
ALICE = UserInfo("alice", groups=("devs", "system:authenticated"))


def granting(rule: dict[str, Any]) -> RbacAuthorizer:
    authorizer = RbacAuthorizer()
    authorizer.upsert("Role", {"metadata": {"name": "r", "namespace": "x"}, "rules": [rule]})
    subjects = [{"kind": "User", "name": "alice"}]
    ref = {"kind": "Role", "name": "r"}
    authorizer.upsert(
        "RoleBinding", {"metadata": {"name": "b", "namespace": "x"}, "roleRef": ref, "subjects": subjects}
    )
    return authorizer


def test_what_is_held_may_be_granted() -> None:
    held = Rules([{"verbs": ["*"], "apiGroups": ["g"], "resources": ["widgets"]}])
    assert escalation(ALICE, held, [{"verbs": ["get"], "apiGroups": ["g"], "resources": ["widgets"]}], "roles") is None


def test_what_is_missing_is_listed_with_verbs_joined_and_lines_sorted() -> None:
    held = Rules([{"verbs": ["get"], "apiGroups": ["g"], "resources": ["widgets"]}])
    wanted = [
        {"verbs": ["get", "delete", "list"], "apiGroups": ["g"], "resources": ["widgets"]},
        {"verbs": ["*"], "apiGroups": [""], "resources": ["secrets"]},
        {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"]},
    ]
    assert escalation(ALICE, held, wanted, "roles") == (
        'user "alice" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions not '
        "currently held:\n"
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["s"], Verbs:["get"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["*"]}\n'
        '{APIGroups:["g"], Resources:["widgets"], Verbs:["delete" "list"]}\n'
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}'
    )


def test_roles_that_could_not_be_resolved_are_told() -> None:
    wanted = [{"verbs": ["get"], "nonResourceURLs": ["/"]}]
    missing = [
        f'{kind}.rbac.authorization.k8s.io "{name}" not found' for kind, name in (("role", "a"), ("clusterrole", "b"))
    ]
    said = escalation(ALICE, Rules([], ["x", *missing]), wanted, "rolebindings") or ""
    listed = ", ".join(f'rolebindings.rbac.authorization.k8s.io "{name}" not found' for name in "ab")
    assert said.endswith(f"; resolution errors: [[x, {listed}]]")


def test_an_empty_rule_is_described() -> None:
    assert describe_rule({}) == "{}"


def test_masters_may_do_everything() -> None:
    assert may_do_everything(UserInfo("root", groups=("system:masters",)))
    assert not may_do_everything(ALICE)


@pytest.mark.parametrize("verb", ["escalate", "*", "bind", "update"])
def test_the_verb_escalate_on_the_role(verb: str) -> None:
    authorizer = granting({"verbs": [verb], "apiGroups": [GROUP], "resources": ["roles"], "resourceNames": ["mine"]})
    assert may_escalate(authorizer, ALICE, "roles", "x", "mine") is (verb in ("escalate", "*"))
    assert not may_escalate(authorizer, ALICE, "roles", "x", "other")
    assert not may_escalate(authorizer, ALICE, "clusterroles", "", "mine")


@pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
def test_the_verb_bind_on_the_role_referred_to(kind: str) -> None:
    rule = {"verbs": ["bind"], "apiGroups": [GROUP], "resources": [f"{kind.lower()}s"], "resourceNames": ["mine"]}
    authorizer = granting(rule)
    ref = {"apiGroup": GROUP, "kind": kind, "name": "mine"}
    assert may_bind(authorizer, ALICE, ref, "x")
    assert not may_bind(authorizer, ALICE, ref, "y")
    assert not may_bind(authorizer, ALICE, {**ref, "name": "other"}, "x")
    assert not may_bind(authorizer, ALICE, {**ref, "kind": "Other"}, "x")


def test_decisions_are_asked_for_any_version() -> None:
    asked: list[Attributes] = []

    class Recorder:
        def authorize(self, attributes: Attributes) -> Decision:
            asked.append(attributes)
            return Decision(False)

        def rules_for(self, user: UserInfo, namespace: str) -> Rules:
            return Rules([])

    may_escalate(Recorder(), ALICE, "clusterroles", "", "c")
    assert asked == [Attributes(ALICE, "escalate", GROUP, "*", "clusterroles", name="c")]
