"""Webhooks as authorizers, over HTTP. What is asked and answered is as recorded from a kube-apiserver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.apiserver.reviewing import Answer, Reviews, reviewing
from tests.conftest import RunningServer, running

from steersman.apiserver.authz.configuration import read_configuration
from steersman.net.pki import ServerFiles
from steersman.net.tls import server_ssl_context

MAPS = "/api/v1/namespaces/default/configmaps"
ACCESS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CONDITIONS = [
    {"expression": "!has(request.resourceAttributes) || request.resourceAttributes.namespace != 'skipped'"},
    {"expression": "request.user != 'broken' || request.extra['x'][0] == 'y'"},
    {"expression": "!('others' in request.groups)"},
]


def by_user(spec: dict[str, Any]) -> Answer:
    answers: dict[str, Answer] = {
        "allowed": {"allowed": True, "reason": "welcome"},
        "denied": {"allowed": False, "denied": True, "reason": "go away"},
        "unknown": {"allowed": False, "reason": "dunno <x>"},
        "torn": {"allowed": True, "denied": True, "reason": "b"},
        "failing": (403, "no"),
        "garbled": (200, "{"),
        "mistaken": (200, '{"kind": "Pod", "apiVersion": "v1"}'),
        "strange": (200, '{"kind": "Foo", "apiVersion": "x.io/v1"}'),
        "bare": (200, '{"status": {"allowed": true}}'),
    }
    return answers.get(spec.get("user", ""), {"allowed": False})


def configured(kubeconfig: Path, **more: Any) -> dict[str, Any]:
    webhook = {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "failurePolicy": "Deny",
        "authorizedTTL": "1h",
        "unauthorizedTTL": "1h",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(kubeconfig)},
        **more,
    }
    return {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthorizationConfiguration",
        "authorizers": [
            {"type": "Webhook", "name": "first", "webhook": webhook},
            {"type": "RBAC", "name": "rbac"},
        ],
    }


@asynccontextmanager
async def serving(
    certificates: ServerFiles, directory: Path, file: Path | None = None, **more: Any
) -> AsyncIterator[tuple[RunningServer, Reviews]]:
    tls = server_ssl_context(certificates.cert, certificates.key)
    async with reviewing(tls, by_user) as reviews:
        kubeconfig = reviews.kubeconfig(directory / "webhook", certificates.ca.cert, token="secret")
        raw = yaml.safe_dump(configured(kubeconfig, **more)).encode()
        authorizers = tuple(read_configuration(raw))
        followed = None if file is None else (_written(file, raw), raw)
        async with running(certificates, directory, authorizers=authorizers, authorization_file=followed) as server:
            reviews.asked.clear()
            yield server, reviews


def _written(file: Path, raw: bytes) -> Path:
    file.write_bytes(raw)
    return file


async def as_user(server: RunningServer, user: str, path: str = MAPS, method: str = "GET", *groups: str) -> Any:
    headers = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
    return await server.request(method, path, headers=headers)


def internal(path: str, why: str) -> str:
    return f'Internal Server Error: "{path}": {why}\n'


FORBIDDEN = (
    'configmaps is forbidden: User "{}" cannot list resource "configmaps" in API group "" in the namespace "default"'
)


ANSWERS: list[tuple[str, int, str | None]] = [
    ("allowed", 200, None),
    ("bare", 200, None),
    ("denied", 403, FORBIDDEN.format("denied") + ": go away"),
    ("unknown", 403, FORBIDDEN.format("unknown") + ": first: dunno <x>"),
    ("nobody", 403, FORBIDDEN.format("nobody")),
    ("torn", 500, internal(MAPS, "webhook subject access review returned both allow and deny response")),
    ("failing", 500, internal(MAPS, "no")),
    ("mistaken", 500, internal(MAPS, "converting (v1.Pod) to (v1.SubjectAccessReview): unknown conversion")),
    (
        "strange",
        500,
        internal(MAPS, 'no kind "Foo" is registered for version "x.io/v1" in scheme "pkg/runtime/scheme.go:111"'),
    ),
    ("garbled", 500, internal(MAPS, "couldn't get version/kind; json parse error: unexpected end of JSON input")),
]


async def test_answers(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, _):
        for user, code, message in ANSWERS:
            answer = await as_user(server, user)
            assert answer.status == code, user
            if code == 403:
                assert (answer.body["message"], answer.body["reason"]) == (message, "Forbidden")
            elif code == 500:
                assert (answer.body, answer.headers["Content-Type"]) == (message, "text/plain; charset=utf-8")


async def test_a_passing_trouble_is_asked_about_again(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, reviews):
        answers: list[Answer] = [(500, "not now"), (429, "too many"), {"allowed": True}]
        reviews.answer = lambda spec: answers.pop(0)
        assert (await as_user(server, "ann")).status == 200
        assert len(reviews.asked) == 3


async def test_what_is_asked(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, reviews):
        selectors = "labelSelector=a%3Db,c+in+(d,e),!f,g,h>5&fieldSelector=metadata.name%3Dx,metadata.namespace!%3Dy"
        await as_user(server, "allowed", f"{MAPS}?{selectors}", "GET", "devs")
        assert reviews.asked == [
            {
                "kind": "SubjectAccessReview",
                "apiVersion": "authorization.k8s.io/v1",
                "metadata": {},
                "spec": {
                    "resourceAttributes": {
                        "namespace": "default",
                        "verb": "list",
                        "version": "v1",
                        "resource": "configmaps",
                        "name": "x",
                        "fieldSelector": {
                            "requirements": [
                                {"key": "metadata.name", "operator": "In", "values": ["x"]},
                                {"key": "metadata.namespace", "operator": "NotIn", "values": ["y"]},
                            ]
                        },
                        "labelSelector": {
                            "requirements": [
                                {"key": "a", "operator": "In", "values": ["b"]},
                                {"key": "c", "operator": "In", "values": ["d", "e"]},
                                {"key": "f", "operator": "DoesNotExist"},
                                {"key": "g", "operator": "Exists"},
                            ]
                        },
                    },
                    "user": "allowed",
                    "groups": ["devs", "system:authenticated"],
                },
                "status": {"allowed": False},
            }
        ]
        assert (reviews.headers["Authorization"], reviews.query) == ("Bearer secret", "timeout=3s")
        reviews.asked.clear()
        await as_user(server, "allowed", "/metrics")
        assert reviews.asked[0]["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


async def test_an_older_version_has_another_name_for_groups(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path, subjectAccessReviewVersion="v1beta1") as (server, reviews):
        assert (await as_user(server, "allowed", MAPS, "GET", "devs")).status == 200
        (asked,) = reviews.asked
        assert (asked["apiVersion"], asked["spec"]["group"]) == (
            "authorization.k8s.io/v1beta1",
            ["devs", "system:authenticated"],
        )


async def test_answers_are_kept_while_they_may_be(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path, cacheUnauthorizedRequests=False) as (server, reviews):
        for user, asked in (("allowed", 1), ("denied", 3), ("failing", 3)):
            reviews.asked.clear()
            for _ in range(3):
                await as_user(server, user)
            assert len(reviews.asked) == asked


async def test_conditions_say_who_is_asked_about(certificates: ServerFiles, tmp_path: Path) -> None:
    more = {"matchConditions": CONDITIONS, "matchConditionSubjectAccessReviewVersion": "v1"}
    async with serving(certificates, tmp_path, **more) as (server, reviews):
        assert (await as_user(server, "allowed", "/api/v1/namespaces/skipped/configmaps")).status == 403
        assert (await as_user(server, "allowed", MAPS, "GET", "others")).status == 403
        assert not reviews.asked
        broken = await as_user(server, "broken")
        why = f"cel evaluation error: expression '{CONDITIONS[1]['expression']}' resulted in error: no such key: x"
        assert (broken.status, broken.body) == (500, internal(MAPS, why))
        assert not reviews.asked
        assert (await as_user(server, "allowed")).status == 200


async def test_who_fails_without_an_opinion_leaves_it_to_the_next(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path, failurePolicy="NoOpinion") as (server, _):
        assert (await as_user(server, "failing", "/version")).status == 200
        answer = await as_user(server, "failing")
        assert (answer.status, answer.body) == (500, internal(MAPS, "no"))


async def test_reviews_tell_what_the_webhook_told(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, _):
        for user, status in (
            ("denied", {"allowed": False, "denied": True, "reason": "go away"}),
            ("failing", {"allowed": False, "denied": True, "evaluationError": "no"}),
            ("allowed", {"allowed": True, "reason": "welcome"}),
            ("unknown", {"allowed": False, "reason": "first: dunno <x>"}),
        ):
            body = {"spec": {"user": user, "resourceAttributes": {"verb": "get", "resource": "pods"}}}
            assert (await server.request("POST", ACCESS, body)).body["status"] == status
        rules = await server.request(
            "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}
        )
        assert rules.body["status"]["incomplete"] is True
        assert rules.body["status"]["evaluationError"] == "webhook authorizer does not support user rule resolution"


async def test_administrators_are_not_asked_about(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path) as (server, reviews):
        assert (await server.request("GET", MAPS)).status == 200
        assert not reviews.asked


async def test_impersonation_and_roles_ask_the_webhook(certificates: ServerFiles, tmp_path: Path) -> None:
    """Who may act as another, or grant what they do not hold, is asked for before the write."""
    async with serving(certificates, tmp_path) as (server, reviews):
        reviews.answer = lambda spec: {"allowed": spec["resourceAttributes"]["verb"] != "escalate"}
        answer = await server.request("GET", MAPS, token="alicetoken", headers={"Impersonate-User": "zoe"})
        verbs = [asked["spec"]["resourceAttributes"]["verb"] for asked in reviews.asked]
        assert (answer.status, verbs[0], verbs[-1]) == (200, "impersonate-on:user-info:list", "list")
        role = {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
        path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
        refused = await server.request("POST", path, role, token="alicetoken")
        assert (refused.status, "is attempting to grant RBAC permissions" in refused.body["message"]) == (403, True)
        reviews.answer = lambda spec: {"allowed": True}
        more = {**role, "metadata": {"name": "r2"}}
        assert (
            await server.request("POST", path.replace("default", "kube-public"), more, token="alicetoken")
        ).status == 201


async def test_a_file_that_changes_is_followed(certificates: ServerFiles, tmp_path: Path) -> None:
    file = tmp_path / "authorization.yaml"
    async with serving(certificates, tmp_path, file) as (server, _):
        (followed,) = server.plane.server.core.identity.permissions.followed
        config = yaml.safe_load(file.read_text())
        assert (await as_user(server, "allowed")).status == 200
        for authorizers in (config["authorizers"][:1], [], [{"type": "RBAC", "name": "other"}]):
            file.write_text(yaml.safe_dump({**config, "authorizers": authorizers}))
            await followed.look()
            assert (await as_user(server, "allowed")).status == 200, "RBAC cannot be left out"
        file.write_text(yaml.safe_dump({**config, "authorizers": config["authorizers"][1:]}))
        await followed.look()
        assert (await as_user(server, "allowed")).status == 403


async def test_many_who_wait_are_all_answered(certificates: ServerFiles, tmp_path: Path) -> None:
    async with serving(certificates, tmp_path, cacheAuthorizedRequests=False) as (server, _):
        answers = await asyncio.gather(*(as_user(server, user) for user in ("allowed", "denied", "nobody") * 5))
        assert [answer.status for answer in answers] == [200, 403, 403] * 5
