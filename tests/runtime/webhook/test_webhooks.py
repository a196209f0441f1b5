"""Webhooks of an operator, asked by a real server: the seed's three rules, defaults, conversion, certificates."""

from __future__ import annotations

import asyncio
import base64
import ssl
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as hyp

import steersman as st
from steersman.apimachinery.patch import json_patch
from steersman.apiserver.server import ServerConfig
from steersman.client import Client, Config, Resource
from steersman.controlplane.plane import ControlPlane
from steersman.net.pki import KeyPair, create_ca, create_server_certificate
from steersman.runtime.webhook.certificates import CertificateError, FileCertificates, SecretCertificates, Served
from steersman.runtime.webhook.hooks import ConversionHook, MutatingHook, ValidatingHook
from steersman.runtime.webhook.json_diff import json_diff
from steersman.runtime.webhook.server import WebhookServer

SOON = 30.0
MY_APP = Resource("myorg.io/v1", "MyApp")
SECRET = Resource("v1", "Secret")
VALIDATING = Resource("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
NAME = "myapps.myorg.io"


class Spec(st.Model):
    replicas: int = 1
    env: str = "dev"
    logging: str | None = None
    id: str | None = None


@st.custom_resource("myorg.io/v1")
class MyApp(st.CustomResource[Spec, dict[str, Any]]): ...


def crd(*versions: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    names = {"plural": "myapps", "singular": "myapp", "kind": "MyApp", "listKind": "MyAppList"}
    served = [
        {"name": version, "served": True, "storage": not index, "schema": {"openAPIV3Schema": schema}}
        for index, version in enumerate(versions or ["v1"])
    ]
    spec = {"group": "myorg.io", "scope": "Namespaced", "names": names, "versions": served}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": spec,
    }


def app(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "myorg.io/v1", "kind": "MyApp", "metadata": {"name": "a"}, "spec": spec}


def check(found: MyApp, request: st.AdmissionRequest) -> None:
    if found.spec.replicas < 1:
        raise st.Denied("must be at least 1", field="spec.replicas")
    if found.spec.env == "prod" and not found.spec.logging:
        raise st.Denied("prod needs logging", field="spec.logging")
    if found.spec.id is not None:
        try:
            uuid.UUID(found.spec.id)
        except ValueError:
            raise st.Denied("must be a UUID", field="spec.id", code=422, reason="Invalid") from None
    if found.spec.env == "test":
        request.warn("test is deprecated: use dev")


async def fill(found: MyApp, request: st.AdmissionRequest) -> None:
    if found.spec.env == "dev" and found.spec.logging is None:
        found.spec.logging = "debug"
    found.metadata.labels["made-by"] = request.user["username"]


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    async with await ControlPlane.start(config=ServerConfig(insecure=True), controllers=[]) as plane:
        yield plane


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[Client]:
    async with Client(Config(server=plane.url, namespace="default")) as client:
        yield client


async def define(client: Client, *versions: str) -> None:
    await client.create(crd(*versions))
    kind = Resource("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    async with asyncio.timeout(SOON), client.watch(kind, name=NAME) as events:
        async for event in events:
            conditions = event.object.get("status", {}).get("conditions") or []
            if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
                return


@asynccontextmanager
async def running(manager: st.Manager) -> AsyncIterator[st.Manager]:
    task = asyncio.create_task(manager.start())
    ready = asyncio.create_task(manager.ready.wait())
    try:
        await asyncio.wait([task, ready], timeout=SOON, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        yield manager
    finally:
        ready.cancel()
        manager.stop()
        await task


def manager_of(plane: ControlPlane, name: str = "rules", **options: Any) -> st.Manager:
    options.setdefault("webhooks", st.Webhooks("127.0.0.1:0"))
    return st.Manager(Config(server=plane.url, namespace="default"), name=name, **options)


async def until(what: Callable[[], Awaitable[bool]]) -> None:
    """A webhook configuration counts from a moment after it was written."""
    async with asyncio.timeout(SOON):
        while not await what():  # noqa: ASYNC110 -- nobody tells when a configuration counts
            await asyncio.sleep(0.02)


async def refused(client: Client, body: dict[str, Any]) -> st.ApiError:
    caught: list[st.ApiError] = []

    async def is_refused() -> bool:
        try:
            await client.create(body, dry_run=True)
        except st.ApiError as error:
            caught.append(error)
        return bool(caught)

    await until(is_refused)
    return caught[-1]


async def test_the_seeds_rules_refuse_warn_and_fill_in(plane: ControlPlane) -> None:
    warnings: list[str] = []
    config = Config(server=plane.url, namespace="default")
    async with Client(config, on_warning=warnings.append) as client:
        await define(client)
        manager = manager_of(plane)
        manager.webhook(MyApp, validate=check, default=fill)
        async with running(manager):
            error = await refused(client, app(replicas=0))
            assert error.code == 403
            denied = 'admission webhook "validate.v1.myapps.myorg.io" denied the request: '
            assert error.message == f"{denied}spec.replicas: must be at least 1"
            assert (await refused(client, app(env="prod"))).message == f"{denied}spec.logging: prod needs logging"
            error = await refused(client, app(id="no"))
            assert (error.code, error.reason) == (422, "Invalid")
            made = await client.create(app(replicas=2))
            assert made["spec"] == {"replicas": 2, "logging": "debug"}
            assert made["metadata"]["labels"] == {"made-by": "admin"}
            await client.patch(MY_APP, "a", {"spec": {"env": "test"}})
            assert warnings == ["test is deprecated: use dev"]
            assert (await client.get(MY_APP, "a"))["spec"]["env"] == "test"


async def test_what_is_to_go_is_judged_too(plane: ControlPlane, client: Client) -> None:
    def keep(found: MyApp, request: st.AdmissionRequest) -> None:
        if request.operation == "DELETE" and found.spec.env == "prod":
            raise st.Denied("prod stays")

    await define(client)
    manager = manager_of(plane)
    manager.webhook(MyApp, validate=keep, operations=("DELETE",))
    async with running(manager):
        await client.create(app(env="prod"))

        async def is_kept() -> bool:
            try:
                await client.delete(MY_APP, "a", dry_run=True)
            except st.Forbidden as error:
                return "prod stays" in error.message
            return False

        await until(is_kept)


async def test_a_failing_webhook_is_an_internal_error_and_the_server_lives(
    plane: ControlPlane, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(found: MyApp, request: st.AdmissionRequest) -> None:
        raise KeyError(found.spec.env)

    await define(client)
    manager = manager_of(plane)
    manager.webhook(MyApp, validate=broken)
    async with running(manager):
        error = await refused(client, app())
        assert error.code == 500
        assert "KeyError: 'dev'" in error.message
        assert any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize("verdict", [False, True, "no", []])
async def test_a_verdict_that_is_given_and_not_raised_refuses(verdict: Any) -> None:
    def judge(found: MyApp, request: st.AdmissionRequest) -> Any:
        return verdict

    response = orjson.loads(await ValidatingHook("judge", MyApp, judge).answer(review()))["response"]
    assert not response["allowed"]
    assert f"judge gave {verdict!r}: it is to raise Denied" in response["status"]["message"]


@pytest.mark.parametrize("given", [False, "text", [], {}, Spec()])
async def test_a_default_that_gives_no_object_refuses(given: Any) -> None:
    def fill_in(found: MyApp, request: st.AdmissionRequest) -> Any:
        return given

    response = orjson.loads(await MutatingHook("fill", MyApp, fill_in).answer(review()))["response"]
    assert not response["allowed"]
    assert "it is to give the object, or nothing" in response["status"]["message"]


async def test_exceptions_may_be_warned_of_and_raised_as_refusals() -> None:
    def judge(found: MyApp, request: st.AdmissionRequest) -> None:
        request.warn(ValueError("old"))  # type: ignore[arg-type] -- what is easily written
        raise st.Denied(KeyError("x"))  # type: ignore[arg-type] -- what is easily written

    response = orjson.loads(await ValidatingHook("judge", MyApp, judge).answer(review()))["response"]
    assert (response["allowed"], response["warnings"], response["status"]["message"]) == (False, ["old"], "'x'")


@pytest.mark.parametrize("given", [None, "text", []])
async def test_a_conversion_that_gives_no_object_fails_by_name(given: Any) -> None:
    def up_in_place(obj: dict[str, Any]) -> Any:
        return given

    body = {"uid": "u", "desiredAPIVersion": "myorg.io/v2", "objects": [app()]}
    sent = orjson.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": body})
    response = orjson.loads(await ConversionHook("c", {("v1", "v2"): up_in_place}).answer(sent))["response"]
    assert response["result"]["status"] == "Failure"
    assert f"up_in_place, from v1 to v2, gave {given!r}" in response["result"]["message"]


async def test_an_operator_is_reached_where_it_runs_whatever_was_applied(plane: ControlPlane, client: Client) -> None:
    await define(client)

    async def reached(options: st.Webhooks) -> dict[str, Any]:
        manager = manager_of(plane, webhooks=options)
        manager.webhook(MyApp, validate=check)
        async with running(manager):
            configuration = await client.get(VALIDATING, "rules")
        found: dict[str, Any] = configuration["webhooks"][0]["clientConfig"]
        return found

    async def apply() -> None:
        service = {"namespace": "default", "name": "rules", "path": "/applied", "port": 443}
        entry = {
            "name": "validate.v1.myapps.myorg.io",
            "clientConfig": {"url": None, "service": service},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        body = {"apiVersion": VALIDATING.api_version, "kind": VALIDATING.kind, "metadata": {"name": "rules"}}
        await client.apply({**body, "webhooks": [entry]}, field_manager="kubectl", force=True)

    by_url, by_service = st.Webhooks("127.0.0.1:0"), st.Webhooks("127.0.0.1:0", service=("there", "it"))
    await apply()
    for options in (by_url, by_service, by_url):
        found = await reached(options)
        assert ("url" in found, "service" in found) == (options is by_url, options is by_service)
    await apply()
    assert "url" not in (await client.get(VALIDATING, "rules"))["webhooks"][0]["clientConfig"]


async def test_match_conditions_decide_what_is_asked(plane: ControlPlane, client: Client) -> None:
    def never(found: MyApp, request: st.AdmissionRequest) -> None:
        raise st.Denied(f"{found.spec.env} is not allowed")

    await define(client)
    manager = manager_of(plane)
    conditions = [{"name": "prod", "expression": "object.spec.?env.orValue('') == 'prod'"}]
    manager.webhook(MyApp, validate=never, match_conditions=conditions)
    async with running(manager):
        assert "prod is not allowed" in (await refused(client, app(env="prod"))).message
        await client.create(app(env="dev"))


def up(obj: dict[str, Any]) -> dict[str, Any]:
    spec = dict(obj["spec"])
    spec["size"] = {"replicas": spec.pop("replicas", 1)}
    return {**obj, "spec": spec}


def down(obj: dict[str, Any]) -> dict[str, Any]:
    spec = dict(obj["spec"])
    spec["replicas"] = spec.pop("size", {}).get("replicas", 1)
    return {**obj, "spec": spec}


async def test_versions_are_converted(plane: ControlPlane, client: Client) -> None:
    await define(client, "v1", "v2")
    manager = manager_of(plane)
    manager.conversion(NAME, {("v1", "v2"): up, ("v2", "v1"): down})
    other = Resource("myorg.io/v2", "MyApp")
    async with running(manager):

        async def is_converted() -> bool:
            await client.apply(app(replicas=3), field_manager="test", force=True)
            return bool((await client.get(other, "a"))["spec"] == {"size": {"replicas": 3}})

        await until(is_converted)
        listed = await client.list(other).collect()
        assert [obj["spec"] for obj in listed] == [{"size": {"replicas": 3}}]
        async with asyncio.timeout(SOON), client.watch(other) as events:
            await anext(events)
            await client.patch(MY_APP, "a", {"spec": {"replicas": 4}})
            assert (await anext(events)).object["spec"] == {"size": {"replicas": 4}}
        await client.patch(other, "a", {"spec": {"size": {"replicas": 5}}})
        assert (await client.get(MY_APP, "a"))["spec"] == {"replicas": 5}


async def test_two_replicas_agree_on_one_authority_that_is_rotated_without_a_failed_review(
    plane: ControlPlane, client: Client
) -> None:
    await define(client)

    def certificates() -> SecretCertificates:
        # A leaf is renewed some 0.4 s after it was made, an authority after 0.8 s: their time begins 5 min before.
        short = 1 / 86400
        return SecretCertificates(
            client,
            "default",
            "rules-webhook-cert",
            ["127.0.0.1"],
            ca_days=152 * short,
            leaf_days=151 * short,
            interval=0.05,
            settle=0.3,
        )

    managers = []
    for _ in range(2):
        manager = manager_of(plane, webhooks=st.Webhooks("127.0.0.1:0", certificates=certificates()))
        manager.webhook(MyApp, validate=check)
        managers.append(manager)
    async with running(managers[0]), running(managers[1]):
        await refused(client, app(replicas=0))
        seen: set[str] = set()
        failed: list[str] = []

        async def rotated() -> bool:
            try:
                await client.create(app(replicas=0), dry_run=True)
                failed.append("allowed")
            except st.ApiError as error:
                if "must be at least 1" not in error.message:
                    failed.append(error.message)
            secret = await client.get(SECRET, "rules-webhook-cert")
            seen.add(secret["data"]["ca.crt"])
            return len(seen) >= 3

        await until(rotated)
        assert failed == []
        configuration = await client.get(VALIDATING, "rules")
        bundle = base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"])
        assert bundle.count(b"BEGIN CERTIFICATE") in (1, 2)


def write_pair(ca: KeyPair, path: Path, *names: str) -> bytes:
    """A new certificate for 127.0.0.1, or only one of its files."""
    leaf = create_server_certificate(ca, ["127.0.0.1"])
    for name, content in (("tls.crt", leaf.cert), ("tls.key", leaf.key)):
        if not names or name in names:
            (path / name).write_bytes(content)
    return leaf.cert


@pytest.mark.parametrize("damage", ["deleted", "emptied", "garbage", "another's key"])
async def test_a_secret_that_is_lost_is_made_again_without_a_failed_review(
    plane: ControlPlane, client: Client, damage: str
) -> None:
    await define(client)
    certificates = [
        SecretCertificates(client, "default", "rules-webhook-cert", ["127.0.0.1"], interval=0.05, settle=0.3)
        for _ in range(2)
    ]
    managers = [manager_of(plane, webhooks=st.Webhooks("127.0.0.1:0", certificates=each)) for each in certificates]
    for manager in managers:
        manager.webhook(MyApp, validate=check)
    async with running(managers[0]), running(managers[1]):
        await refused(client, app(replicas=0))
        first = (await client.get(SECRET, "rules-webhook-cert"))["data"]
        await damaged(client, damage)

        async def is_renewed() -> bool:
            with pytest.raises(st.Forbidden, match="must be at least 1"):
                await client.create(app(replicas=0), dry_run=True)
            try:
                found = (await client.get(SECRET, "rules-webhook-cert"))["data"]
            except st.NotFound:
                return False
            return (
                len(found.get("ca.crt", "")) > 99 and found["ca.crt"] != first["ca.crt"] and "next-ca.crt" not in found
            )

        await until(is_renewed)
        assert base64.b64decode(first["ca.crt"]) in base64.b64decode(
            (await client.get(SECRET, "rules-webhook-cert"))["data"]["bundle.crt"]
        )


async def damaged(client: Client, how: str) -> None:
    """Do something to the Secret that nobody should."""
    garbage = base64.b64encode(b"garbage").decode()
    contents: dict[str, dict[str, Any]] = {
        "emptied": {"ca.key": None, "bundle.crt": None},
        "garbage": {"ca.crt": garbage},
        "another's key": {"tls.key": base64.b64encode(create_ca("another").key).decode()},
    }
    if how == "deleted":
        await client.delete(SECRET, "rules-webhook-cert")
    else:
        await client.patch(SECRET, "rules-webhook-cert", {"data": contents[how]})


async def test_files_are_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ca = create_ca("test")
    first = write_pair(ca, tmp_path)
    (tmp_path / "ca.crt").write_bytes(ca.cert)
    server, changed = WebhookServer(), asyncio.Event()
    files = FileCertificates(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt", interval=0.02)

    def told(served: Served) -> None:
        changed.set()

    served = await server.start("127.0.0.1", 0, files, told)
    try:
        assert (served.pair.cert, served.bundle) == (first, ca.cert)
        assert await shown(server.port) == ssl.PEM_cert_to_DER_cert(first.decode())
        write_pair(ca, tmp_path, "tls.crt")  # whose key comes later
        async with asyncio.timeout(SOON):
            while "no certificate and its key" not in caplog.text:  # noqa: ASYNC110 -- a log tells nobody
                await asyncio.sleep(0.01)
        assert await shown(server.port) == ssl.PEM_cert_to_DER_cert(first.decode())
        second = write_pair(ca, tmp_path)
        async with asyncio.timeout(SOON):
            await changed.wait()
        assert await shown(server.port) == ssl.PEM_cert_to_DER_cert(second.decode())
    finally:
        await server.stop()


async def test_what_changes_before_it_is_followed_is_told(tmp_path: Path) -> None:
    ca = create_ca("test")
    write_pair(ca, tmp_path)
    files = FileCertificates(tmp_path / "tls.crt", tmp_path / "tls.key", interval=0.01)
    await files.current()
    second = write_pair(ca, tmp_path)
    told: asyncio.Queue[Served] = asyncio.Queue()
    following = asyncio.create_task(files.follow(told.put_nowait))
    async with asyncio.timeout(SOON):
        assert (await told.get()).pair.cert == second
    following.cancel()


async def shown(port: int) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return found


async def test_files_that_are_not_there_are_told(tmp_path: Path) -> None:
    files = FileCertificates(tmp_path / "tls.crt", tmp_path / "tls.key")
    with pytest.raises(CertificateError, match="No such file"):
        await files.current()


def review(**request: Any) -> bytes:
    body = {"uid": "u", "operation": "CREATE", "object": app(replicas=1), **request}
    return orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{", "not JSON"),
        (b"[]", "no AdmissionReview"),
        (b'{"kind": "ConversionReview"}', "no AdmissionReview"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}', "put v1 into"),
        (b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', "no request with a uid"),
    ],
)
async def test_what_is_no_review_is_refused(body: bytes, said: str) -> None:
    server = WebhookServer()
    server.add("/validate", ValidatingHook("v", MyApp, check))
    status, answer = await server.answer("/validate", body)
    assert status == 400
    assert said in answer.decode()
    assert (await server.answer("/elsewhere", body))[0] == 404


async def test_the_same_hooks_as_an_asgi_application() -> None:
    server = WebhookServer()
    server.add("/validate", ValidatingHook("v", MyApp, check))
    sent: list[Any] = []

    async def call(method: str, path: str, *parts: bytes) -> tuple[int, bytes]:
        messages = [{"body": part, "more_body": index < len(parts) - 1} for index, part in enumerate(parts)]
        sent.clear()

        async def receive() -> Any:
            return messages.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        await server.asgi({"type": "http", "method": method, "path": path, "root_path": "/hooks"}, receive, send)
        return sent[0]["status"], sent[1]["body"]

    text = review(object=app(replicas=0))
    status, body = await call("POST", "/hooks/validate", text[:10], text[10:])
    assert (status, orjson.loads(body)["response"]["allowed"]) == (200, False)
    assert (await call("GET", "/hooks/validate", b""))[0] == 405
    assert (await call("POST", "/hooks/validate", b"x" * (8 * 1024 * 1024)))[0] == 413


async def test_an_object_that_does_not_fit_its_model_is_invalid() -> None:
    hook = ValidatingHook("v", MyApp, check)
    answer = orjson.loads(await hook.answer(review(object=app(replicas="many"))))
    assert answer["response"]["allowed"] is False
    assert answer["response"]["status"]["code"] == 422


async def test_a_conversion_that_there_is_not_fails_by_name() -> None:
    hook = ConversionHook("c", {("v1", "v2"): up})
    request = {"uid": "u", "desiredAPIVersion": "myorg.io/v3", "objects": [app()]}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    answer = orjson.loads(await hook.answer(orjson.dumps(body)))
    assert answer["response"]["result"] == {
        "status": "Failure",
        "message": "LookupError: there is no conversion from v1 to v3",
    }


async def test_a_server_that_is_asked_by_get_says_so(tmp_path: Path) -> None:
    ca = create_ca("test")
    leaf = create_server_certificate(ca, ["127.0.0.1"])
    (tmp_path / "c").write_bytes(leaf.cert)
    (tmp_path / "k").write_bytes(leaf.key)
    server = WebhookServer()
    await server.start("127.0.0.1", 0, FileCertificates(tmp_path / "c", tmp_path / "k"))
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{server.port}/x", ssl=False) as response,
        ):
            assert response.status == 405
    finally:
        await server.stop()


JSON = hyp.recursive(
    hyp.none() | hyp.booleans() | hyp.integers(-3, 3) | hyp.text("ab~/", max_size=2),
    lambda inner: hyp.lists(inner, max_size=3) | hyp.dictionaries(hyp.text("ab~/", max_size=2), inner, max_size=3),
    max_leaves=8,
)
OBJECT = hyp.dictionaries(hyp.text("ab~/", max_size=2), JSON, max_size=3)


@given(OBJECT, OBJECT)
def test_a_patch_makes_of_the_one_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    patch = list(json_diff(before, after))
    made = json_patch.apply(orjson.loads(orjson.dumps(before)), patch)
    assert orjson.dumps(made, option=orjson.OPT_SORT_KEYS) == orjson.dumps(after, option=orjson.OPT_SORT_KEYS)
