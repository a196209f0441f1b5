"""The security matrix: who (subjects) asks for what (actions), and what a kube-apiserver answered to each.

Every cell is a real request. Those that are allowed change nothing: they name objects that are not there, or are dry
runs, or have bodies that are refused. What is kept of an answer is its code and, of a refusal, all that the client is
told.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import yaml

HERE = Path(__file__).parent
RECORDED = HERE / "matrix.json"
ROBOT, IDLE, ACTOR, MIMIC = ("matrix-a/robot", "matrix-b/idle", "matrix-a/actor", "matrix-a/mimic")
ACCOUNTS = (ROBOT, IDLE, ACTOR, MIMIC)
REFUSALS = (401, 403)
AT_ONCE = 8
_STATUS = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure"}


@dataclass(frozen=True, slots=True)
class Subject:
    """Who asks: a static token or a service account's ("NAMESPACE/NAME"), and whom it impersonates.

    `user` is the name that a refusal may tell.
    """

    name: str
    user: str
    token: str | None = "admintoken"
    account: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


def _as(user: str, *groups: str, **more: Any) -> Subject:
    headers = (("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups))
    return Subject(user, user, headers=headers, **more)


def _actor(name: str, *headers: tuple[str, str], account: str = ACTOR) -> Subject:
    user = f"system:serviceaccount:{account.replace('/', ':')}"
    return Subject(f"{account.partition('/')[2]} as {name}", user, None, account, headers)


def _account(name: str) -> Subject:
    return Subject(name, f"system:serviceaccount:{name.replace('/', ':')}", None, name)


SUBJECTS = (
    Subject("admin", "admin"),
    Subject("alice", "alice", "alicetoken"),
    Subject("bob", "bob", "bobtoken"),
    Subject("anonymous", "system:anonymous", None),
    Subject("forged", "", "no-such-token"),
    _account(ROBOT),
    _account(IDLE),
    _as("viewer"),
    _as("an-editor", "matrix-editors"),
    _as("owner"),
    _as("chief"),
    _as("an-admin", "matrix-admins"),
    _as("reader"),
    _as("shapes"),
    _as("paths"),
    _as("lost"),
    _as("system:anonymous"),
    _as("system:kube-scheduler"),
    _as("system:serviceaccount:kube-system:generic-garbage-collector"),
    _actor("nobody"),
    _actor("viewer", ("Impersonate-User", "viewer")),
    _actor("owner", ("Impersonate-User", "owner")),
    _actor("editor", ("Impersonate-User", "viewer"), ("Impersonate-Group", "matrix-editors")),
    _actor("master", ("Impersonate-User", "viewer"), ("Impersonate-Group", "system:masters")),
    _actor("wide", ("Impersonate-User", "reader"), ("Impersonate-Extra-Scopes", "wide")),
    _actor("narrow", ("Impersonate-User", "reader"), ("Impersonate-Extra-Scopes", "narrow")),
    _actor("uid", ("Impersonate-User", "reader"), ("Impersonate-Uid", "1")),
    _actor("group alone", ("Impersonate-Group", "matrix-editors")),
    _actor("robot", ("Impersonate-User", "system:serviceaccount:matrix-a:robot"), account=MIMIC),
    _actor("idle", ("Impersonate-User", "system:serviceaccount:matrix-b:idle"), account=MIMIC),
)


class Action(NamedTuple):
    """One request: an HTTP method, a path with its query, a body."""

    method: str
    path: str
    body: Any = None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


_QUIET = "resourceVersion=abc"
_IN_A, _IN_B = "/namespaces/matrix-a", "/namespaces/matrix-b"
_CORE, _APPS, _RBAC, _CR = (
    "/api/v1",
    "/apis/apps/v1",
    "/apis/rbac.authorization.k8s.io/v1",
    "/apis/matrix.example.com/v1",
)


def _verbs(prefix: str, resource: str) -> Iterator[Action]:
    """Every verb on a resource; a watch and a patch are refused for what they say, after it is known that they may."""
    path = f"{prefix}/{resource}"
    yield Action("GET", f"{path}/one")
    yield Action("GET", f"{path}?limit=1")
    yield Action("GET", f"{path}?watch=1&{_QUIET}")
    yield Action("POST", f"{path}?dryRun=All", {"metadata": {"name": "Not_A_Name"}})
    yield Action("PUT", f"{path}/one?dryRun=All", {"metadata": {"name": "another"}})
    yield Action("PATCH", f"{path}/one?dryRun=All", {})
    yield Action("DELETE", f"{path}/one?dryRun=All")
    yield Action("DELETE", f"{path}?dryRun=All&labelSelector=matrix%3Dno")


def _subresource(prefix: str, path: str) -> Iterator[Action]:
    yield Action("GET", f"{prefix}/{path}")
    yield Action("PUT", f"{prefix}/{path}?dryRun=All", {"metadata": {"name": "another"}})
    yield Action("PATCH", f"{prefix}/{path}?dryRun=All", {})


def _reviews() -> Iterator[Action]:
    authn, authz = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"
    asked = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "matrix-a"}}}
    other = {"spec": {**asked["spec"], "user": "viewer"}}
    yield Action("POST", f"{authn}/tokenreviews", {"spec": {"token": "x"}})
    yield Action("POST", f"{authn}/selfsubjectreviews", {})
    yield Action("POST", f"{authz}/selfsubjectaccessreviews", asked)
    yield Action("POST", f"{authz}/selfsubjectrulesreviews", {"spec": {"namespace": "matrix-a"}})
    yield Action("POST", f"{authz}/subjectaccessreviews", other)
    for namespace in (_IN_A, _IN_B):
        yield Action("POST", f"{authz}{namespace}/localsubjectaccessreviews", other)
    for name in ("robot", "idle"):
        yield Action("POST", f"{_CORE}{_IN_A}/serviceaccounts/{name}/token?dryRun=All", {"spec": {"audiences": ["x"]}})


def _paths() -> Iterator[Action]:
    for path in ("/", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/openapi/v3"):
        yield Action("GET", path)
    for path in ("/healthz", "/livez", "/readyz", "/livez/ping", "/readyz/ping", "/metrics", "/nowhere", "/nowhere/x"):
        yield Action("GET", path)
    for path in (
        "/.well-known/openid-configuration",
        "/openid/v1/jwks",
        "/apis/nowhere.example.com",
        "/logs/",
        "/api/",
    ):
        yield Action("GET", path)
    for path in (
        "/version/",
        "/apis/nowhere.example.com/v1/things",
        f"{_CORE}{_IN_A}/nothings",
        "/api/v1/pods/one/x/y",
    ):
        yield Action("GET", path)
    yield Action("POST", "/version", {})
    yield Action("POST", "/nowhere", {})
    yield Action("PATCH", "/livez/ping", {})


def _actions() -> Iterator[Action]:
    for prefix, resource in (
        (_CORE, "pods"),
        (_CORE, "configmaps"),
        (_CORE, "secrets"),
        (_CORE, "serviceaccounts"),
        (_CORE, "resourcequotas"),
        (_APPS, "deployments"),
        (_RBAC, "rolebindings"),
        ("/apis/coordination.k8s.io/v1", "leases"),
        (_CR, "widgets"),
    ):
        yield from _verbs(f"{prefix}{_IN_A}", resource)
        yield Action("GET", f"{prefix}{_IN_B}/{resource}/one")
        yield Action("POST", f"{prefix}{_IN_B}/{resource}?dryRun=All", {"metadata": {"name": "Not_A_Name"}})
        yield Action("GET", f"{prefix}/{resource}?limit=1")
    for prefix, resource in (
        (_CORE, "namespaces"),
        (_CORE, "nodes"),
        (_RBAC, "clusterroles"),
        ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
        (_CR, "gizmos"),
    ):
        yield from _verbs(prefix, resource)
    yield Action("GET", f"{_CORE}/namespaces/matrix-a")
    yield Action("GET", f"{_CORE}{_IN_A}/configmaps/two")
    yield Action("GET", f"{_CORE}{_IN_A}/configmaps?limit=1&fieldSelector=metadata.name%3Done")
    for prefix, path in (
        (f"{_CORE}{_IN_A}", "pods/one/status"),
        (f"{_APPS}{_IN_A}", "deployments/one/scale"),
        (f"{_CR}{_IN_A}", "widgets/one/status"),
        (f"{_CR}{_IN_A}", "widgets/one/scale"),
        (_CR, "gizmos/one/status"),
        (_CORE, "namespaces/one/status"),
    ):
        yield from _subresource(prefix, path)
    yield Action("PUT", f"{_CORE}/namespaces/one/finalize?dryRun=All", {"metadata": {"name": "another"}})
    yield Action("GET", f"{_CORE}{_IN_A}/pods/one/log")
    yield Action("POST", f"{_CORE}{_IN_A}/pods/one/eviction?dryRun=All", {"metadata": {"name": "one"}})
    yield from _reviews()
    yield from _paths()


ACTIONS = tuple(_actions())


@dataclass
class Target:
    """A server to ask. `tokens` are those of service accounts, which `prepare` fills in."""

    session: aiohttp.ClientSession
    tokens: dict[str, str] = field(default_factory=dict)

    async def prepare(self) -> None:
        """Creates what the matrix needs, and waits until the server goes by it."""
        for obj in yaml.safe_load((HERE / "stage.yaml").read_text()):
            await self._create(obj)
        for account in ACCOUNTS:
            namespace, name = account.split("/")
            path = f"{_CORE}/namespaces/{namespace}/serviceaccounts/{name}/token"
            self.tokens[account] = (await self._post(path, {"spec": {}}))["status"]["token"]
        for role in ("view", "edit", "admin"):
            await self._until_aggregated(role)

    async def _create(self, obj: Mapping[str, Any]) -> None:
        version, kind = obj["apiVersion"], obj["kind"]
        namespace = obj["metadata"].get("namespace")
        base = f"/api/{version}" if "/" not in version else f"/apis/{version}"
        where = f"{base}/namespaces/{namespace}" if namespace else base
        await self._post(f"{where}/{kind.lower()}s", obj)
        if kind == "CustomResourceDefinition":
            spec = obj["spec"]
            await self._until_listed(f"/apis/{spec['group']}/v1/{spec['names']['plural']}")

    async def _post(self, path: str, body: Any) -> Any:
        async with self.session.post(path, json=body, headers=_bearer("admintoken")) as response:
            assert response.status in (200, 201, 409), await response.text()
            return await response.json()

    async def _until_listed(self, path: str) -> None:
        async with asyncio.timeout(30):
            while True:
                async with self.session.get(path, headers=_bearer("admintoken")) as response:
                    if response.status == 200:
                        return
                await asyncio.sleep(0.05)

    async def _until_aggregated(self, role: str) -> None:
        query = {"watch": "1", "fieldSelector": f"metadata.name={role}", "timeoutSeconds": "30"}
        async with self.session.get(f"{_RBAC}/clusterroles", params=query, headers=_bearer("admintoken")) as response:
            async for line in response.content:
                rules = json.loads(line)["object"].get("rules") or ()
                if any("widgets" in rule.get("resources", ()) for rule in rules):
                    return
        raise TimeoutError(f"{role} does not get what it is made of")

    async def play(self, action: Action) -> list[str]:
        """What every subject is answered, as text."""
        return [await self._ask(subject, action) for subject in SUBJECTS]

    async def _ask(self, subject: Subject, action: Action) -> str:
        token = self.tokens[subject.account] if subject.account else subject.token
        headers = [*(_bearer(token).items() if token else ()), *subject.headers]
        kind = "application/merge-patch+json" if action.method == "PATCH" else "application/json"
        data = None if action.body is None else json.dumps(action.body)
        headers.append(("Content-Type", kind))
        async with self.session.request(action.method, action.path, data=data, headers=headers) as response:
            if response.status not in REFUSALS:
                return str(response.status)
            headers_told = [response.headers.get(key, "") for key in ("Content-Type", "WWW-Authenticate")]
            return _short(response.status, headers_told, json.loads(await response.text()), subject)


def _short(code: int, headers: list[str], status: dict[str, Any], subject: Subject) -> str:
    """A refusal with what many have in common left out."""
    rest = {key: value for key, value in status.items() if _STATUS.get(key) != value and (key, value) != ("code", code)}
    told = "" if headers == ["application/json", ""] else f" {headers}"
    text = f"{code}{told} {json.dumps(rest, sort_keys=True)}"
    wanted = dict(subject.headers).get("Impersonate-User", "")
    for user, word in ((subject.user, "USER"), (wanted, "WANTED")):
        if user:
            text = text.replace(f'User \\"{user}\\"', word)
    missing = [key for key in _STATUS if key not in status]
    return f"{text} without {missing}" if missing else text


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def play(target: Target, actions: Sequence[Action]) -> list[list[str]]:
    """Every action's answers, several actions at a time."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(action: Action) -> list[str]:
        async with turns:
            return await target.play(action)

    return list(await asyncio.gather(*(one(action) for action in actions)))


def connect(url: str, tls: Any) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(ssl=tls, limit=AT_ONCE))
