"""Paths and queries that try to slip past who may do what, and what a kube-apiserver answers to them.

python -m tests.security.paths HOST PORT CA_FILE     records paths.json: a server with the tokens of the tests
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from pathlib import Path

from tests.security.raw import exchange

RECORDED = Path(__file__).with_name("paths.json")
TOKENS = ("admintoken", "bobtoken")
NAMESPACES = "/api/v1/namespaces"
TARGETS = (
    f"/{NAMESPACES}",
    "/api//v1/namespaces",
    f"{NAMESPACES}//default",
    "/api/v1/../v1/namespaces",
    "/api/v1/./namespaces",
    f"{NAMESPACES}/default/",
    f"{NAMESPACES}/default//",
    f"{NAMESPACES}/",
    f"{NAMESPACES}/..",
    f"{NAMESPACES}/.",
    f"{NAMESPACES}/default/../kube-system",
    f"{NAMESPACES}/%2e%2e",
    f"{NAMESPACES}/%2e",
    f"{NAMESPACES}/default%2Fpods",
    f"{NAMESPACES}/default%252Fpods",
    f"{NAMESPACES}%2Fdefault",
    "/%61pi/v1/namespaces",
    f"{NAMESPACES}/default;x=1",
    f"{NAMESPACES};/default",
    f"{NAMESPACES}/default%00",
    f"{NAMESPACES}/default%0a",
    f"{NAMESPACES}/default%20",
    f"{NAMESPACES}/de%66ault",
    f"{NAMESPACES}/%zz",
    f"{NAMESPACES}/default\\..",
    f"{NAMESPACES}/default#frag",
    f"{NAMESPACES}/default?a#frag",
    f"{NAMESPACES}/default?x=1;y=2",
    f"{NAMESPACES}/default?%zz",
    f"{NAMESPACES}?limit=1;limit=abc",
    f"{NAMESPACES}?limit=abc&limit=1",
    f"{NAMESPACES}?limit=%zz",
    f"{NAMESPACES}?watch=false&watch=true&timeoutSeconds=1",
    f"http://other{NAMESPACES}/default",
    f"https://x{NAMESPACES}/default",
    "http://other",
    "http://other?x",
    "*",
    "api/v1/namespaces",
    "?x",
    "/%zz",
    "/API/v1/namespaces",
    "/api/V1/namespaces",
    "/healthz/../api/v1/namespaces",
    "/livez/..;/api/v1/namespaces",
    "/livez%2f..%2fapi/v1/namespaces",
    "/api",
    "/apis//",
    "/version/",
    "/livez/",
    "/livez//ping",
    "/../../etc/passwd",
    "/api/v1/proxy/namespaces/default/services/x",
    f"{NAMESPACES}/default/pods/a/b/c/d",
    f"{NAMESPACES}/default/pods/a/nope",
    "/apis/apps/v1/namespaces/default/deployments/x/scale/y",
    "/apis/apps%2Fv1/deployments",
    "/openapi/v2/",
    "/openapi/v3/../v2",
    "/metrics/../api",
)


def request(target: str, token: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()


async def main(host: str, port: str, ca: str) -> None:
    tls = ssl.create_default_context(cafile=ca)
    found = {
        token: {target: (await exchange(host, int(port), tls, request(target, token))).gist for target in TARGETS}
        for token in TOKENS
    }
    text = json.dumps(found, indent=1, ensure_ascii=True)
    RECORDED.write_text(text + "\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
