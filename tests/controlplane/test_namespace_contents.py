from steersman.controlplane.namespace_contents import DESCRIPTION, ROOT_CA

SPACE = "/api/v1/namespaces/team"
MERGE = {"Content-Type": "application/merge-patch+json"}


def there(obj):
    return obj is not None


async def test_a_new_namespace_gets_its_account_and_certificate(apiserver, until):
    await apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    assert await until("serviceaccounts", "team/default", there)
    published = await until("configmaps", f"team/{ROOT_CA}", there)
    assert published["data"]["ca.crt"].startswith("-----BEGIN CERTIFICATE-----")
    assert "CA bundle" in published["metadata"]["annotations"][DESCRIPTION]


async def test_namespaces_that_were_there_first_have_them_too(until):
    for namespace in ("default", "kube-system", "kube-public", "kube-node-lease"):
        assert await until("serviceaccounts", f"{namespace}/default", there)
        assert await until("configmaps", f"{namespace}/{ROOT_CA}", there)


async def test_what_is_deleted_comes_back_and_what_is_changed_is_repaired(apiserver, until):
    await until("configmaps", f"default/{ROOT_CA}", there)
    first = await until("serviceaccounts", "default/default", there)
    await apiserver.request("DELETE", "/api/v1/namespaces/default/serviceaccounts/default")
    uid = first["metadata"]["uid"]
    await until("serviceaccounts", "default/default", lambda obj: obj and obj["metadata"]["uid"] != uid)
    path = f"/api/v1/namespaces/default/configmaps/{ROOT_CA}"
    change = {"data": {"ca.crt": "mine"}, "metadata": {"annotations": {"own": "kept"}}}
    await apiserver.request("PATCH", path, change, headers=MERGE)
    repaired = await until("configmaps", f"default/{ROOT_CA}", lambda obj: obj["data"]["ca.crt"] != "mine")
    assert repaired["metadata"]["annotations"]["own"] == "kept"


async def test_a_namespace_that_goes_takes_them_along(apiserver, until):
    await apiserver.request("POST", "/api/v1/namespaces", {"metadata": {"name": "team"}})
    await until("configmaps", f"team/{ROOT_CA}", there)
    await apiserver.request("DELETE", SPACE)
    await until("namespaces", "team", lambda obj: obj is None)
    assert await until("configmaps", f"team/{ROOT_CA}", lambda obj: obj is None) is None
