"""Keys in PEM files, what they sign, and how they are told to others."""

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tests.apiserver.authn.issuing import sign

from steersman.apiserver.authn.jws import Token, parse
from steersman.apiserver.authn.signing_keys import KeySet, generate, generated, kept, key_set, public_keys
from steersman.net.pki import create_ca


def private_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


RSA = rsa.generate_private_key(65537, 2048)


@pytest.mark.parametrize(
    ("key", "algorithm", "size"),
    [
        (RSA, "RS256", 256),
        (ec.generate_private_key(ec.SECP256R1()), "ES256", 64),
        (ec.generate_private_key(ec.SECP384R1()), "ES384", 96),
        (ec.generate_private_key(ec.SECP521R1()), "ES512", 132),
    ],
    ids=["rsa", "p256", "p384", "p521"],
)
def test_what_a_key_signs_it_verifies(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, algorithm: str, size: int
) -> None:
    keys = key_set(private_pem(key))
    signature = keys.sign(b"message")
    assert (keys.signing.algorithm, len(signature)) == (algorithm, size)
    assert verified(keys, signature, algorithm, keys.signing.id)
    assert verified(keys, signature, algorithm, "")
    assert not verified(keys, signature, algorithm, "unknown")
    assert not verified(keys, signature, algorithm, keys.signing.id, b"massage")
    assert not verified(keys, signature[:-1], algorithm, keys.signing.id)
    assert not verified(keys, b"", algorithm, keys.signing.id)
    for other in ("none", "HS256", "PS256", "RS512", "RS999", ""):
        assert not verified(keys, signature, other, keys.signing.id)
    assert not verified(generated(), signature, algorithm, "")


def verified(keys: KeySet, signature: bytes, algorithm: str, key_id: str, signed: bytes = b"message") -> bool:
    token = Token(algorithm, key_id, signed, signature, {})
    return any(key.verifies(token) for key in keys.for_token(token))


def test_rsa_keys_verify_whatever_is_one_for_them() -> None:
    keys = key_set(private_pem(RSA))
    for algorithm in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"):
        token = parse(sign(RSA, {"iss": "x"}, algorithm, keys.signing.id))
        assert token is not None
        assert any(key.verifies(token) for key in keys.for_token(token))
    token = parse(sign(RSA, {"iss": "x"}, "RS256", keys.signing.id, crit=["b64"]))
    assert token is not None
    assert not any(key.verifies(token) for key in keys.for_token(token))


def test_older_keys_still_verify() -> None:
    old = key_set(private_pem(RSA))
    keys = key_set(generate(), [public_pem(RSA)])
    assert verified(keys, old.sign(b"message"), "RS256", old.signing.id)
    assert [key.id for key in keys.verifying] == [keys.signing.id, old.signing.id]


def test_keys_of_certificates_and_private_keys_are_read() -> None:
    ca = create_ca("test")
    [of_certificate], [of_key] = public_keys(ca.cert), public_keys(ca.key)
    assert of_certificate.id == of_key.id
    assert len(public_keys(ca.cert + public_pem(RSA))) == 2


def test_web_keys_hold_the_numbers() -> None:
    jwk = key_set(private_pem(RSA)).signing.jwk()
    assert (jwk["kty"], jwk["alg"], jwk["use"], jwk["e"]) == ("RSA", "RS256", "sig", "AQAB")
    assert int.from_bytes(base64.urlsafe_b64decode(jwk["n"] + "=="), "big") == RSA.public_key().public_numbers().n
    curve = generated().signing.jwk()
    assert (curve["kty"], curve["crv"], len(curve["x"]), len(curve["y"])) == ("EC", "P-256", 43, 43)


@pytest.mark.parametrize("pem", [b"", b"nonsense", private_pem(ed25519.Ed25519PrivateKey.generate())])
def test_other_files_are_refused(pem: bytes) -> None:
    with pytest.raises(ValueError, match="it holds"):
        key_set(pem)
    with pytest.raises(ValueError, match="it holds"):
        public_keys(pem)


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "new" / "sa.key"
    first = kept(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["sa.key"]
    assert kept(path).signing.id == first.signing.id
