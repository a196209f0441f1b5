from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import Attributes
from steersman.apiserver.authz.policy_rules import CompiledRule, missing_rules

ANN = UserInfo("ann")


def rule(resources: list[str], names: list[str] | None = None) -> dict[str, list[str]]:
    return {"verbs": ["get"], "apiGroups": ["g"], "resources": resources, **({"resourceNames": names} if names else {})}


def ask(verb: str = "get", group: str = "g", resource: str = "widgets", subresource: str = "", name: str = "a"):
    return Attributes(ANN, verb, group, "v1", resource, subresource, "ns", name)


@pytest.mark.parametrize(
    ("resources", "subresource", "allowed"),
    [
        (["widgets"], "", True),
        (["widgets"], "status", False),
        (["widgets/status"], "status", True),
        (["widgets/status"], "", False),
        (["*"], "", True),
        (["*"], "status", True),
        (["*/status"], "status", True),
        (["*/status"], "", False),
        (["*/status"], "scale", False),
        (["widgets/*"], "status", False),
        (["gadgets", "widgets"], "", True),
        ([], "", False),
    ],
)
def test_resources(resources: list[str], subresource: str, allowed: bool) -> None:
    assert CompiledRule(rule(resources)).allows(ask(subresource=subresource)) is allowed


@pytest.mark.parametrize(
    ("verbs", "groups", "allowed"),
    [(["get"], ["g"], True), (["*"], ["*"], True), (["list"], ["g"], False), (["get"], [""], False), ([], [], False)],
)
def test_verbs_and_groups(verbs: list[str], groups: list[str], allowed: bool) -> None:
    assert CompiledRule({"verbs": verbs, "apiGroups": groups, "resources": ["*"]}).allows(ask()) is allowed


def test_resource_names() -> None:
    compiled = CompiledRule(rule(["widgets"], ["a", "b"]))
    assert compiled.by_name
    assert [compiled.allows(ask(name=name)) for name in ("a", "b", "c", "")] == [True, True, False, False]
    assert not CompiledRule({**rule(["widgets"]), "resourceNames": []}).by_name


@pytest.mark.parametrize(
    ("urls", "path", "allowed"),
    [
        (["/x"], "/x", True),
        (["/x"], "/x/", False),
        (["/x/*"], "/x/y/z", True),
        (["/x/*"], "/x", False),
        (["/x*"], "/xy", True),
        (["*"], "/anything", True),
        (["/*/y"], "/x/y", False),
        ([], "/x", False),
    ],
)
def test_non_resource_urls(urls: list[str], path: str, allowed: bool) -> None:
    compiled = CompiledRule({"verbs": ["get"], "nonResourceURLs": urls})
    assert compiled.allows(Attributes(ANN, "get", path=path, resource_request=False)) is allowed
    assert not compiled.allows(Attributes(ANN, "post", path=path, resource_request=False))


def test_each_kind_of_rule_is_for_its_kind_of_request() -> None:
    urls = CompiledRule({"verbs": ["*"], "nonResourceURLs": ["*"]})
    resources = CompiledRule({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
    path = Attributes(ANN, "get", path="/x", resource_request=False)
    assert (urls.allows(path), urls.allows(ask())) == (True, False)
    assert (resources.allows(path), resources.allows(ask())) == (False, True)


def test_what_is_missing_is_broken_down() -> None:
    held = [rule(["widgets"]), {"verbs": ["get"], "nonResourceURLs": ["/x/*"]}]
    wanted = [
        {"verbs": ["get", "delete"], "apiGroups": ["g"], "resources": ["widgets"], "resourceNames": ["a", "b"]},
        {"verbs": ["get"], "nonResourceURLs": ["/x/y", "/z"]},
    ]
    assert missing_rules(held, wanted) == [
        {"verbs": ["delete"], "apiGroups": ["g"], "resources": ["widgets"], "resourceNames": ["a"]},
        {"verbs": ["delete"], "apiGroups": ["g"], "resources": ["widgets"], "resourceNames": ["b"]},
        {"verbs": ["get"], "nonResourceURLs": ["/z"]},
    ]


def words(*values: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), unique=True, max_size=3)


rules = st.one_of(
    st.fixed_dictionaries(
        {
            "verbs": words("get", "put", "*"),
            "apiGroups": words("", "g", "*"),
            "resources": words("a", "a/s", "b", "*/s", "*"),
            "resourceNames": words("n", "m"),
        }
    ),
    st.fixed_dictionaries({"verbs": words("get", "put", "*"), "nonResourceURLs": words("/a", "/a/*", "/a/b", "*")}),
)

QUESTIONS = [
    *(
        Attributes(ANN, verb, group, "v1", resource, subresource, "", name)
        for verb, group, resource, subresource, name in product(
            ("get", "put", "x"), ("", "g", "h"), ("a", "b"), ("", "s"), ("", "n", "m")
        )
    ),
    *(
        Attributes(ANN, verb, path=path, resource_request=False)
        for verb, path in product(("get", "put", "x"), ("/a", "/a/", "/a/b", "/c"))
    ),
]


@given(st.lists(rules, max_size=3), st.lists(rules, max_size=3))
def test_rules_that_are_covered_allow_nothing_more(held: list[dict], wanted: list[dict]) -> None:
    if missing_rules(held, wanted):
        return
    allowed = [CompiledRule(found) for found in held]
    for asked in [CompiledRule(found) for found in wanted]:
        for question in QUESTIONS:
            assert not asked.allows(question) or any(found.allows(question) for found in allowed)


@given(st.lists(rules, max_size=3), st.lists(rules, max_size=3))
def test_adding_what_is_missing_covers_it(held: list[dict], wanted: list[dict]) -> None:
    assert missing_rules(held + missing_rules(held, wanted), wanted) == []
    assert missing_rules(wanted, wanted) == []
