from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from steersman.client.config import Config, ConfigError, Impersonation, in_cluster, load
from steersman.client.config.credentials import CertificateFiles, Combined, TokenFile
from steersman.client.config.exec_plugin import ExecCredentials
from steersman.net.pki import create_ca, create_client_certificate


def document(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://example:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **more,
    }


def write(path: Path, content: dict[str, Any] | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No configuration but the test's own."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


async def header(config: Config) -> str | None:
    return await config.credentials.authorization()


async def test_a_token_and_a_namespace() -> None:
    content = document(user={"token": "secret"})
    content["contexts"][0]["context"]["namespace"] = "apps"
    config = load(kubeconfig=content)
    assert (config.server, config.namespace) == ("https://example:6443", "apps")
    assert await header(config) == "Bearer secret"


async def test_basic_authentication() -> None:
    config = load(kubeconfig=document(user={"username": "me", "password": "pw"}))
    assert await header(config) == "Basic " + base64.b64encode(b"me:pw").decode()


async def test_secrets_do_not_show() -> None:
    key = base64.b64encode(b"private-key").decode()
    user = {"client-certificate-data": key, "client-key-data": key, "token": "secret-token"}
    config = load(kubeconfig=document(user=user))
    pair = await config.credentials.certificate()
    assert pair is not None
    assert pair.key == b"private-key"
    assert "secret-token" not in repr(config)
    assert "private-key" not in repr(pair).partition("key=")[2]
    assert isinstance(config.credentials, Combined)


def test_an_explicit_file_goes_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = write(tmp_path / "one", document({"server": "https://one"}))
    two = write(tmp_path / "two", document({"server": "https://two"}))
    write(tmp_path / "home/.kube/config", document({"server": "https://home"}))
    assert load().server == "https://home"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_PORT"):
        load()
    assert load(context="x").server == "https://home"
    monkeypatch.setenv("KUBECONFIG", str(two))
    assert load().server == "https://two"
    assert load(kubeconfig=one).server == "https://one"


def test_of_several_files_the_first_wins_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(
        tmp_path / "first", {"clusters": [{"name": "c", "cluster": {"server": "https://first"}}], "contexts": []}
    )
    second = write(
        tmp_path / "second",
        document(
            {"server": "https://second"},
            clusters=[
                {"name": "c", "cluster": {"server": "https://second"}},
                {"name": "d", "cluster": {"server": "https://d"}},
            ],
            contexts=[
                {"name": "x", "context": {"cluster": "c", "user": "u"}},
                {"name": "y", "context": {"cluster": "d"}},
            ],
        ),
    )
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([str(tmp_path / "absent"), str(first), "", str(second)]))
    assert load().server == "https://first"
    assert load(context="y").server == "https://d"


async def test_paths_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    write(tmp_path / "sub/ca.pem", "authority")
    write(tmp_path / "sub/tok", "from-file\n")
    content = document({"certificate-authority": "ca.pem"}, {"tokenFile": "tok", "token": "ignored"})
    config = load(kubeconfig=write(tmp_path / "sub/config", content))
    assert config.tls.ca_data == "authority"
    assert await header(config) == "Bearer from-file"


async def test_client_certificates_from_files_are_read_again(tmp_path: Path) -> None:
    authority = create_ca("clients")
    pairs = [create_client_certificate(authority, "somebody") for _ in range(4)]
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"

    def put(number: int, *paths: Path) -> None:
        for path, content in ((certificate, pairs[number].cert), (key, pairs[number].key)):
            if not paths or path in paths:
                path.write_bytes(content)

    put(0)
    config = load(kubeconfig=document(user={"client-certificate": str(certificate), "client-key": str(key)}))
    assert isinstance(config.credentials, CertificateFiles)
    now = [0.0]
    files = CertificateFiles(certificate, key, lambda: now[0])

    async def shown() -> int:
        pair = await files.certificate()
        assert pair is not None
        return [each.cert for each in pairs].index(pair.certificate)

    first = await files.certificate()
    put(1)
    assert await files.certificate() is first
    now[0] = 61.0
    assert await shown() == 1
    second = await files.certificate()
    now[0] = 122.0
    assert await files.certificate() is second
    assert not await files.refused(None, second)
    put(2)
    assert [await files.refused(None, second) for _ in range(2)] == [True, True]
    assert await shown() == 2
    put(3, certificate)  # its key comes later
    now[0] = 183.0
    assert await shown() == 2
    put(3, key)
    now[0] = 184.0
    assert await shown() == 3


async def test_a_token_file_is_read_again_every_minute_and_after_a_refusal(tmp_path: Path) -> None:
    path = write(tmp_path / "token", "one")
    now = [0.0]
    tokens = TokenFile(path, lambda: now[0])
    assert await tokens.authorization() == "Bearer one"
    write(path, "two")
    now[0] = 59.0
    assert await tokens.authorization() == "Bearer one"
    now[0] = 60.0
    assert await tokens.authorization() == "Bearer two"
    write(path, "three")
    assert await tokens.refused("Bearer two")
    assert await tokens.authorization() == "Bearer three"
    assert not await tokens.refused("Bearer three")
    path.unlink()
    now[0] = 500.0
    assert await tokens.authorization() == "Bearer three"


def test_tls_settings(tmp_path: Path) -> None:
    data = base64.b64encode(b"PEM").decode()
    tls = load(
        kubeconfig=document({"certificate-authority-data": data[:2] + "\n" + data[2:], "tls-server-name": "n"})
    ).tls
    assert (tls.ca_data, tls.server_name, tls.insecure) == ("PEM", "n", False)
    assert load(kubeconfig=document({"insecure-skip-tls-verify": True})).tls.insecure


def test_whom_to_act_as() -> None:
    user = {"as": "jane", "as-uid": "7", "as-groups": ["devs", "ops"], "as-user-extra": {"acme.io/a b": ["1", "2"]}}
    config = load(kubeconfig=document(user=user))
    assert config.impersonate is not None
    assert config.impersonate.headers() == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "devs"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-acme.io%2Fa%20b", "1"),
        ("Impersonate-Extra-acme.io%2Fa%20b", "2"),
    ]
    assert Impersonation("jane").headers() == [("Impersonate-User", "jane")]


def test_an_exec_plugin_beside_the_kubeconfig(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "bin/login"}
    config = load(kubeconfig=write(tmp_path / "config", document(user={"exec": plugin})))
    assert isinstance(config.credentials, ExecCredentials)
    assert config.credentials.config.command == str(tmp_path / "bin/login")
    assert config.credentials.config.interactive_mode == "IfAvailable"


def test_a_proxy_and_compression() -> None:
    config = load(kubeconfig=document({"proxy-url": "http://proxy:3128", "disable-compression": True}))
    assert (config.proxy_url, config.disable_compression) == ("http://proxy:3128", True)


V1 = "client.authentication.k8s.io/v1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({**document(), "current-context": ""}, r"current-context is not set; name a context \(x\)"),
        ({**document(), "current-context": "z"}, 'no context "z"; it has: x'),
        (document(contexts=[{"name": "x", "context": {"cluster": "q"}}]), 'no cluster "q"; it has: c'),
        (document(contexts=[{"name": "x", "context": {"cluster": "c", "user": "q"}}]), 'no user "q"'),
        (document({"server": ""}), "set it to https://HOST:PORT"),
        (document({"server": "ftp://x"}), "neither http:// nor https://"),
        (document({"certificate-authority-data": "%"}), "certificate-authority-data is not valid base64"),
        (
            document({"certificate-authority": "/absent/ca"}),
            "cannot read certificate-authority /absent/ca: No such file",
        ),
        (
            document({"insecure-skip-tls-verify": True, "certificate-authority-data": "YQ=="}),
            "exclude each other",
        ),
        (document({"proxy-url": "socks5://x"}), "use an http:// or https:// proxy"),
        (document(user={"client-key-data": "YQ=="}), "both client-certificate and client-key"),
        (document(user={"as-groups": ["a"]}), 'need "as"'),
        (document(user={"auth-provider": {"name": "gcp"}}), "use an exec plugin"),
        (
            document(user={"exec": {"apiVersion": "v9", "command": "x"}}),
            "it must be client.authentication.k8s.io/v1 or",
        ),
        (document(user={"exec": {"apiVersion": V1, "command": "x"}}), 'interactiveMode ""; it must be one of Never'),
        (document(user={"exec": {"apiVersion": V1, "interactiveMode": "Never"}}), "has no command"),
        (document(users=[{"user": {}}]), "every entry of a kubeconfig's users needs a name"),
        (document(users={}), "no user"),
        (document(users={"a": 1}), "users must be a list"),
    ],
)
def test_mistakes_are_told_in_one_line(content: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load(kubeconfig=content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"), [("a: [", "is not YAML"), ("- a", "must hold a mapping"), ("", "current-context is not set")]
)
def test_files_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load(kubeconfig=write(tmp_path / "config", text))
    assert "\n" not in str(caught.value)


def test_nothing_is_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"set KUBECONFIG, create ~/.kube/config, or run inside a cluster"):
        load()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "absent"))
    with pytest.raises(ConfigError, match=r"no kubeconfig at .*absent"):
        load()


async def test_in_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConfigError, match="no service account token"):
        in_cluster(tmp_path)
    for name, content in (("token", "tok"), ("ca.crt", "PEM"), ("namespace", "apps\n")):
        write(tmp_path / name, content)
    config = in_cluster(tmp_path)
    assert (config.server, config.namespace, config.tls.ca_data) == ("https://[fd00::1]:443", "apps", "PEM")
    assert await header(config) == "Bearer tok"
