import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from steersman.api.core.key_pair import key_pair_problem


@pytest.fixture
def secrets(lifecycle):
    return lifecycle("", "Secret")


def test_string_data_goes_over_data(secrets):
    stored, errors = secrets.create(data={"k": "b2xk", "j": "bGVhdmU="}, stringData={"k": "new", "u": "ü"})
    assert errors == []
    assert stored["data"] == {"j": "bGVhdmU=", "k": "bmV3", "u": "w7w="}
    assert "stringData" not in stored
    assert stored["type"] == "Opaque"


@pytest.mark.parametrize(
    ("kind", "strings", "errors"),
    [
        ("example.com/own", {}, []),
        ("kubernetes.io/tls", {}, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        ("kubernetes.io/tls", {"tls.crt": "", "tls.key": ""}, []),
        ("kubernetes.io/basic-auth", {"x": "y"}, ["data[username]: Required value", "data[password]: Required value"]),
        ("kubernetes.io/basic-auth", {"password": ""}, []),
        ("kubernetes.io/ssh-auth", {"ssh-privatekey": ""}, ["data[ssh-privatekey]: Required value"]),
        ("kubernetes.io/dockercfg", {}, ["data[.dockercfg]: Required value"]),
        ("kubernetes.io/dockerconfigjson", {".dockerconfigjson": "{}"}, []),
        (
            "kubernetes.io/dockerconfigjson",
            {".dockerconfigjson": "no json"},
            [
                'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
                "invalid character 'o' in literal null (expecting 'u')"
            ],
        ),
        (
            "kubernetes.io/dockerconfigjson",
            {".dockerconfigjson": "[]"},
            [
                'data[.dockerconfigjson]: Invalid value: "<secret contents redacted>": '
                "json: cannot unmarshal array into Go value of type map[string]interface {}"
            ],
        ),
        (
            "kubernetes.io/service-account-token",
            {},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
    ],
)
def test_types_demand_their_keys(secrets, kind, strings, errors):
    assert secrets.create(type=kind, stringData=strings)[1] == errors


def test_a_token_needs_its_account_named(secrets):
    metadata = {"annotations": {"kubernetes.io/service-account.name": "op"}}
    assert secrets.create(type="kubernetes.io/service-account-token", metadata=metadata)[1] == []


def test_the_type_never_changes(secrets):
    old, _ = secrets.create(type="example.com/own")
    assert secrets.update(old, type="Opaque")[1] == ['type: Invalid value: "Opaque": field is immutable']


def test_immutable(secrets):
    old, _ = secrets.create(immutable=True, stringData={"k": "1"})
    assert secrets.update(old, immutable=True, stringData={"k": "1"})[1] == []
    fixed = "Forbidden: field is immutable when `immutable` is set"
    assert secrets.update(old, stringData={"k": "2"})[1] == [f"immutable: {fixed}", f"data: {fixed}"]


def key_and_certificate():
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    start = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start + datetime.timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem, certificate.public_bytes(Encoding.PEM)


def test_a_key_pair_is_checked():
    key, certificate = key_and_certificate()
    other, _ = key_and_certificate()
    assert key_pair_problem(certificate, key) == ""
    assert key_pair_problem(certificate, other) == "tls: private key does not match public key"
    assert key_pair_problem(b"", key) == "tls: failed to find any PEM data in certificate input"
    assert key_pair_problem(certificate, b"x") == "tls: failed to find any PEM data in key input"
    assert key_pair_problem(key, certificate).endswith("PEM inputs may have been switched")
    assert key_pair_problem(certificate, certificate).startswith("tls: found a certificate rather than a key")
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert key_pair_problem(broken, key) == "x509: malformed certificate"
    strange = b"-----BEGIN X-----\nAAAA\n-----END X-----\n"
    assert key_pair_problem(certificate, strange) == (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input '
        "after skipping PEM blocks of the following types: [X]"
    )


def test_a_tls_secret_warns_of_a_bad_pair(secrets):
    obj, _ = secrets.create(type="kubernetes.io/tls", stringData={"tls.crt": "", "tls.key": ""})
    assert secrets.kind.strategy.warnings(obj) == ["tls: failed to find any PEM data in certificate input"]
    obj, _ = secrets.create()
    assert secrets.kind.strategy.warnings(obj) == []
