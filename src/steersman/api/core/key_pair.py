"""Whether a certificate and a private key in PEM belong together.

Source: Go `crypto/tls` (X509KeyPair) and its errors.
"""

from __future__ import annotations

from collections.abc import Callable

_BEGIN = b"-----BEGIN "


def key_pair_problem(certificate: bytes, key: bytes) -> str:
    """What Go finds wrong with the pair, "" when it is sound."""
    problem = _missing(certificate, "certificate", lambda kind: kind == "CERTIFICATE")
    problem = problem or _missing(key, "key", lambda kind: kind == "PRIVATE KEY" or kind.endswith(" PRIVATE KEY"))
    return problem or _mismatch(certificate, key)


def _block_types(pem: bytes) -> list[str]:
    found = []
    for line in pem.splitlines():
        if line.startswith(_BEGIN) and line.rstrip().endswith(b"-----"):
            kind = line.rstrip()[len(_BEGIN) : -5]
            if b"-----END " + kind + b"-----" in pem:
                found.append(kind.decode("utf-8", "replace"))
    return found


def _missing(pem: bytes, what: str, wanted: Callable[[str], bool]) -> str:
    kinds = _block_types(pem)
    if any(wanted(kind) for kind in kinds):
        return ""
    if not kinds:
        return f"tls: failed to find any PEM data in {what} input"
    if what == "key" and kinds == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    if what == "certificate" and len(kinds) == 1 and kinds[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; "
            "PEM inputs may have been switched"
        )
    wanted_block = '"CERTIFICATE" PEM block' if what == "certificate" else 'PEM block with type ending in "PRIVATE KEY"'
    return (
        f"tls: failed to find {wanted_block} in {what} input "
        f"after skipping PEM blocks of the following types: [{' '.join(kinds)}]"
    )


def _mismatch(certificate: bytes, key: bytes) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        public = x509.load_pem_x509_certificate(certificate).public_key()
    except ValueError:
        return "x509: malformed certificate"
    try:
        private = load_pem_private_key(key, None).public_key()
    except (ValueError, TypeError):
        return "tls: failed to parse private key"
    if type(public) is not type(private):
        return "tls: private key type does not match public key type"
    return "" if public == private else "tls: private key does not match public key"
