def test_references_to_secrets_keep_only_names(lifecycle):
    accounts = lifecycle("", "ServiceAccount")
    stored, errors = accounts.create(
        secrets=[{"name": "s", "namespace": "x", "kind": "Secret"}, {}],
        imagePullSecrets=[{"name": "r"}],
        automountServiceAccountToken=False,
    )
    assert errors == []
    assert stored["secrets"] == [{"name": "s"}, {}]
    assert stored["imagePullSecrets"] == [{"name": "r"}]
    assert stored["automountServiceAccountToken"] is False
    changed, errors = accounts.update(stored, secrets=[{"name": "t", "uid": "u"}])
    assert (changed["secrets"], errors) == ([{"name": "t"}], [])
