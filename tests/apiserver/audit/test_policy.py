"""Audit policies: what is refused, in kube-apiserver's words, and which rule a request meets."""

from __future__ import annotations

import pytest

from steersman.apiserver.audit.policy import PolicyError, Verdict, parse_policy
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.authz.attributes import Attributes

HEAD = "# a policy\napiVersion: audit.k8s.io/v1\nkind: Policy\n"
SCHEME = 'in scheme "pkg/runtime/scheme.go:111"'
REFUSED = {
    "": "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy",
    "rules: [{level: None}]": "unknown group version field audit.k8s.io/__internal, Kind=Policy in policy",
    HEAD: "loaded illegal policy with 0 rules",
    f"{HEAD}rules: []": "loaded illegal policy with 0 rules",
    f"{HEAD}rules: [{{users: [a]}}]": "rules[0].level: Required value",
    f"{HEAD}rules: [{{level: 3}}]": (
        "failed decoding: json: cannot unmarshal number into Go struct field PolicyRule.rules.level of type v1.Level"
    ),
    f"{HEAD}rules: {{level: None}}": (
        "failed decoding: json: cannot unmarshal object into Go struct field Policy.rules of type []v1.PolicyRule"
    ),
    f"{HEAD}omitManagedFields: x\nrules: [{{level: None}}]": (
        "failed decoding: json: cannot unmarshal string into Go struct field Policy.omitManagedFields of type bool"
    ),
    f"{HEAD}rules: [{{level: None, bar: 2}}, {{level: Nope}}]": (
        'rules[1].level: Unsupported value: "Nope": supported values: "None", "Metadata", "Request", "RequestResponse"'
    ),
    "# x\napiVersion: audit.k8s.io/v1beta1\nkind: Policy": (
        f'failed decoding: no kind "Policy" is registered for version "audit.k8s.io/v1beta1" {SCHEME}'
    ),
    "# x\napiVersion: audit.k8s.io/v1\nkind: Foo": (
        f'failed decoding: no kind "Foo" is registered for version "audit.k8s.io/v1" {SCHEME}'
    ),
    "# x\napiVersion: audit.k8s.io/v1\nkind: Event": (
        "failed decoding: converting (v1.Event) to (audit.Policy): unknown conversion"
    ),
    "[a]": (
        "failed decoding: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of "
        'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    ),
    "{a: b}": (
        "failed decoding: couldn't get version/kind; json parse error: invalid character 'a' looking for beginning of "
        "object key string"
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(PolicyError) as refusal:
        parse_policy(text.encode())
    assert str(refusal.value) == REFUSED[text]


def test_every_error_is_told() -> None:
    text = (
        f"{HEAD}omitStages: [X]\nrules:\n- level: None\n  nonResourceURLs: [a, '/a*b']\n  namespaces: [x]\n"
        "  resources: [{group: A_, resourceNames: [x]}]\n"
    )
    with pytest.raises(PolicyError) as refusal:
        parse_policy(text.encode())
    stages = "RequestReceived,ResponseStarted,ResponseComplete,Panic"
    for told in (
        f'omitStages[0]: Invalid value: "X": allowed stages are {stages}',
        "rules[0].nonResourceURLs[0]: Invalid value: \"a\": non-resource URL rules must begin with a '/' character",
        "rules[0].nonResourceURLs[1]: Invalid value: \"/a*b\": non-resource URL wildcards '*' must be the final",
        'rules[0].resources.group: Invalid value: "A_"',
        'rules[0].resources.resourceNames: Invalid value: ["x"]: using resourceNames requires at least one resource',
        "rules cannot apply to both regular resources and non-resource URLs",
    ):
        assert told in str(refusal.value)


def verdict(rules: str, attributes: Attributes, head: str = HEAD) -> Verdict | None:
    return parse_policy(f"{head}rules:\n{rules}".encode()).verdict(attributes)


ALICE = UserInfo("alice", groups=("devs",))
POD_LOG = Attributes(ALICE, "get", "", "v1", "pods", "log", "default", "p")
LIVEZ = Attributes(ALICE, "get", path="/livez/ping", resource_request=False)


@pytest.mark.parametrize(
    ("rule", "attributes", "matches"),
    [
        ("users: [alice]", POD_LOG, True),
        ("users: [bob]", POD_LOG, False),
        ("userGroups: [x, devs]", POD_LOG, True),
        ("userGroups: [x]", POD_LOG, False),
        ("verbs: [get]", POD_LOG, True),
        ("verbs: [list]", POD_LOG, False),
        ("namespaces: [default]", POD_LOG, True),
        ("namespaces: ['']", POD_LOG, False),
        ("namespaces: ['']", LIVEZ, False),
        ("resources: [{group: ''}]", POD_LOG, True),
        ("resources: [{group: apps}]", POD_LOG, False),
        ("resources: [{group: '*', resources: [pods]}]", POD_LOG, False),
        ("resources: [{group: '*', resources: [pods/log]}]", POD_LOG, True),
        ("resources: [{group: '*', resources: ['*/log']}]", POD_LOG, True),
        ("resources: [{group: '*', resources: ['pods/*']}]", POD_LOG, True),
        ("resources: [{group: '*', resources: ['*']}]", POD_LOG, True),
        ("resources: [{resources: ['*'], resourceNames: [p]}]", POD_LOG, True),
        ("resources: [{resources: ['*'], resourceNames: [q]}]", POD_LOG, False),
        ("nonResourceURLs: ['/livez*']", LIVEZ, True),
        ("nonResourceURLs: ['/livez']", LIVEZ, False),
        ("nonResourceURLs: ['*']", LIVEZ, True),
        ("nonResourceURLs: ['*']", POD_LOG, False),
    ],
)
def test_rules(rule: str, attributes: Attributes, matches: bool) -> None:
    found = verdict(f"- level: Request\n  {rule}\n", attributes)
    assert (found is not None) is matches


def test_the_first_rule_decides_and_stages_add_up() -> None:
    head = f"{HEAD}omitStages: [RequestReceived]\nomitManagedFields: true\n"
    rules = (
        "- {level: None, users: [bob]}\n- {level: Metadata, omitStages: [Panic], omitManagedFields: false}\n"
        "- {level: RequestResponse}\n"
    )
    assert verdict(rules, POD_LOG, head) == Verdict(1, frozenset({"RequestReceived", "Panic"}), False)
    assert verdict(rules, POD_LOG._replace(user=UserInfo("bob")), head) is None
    assert verdict("- {level: Request}\n", POD_LOG, head) == Verdict(2, frozenset({"RequestReceived"}), True)
