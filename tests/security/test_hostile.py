"""Hostile requests: the answer is the reference's, or a plain refusal, and others are served meanwhile."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

import pytest
from tests.conftest import RunningServer

from .paths import RECORDED, TARGETS, TOKENS, request
from .raw import Raw, exchange

MAPS = "/api/v1/namespaces/default/configmaps?dryRun=All"
HEAD = "Host: x\r\nAuthorization: Bearer admintoken\r\n"
BODY = '{"metadata":{"name":"h"}}'
CHUNKED = f"{len(BODY):x}\r\n{BODY}\r\n0\r\n\r\n"
REFUSED = {400, 501}


async def ask(server: RunningServer, sent: bytes) -> Raw:
    parts = urlsplit(server.url)
    assert parts.hostname is not None and parts.port is not None
    return await exchange(parts.hostname, parts.port, server.ssl, sent)


async def test_paths_lead_where_the_reference_leads(apiserver: RunningServer) -> None:
    recorded = json.loads(RECORDED.read_text())
    wrong = []
    for token in TOKENS:
        for target in TARGETS:
            found = (await ask(apiserver, request(target, token))).gist
            if found != recorded[token][target]:
                wrong.append((token, target, found, recorded[token][target]))
    assert not wrong, "\n".join(map(str, wrong))


def post(headers: str, body: str, version: str = "HTTP/1.1") -> bytes:
    head = f"POST {MAPS} {version}\r\n{HEAD}Content-Type: application/json\r\n{headers}\r\n"
    return head.encode("latin-1") + body.encode()


FRAMES: dict[str, tuple[bytes, set[int]]] = {
    "length": (post(f"Content-Length: {len(BODY)}\r\n", BODY), {201}),
    "chunks": (post("Transfer-Encoding: chunked\r\n", CHUNKED), {201}),
    "chunks with an extension": (post("Transfer-Encoding: chunked\r\n", CHUNKED.replace("\r\n", ";a=b\r\n", 1)), {201}),
    "length and chunks": (post(f"Content-Length: {len(BODY)}\r\nTransfer-Encoding: chunked\r\n", CHUNKED), REFUSED),
    "chunks and length": (post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", CHUNKED), REFUSED),
    "two lengths": (post(f"Content-Length: {len(BODY)}\r\nContent-Length: 3\r\n", BODY), REFUSED),
    "listed lengths": (post(f"Content-Length: {len(BODY)}, {len(BODY)}\r\n", BODY), REFUSED),
    "signed length": (post(f"Content-Length: +{len(BODY)}\r\n", BODY), REFUSED),
    "negative length": (post("Content-Length: -1\r\n", BODY), REFUSED),
    "hexadecimal length": (post("Content-Length: 0x19\r\n", BODY), REFUSED),
    "length beyond 64 bits": (post(f"Content-Length: {10**25}\r\n", BODY), REFUSED),
    "two encodings": (post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", CHUNKED), REFUSED),
    "identity": (post(f"Transfer-Encoding: identity\r\nContent-Length: {len(BODY)}\r\n", BODY), REFUSED),
    "gzip": (post("Transfer-Encoding: gzip, chunked\r\n", CHUNKED), REFUSED),
    "almost chunked": (post("Transfer-Encoding: xchunked\r\n", CHUNKED), REFUSED),
    "encoding after a tab": (post("Transfer-Encoding: \x0bchunked\r\n", CHUNKED), REFUSED),
    "blank before the colon": (post("Transfer-Encoding : chunked\r\n", CHUNKED), REFUSED),
    "chunk of no size": (post("Transfer-Encoding: chunked\r\n", f"zz\r\n{BODY}\r\n0\r\n\r\n"), REFUSED),
    "chunk without an end": (post("Transfer-Encoding: chunked\r\n", f"{len(BODY):x}\r\n{BODY}XX0\r\n\r\n"), REFUSED),
    "chunk with bare line feeds": (post("Transfer-Encoding: chunked\r\n", CHUNKED.replace("\r\n", "\n")), REFUSED),
    "chunk beyond 64 bits": (post("Transfer-Encoding: chunked\r\n", f"{'f' * 18}\r\n"), REFUSED),
    "folded header": (b"GET /version HTTP/1.1\r\nHost: x\r\nX-A: a\r\n b\r\n\r\n", REFUSED),
    "bare line feeds": (b"GET /version HTTP/1.1\nHost: x\n\n", REFUSED),
    "carriage return in a value": (b"GET /version HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n", REFUSED),
    "NUL in a value": (b"GET /version HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n", REFUSED),
    "blank in a name": (b"GET /version HTTP/1.1\r\nHost: x\r\nX A: b\r\n\r\n", REFUSED),
    "header without a colon": (b"GET /version HTTP/1.1\r\nHost: x\r\nXA\r\n\r\n", REFUSED),
    "no host": (b"GET /version HTTP/1.1\r\n\r\n", REFUSED),
    "two hosts": (b"GET /version HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", REFUSED),
    "host with a path": (b"GET /version HTTP/1.1\r\nHost: a/b@c\r\n\r\n", REFUSED),
    "HTTP/2 on this connection": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REFUSED),
    "a head of more than a megabyte": (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 1_100_000 + b"\r\n\r\n", {431}),
    "a target of more than a megabyte": (b"GET /" + b"a" * 1_100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", {431}),
}


@pytest.mark.parametrize("name", FRAMES)
async def test_requests_are_framed_in_one_way_only(apiserver: RunningServer, name: str) -> None:
    sent, expected = FRAMES[name]
    assert (await ask(apiserver, sent)).status in expected


async def test_trailers_are_no_headers(apiserver: RunningServer) -> None:
    smuggled = CHUNKED.replace("0\r\n\r\n", "0\r\nAuthorization: Bearer bobtoken\r\n\r\n")
    assert (await ask(apiserver, post("Transfer-Encoding: chunked\r\n", smuggled))).status == 201


def yaml_bomb(levels: int) -> bytes:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(("apiVersion: v1", "kind: ConfigMap", "metadata: {name: b}", *lines, "")).encode()


JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
ENVELOPE = b"k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap"
BODIES: dict[str, tuple[str, bytes, int]] = {
    "JSON of 100,000 levels": (JSON, b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400),
    "a million open brackets": (JSON, b"[" * 1_000_000, 400),
    "objects of 50,000 levels": (JSON, b'{"a":' * 50_000 + b"1" + b"}" * 50_000, 400),
    "a text of three megabytes": (JSON, b'{"metadata":{"name":"b"},"x":"' + b"a" * 3_000_000 + b'"}', 201),
    "more than three megabytes": (JSON, b'"' + b"a" * 3_200_000 + b'"', 413),
    "300,000 equal keys": (JSON, b'{"metadata":{"name":"b"},"x":{' + b",".join([b'"k":1'] * 300_000) + b"}}", 201),
    "100,000 unknown fields": (JSON, b'{"metadata":{"name":"b"}' + b',"u":1' * 100_000 + b"}", 201),
    "a YAML bomb": (YAML, yaml_bomb(9), 400),
    "a greater YAML bomb": (YAML, yaml_bomb(20), 400),
    "YAML of 20,000 levels": (YAML, b"a: " + b"[" * 20_000 + b"]" * 20_000, 400),
    "YAML that contains itself": (YAML, b"apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: b, x: *m}\n", 400),
    "YAML that makes Python objects": (YAML, b"!!python/object/apply:os.system ['id']", 400),
    "50,000 anchors": (YAML, b"".join(b"k%d: &a%d 1\n" % (n, n) for n in range(50_000)), 422),
    "no protobuf": (PROTOBUF, b"k8s\x00" + b"\xff" * 100_000, 400),
    "protobuf of a wrong length": (PROTOBUF, b"k8s\x00\x0a\xff\xff\xff\xff\x7f", 400),
    "protobuf of many empty parts": (PROTOBUF, ENVELOPE + b"\x12\xc0\x84\x3d" + b"\x12\x02\x0a\x00" * 250_000, 422),
}


@pytest.mark.parametrize("name", BODIES)
async def test_bodies_do_not_hold_up_others(apiserver: RunningServer, name: str) -> None:
    media, body, expected = BODIES[name]
    head = f"POST {MAPS} HTTP/1.1\r\n{HEAD}Content-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
    asked = asyncio.create_task(ask(apiserver, head.encode() + body))
    async with apiserver.session() as session:
        while not asked.done():
            async with asyncio.timeout(5), session.get("/api/v1/namespaces/default") as answer:
                assert answer.status == 200
                await answer.read()
    assert (await asked).status == expected
