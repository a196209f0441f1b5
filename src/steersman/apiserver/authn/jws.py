"""JSON Web Signatures of issuers, and the keys that they publish.

`cryptography` is imported when the first key is read.
Source: RFC 7515, 7517, 7518; go-jose `{jws,asymmetric,jwk}.go`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from steersman._util.base64url import decode
from steersman._util.dataclass import dataclass

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    PublicKey: TypeAlias = RSAPublicKey | EllipticCurvePublicKey

ALGORITHMS = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
_CURVES = {"P-256": ("ES256", 32), "P-384": ("ES384", 48), "P-521": ("ES512", 66)}
_MIN_RSA_BITS = 1024
_MAX_KEYS = 1000


@dataclass(frozen=True, slots=True)
class Token:
    """A compact JWS, taken apart; nothing of it is to be trusted before `verifies`."""

    algorithm: str
    key_id: str
    signed: bytes
    signature: bytes
    claims: Mapping[str, Any]
    critical: bool = False
    """Whether it has extensions that must be understood: none are."""


@dataclass(frozen=True, slots=True)
class Key:
    """A public key. `algorithm` is the only one that it is used with ("": all of its kind)."""

    id: str
    kind: str
    public: PublicKey
    algorithm: str = ""

    def verifies(self, token: Token) -> bool:
        """Whether this key made the token's signature, with an algorithm that is one for such keys."""
        if (
            token.critical
            or token.algorithm not in ALGORITHMS
            or (self.algorithm and token.algorithm != self.algorithm)
        ):
            return False
        return _RSA[token.algorithm[:2]](self, token) if token.algorithm[:2] in _RSA else _verifies_ec(self, token)


def parse(text: str) -> Token | None:
    """A token's parts; None for what is no compact JWS with an object as payload."""
    parts = text.split(".")
    if len(parts) != 3:
        return None
    header, claims, signature = _object(parts[0]), _object(parts[1]), decode(parts[2])
    if header is None or claims is None or signature is None:
        return None
    return Token(
        str(header.get("alg") or ""),
        str(header.get("kid") or ""),
        f"{parts[0]}.{parts[1]}".encode(),
        signature,
        claims,
        "crit" in header,
    )


def read_keys(body: bytes) -> list[Key]:
    """The keys of a JWK Set that can be used; others are passed over. Raises ValueError for what is no such set."""
    content = orjson.loads(body)
    listed = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise ValueError("it has no list of keys")
    found = (_key(entry) for entry in listed[:_MAX_KEYS] if isinstance(entry, dict))
    return [key for key in found if key is not None]


def _key(entry: Mapping[str, Any]) -> Key | None:
    if entry.get("use") not in (None, "", "sig"):
        return None
    key_id = entry.get("kid")
    name = key_id if isinstance(key_id, str) else ""
    try:
        if entry.get("kty") == "RSA":
            return _rsa_key(name, entry)
        if entry.get("kty") == "EC":
            return _ec_key(name, entry)
    except (TypeError, ValueError):
        return None
    return None


def _rsa_key(name: str, entry: Mapping[str, Any]) -> Key | None:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers

    public = RSAPublicNumbers(_number(entry["e"]), _number(entry["n"])).public_key()
    if public.key_size < _MIN_RSA_BITS:
        return None
    stated = entry.get("alg")
    return Key(name, "RSA", public, stated if isinstance(stated, str) else "")


def _ec_key(name: str, entry: Mapping[str, Any]) -> Key | None:
    from cryptography.hazmat.primitives.asymmetric import ec

    curve: ec.EllipticCurve
    match entry.get("crv"):
        case "P-256":
            curve = ec.SECP256R1()
        case "P-384":
            curve = ec.SECP384R1()
        case "P-521":
            curve = ec.SECP521R1()
        case _:
            return None
    public = ec.EllipticCurvePublicNumbers(_number(entry["x"]), _number(entry["y"]), curve).public_key()
    return Key(name, "EC", public, _CURVES[entry["crv"]][0])


def _verifies_rsa(key: Key, token: Token, *, pss: bool) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import padding, rsa

    if not isinstance(key.public, rsa.RSAPublicKey):
        return False
    hashing = _hashing(token.algorithm)
    padded = padding.PSS(padding.MGF1(hashing), padding.PSS.AUTO) if pss else padding.PKCS1v15()
    try:
        key.public.verify(token.signature, token.signed, padded, hashing)
    except InvalidSignature:
        return False
    return True


_RSA = {
    "RS": lambda key, token: _verifies_rsa(key, token, pss=False),
    "PS": lambda key, token: _verifies_rsa(key, token, pss=True),
}


def _verifies_ec(key: Key, token: Token) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, utils

    size = dict(_CURVES.values()).get(token.algorithm)
    if not isinstance(key.public, ec.EllipticCurvePublicKey) or size is None or len(token.signature) != 2 * size:
        return False
    halves = (int.from_bytes(half, "big") for half in (token.signature[:size], token.signature[size:]))
    try:
        key.public.verify(utils.encode_dss_signature(*halves), token.signed, ec.ECDSA(_hashing(token.algorithm)))
    except InvalidSignature:
        return False
    return True


def _hashing(algorithm: str) -> Any:
    from cryptography.hazmat.primitives import hashes

    known: dict[str, Any] = {"256": hashes.SHA256, "384": hashes.SHA384, "512": hashes.SHA512}
    return known[algorithm[2:]]()


def _number(text: str) -> int:
    raw = decode(text)
    if not raw:
        raise ValueError("it is no number")
    return int.from_bytes(raw, "big")


def _object(text: str) -> dict[str, Any] | None:
    raw = decode(text)
    try:
        found = None if raw is None else orjson.loads(raw)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def any_verifies(keys: Sequence[Key], token: Token) -> bool:
    """Whether one of the keys made the signature; with a key id in the token, only those of that id are tried."""
    return any(key.verifies(token) for key in keys if not token.key_id or key.id == token.key_id)
