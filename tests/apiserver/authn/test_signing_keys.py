"""Keys in PEM files, what they sign, and how they are told to others."""

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID
from tests.apiserver.authn.issuing import sign

from steersman.apiserver.authn.jws import Token, parse
from steersman.apiserver.authn.signing_keys import KeySet, generate, generated, is_pair, kept, key_set, public_keys
from steersman.net.pki import create_ca


def private_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


RSA = rsa.generate_private_key(65537, 2048)


KEYS = (RSA, *(ec.generate_private_key(curve()) for curve in (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)))
KINDS = ("rsa", "p256", "p384", "p521")


@pytest.mark.parametrize(
    ("key", "algorithm", "size"),
    list(zip(KEYS, ("RS256", "ES256", "ES384", "ES512"), (256, 64, 96, 132), strict=True)),
    ids=KINDS,
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


def certificate_pem(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey,
) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "signer")])
    start, end = datetime(2020, 1, 1, tzinfo=UTC), datetime(2120, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(end)
    made = builder.sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else SHA256())
    return made.public_bytes(Encoding.PEM)


@pytest.mark.parametrize("key", KEYS, ids=KINDS)
def test_a_key_and_its_certificate_are_seen_to_be_usable(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey,
) -> None:
    private, certificate = private_pem(key), certificate_pem(key)
    assert is_pair(private, certificate)
    assert public_keys(certificate)[0].id == key_set(private).signing.id
    traditional = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    assert is_pair(traditional, certificate)
    assert not is_pair(generate(), certificate)


def test_what_does_not_certainly_belong_together_is_to_be_read() -> None:
    private, certificate = private_pem(RSA), certificate_pem(RSA)
    locked = RSA.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    edwards = ed25519.Ed25519PrivateKey.generate()
    for key, other in (
        (private, public_pem(RSA)),
        (private, private),
        (private, certificate * 2),
        (private * 2, certificate),
        (private, b""),
        (b"", certificate),
        (locked, certificate),
        (private_pem(edwards), certificate_pem(edwards)),
    ):
        assert not is_pair(key, other)


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
