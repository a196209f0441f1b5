"""Services that kubeconfig files name, and calls of them."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from steersman.apiserver.webhooks.kubeconfig import KubeconfigError, load_service
from steersman.net.calls import Caller, CallError, Trust
from steersman.net.pki import ServerFiles, create_ca, create_client_certificate
from steersman.net.tls import server_ssl_context


def written(path: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None, **more: Any) -> Path:
    context = {"cluster": "c", **({} if user is None else {"user": "u"})}
    content = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": context}],
        "current-context": "x",
        **more,
    }
    path.write_text(yaml.safe_dump(content))
    return path


def test_files_beside_the_kubeconfig_are_read(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_bytes(name.encode())
    cluster = {"server": "https://x.example.com/a", "certificate-authority": "ca", "tls-server-name": "other"}
    user = {"client-certificate": "cert", "client-key": str(tmp_path / "key")}
    service = load_service(written(tmp_path / "config", cluster, user))
    assert (service.url, service.headers()) == ("https://x.example.com/a", {})
    assert service.trust == Trust(b"ca", b"cert", b"key", "other")


def test_what_stands_in_the_kubeconfig_comes_before_files(tmp_path: Path) -> None:
    data = base64.b64encode(b"here").decode()
    cluster = {"server": "x.example.com:8443", "certificate-authority-data": data, "certificate-authority": "gone"}
    service = load_service(written(tmp_path / "config", cluster))
    assert (service.url, service.trust.ca, service.trust.verify) == ("https://x.example.com:8443", b"here", True)
    assert not load_service(
        written(tmp_path / "config", {"server": "https://x", "insecure-skip-tls-verify": True})
    ).trust.verify


def test_credentials(tmp_path: Path) -> None:
    cluster = {"server": "https://x"}
    config = tmp_path / "config"
    assert load_service(written(config, cluster, {"token": "t"})).headers() == {"Authorization": "Bearer t"}
    basic = load_service(written(config, cluster, {"username": "a", "password": "b"}))
    assert basic.headers() == {"Authorization": "Basic YTpi"}
    by_file = load_service(written(config, cluster, {"tokenFile": "token"}))
    for token in ("one", "two"):
        (tmp_path / "token").write_text(f"{token}\n")
        assert by_file.headers() == {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"current-context": "other"}, 'context "other" does not exist'),
        ({"clusters": []}, 'cluster "c" does not exist'),
        ({"clusters": [{"name": "c", "cluster": {}}]}, "no server of the cluster is given"),
        (
            {"clusters": [{"name": "c", "cluster": {"server": "https://x", "certificate-authority": "gone"}}]},
            "certificate-authority: No such file or directory",
        ),
        ({"users": [{"name": "u", "user": {"client-key-data": "%"}}]}, "client-key: "),
    ],
)
def test_files_that_name_no_service(tmp_path: Path, more: dict[str, Any], why: str) -> None:
    path = written(tmp_path / "config", {"server": "https://x"}, {}, **more)
    with pytest.raises(KubeconfigError, match=why):
        load_service(path)
    path.write_text("- 1")
    with pytest.raises(KubeconfigError, match="it is no kubeconfig file"):
        load_service(path)


async def test_a_client_certificate_is_shown(certificates: ServerFiles) -> None:
    ca = create_ca("clients")
    client = create_client_certificate(ca, "client")
    tls = server_ssl_context(certificates.cert, certificates.key, ca.cert)
    tls.verify_mode = ssl.CERT_REQUIRED

    async def told(request: web.Request) -> web.Response:
        assert request.transport is not None
        return web.json_response({"method": request.method, "peer": request.transport.get_extra_info("peercert")})

    app = web.Application()
    app.router.add_route("*", "/", told)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    url, caller = f"https://127.0.0.1:{runner.addresses[0][1]}/", Caller()
    try:
        trust = Trust(certificates.ca.cert, client.cert, client.key)
        reply = await caller.send("GET", url, trust=trust, timeout=10)
        assert (reply.status, b'"GET"' in reply.body, b'"client"' in reply.body) == (200, True, True)
        with pytest.raises(CallError):
            await caller.send("GET", url, trust=Trust(certificates.ca.cert), timeout=10)
    finally:
        await caller.close()
        await runner.cleanup()
