import pytest

GROUP = "rbac.authorization.k8s.io"
RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


@pytest.mark.parametrize(
    ("kind", "rule", "errors"),
    [
        ("Role", RULE, []),
        (
            "Role",
            {},
            [
                "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
                "rules[0].resources: Required value: resource rules must supply at least one resource",
                "rules[0].verbs: Required value",
            ],
        ),
        (
            "Role",
            {"verbs": ["get"], "nonResourceURLs": ["/healthz"]},
            [
                'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: '
                "namespaced rules cannot apply to non-resource URLs"
            ],
        ),
        ("ClusterRole", {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}, []),
        (
            "ClusterRole",
            {**RULE, "nonResourceURLs": ["/healthz"]},
            [
                'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: '
                "rules cannot apply to both regular resources and non-resource URLs"
            ],
        ),
    ],
)
def test_rules(lifecycle, kind, rule, errors):
    roles = lifecycle(GROUP, kind)
    assert roles.create(rules=[rule])[1] == errors
    old, _ = roles.create(rules=[RULE])
    assert roles.update(old, rules=[rule])[1] == errors


def test_a_role_without_rules_says_null(lifecycle):
    assert lifecycle(GROUP, "Role").create(rules=[])[0]["rules"] is None


@pytest.mark.parametrize(("name", "accepted"), [("system:my:role", True), ("a/b", False), ("..", False)])
def test_names_need_only_fit_a_path(lifecycle, name, accepted):
    assert (lifecycle(GROUP, "Role").create(metadata={"name": name})[1] == []) is accepted


def test_aggregation_needs_sound_selectors(lifecycle):
    roles = lifecycle(GROUP, "ClusterRole")
    _, errors = roles.create(aggregationRule={})
    assert errors == [
        "aggregationRule.clusterRoleSelectors: Required value: "
        "at least one clusterRoleSelector required if aggregationRule is non-nil"
    ]
    assert roles.create(aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})[1] == []
    bad = {"clusterRoleSelectors": [{"matchLabels": {"/a": "b"}}]}
    assert [error.split(":")[0] for error in roles.create(aggregationRule=bad)[1]] == [
        "aggregationRule.clusterRoleSelectors[0].matchLabels",
        "aggregationRule.clusterRoleSelectors[0]",
    ]


def test_defaults_of_a_binding(lifecycle):
    stored, errors = lifecycle(GROUP, "RoleBinding").create(
        roleRef={"kind": "Role", "name": "r"},
        subjects=[{"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}],
    )
    assert errors == []
    assert stored["roleRef"] == {"apiGroup": GROUP, "kind": "Role", "name": "r"}
    assert stored["subjects"] == [
        {"kind": "Group", "apiGroup": GROUP, "name": "g"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
    ]


def test_subjects(lifecycle):
    subjects = [
        {"kind": "Robot", "name": "x"},
        {"kind": "ServiceAccount", "name": "sa"},
        {"kind": "User", "apiGroup": "wrong.example.com", "name": "u"},
        {"kind": "Group", "name": ""},
    ]
    reference = {"kind": "ClusterRole", "name": "r"}
    expected = [
        'subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"',
        f'subjects[2].apiGroup: Unsupported value: "wrong.example.com": supported values: "{GROUP}"',
        "subjects[3].name: Required value",
    ]
    assert lifecycle(GROUP, "RoleBinding").create(roleRef=reference, subjects=subjects)[1] == expected
    expected.insert(1, "subjects[1].namespace: Required value")
    assert lifecycle(GROUP, "ClusterRoleBinding").create(roleRef=reference, subjects=subjects)[1] == expected


@pytest.mark.parametrize(
    ("kind", "reference", "errors"),
    [
        (
            "RoleBinding",
            {"apiGroup": "wrong.example.com", "kind": "Thing", "name": ""},
            [
                f'roleRef.apiGroup: Unsupported value: "wrong.example.com": supported values: "{GROUP}"',
                'roleRef.kind: Unsupported value: "Thing": supported values: "Role", "ClusterRole"',
                "roleRef.name: Required value",
            ],
        ),
        (
            "ClusterRoleBinding",
            {"kind": "Role", "name": "r"},
            ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
        ),
        ("RoleBinding", {"kind": "Role", "name": "a%"}, ["roleRef.name: Invalid value: \"a%\": may not contain '%'"]),
    ],
)
def test_role_references(lifecycle, kind, reference, errors):
    assert lifecycle(GROUP, kind).create(roleRef=reference)[1] == errors


def test_the_role_reference_never_changes(lifecycle):
    bindings = lifecycle(GROUP, "RoleBinding")
    old, _ = bindings.create(roleRef={"kind": "Role", "name": "r"})
    assert (
        bindings.update(old, roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "User", "name": "u"}])[1] == []
    )
    assert bindings.update(old, roleRef={"kind": "Role", "name": "other"})[1] == [
        f'roleRef: Invalid value: {{"APIGroup":"{GROUP}","Kind":"Role","Name":"other"}}: field is immutable'
    ]
