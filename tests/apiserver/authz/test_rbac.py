from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apimachinery.errors import NotFound
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import Attributes, Decision
from steersman.apiserver.authz.rbac import RbacAuthorizer

GET = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
KINDS = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")


def role(name: str, *rules: dict[str, Any], namespace: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, "rules": list(rules)}


def binding(name: str, kind: str, ref: str, *subjects: dict[str, str], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"metadata": metadata, "roleRef": {"kind": kind, "name": ref}, "subjects": list(subjects)}


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "name": name}


def pods(who: UserInfo, namespace: str = "x", name: str = "", verb: str = "get") -> Attributes:
    return Attributes(who, verb, "", "v1", "pods", "", namespace, name)


ANN = UserInfo("ann", groups=("devs", "system:authenticated"))
ROBOT = UserInfo("system:serviceaccount:x:robot")


def test_nothing_is_allowed_without_a_binding() -> None:
    authorizer = RbacAuthorizer()
    assert authorizer.authorize(pods(ANN)) == Decision(False, "")


@pytest.mark.parametrize(
    ("subject", "who", "namespace", "reason"),
    [
        (user("ann"), ANN, "x", 'RoleBinding "b/x" of ClusterRole "r" to User "ann"'),
        ({"kind": "Group", "name": "devs"}, ANN, "x", 'RoleBinding "b/x" of ClusterRole "r" to Group "devs"'),
        ({"kind": "ServiceAccount", "name": "robot"}, ROBOT, "x", 'RoleBinding "b/x" of ClusterRole "r" to '),
        (
            {"kind": "ServiceAccount", "name": "robot", "namespace": "x"},
            ROBOT,
            "",
            'ClusterRoleBinding "b" of ClusterRole "r" to ServiceAccount "robot/x"',
        ),
    ],
)
def test_a_subject_is_allowed_with_upstream_s_reason(subject, who: UserInfo, namespace: str, reason: str) -> None:
    authorizer = RbacAuthorizer()
    authorizer.upsert("ClusterRole", role("r", GET))
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    authorizer.upsert(kind, binding("b", "ClusterRole", "r", user("else"), subject, namespace=namespace))
    decision = authorizer.authorize(pods(who, "x"))
    assert decision.allowed
    assert decision.reason.startswith(f"RBAC: allowed by {reason}")
    assert authorizer.authorize(pods(who, "other")).allowed is (not namespace)
    assert not authorizer.authorize(pods(UserInfo("bob"), "x")).allowed


@pytest.mark.parametrize(
    "subject",
    [{"kind": "ServiceAccount", "name": "robot"}, {"kind": "Robot", "name": "system:serviceaccount:x:robot"}],
)
def test_subjects_that_mean_nobody_at_the_cluster_scope(subject: dict[str, str]) -> None:
    authorizer = RbacAuthorizer()
    authorizer.upsert("ClusterRole", role("r", GET))
    authorizer.upsert("ClusterRoleBinding", binding("b", "ClusterRole", "r", subject))
    assert not authorizer.authorize(pods(ROBOT)).allowed


def test_changes_take_effect_at_once() -> None:
    authorizer = RbacAuthorizer()
    authorizer.upsert("RoleBinding", binding("b", "Role", "r", user("ann"), namespace="x"))
    assert not authorizer.authorize(pods(ANN)).allowed
    authorizer.upsert("Role", role("r", GET, namespace="x"))
    assert authorizer.authorize(pods(ANN)).allowed
    authorizer.upsert("Role", role("r", namespace="x"))
    assert not authorizer.authorize(pods(ANN)).allowed
    authorizer.upsert("Role", role("r", GET, namespace="x"))
    authorizer.upsert("RoleBinding", binding("b", "Role", "r", user("bob"), user("bob"), namespace="x"))
    assert not authorizer.authorize(pods(ANN)).allowed
    assert authorizer.authorize(pods(UserInfo("bob"))).allowed
    authorizer.remove("RoleBinding", "x", "b")
    authorizer.remove("RoleBinding", "x", "b")
    assert not authorizer.authorize(pods(UserInfo("bob"))).allowed


def test_the_kinds_are_those_of_rbac() -> None:
    with pytest.raises(ValueError, match="Pod is not an RBAC kind"):
        RbacAuthorizer().upsert("Pod", role("r"))
    with pytest.raises(ValueError, match="Pod is not an RBAC kind"):
        RbacAuthorizer().remove("Pod", "", "r")


def test_names_count_only_where_a_rule_names_them() -> None:
    authorizer = RbacAuthorizer()
    authorizer.upsert("ClusterRole", role("r", {**GET, "resourceNames": ["a"]}))
    authorizer.upsert("ClusterRoleBinding", binding("b", "ClusterRole", "r", user("ann")))
    answers = [authorizer.authorize(pods(ANN, name=name)).allowed for name in ("a", "b", "", "a")]
    assert answers == [True, False, False, True]


def test_a_missing_role_is_told() -> None:
    authorizer = RbacAuthorizer()
    authorizer.upsert("ClusterRoleBinding", binding("c", "ClusterRole", "gone", user("ann")))
    one = 'clusterrole.rbac.authorization.k8s.io "gone" not found'
    assert authorizer.authorize(pods(ANN, "")) == Decision(False, f"RBAC: {one}")
    authorizer.upsert("RoleBinding", binding("b", "Role", "away", user("ann"), namespace="x"))
    authorizer.upsert("RoleBinding", binding("d", "Other", "r", user("ann"), namespace="x"))
    two = 'role.rbac.authorization.k8s.io "away" not found'
    three = 'unsupported role reference kind: "Other"'
    assert authorizer.authorize(pods(ANN)) == Decision(False, f"RBAC: [{one}, {two}, {three}]")
    assert authorizer.rules_for(ANN, "x").errors == (one, two, three)
    with pytest.raises(NotFound, match='"away" not found'):
        authorizer.role_rules({"kind": "Role", "name": "away"}, "x")


def test_a_cluster_role_is_not_taken_for_a_role_of_its_name() -> None:
    authorizer = RbacAuthorizer()
    authorizer.upsert("ClusterRole", role("r", GET))
    authorizer.upsert("ClusterRoleBinding", binding("b", "Role", "r", user("ann")))
    assert authorizer.authorize(pods(ANN)).reason == 'RBAC: role.rbac.authorization.k8s.io "r" not found'


def test_rules_for_a_user_come_from_the_cluster_and_the_namespace() -> None:
    authorizer = RbacAuthorizer()
    other = {**GET, "verbs": ["list"]}
    authorizer.upsert("ClusterRole", role("r", GET))
    authorizer.upsert("Role", role("r", other, namespace="x"))
    authorizer.upsert("ClusterRoleBinding", binding("b", "ClusterRole", "r", user("ann")))
    authorizer.upsert("RoleBinding", binding("b", "Role", "r", user("ann"), namespace="x"))
    assert authorizer.rules_for(ANN, "").rules == [GET]
    assert authorizer.rules_for(ANN, "x").rules == [GET, other]
    assert authorizer.role_rules({"kind": "Role", "name": "r"}, "x") == [other]


def test_what_is_remembered_is_bounded_whatever_clients_ask() -> None:
    authorizer = RbacAuthorizer()
    authorizer.upsert("ClusterRole", role("r", {**GET, "resourceNames": ["a"]}, {**GET, "verbs": ["list"]}))
    authorizer.upsert("ClusterRoleBinding", binding("b", "ClusterRole", "r", user("ann")))

    def remembered() -> int:
        return sum(len(grants.decisions) for grants in authorizer._grants.values())

    for number in range(20_000):
        authorizer.authorize(pods(ANN, f"ns-{number % 1500}", f"name-{number}"))
    assert len(authorizer._grants) <= 1024
    assert 0 < remembered() <= 16_384
    before = remembered()
    assert authorizer.authorize(pods(ANN, "n" * 600, verb="list")).allowed
    assert not authorizer.authorize(pods(ANN, "ns-1", "a" * 600)).allowed
    assert remembered() <= before + 1


# The oracle: upstream's evaluation written down plainly, over the objects as they are.


def oracle(objects: dict[tuple[str, str, str], dict[str, Any]], asked: Attributes) -> bool:
    return any(
        rule_allows(rule, asked)
        for (kind, namespace, _), found in objects.items()
        if kind.endswith("Binding") and namespace in ("", asked.namespace)
        if any(is_subject(subject, namespace, asked.user) for subject in found["subjects"])
        for rule in rules_of(objects, found["roleRef"], namespace)
    )


def rules_of(objects, ref: dict[str, str], namespace: str) -> list[dict[str, list[str]]]:
    key = (ref["kind"], namespace if ref["kind"] == "Role" else "", ref["name"])
    return objects[key]["rules"] if key in objects else []


def is_subject(subject: dict[str, str], namespace: str, who: UserInfo) -> bool:
    kind, name = subject["kind"], subject["name"]
    if kind == "User":
        return who.name == name
    if kind == "Group":
        return name in who.groups
    home = subject.get("namespace", namespace)
    return home != "" and who.name == f"system:serviceaccount:{home}:{name}"


def rule_allows(rule: dict[str, list[str]], asked: Attributes) -> bool:
    if not {"*", asked.verb} & set(rule["verbs"]):
        return False
    if not asked.resource_request:
        urls = rule.get("nonResourceURLs", [])
        return any(asked.path == url or (url[-1] == "*" and asked.path.startswith(url[:-1])) for url in urls)
    resources = {"*", asked.resource}
    if asked.subresource:
        resources = {"*", f"{asked.resource}/{asked.subresource}", f"*/{asked.subresource}"}
    return (
        bool({"*", asked.group} & set(rule.get("apiGroups", [])))
        and bool(resources & set(rule.get("resources", [])))
        and asked.name in (rule.get("resourceNames") or [asked.name])
    )


def some(*values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), unique=True, min_size=1, max_size=2)


NAMES, NAMESPACES = st.sampled_from(["r", "s"]), st.sampled_from(["x", "y"])
RULES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"verbs": some("get", "*"), "apiGroups": some("", "g", "*"), "resources": some("a", "a/s", "*/s", "*")},
            optional={"resourceNames": st.lists(st.sampled_from(["n", "m"]), max_size=2)},
        ),
        st.fixed_dictionaries({"verbs": some("get", "*"), "nonResourceURLs": some("/a", "/a/*", "*")}),
    ),
    max_size=2,
)
SUBJECTS = st.lists(
    st.one_of(
        st.fixed_dictionaries({"kind": st.sampled_from(["User", "Group"]), "name": st.sampled_from(["p", "q"])}),
        st.fixed_dictionaries(
            {"kind": st.just("ServiceAccount"), "name": st.just("bot")}, optional={"namespace": NAMESPACES}
        ),
    ),
    max_size=2,
)
REFS = st.fixed_dictionaries({"kind": st.sampled_from(["Role", "ClusterRole"]), "name": NAMES})


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, str, str, dict[str, Any] | None]:
    kind, name = draw(st.sampled_from(KINDS)), draw(NAMES)
    namespace = "" if kind.startswith("Cluster") else draw(NAMESPACES)
    if draw(st.booleans()) and draw(st.booleans()):
        return kind, namespace, name, None
    obj: dict[str, Any] = role(name, namespace=namespace)
    if kind.endswith("Role"):
        obj["rules"] = draw(RULES)
    else:
        obj = binding(name, "", "", *draw(SUBJECTS), namespace=namespace)
        obj["roleRef"] = draw(REFS)
    return kind, namespace, name, obj


USERS = st.builds(
    UserInfo,
    st.sampled_from(["p", "q", "system:serviceaccount:x:bot"]),
    groups=st.lists(st.sampled_from(["p", "q"]), unique=True).map(tuple),
)
QUESTIONS = st.one_of(
    st.builds(
        Attributes,
        USERS,
        st.sampled_from(["get", "put"]),
        st.sampled_from(["", "g"]),
        st.just("v1"),
        st.sampled_from(["a", "b"]),
        st.sampled_from(["", "s"]),
        st.sampled_from(["", "x", "y"]),
        st.sampled_from(["", "n"]),
    ),
    st.builds(Attributes, USERS, st.just("get"), path=st.sampled_from(["/a", "/a/b"]), resource_request=st.just(False)),
)


@given(st.lists(changes(), max_size=12), st.lists(QUESTIONS, min_size=1, max_size=8))
def test_the_index_answers_as_a_plain_evaluation_does_after_every_change(steps, questions) -> None:
    authorizer = RbacAuthorizer()
    objects: dict[tuple[str, str, str], dict[str, Any]] = {}
    for kind, namespace, name, obj in steps:
        if obj is None:
            objects.pop((kind, namespace, name), None)
            authorizer.remove(kind, namespace, name)
        else:
            objects[kind, namespace, name] = obj
            authorizer.upsert(kind, obj)
        for question in questions:
            assert authorizer.authorize(question).allowed is oracle(objects, question)
