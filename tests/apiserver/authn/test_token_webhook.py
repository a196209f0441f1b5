"""A webhook that knows tokens, over HTTP. What is asked and answered is as recorded from a kube-apiserver."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.apiserver.reviewing import Answer, Reviews, reviewing
from tests.conftest import RunningServer, running

from steersman.apiserver.authn.settings import TokenSettings, TokenWebhook
from steersman.net.pki import ServerFiles
from steersman.net.tls import server_ssl_context

REVIEWS = "/apis/authentication.k8s.io/v1"
OURS = "https://kubernetes.default.svc"
USER = {"username": "hook", "uid": "h", "groups": ["g1"], "extra": {"k": ["v"]}}


def by_token(spec: dict[str, Any]) -> Answer:
    answers: dict[str, Answer] = {
        "good": {"authenticated": True, "user": USER},
        "for-others": {"authenticated": True, "audiences": ["x", "y"], "user": {"username": "other"}},
        "bad": {"authenticated": False, "error": "bad one"},
        "failing": (400, "broken"),
    }
    return answers.get(spec["token"], {"authenticated": False})


@asynccontextmanager
async def serving(
    certificates: ServerFiles, directory: Path, kept: float = 60.0
) -> AsyncIterator[tuple[RunningServer, Reviews]]:
    tls = server_ssl_context(certificates.cert, certificates.key)
    async with reviewing(tls, by_token) as reviews:
        kubeconfig = reviews.kubeconfig(directory / "webhook", certificates.ca.cert)
        settings = TokenSettings(webhook=TokenWebhook(kubeconfig, "v1", kept))
        async with running(certificates, directory, token_settings=settings) as server:
            yield server, reviews


async def review(server: RunningServer, token: str, *audiences: str) -> Any:
    body = {"spec": {"token": token, "audiences": list(audiences)}}
    return (await server.request("POST", f"{REVIEWS}/tokenreviews", body)).body["status"]


async def test_whose_tokens_are(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, reviews):
        user = {**USER, "groups": ["g1", "system:authenticated"]}
        answer = await server.request("POST", f"{REVIEWS}/selfsubjectreviews", {}, token="good")
        assert (answer.status, answer.body["status"]["userInfo"]) == (201, user)
        assert reviews.asked == [
            {
                "kind": "TokenReview",
                "apiVersion": "authentication.k8s.io/v1",
                "metadata": {},
                "spec": {"token": "good", "audiences": [OURS]},
                "status": {"user": {}},
            }
        ]
        assert await review(server, "good") == {"authenticated": True, "user": user, "audiences": [OURS]}
        said = {"for-others": "invalid bearer token", "unknown": "invalid bearer token",
                "bad": "[invalid bearer token, bad one]",
                "failing": "[invalid bearer token, the server rejected our request for an unknown reason]"}  # fmt: skip
        for token, error in said.items():
            assert await review(server, token) == {"user": {}, "error": error}
            answer = await server.request("GET", "/api", token=token)
            assert (answer.status, answer.body["message"]) == (401, "Unauthorized")


async def test_audiences_are_the_webhooks_matter(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, _):
        assert (await review(server, "for-others", "z", "x"))["audiences"] == ["x"]
        assert await review(server, "good", "z") == {"user": {}, "error": "invalid bearer token"}


async def test_answers_are_kept_but_failures_are_not(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, reviews):
        for token, times in (("good", 1), ("unknown", 1), ("failing", 3)):
            reviews.asked.clear()
            for _ in range(3):
                await server.request("GET", "/version", token=token)
            assert len(reviews.asked) == times


async def test_nothing_is_kept_if_so_wished(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path, kept=0) as (server, reviews):
        for _ in range(2):
            await server.request("GET", "/version", token="good")
        assert len(reviews.asked) == 2


async def test_our_own_tokens_are_not_shown_to_it(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, reviews):
        assert (await server.request("GET", "/api/v1/pods", token="bobtoken")).status == 403
        assert not reviews.asked
