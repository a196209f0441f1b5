import pytest

from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import AlwaysAllow, Attributes, Decision, forbidden

ALICE = UserInfo("alice")


@pytest.mark.parametrize(
    ("attributes", "message", "details"),
    [
        (
            Attributes(ALICE, "list", "example.com", "v1", "widgets", namespace="x"),
            'widgets.example.com is forbidden: User "alice" cannot list resource "widgets" '
            'in API group "example.com" in the namespace "x"',
            {"group": "example.com", "kind": "widgets"},
        ),
        (
            Attributes(ALICE, "patch", "example.com", "v1", "widgets", "status", "x", "one"),
            'widgets.example.com "one" is forbidden: User "alice" cannot patch resource "widgets/status" '
            'in API group "example.com" in the namespace "x"',
            {"name": "one", "group": "example.com", "kind": "widgets"},
        ),
        (
            Attributes(ALICE, "list", "", "v1", "nodes"),
            'nodes is forbidden: User "alice" cannot list resource "nodes" in API group "" at the cluster scope',
            {"kind": "nodes"},
        ),
        (
            Attributes(UserInfo('a"<b>'), "get", path="/x<y>&z", resource_request=False),
            'forbidden: User "a\\"&lt;b&gt;" cannot get path "/x&lt;y&gt;&amp;z"',
            {},
        ),
    ],
)
def test_the_403_tells_who_what_and_where(attributes: Attributes, message: str, details: dict[str, str]) -> None:
    status = forbidden(attributes).to_status()
    assert status["message"] == message
    assert status["details"] == details
    assert (status["code"], status["reason"]) == (403, "Forbidden")


def test_the_decision_s_reason_follows() -> None:
    attributes = Attributes(ALICE, "get", path="/y", resource_request=False)
    assert forbidden(attributes, "no <roles>").message == 'forbidden: User "alice" cannot get path "/y": no <roles>'


def test_always_allow() -> None:
    authorizer = AlwaysAllow()
    assert authorizer.authorize(Attributes(ALICE, "get", path="/y", resource_request=False)) == Decision(True)
    assert [rule["verbs"] for rule in authorizer.rules_for(ALICE, "x").rules] == [["*"], ["*"]]
