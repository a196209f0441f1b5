"""Who may come without credentials, and servers whose authorizers are other than RBAC."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.reviewing import reviewing
from tests.conftest import RunningServer, running
from yarl import URL

from steersman.apiserver.authz.settings import RBAC, AuthorizerSettings, WebhookRules, WebhookSettings
from steersman.net.pki import ServerFiles
from steersman.net.tls import server_ssl_context

POLICIES = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
ONLY_ASKS = "authorizer.group('').resource('secrets').namespace('default').check('escape').allowed()"


async def test_requests_are_anonymous_for_the_paths_that_are_named(certificates: ServerFiles, tmp_path: Path) -> None:
    async with running(certificates, tmp_path, anonymous=("/livez", "/version")) as server:
        for path, code in (
            ("/livez", 200),
            ("/livez?verbose", 200),
            ("/li%76ez", 200),
            ("/version", 200),
            ("/readyz", 401),
            ("/livez/", 401),
            ("/livez/ping", 401),
            ("/livez%3Fx", 401),
            ("/api", 401),
        ):
            answer = await server.request("GET", URL(path, encoded=True), token=None)
            assert answer.status == code, path
        assert (await server.request("GET", "/livez", token="forged")).status == 401


async def test_a_token_after_two_spaces_is_none_and_that_is_told(apiserver: RunningServer) -> None:
    text = "the provided Authorization header contains extra space before the bearer token, and is ignored"
    for path, code in (("/version", 200), ("/api", 403)):
        answer = await apiserver.request("GET", path, token=None, headers={"Authorization": "Bearer  admintoken"})
        assert (answer.status, answer.headers["Warning"]) == (code, f'299 - "{text}"')


@pytest.mark.parametrize(("mode", "code"), [("AlwaysDeny", 403), ("AlwaysAllow", 200)])
async def test_modes_without_roles(certificates: ServerFiles, tmp_path: Path, mode: str, code: int) -> None:
    settings = (AuthorizerSettings(mode, mode.lower()),)
    async with running(certificates, tmp_path, authorizers=settings) as server:
        answer = await server.request("GET", MAPS, token="bobtoken")
        assert answer.status == code
        if code == 403:
            assert answer.body["message"].endswith('in the namespace "default": alwaysdeny: Everything is forbidden.')
        assert (await server.request("GET", MAPS)).status == 200, "members of system:masters may do everything"
        body = {"spec": {"namespace": "default"}}
        path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
        rules = (await server.request("POST", path, body)).body["status"]
        every = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}] if mode == "AlwaysAllow" else []
        assert rules["resourceRules"] == every


def _policy() -> tuple[dict[str, Any], dict[str, Any]]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "asked", "expression": f"!{ONLY_ASKS.replace('escape', 'exempt')}"}],
        "validations": [{"expression": ONLY_ASKS, "message": "you may not"}],
    }
    policy = {"metadata": {"name": "asks"}, "spec": spec}
    binding = {"metadata": {"name": "asks"}, "spec": {"policyName": "asks", "validationActions": ["Deny"]}}
    return policy, binding


async def test_an_expression_waits_for_what_a_webhook_says(certificates: ServerFiles, tmp_path: Path) -> None:
    """The policy's condition and its rule each ask what nobody knows yet; nothing of the write is done twice."""

    def answer(spec: dict[str, Any]) -> dict[str, Any]:
        verb = spec.get("resourceAttributes", {}).get("verb")
        return {"allowed": verb == "create" or (verb == "escape" and spec.get("user") == "alice")}

    async with reviewing(server_ssl_context(certificates.cert, certificates.key), answer) as reviews:
        kubeconfig = reviews.kubeconfig(tmp_path / "webhook", certificates.ca.cert)
        webhook = WebhookSettings(kubeconfig, "v1", rules=WebhookRules(0, 0))
        settings = (AuthorizerSettings("Webhook", "remote", webhook), *RBAC)
        async with running(certificates, tmp_path, authorizers=settings) as server:
            for resource, obj in zip(
                ("validatingadmissionpolicies", "validatingadmissionpolicybindings"), _policy(), strict=True
            ):
                assert (await server.request("POST", f"{POLICIES}/{resource}", obj)).status == 201
            reviews.asked.clear()
            made = await server.request("POST", MAPS, {"metadata": {"name": "a"}}, token="alicetoken")
            asked = [each["spec"]["resourceAttributes"]["verb"] for each in reviews.asked]
            assert (made.status, asked) == (201, ["create", "exempt", "escape"])
            refused = await server.request("POST", MAPS, {"metadata": {"name": "b"}}, token="bobtoken")
            assert (refused.status, "you may not" in refused.body["message"]) == (422, True)
            several = (
                server.request("POST", MAPS, {"metadata": {"name": f"c{number}"}}, token=token)
                for number, token in enumerate(("alicetoken", "bobtoken") * 4)
            )
            assert [answer.status for answer in await asyncio.gather(*several)] == [201, 422] * 4
