"""An issuer of tokens for tests: its documents over HTTPS, and tokens signed with any algorithm."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from steersman._util.base64url import encode

HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}
NAMES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
CLIENT = "me"


def new_key(algorithm: str) -> Any:
    if algorithm in CURVES:
        return ec.generate_private_key(CURVES[algorithm])
    return rsa.generate_private_key(65537, 2048)


def _number(value: int, size: int = 0) -> str:
    return encode(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))


def jwk(key: Any, key_id: str, algorithm: str) -> dict[str, str]:
    public = key.public_key().public_numbers()
    if isinstance(key, rsa.RSAPrivateKey):
        return {"kty": "RSA", "use": "sig", "kid": key_id, "n": _number(public.n), "e": _number(public.e)}
    size = (key.curve.key_size + 7) // 8
    point = {"x": _number(public.x, size), "y": _number(public.y, size)}
    return {"kty": "EC", "use": "sig", "kid": key_id, "alg": algorithm, "crv": NAMES[algorithm], **point}


def sign(key: Any, claims: Mapping[str, Any], algorithm: str, key_id: str = "", **header: Any) -> str:
    """A compact JWS."""
    head = {"alg": algorithm, "typ": "JWT", **({"kid": key_id} if key_id else {}), **header}
    signed = ".".join(encode(json.dumps(part).encode()) for part in (head, claims))
    return f"{signed}.{encode(_signature(key, signed.encode(), algorithm))}"


def _signature(key: Any, signed: bytes, algorithm: str) -> bytes:
    if algorithm == "none":
        return b""
    hashing = HASHES[algorithm[2:]]
    if algorithm.startswith("ES"):
        size = (key.curve.key_size + 7) // 8
        r, s = utils.decode_dss_signature(key.sign(signed, ec.ECDSA(hashing)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")
    pss = padding.PSS(padding.MGF1(hashing), padding.PSS.DIGEST_LENGTH)
    return bytes(key.sign(signed, pss if algorithm.startswith("PS") else padding.PKCS1v15(), hashing))


@dataclass
class TestIssuer:
    """What the issuer publishes, and how often it was asked. `url` is where it is."""

    __test__ = False
    url: str = ""
    keys: dict[str, tuple[Any, str]] = field(default_factory=dict)
    cache_control: str = ""
    asked: dict[str, int] = field(default_factory=lambda: {"configuration": 0, "keys": 0})
    broken: bool = False
    keys_url: str = ""

    def add_key(self, key_id: str, algorithm: str = "RS256") -> None:
        self.keys[key_id] = (new_key(algorithm), algorithm)

    def claims(self, **more: Any) -> dict[str, Any]:
        """Those of a good token; None leaves one out."""
        now = int(time.time())
        every = {"iss": self.url, "aud": CLIENT, "sub": "ann", "exp": now + 600, "iat": now, **more}
        return {key: value for key, value in every.items() if value is not None}

    def token(self, key_id: str = "one", **more: Any) -> str:
        key, algorithm = self.keys[key_id]
        return sign(key, self.claims(**more), algorithm, key_id)

    async def configuration(self, request: web.Request) -> web.Response:
        self.asked["configuration"] += 1
        if self.broken:
            return web.Response(status=500, text="not now")
        return web.json_response({"issuer": self.url, "jwks_uri": self.keys_url or f"{self.url}/keys"})

    async def jwks(self, request: web.Request) -> web.Response:
        self.asked["keys"] += 1
        found = [jwk(key, key_id, algorithm) for key_id, (key, algorithm) in self.keys.items()]
        headers = {"Cache-Control": self.cache_control} if self.cache_control else {}
        return web.json_response({"keys": found}, headers=headers)


@asynccontextmanager
async def issuing(tls: SSLContext, port: int = 0) -> AsyncIterator[TestIssuer]:
    """Serve an issuer with one key, `one`, on loopback."""
    issuer = TestIssuer()
    issuer.add_key("one")
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", issuer.configuration)
    app.router.add_get("/elsewhere", issuer.configuration)
    app.router.add_get("/keys", issuer.jwks)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
    await site.start()
    issuer.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield issuer
    finally:
        await runner.cleanup()
