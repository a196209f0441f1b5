"""Who may act as whom, and as what: each case as kube-apiserver decides it."""

import pytest

from steersman.apimachinery.errors import BadRequest, Forbidden
from steersman.apiserver.authn.impersonation import Impersonation, wanted_user
from steersman.apiserver.authn.user import NODE_NAME, UserInfo
from steersman.apiserver.authz.attributes import Attributes, Decision, Rules
from steersman.net.http import Request

ANN = UserInfo("ann", "1", ("devs", "system:authenticated"))
LIST = Attributes(ANN, "list", "", "v1", "configmaps", namespace="team")
ON_LIST = "impersonate-on:user-info:list configmaps"


class Allows:
    """Allows what is named as `VERB RESOURCE[/SUBRESOURCE][:NAME]` with the API group in front of the resource."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = set(allowed)
        self.asked: list[str] = []

    def authorize(self, attributes: Attributes) -> Decision:
        resource = f"{attributes.group}.{attributes.resource}" if attributes.group else attributes.resource
        if attributes.subresource:
            resource = f"{resource}/{attributes.subresource}"
        question = f"{attributes.verb} {resource}"
        self.asked.append(f"{question}:{attributes.name}")
        return Decision(question in self.allowed or f"{question}:{attributes.name}" in self.allowed)

    def rules_for(self, user: UserInfo, namespace: str) -> Rules:
        return Rules([])


def request(*headers: tuple[str, str]) -> Request:
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    raw = [(name.encode(), value.encode()) for name, value in headers]
    return Request("GET", "/", "", joined, raw_headers=raw)


def act(authorizer: Allows, *headers: tuple[str, str], requestor: UserInfo = ANN) -> UserInfo:
    return Impersonation(authorizer).effective_user(request(*headers), LIST._replace(user=requestor))


def test_without_headers_everyone_is_who_they_are() -> None:
    authorizer = Allows()
    assert act(authorizer) is ANN
    assert act(authorizer, ("Impersonate-User", "")) is ANN
    assert authorizer.asked == []


@pytest.mark.parametrize(
    ("header", "literal"),
    [
        ("Impersonate-Group", '{Name:"", UID:"", Groups:[]string{"x"}, Extra:map[string][]string(nil)}'),
        ("Impersonate-Uid", '{Name:"", UID:"x", Groups:[]string(nil), Extra:map[string][]string(nil)}'),
        (
            "Impersonate-Extra-Why",
            '{Name:"", UID:"", Groups:[]string(nil), Extra:map[string][]string{"why":[]string{"x"}}}',
        ),
    ],
)
def test_a_part_without_a_user_is_a_bad_request(header: str, literal: str) -> None:
    with pytest.raises(BadRequest) as caught:
        act(Allows("*"), (header, "x"))
    assert caught.value.message == f"requested &user.DefaultInfo{literal} without impersonating a user name"


def test_repeated_and_escaped_headers_are_all_read() -> None:
    wanted = wanted_user(
        request(
            ("Impersonate-User", "zoe, the first"),
            ("Impersonate-Group", "a,b"),
            ("Impersonate-Group", "c"),
            ("Impersonate-Extra-Acme.io%2Fwhy", "x"),
            ("impersonate-extra-acme.io%2fwhy", "y"),
            ("Impersonate-Extra-Bad%2", "z"),
        )
    )
    assert wanted is not None
    assert (wanted.name, wanted.groups) == ("zoe, the first", ("a,b", "c"))
    assert wanted.extra["acme.io/why"] == ("x", "y")
    assert wanted.extra["bad%2"] == ("z",)


def test_every_part_needs_its_permission() -> None:
    headers = (
        ("Impersonate-User", "zoe"),
        ("Impersonate-Uid", "z-1"),
        ("Impersonate-Group", "zoo"),
        ("Impersonate-Extra-Why", "because"),
    )
    needed = [
        "impersonate users:zoe",
        "impersonate authentication.k8s.io.uids:z-1",
        "impersonate groups:zoo",
        "impersonate authentication.k8s.io.userextras/why:because",
    ]
    user = act(Allows(*needed), *headers)
    assert user == UserInfo("zoe", "z-1", ("zoo", "system:authenticated"), {"why": ("because",)})
    for left_out in needed:
        with pytest.raises(Forbidden) as caught:
            act(Allows(*(set(needed) - {left_out})), *headers)
        assert "cannot impersonate-on:user-info:list resource" in caught.value.message


def test_a_constrained_impersonation_is_for_some_requests_only() -> None:
    allowed = ("impersonate:user-info authentication.k8s.io.users:zoe", ON_LIST)
    assert act(Allows(*allowed), ("Impersonate-User", "zoe")).name == "zoe"
    for missing, verb in ((allowed[0], "impersonate:user-info"), (allowed[1], "impersonate-on:user-info:list")):
        with pytest.raises(Forbidden) as caught:
            act(Allows(*(set(allowed) - {missing})), ("Impersonate-User", "zoe"))
        assert f'User "ann" cannot {verb} resource' in caught.value.message


def test_no_one_becomes_a_master_under_constraints() -> None:
    allowed = (
        "impersonate:user-info authentication.k8s.io.users",
        "impersonate:user-info authentication.k8s.io.groups",
    )
    with pytest.raises(Forbidden) as caught:
        act(Allows(*allowed, ON_LIST), ("Impersonate-User", "zoe"), ("Impersonate-Group", "system:masters"))
    assert caught.value.message.endswith("impersonating the system:masters group is not allowed")
    plain = Allows("impersonate users:zoe", "impersonate groups:system:masters")
    user = act(plain, ("Impersonate-User", "zoe"), ("Impersonate-Group", "system:masters"))
    assert user.groups == ("system:masters", "system:authenticated")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("why", "x", 'must be a domain-prefixed path (such as "acme.io/foo")'),
        ("acme.io%2fwhy", "", "impersonating the empty string value in extra is not allowed"),
        ("-%2fwhy", "x", "a lowercase RFC 1123 subdomain must consist of"),
    ],
)
def test_extras_under_constraints_are_domain_prefixed(key: str, value: str, why: str) -> None:
    every = ("impersonate:user-info authentication.k8s.io.users", ON_LIST)
    with pytest.raises(Forbidden) as caught:
        act(Allows(*every), ("Impersonate-User", "zoe"), (f"Impersonate-Extra-{key}", value))
    assert why in caught.value.message


def test_many_groups_are_allowed_at_once_or_one_by_one() -> None:
    groups = [("Impersonate-Group", name) for name in "abcd"]
    base = ("impersonate:user-info authentication.k8s.io.users", ON_LIST)
    at_once = Allows(*base, "impersonate:user-info authentication.k8s.io.groups:*")
    assert act(at_once, ("Impersonate-User", "zoe"), *groups).groups[:4] == ("a", "b", "c", "d")
    each = Allows(*base, *(f"impersonate:user-info authentication.k8s.io.groups:{name}" for name in "abcd"))
    assert act(each, ("Impersonate-User", "zoe"), *groups).groups[:4] == ("a", "b", "c", "d")
    with pytest.raises(Forbidden):
        act(Allows(*base), ("Impersonate-User", "zoe"), *groups)


@pytest.mark.parametrize("verb", ["impersonate", "impersonate:serviceaccount"])
def test_a_service_account_is_in_its_groups(verb: str) -> None:
    group = "" if verb == "impersonate" else "authentication.k8s.io."
    authorizer = Allows(f"{verb} {group}serviceaccounts:bot", "impersonate-on:serviceaccount:list configmaps")
    user = act(authorizer, ("Impersonate-User", "system:serviceaccount:team:bot"))
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:team", "system:authenticated")


def test_a_name_that_is_no_service_accounts_is_a_plain_users() -> None:
    authorizer = Allows("impersonate users:system:serviceaccount:team:b:ot")
    user = act(authorizer, ("Impersonate-User", "system:serviceaccount:team:b:ot"))
    assert user.groups == ("system:authenticated",)


def test_an_agent_acts_as_the_node_it_runs_on_and_no_other() -> None:
    allowed = Allows(
        "impersonate:associated-node authentication.k8s.io.nodes:*", "impersonate-on:associated-node:list configmaps"
    )
    agent = UserInfo("system:serviceaccount:team:agent", extra={NODE_NAME: ("n1",)})
    user = act(allowed, ("Impersonate-User", "system:node:n1"), requestor=agent)
    assert (user.name, user.groups) == ("system:node:n1", ("system:nodes", "system:authenticated"))
    with pytest.raises(Forbidden):
        act(allowed, ("Impersonate-User", "system:node:n2"), requestor=agent)
    with pytest.raises(Forbidden):
        act(allowed, ("Impersonate-User", "system:node:n1"), requestor=ANN)


def test_the_anonymous_stay_unauthenticated() -> None:
    user = act(Allows("impersonate users"), ("Impersonate-User", "system:anonymous"))
    assert user.groups == ("system:unauthenticated",)


def test_what_worked_last_is_tried_first() -> None:
    authorizer = Allows("impersonate users")
    judge = Impersonation(authorizer)
    for _ in range(2):
        authorizer.asked.clear()
        judge.effective_user(request(("Impersonate-User", "zoe")), LIST)
    assert authorizer.asked == ["impersonate users:zoe"]
