"""Whatever is asked, the server answers it, logs no failure, and a dry run or an unprivileged user changes nothing."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steersman.apiserver.authn.tokens import StaticTokens
from steersman.apiserver.authn.user import UserInfo
from steersman.apiserver.server import ServerConfig
from steersman.controlplane.plane import ControlPlane
from steersman.net.http import Request

from .broken import broken
from .requests import BODIES, CORE, HEADERS, LEASES, METHODS, PATHS, QUERIES, THINGS

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.fuzz.example.com"},
    "spec": {
        "group": "fuzz.example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "n": {"type": "integer", "minimum": 0, "default": 1},
                                    "s": {"type": "string", "pattern": "^[a-z]*$", "maxLength": 5},
                                    "list": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {"name": {"type": "string"}, "v": {"type": "number"}},
                                        },
                                    },
                                    "any": {"x-kubernetes-preserve-unknown-fields": True},
                                    "port": {"x-kubernetes-int-or-string": True},
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


UPSTREAM = (500, 504)
"""kube-apiserver's own answers to what it cannot parse (a resourceVersion "abc"), or to a version in the future."""


class Harness:
    """A control plane on a loop of its own, asked without sockets in between."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        users = {name: UserInfo(name, "", groups) for name, groups in (("root", ("system:masters",)), ("eve", ()))}
        config = ServerConfig(tokens=StaticTokens(users))
        self._plane = runner.run(ControlPlane.start("memory://", config, controllers=[]))
        self.records: list[logging.LogRecord] = []

    def prepare(self) -> None:
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert self.ask("POST", crds, body=json.dumps(CRD).encode()).status == 201
        for _ in range(1000):
            if self.ask("GET", THINGS).status == 200:
                break
            self._runner.run(asyncio.sleep(0.001))
        thing = {"apiVersion": "fuzz.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"n": 1}}
        assert self.ask("POST", THINGS, body=json.dumps(thing).encode()).status == 201
        for path in (f"{CORE}/configmaps", LEASES):
            assert self.ask("POST", path, body=b'{"metadata":{"name":"a"}}').status == 201

    @property
    def revision(self) -> int:
        return self._plane.store.revision

    def ask(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        user: str = "root",
    ) -> Any:
        lines = {"authorization": f"Bearer {user}", "content-type": "application/json", **(headers or {})}
        request = Request(method, path, query, lines, body, "", None, False)
        return self._runner.run(self._plane.server.filters.handle(request))

    def close(self) -> None:
        self._runner.run(self._plane.stop(0))


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with asyncio.Runner() as runner:
        harness = Harness(runner)
        harness.prepare()
        catcher = logging.Handler(logging.ERROR)
        catcher.emit = harness.records.append  # type: ignore[method-assign]
        logging.getLogger("steersman").addHandler(catcher)
        yield harness
        logging.getLogger("steersman").removeHandler(catcher)
        harness.close()


def as_query(values: dict[str, str]) -> str:
    return "&".join(f"{key}={quote(value)}" for key, value in values.items())


def check(harness: Harness, answer: Any, revision: int) -> None:
    assert not harness.records, harness.records[0].exc_info
    assert harness.revision == revision
    assert answer.status < 500 or answer.status in UPSTREAM


relaxed = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], deadline=None)


@given(METHODS, PATHS, QUERIES, HEADERS, BODIES)
@settings(relaxed, max_examples=400)
def test_a_dry_run_changes_nothing(
    harness: Harness, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes
) -> None:
    harness.records.clear()
    if method == "DELETE":
        body = b""
    revision = harness.revision
    answer = harness.ask(method, path, as_query({**query, "dryRun": "All"}), headers, body)
    check(harness, answer, revision)


@given(METHODS, PATHS, QUERIES, HEADERS, BODIES, st.sampled_from(["eve", "nobody", ""]))
@settings(relaxed, max_examples=100)
def test_those_without_rights_change_nothing(
    harness: Harness, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes, user: str
) -> None:
    harness.records.clear()
    revision = harness.revision
    answer = harness.ask(method, path, as_query(query), headers, body, user)
    check(harness, answer, revision)
    if path.startswith((CORE, THINGS)):
        assert answer.status in (401, 403)


WRITES = st.sampled_from(
    [
        ("POST", "application/json"),
        ("PUT", "application/json"),
        ("PUT", "application/yaml"),
        ("PATCH", "application/merge-patch+json"),
        ("PATCH", "application/strategic-merge-patch+json"),
        ("PATCH", "application/apply-patch+yaml"),
    ]
)


@given(broken(), WRITES, st.sampled_from(["Ignore", "Warn", "Strict"]))
@settings(relaxed, max_examples=400)
def test_a_broken_object_is_answered(harness: Harness, what: tuple[str, Any], how: tuple[str, str], level: str) -> None:
    harness.records.clear()
    (path, obj), (method, media) = what, how
    if method == "POST":
        path = path.rpartition("/")[0]
    query = as_query({"dryRun": "All", "fieldManager": "me", "fieldValidation": level})
    revision = harness.revision
    body = json.dumps(obj).encode("utf-8", "surrogatepass")
    answer = harness.ask(method, path, query, {"content-type": media}, body)
    check(harness, answer, revision)
