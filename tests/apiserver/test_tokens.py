"""Tokens of service accounts, over HTTP: asked for, used, reviewed, and verified by others."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import RunningServer, running

from steersman.apiserver.authn.service_accounts import ServiceAccountConfig
from steersman.apiserver.authn.signing_keys import kept
from steersman.net.pki import ServerFiles

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


async def account(server: RunningServer, name: str = "bot") -> str:
    """Make a service account; its uid."""
    answer = await server.request("POST", ACCOUNTS, {"metadata": {"name": name}})
    assert answer.status == 201, answer.body
    return str(answer.body["metadata"]["uid"])


async def ask(server: RunningServer, spec: Any = None, name: str = "bot", status: int = 201, **more: Any) -> Any:
    answer = await server.request("POST", f"{ACCOUNTS}/{name}/token", {"spec": spec or {}}, **more)
    assert answer.status == status, answer.body
    return answer.body


async def test_a_token_has_the_accounts_rights(apiserver: RunningServer) -> None:
    uid = await account(apiserver)
    token = (await ask(apiserver))["status"]["token"]
    user = (await apiserver.request("POST", WHO, {}, token=token)).body["status"]["userInfo"]
    assert (user["username"], user["uid"]) == ("system:serviceaccount:default:bot", uid)
    assert (await apiserver.request("GET", "/api/v1/namespaces/default/pods", token=token)).status == 403
    binding = {
        "metadata": {"name": "bots"},
        "subjects": [{"kind": "ServiceAccount", "name": "bot", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    }
    made = await apiserver.request(
        "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding
    )
    assert made.status == 201
    assert (await apiserver.request("GET", "/api/v1/namespaces/default/pods", token=token)).status == 200
    assert (await apiserver.request("GET", "/api/v1/namespaces/kube-system/pods", token=token)).status == 403


async def test_a_token_dies_with_its_account_at_once(apiserver: RunningServer) -> None:
    await account(apiserver)
    token = (await ask(apiserver))["status"]["token"]
    assert (await apiserver.request("POST", WHO, {}, token=token)).status == 201
    assert (await apiserver.request("DELETE", f"{ACCOUNTS}/bot")).status == 200
    assert (await apiserver.request("POST", WHO, {}, token=token)).status == 401
    await account(apiserver)
    assert (await apiserver.request("POST", WHO, {}, token=token)).status == 401


async def test_a_changed_token_is_no_one_not_even_anonymous(apiserver: RunningServer) -> None:
    await account(apiserver)
    header, claims, signature = (await ask(apiserver))["status"]["token"].split(".")
    other = claims[:-8] + ("A" if claims[-8] != "A" else "B") + claims[-7:]
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    for token in (f"{header}.{other}.{signature}", f"{header}.{claims}.", f"{none}.{claims}.", f"{header}.{claims}"):
        assert (await apiserver.request("GET", "/version", token=token)).status == 401


async def test_a_token_for_others_is_not_for_this_server(apiserver: RunningServer) -> None:
    await account(apiserver)
    token = (await ask(apiserver, {"audiences": ["vault"]}))["status"]["token"]
    assert (await apiserver.request("POST", WHO, {}, token=token)).status == 401
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    for_it = await apiserver.request("POST", path, {"spec": {"token": token, "audiences": ["vault", "x"]}})
    assert for_it.body["status"]["authenticated"] is True
    assert for_it.body["status"]["audiences"] == ["vault"]
    ours = await apiserver.request("POST", path, {"spec": {"token": token}})
    assert "authenticated" not in ours.body["status"]
    assert "is invalid for the target audiences" in ours.body["status"]["error"]


async def test_a_token_of_a_pod_dies_with_the_pod(apiserver: RunningServer) -> None:
    await account(apiserver)
    pods = "/api/v1/namespaces/default/pods"
    spec = {"serviceAccountName": "bot", "containers": [{"name": "c", "image": "i"}]}
    pod = (await apiserver.request("POST", pods, {"metadata": {"name": "p"}, "spec": spec})).body
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod["metadata"]["uid"]}
    token = (await ask(apiserver, {"boundObjectRef": bound}))["status"]["token"]
    user = (await apiserver.request("POST", WHO, {}, token=token)).body["status"]["userInfo"]
    assert user["extra"]["authentication.kubernetes.io/pod-name"] == ["p"]
    assert (await apiserver.request("DELETE", f"{pods}/p?gracePeriodSeconds=0")).status == 200
    assert (await apiserver.request("POST", WHO, {}, token=token)).status == 401


async def test_a_kubelets_token_outlives_what_it_asked_for(apiserver: RunningServer) -> None:
    await account(apiserver)
    spec = {"serviceAccountName": "bot", "containers": [{"name": "c", "image": "i"}]}
    await apiserver.request("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": spec})
    bound = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    asked = await ask(apiserver, {"boundObjectRef": bound, "expirationSeconds": 3607})
    claims = json.loads(base64.urlsafe_b64decode(asked["status"]["token"].split(".")[1] + "=="))
    assert claims["exp"] - claims["iat"] == 365 * 24 * 3600
    assert claims["kubernetes.io"]["warnafter"] - claims["iat"] == 3607


@pytest.mark.parametrize(
    ("spec", "status", "message"),
    [
        ({"expirationSeconds": 599}, 422, "may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 2**32 + 1}, 422, "may not specify a duration larger than 2^32 seconds"),
        (
            {"attestations": {"a": ["b"]}},
            422,
            "attestations may only be specified with a webhook bound object reference",
        ),
        ({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}}, 404, 'secrets "s" not found'),
        (
            {"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
    ],
)
async def test_what_cannot_be_asked_for(
    apiserver: RunningServer, spec: dict[str, Any], status: int, message: str
) -> None:
    await account(apiserver)
    assert message in (await ask(apiserver, spec, status=status))["message"]


async def test_only_the_permitted_ask_for_tokens(apiserver: RunningServer) -> None:
    await account(apiserver)
    refused = await ask(apiserver, status=403, token="bobtoken")
    assert 'User "bob" cannot create resource "serviceaccounts/token"' in refused["message"]
    token = (await ask(apiserver))["status"]["token"]
    await ask(apiserver, status=403, token=token)


async def test_others_find_the_keys(apiserver: RunningServer) -> None:
    await account(apiserver)
    token = (await ask(apiserver))["status"]["token"]
    found = await apiserver.request("GET", "/.well-known/openid-configuration", token=token)
    assert found.body["issuer"] == "https://kubernetes.default.svc"
    assert found.body["jwks_uri"].startswith("https://")
    keys = await apiserver.request("GET", "/openid/v1/jwks", token=token)
    assert keys.headers["Content-Type"] == "application/jwk-set+json"
    header = json.loads(base64.urlsafe_b64decode(token.split(".")[0] + "=="))
    assert header["kid"] in [key["kid"] for key in keys.body["keys"]]
    for path in ("/.well-known/openid-configuration", "/openid/v1/jwks"):
        assert (await apiserver.request("GET", path, token="alicetoken")).status == 403
        assert (await apiserver.request("POST", path, {})).status == 405


async def test_tokens_outlive_a_restart_and_are_bounded(certificates: ServerFiles, tmp_path: Path) -> None:
    config = ServiceAccountConfig(keys=lambda: kept(tmp_path / "sa.key"), max_seconds=7200)
    store = f"sqlite:///{tmp_path}/store.db"
    async with running(certificates, tmp_path, store, service_accounts=config) as server:
        await account(server)
        asked = await ask(server, {"expirationSeconds": 10000})
    assert asked["spec"]["expirationSeconds"] == 7200
    async with running(certificates, tmp_path, store, service_accounts=config) as server:
        assert (await server.request("POST", WHO, {}, token=asked["status"]["token"])).status == 201
