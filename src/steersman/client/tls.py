"""Makes the ssl.SSLContext for a cluster."""

from __future__ import annotations

import os
import ssl
import tempfile

from steersman.client.config.credentials import Certificate
from steersman.client.config.model import Tls
from steersman.client.errors import ConfigError


def ssl_context(tls: Tls, certificate: Certificate | None = None) -> ssl.SSLContext:
    """TLS 1.2 or newer; the server is verified unless `tls.insecure`. Raises ConfigError for unusable PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.ca_data is None:
        context.load_default_certs()
    else:
        # As in Go, a certificate in the bundle is trusted by itself, whether it is a root or not.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(cadata=tls.ca_data)
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(f"the cluster's certificate-authority is not PEM: {error}") from error
    if certificate is not None:
        _load_pair(context, certificate)
    return context


def goes_together(certificate: Certificate) -> bool:
    """Whether a certificate and a key can be shown."""
    try:
        _load_pair(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), certificate)
    except ConfigError:
        return False
    return True


def _load_pair(context: ssl.SSLContext, certificate: Certificate) -> None:
    """The ssl module reads a pair from files only: they live, readable by us alone, for the time of the call."""
    handle, path = tempfile.mkstemp(prefix="steersman-", suffix=".pem")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate.certificate + b"\n" + certificate.key)
        context.load_cert_chain(path, password=_no_password)
    except ssl.SSLError as error:
        raise ConfigError(f"the client certificate and key cannot be used: {error}") from error
    finally:
        os.unlink(path)


def _no_password() -> str:
    raise ConfigError("the client key is encrypted; kubeconfig needs it without a password")
