"""Requests over real connections, against a server that answers as it is told."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trustme

from steersman.apimachinery import errors
from steersman.client import (
    Client,
    Config,
    ConfigError,
    ConnectError,
    DecodeError,
    TlsError,
    TransportError,
    TransportTimeout,
)
from steersman.client.config import Impersonation, StaticCredentials, Tls, TokenFile
from steersman.client.config.credentials import Anonymous, Certificate

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "1"}}
PATH = "/api/v1/namespaces/default/configmaps/a"
NOW = ("Retry-After", "0")


def status(code: int, reason: str = "", **more: Any) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": f"no: {code}", **more}


async def test_json_goes_out_and_comes_back(peer: Any, client: Client, answer: Any) -> None:
    peer.on("PUT", PATH, answer(200, MAP))
    got = await client.rest.json("PUT", PATH, [("fieldManager", "a b&c"), ("dryRun", "All")], MAP)
    [asked] = peer.asked
    assert got == MAP
    assert asked.body == MAP
    assert asked.query == {"fieldManager": "a b&c", "dryRun": "All"}
    assert asked.headers["content-type"] == asked.headers["accept"] == "application/json"
    assert asked.headers["user-agent"].endswith(" steersman")
    assert "authorization" not in asked.headers


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (404, "NotFound", errors.NotFound),
        (409, "Conflict", errors.Conflict),
        (409, "AlreadyExists", errors.AlreadyExists),
        (410, "Expired", errors.Expired),
        (422, "Invalid", errors.Invalid),
        (403, "Forbidden", errors.Forbidden),
        (500, "InternalError", errors.InternalError),
        (503, "", errors.ServiceUnavailable),
    ],
)
async def test_errors_are_raised_by_reason(
    peer: Any, client: Client, answer: Any, code: int, reason: str, error: type[errors.ApiError]
) -> None:
    peer.on("GET", PATH, answer(code, status(code, reason, details={"name": "a"}), [("X-Trace", "7")]))
    with pytest.raises(errors.ApiError) as caught:
        await client.rest.json("GET", PATH)
    assert type(caught.value) is error
    assert (caught.value.code, caught.value.message, caught.value.details) == (code, f"no: {code}", {"name": "a"})
    assert ("X-Trace", "7") in caught.value.headers


async def test_an_error_that_is_no_status_keeps_its_text(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(404, b"404 page not found\n"))
    with pytest.raises(errors.NotFound, match=r"^404 page not found$"):
        await client.rest.json("GET", PATH)


async def test_an_answer_that_is_no_json_is_told(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(200, b"<html>"))
    with pytest.raises(DecodeError, match="is not JSON"):
        await client.rest.json("GET", PATH)


async def test_redirects_are_not_followed(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(302, b"{}", [("Location", f"{peer.url}/elsewhere")]))
    assert await client.rest.json("GET", PATH) == {}
    assert len(peer.asked) == 1


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
async def test_too_many_requests_are_sent_again(peer: Any, client: Client, answer: Any, method: str) -> None:
    peer.on(method, PATH, answer(429, status(429), [NOW]), answer(429, status(429), [NOW]), answer(200, MAP))
    assert await client.rest.json(method, PATH) == MAP
    assert len(peer.asked) == 3


@pytest.mark.parametrize("method", ["POST", "PATCH"])
async def test_a_write_that_may_have_happened_is_not_sent_again(
    peer: Any, client: Client, answer: Any, method: str
) -> None:
    peer.on(method, PATH, answer(503, status(503), [NOW]), answer(200, MAP))
    with pytest.raises(errors.ServiceUnavailable):
        await client.rest.json(method, PATH)
    assert len(peer.asked) == 1


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_server_that_asks_for_patience_gets_it(peer: Any, client: Client, answer: Any, method: str) -> None:
    peer.on(method, PATH, answer(503, status(503), [NOW]), answer(500, status(500), [NOW]), answer(200, MAP))
    assert await client.rest.json(method, PATH) == MAP


async def test_without_retry_after_nothing_is_sent_again(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(429, status(429)), answer(200, MAP))
    with pytest.raises(errors.TooManyRequests):
        await client.rest.json("GET", PATH)


async def test_patience_has_an_end(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(429, status(429), [NOW]))
    with pytest.raises(errors.TooManyRequests):
        await client.rest.json("GET", PATH)
    assert len(peer.asked) == 11


async def test_retry_after_is_waited_for(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(429, status(429), [("Retry-After", "1")]), answer(200, MAP))
    await client.rest.json("GET", PATH)
    assert peer.asked[1].at - peer.asked[0].at >= 1.0


async def test_a_connection_is_used_again(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(200, MAP))
    for _ in range(3):
        await client.rest.json("GET", PATH)
    assert peer.connections == 1


async def test_a_get_survives_a_connection_that_went_stale(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(200, MAP), answer(silent=True), answer(200, MAP))
    await client.rest.json("GET", PATH)
    assert await client.rest.json("GET", PATH) == MAP
    assert [asked.connection for asked in peer.asked] == [1, 1, 2]


async def test_a_get_is_sent_again_only_once(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(silent=True))
    with pytest.raises(TransportError, match=f"GET {PATH}"):
        await client.rest.json("GET", PATH)
    assert len(peer.asked) == 2


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_whose_answer_was_lost_is_reported(peer: Any, client: Client, answer: Any, method: str) -> None:
    """A PUT that was sent twice would be told Conflict by its own success."""
    peer.on("GET", PATH, answer(200, MAP))
    peer.on(method, PATH, answer(silent=True), answer(409, status(409, "Conflict")))
    await client.rest.json("GET", PATH)
    with pytest.raises(TransportError):
        await client.rest.json(method, PATH)
    assert len(peer.asked_for(method, PATH)) == 1


async def test_an_answer_that_breaks_off(peer: Any, client: Client, answer: Any) -> None:
    peer.on("PUT", PATH, answer(200, chunks=[b'{"half"'], cut=True))
    with pytest.raises(TransportError):
        await client.rest.json("PUT", PATH)


async def test_a_timeout(peer: Any, client: Client, answer: Any) -> None:
    peer.on("GET", PATH, answer(200, MAP, wait=asyncio.Event().wait))
    with pytest.raises(TransportTimeout, match=r"no answer within 0\.05 seconds"):
        await client.rest.json("GET", PATH, timeout=0.05)


async def test_nobody_listens() -> None:
    async with Client(Config("http://127.0.0.1:1")) as client:
        with pytest.raises(ConnectError):
            await client.server_version()


async def test_a_closed_client_says_so(peer: Any) -> None:
    client = peer.client()
    await client.close()
    await client.close()
    with pytest.raises(ConnectError, match="the client is closed"):
        await client.server_version()


async def test_warnings_are_passed_on_once(peer: Any, answer: Any) -> None:
    told: list[str] = []
    peer.on("GET", "/version", answer(200, {}, [("Warning", '299 - "one"'), ("Warning", '299 - "two"')]))
    async with peer.client(on_warning=told.append) as client:
        await client.server_version()
        await client.server_version()
    assert told == ["one", "two"]


async def test_credentials_and_impersonation(peer: Any, answer: Any) -> None:
    peer.on("GET", "/version", answer(200, {}))
    config = {"credentials": StaticCredentials.bearer("t"), "impersonate": Impersonation("jane", groups=["a", "b"])}
    async with peer.client(config=config) as client:
        await client.server_version()
    assert peer.asked[0].headers["authorization"] == "Bearer t"
    assert peer.asked[0].headers["impersonate-user"] == "jane"


async def test_after_401_credentials_are_renewed(peer: Any, answer: Any, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    peer.on("POST", "/x", answer(200, {}), answer(401, status(401, "Unauthorized")), answer(200, {}))
    async with peer.client(config={"credentials": TokenFile(token)}) as client:
        await client.rest.json("POST", "/x")
        token.write_text("new")
        await client.rest.json("POST", "/x")
    assert [asked.headers["authorization"] for asked in peer.asked] == ["Bearer old", "Bearer old", "Bearer new"]


async def test_credentials_that_stay_refused_are_reported(peer: Any, answer: Any) -> None:
    peer.on("GET", "/version", answer(401, status(401, "Unauthorized")))
    async with peer.client(config={"credentials": StaticCredentials.bearer("t")}) as client:
        with pytest.raises(errors.Unauthorized):
            await client.server_version()
    assert len(peer.asked) == 1


async def test_a_server_below_a_path(peer: Any, answer: Any) -> None:
    peer.on("GET", "/clusters/c-1/version", answer(200, {"major": "1"}))
    async with Client(Config(f"{peer.url}/clusters/c-1/")) as client:
        assert await client.server_version() == {"major": "1"}


async def test_a_proxy_is_asked_for_the_whole_url(peer: Any, answer: Any) -> None:
    peer.on("GET", "/version", answer(200, {"major": "1"}))
    async with Client(Config("http://cluster.invalid:6443", proxy_url=peer.url)) as client:
        assert await client.server_version() == {"major": "1"}
    assert peer.asked[0].headers["host"] == "cluster.invalid:6443"


Serving = Callable[[ssl.SSLContext], AbstractAsyncContextManager[Any]]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def served(authority: trustme.CA, *names: str, ask: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    if ask:
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)
    return context


def trusting(authority: trustme.CA, **more: Any) -> Tls:
    return Tls(authority.cert_pem.bytes().decode(), **more)


async def test_the_server_is_verified(authority: trustme.CA, tls_peer: Serving, answer: Any) -> None:
    async with tls_peer(served(authority, "127.0.0.1")) as peer:
        peer.on("GET", "/version", answer(200, {}))
        async with Client(Config(peer.url, tls=trusting(authority))) as client:
            assert await client.server_version() == {}
        async with Client(Config(peer.url, tls=trusting(trustme.CA()))) as client:
            with pytest.raises(TlsError):
                await client.server_version()
        async with Client(Config(peer.url, tls=Tls(insecure=True))) as client:
            assert await client.server_version() == {}


async def test_the_name_to_check_can_be_given(authority: trustme.CA, tls_peer: Serving, answer: Any) -> None:
    async with tls_peer(served(authority, "kubernetes.internal")) as peer:
        peer.on("GET", "/version", answer(200, {}))
        async with Client(Config(peer.url, tls=trusting(authority))) as client:
            with pytest.raises(TlsError):
                await client.server_version()
        async with Client(Config(peer.url, tls=trusting(authority, server_name="kubernetes.internal"))) as client:
            assert await client.server_version() == {}


class Rotating(Anonymous):
    """A client certificate that somebody renews."""

    def __init__(self, *pairs: trustme.LeafCert) -> None:
        self.pairs = [
            Certificate(b"".join(p.bytes() for p in pair.cert_chain_pems), pair.private_key_pem.bytes())
            for pair in pairs
        ]

    async def certificate(self) -> Certificate | None:
        return self.pairs[0]


async def test_a_renewed_client_certificate_is_used_for_new_connections(
    authority: trustme.CA, tls_peer: Serving, answer: Any
) -> None:
    rotating = Rotating(authority.issue_cert("one@example.org"), authority.issue_cert("two@example.org"))
    release = asyncio.Event()
    async with tls_peer(served(authority, "127.0.0.1", ask=True)) as peer:
        peer.on("GET", "/version", answer(200, {}))
        peer.on("GET", "/slow", answer(200, {"slow": True}, wait=release.wait))
        async with Client(Config(peer.url, tls=trusting(authority), credentials=rotating)) as client:
            await client.server_version()
            slow = asyncio.ensure_future(client.rest.json("GET", "/slow"))
            await peer.until("GET", "/slow")
            rotating.pairs.pop(0)
            await client.server_version()
            release.set()
            assert await slow == {"slow": True}
    assert [asked.connection for asked in peer.asked] == [1, 1, 2]


async def test_a_client_certificate_that_is_none(authority: trustme.CA, tls_peer: Serving) -> None:
    credentials = StaticCredentials(certificate=Certificate(b"not PEM", b"nor this"))
    async with (
        tls_peer(served(authority, "127.0.0.1")) as peer,
        Client(Config(peer.url, tls=trusting(authority), credentials=credentials)) as client,
    ):
        with pytest.raises(ConfigError, match="client certificate and key cannot be used"):
            await client.server_version()
