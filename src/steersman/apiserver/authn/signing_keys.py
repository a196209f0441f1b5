"""The keys of service-account tokens: RSA (RS256) or ECDSA (ES256, ES384, ES512), read from PEM.

`cryptography` is imported when a key is first needed: its import takes longer than a server's start may.
Source: kubernetes `pkg/serviceaccount/{jwt,openidmetadata}.go`, client-go `util/keyutil/key.go`; RFC 7515, 7517, 7518.
"""

from __future__ import annotations

import hashlib
import os
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import re2

from steersman._util.base64url import encode
from steersman._util.dataclass import dataclass
from steersman.apiserver.authn.jws import Key, Token
from steersman.net.pki import write_atomically
from steersman.net.tls import load_pair

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

    PublicKey: TypeAlias = RSAPublicKey | EllipticCurvePublicKey
    PrivateKey: TypeAlias = RSAPrivateKey | EllipticCurvePrivateKey

_PEM = re2.compile(r"(?s)-----BEGIN ([A-Z0-9 ]+)-----.*?-----END [A-Z0-9 ]+-----")
_KINDS = tuple(
    bytes.fromhex(algorithm)
    for algorithm in (
        "300d06092a864886f70d0101010500",  # RSA
        "301306072a8648ce3d020106082a8648ce3d030107",  # ECDSA on P-256
        "301006072a8648ce3d020106052b81040022",  # P-384
        "301006072a8648ce3d020106052b81040023",  # P-521
    )
)
"""How a certificate says which kind of key it is for, in DER: RFC 3279, RFC 5480."""
_CURVES = {"secp256r1": ("ES256", "P-256"), "secp384r1": ("ES384", "P-384"), "secp521r1": ("ES512", "P-521")}


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A public key; `id` is the digest of its DER form, `algorithm` the one that our own tokens have."""

    id: str
    algorithm: str
    public: PublicKey

    @property
    def key(self) -> Key:
        """The key as signatures are verified with it: RSA keys with any algorithm that is one for them."""
        rsa = self.algorithm.startswith("RS")
        return Key(self.id, "RSA" if rsa else "EC", self.public, "" if rsa else self.algorithm)

    def jwk(self) -> dict[str, str]:
        """The key as a JSON Web Key."""
        from cryptography.hazmat.primitives.asymmetric import rsa

        if isinstance(self.public, rsa.RSAPublicKey):
            numbers = self.public.public_numbers()
            parts = {"n": _number(numbers.n), "e": _number(numbers.e)}
            return {"use": "sig", "kty": "RSA", "kid": self.id, "alg": self.algorithm, **parts}
        point, size = self.public.public_numbers(), _coordinate_bytes(self.public)
        curve = _CURVES[self.public.curve.name][1]
        parts = {"crv": curve, "alg": self.algorithm, "x": _number(point.x, size), "y": _number(point.y, size)}
        return {"use": "sig", "kty": "EC", "kid": self.id, **parts}


@dataclass(frozen=True, slots=True)
class KeySet:
    """The key that signs, and all keys that verify (the signing one's public half among them)."""

    private: PrivateKey
    signing: VerifyingKey
    verifying: tuple[VerifyingKey, ...]

    def sign(self, message: bytes) -> bytes:
        """The signature as a JWS carries it."""
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

        hashing = _hashing(self.signing.algorithm)
        if isinstance(self.private, rsa.RSAPrivateKey):
            return self.private.sign(message, padding.PKCS1v15(), hashing)
        size = _coordinate_bytes(self.private)
        r, s = utils.decode_dss_signature(self.private.sign(message, ec.ECDSA(hashing)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")

    def for_token(self, token: Token) -> list[Key]:
        """The keys that may have made a token's signature: the one of its key id, all without one."""
        return [each.key for each in self.verifying if not token.key_id or each.id == token.key_id]


def key_set(signing: bytes, verifying: Sequence[bytes] = ()) -> KeySet:
    """Keys from PEM: a private key, and files of public keys, certificates or private keys. Raises ValueError."""
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private = load_pem_private_key(signing, None)
    except (TypeError, ValueError) as error:
        raise ValueError(f"it holds no private key that can be read ({error})") from None
    if not isinstance(private, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
        raise ValueError("it holds neither an RSA nor an ECDSA key")
    own = _verifying_key(private.public_key())
    others = [key for pem in verifying for key in public_keys(pem)]
    return KeySet(private, own, tuple({key.id: key for key in (own, *others)}.values()))


def public_keys(pem: bytes) -> list[VerifyingKey]:
    """The public keys in a PEM file, those of certificates and private keys too. Raises ValueError."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

    found = []
    for block in _PEM.finditer(pem.decode("ascii", "replace")):
        kind, text = block.group(1), block.group(0).encode()
        if kind.endswith("PRIVATE KEY"):
            found.append(_verifying_key(load_pem_private_key(text, None).public_key()))
        elif kind.endswith("PUBLIC KEY"):
            found.append(_verifying_key(load_pem_public_key(text)))
        elif kind == "CERTIFICATE":
            found.append(_verifying_key(x509.load_pem_x509_certificate(text).public_key()))
    if not found:
        raise ValueError("it holds no key that can be read")
    return found


def is_pair(private: bytes, certificate: bytes) -> bool:
    """Whether a private key and a certificate (PEM) belong together, and both can be used. Without `cryptography`.

    What gives False may still be as good: whoever wants to know has to read it.
    """
    if private.count(b"-----BEGIN ") != 1 or certificate.count(b"-----BEGIN ") != 1 or b"ENCRYPTED" in private:
        return False
    try:
        load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, private)
        der = ssl.PEM_cert_to_DER_cert(certificate.decode("ascii").strip())
    except (ValueError, ssl.SSLError):
        return False
    return any(kind in der for kind in _KINDS)


def generate() -> bytes:
    """A new private key (P-256), as PEM."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def generated() -> KeySet:
    """A new key, kept in memory alone."""
    return key_set(generate())


def kept(path: Path, verifying: Sequence[bytes] = ()) -> KeySet:
    """The key in a file (mode 0600), which is made when it is missing: of several processes one makes it.

    Raises OSError, ValueError.
    """
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        proposed = path.with_name(f".{path.name}.{os.getpid()}")
        write_atomically(proposed, generate(), mode=0o600)
        try:
            os.link(proposed, path)
        except FileExistsError:
            pass
        finally:
            proposed.unlink()
    return key_set(path.read_bytes(), verifying)


def _verifying_key(public: Any) -> VerifyingKey:
    from cryptography.hazmat.primitives.asymmetric import ec, rsa
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    if isinstance(public, rsa.RSAPublicKey):
        algorithm = "RS256"
    elif isinstance(public, ec.EllipticCurvePublicKey) and public.curve.name in _CURVES:
        algorithm = _CURVES[public.curve.name][0]
    else:
        raise ValueError("it holds a key that is neither RSA nor ECDSA on P-256, P-384 or P-521")
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return VerifyingKey(encode(hashlib.sha256(der).digest()), algorithm, public)


def _hashing(algorithm: str) -> HashAlgorithm:
    from cryptography.hazmat.primitives import hashes

    known: dict[str, HashAlgorithm] = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
    return known[algorithm[2:]]


def _coordinate_bytes(key: EllipticCurvePublicKey | EllipticCurvePrivateKey) -> int:
    return (key.curve.key_size + 7) // 8


def _number(value: int, size: int | None = None) -> str:
    return encode(value.to_bytes(size or (value.bit_length() + 7) // 8, "big"))
