"""The plugins are real programs: Python scripts that count how often they ran."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from steersman.client import CredentialsError
from steersman.client.config.exec_plugin import ExecConfig, ExecCredentials

V1 = "client.authentication.k8s.io/v1"
START = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)

SCRIPT = """
import json, os, pathlib, sys
runs = pathlib.Path({runs!r})
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
count = len(runs.read_text())
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
pathlib.Path({info!r}).write_text(json.dumps([info, os.environ.get("EXTRA"), sys.argv[1:]]))
status = json.loads({status!r}.replace("COUNT", str(count)))
print(json.dumps({{"kind": "ExecCredential", "apiVersion": {version!r} or info["apiVersion"], "status": status}}))
"""


class Plugin:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.now = START

    def make(self, status: dict[str, Any], version: str = "", **config: Any) -> ExecCredentials:
        script = self._directory / "plugin.py"
        runs, info = str(self._directory / "runs"), str(self._directory / "info")
        script.write_text(SCRIPT.format(runs=runs, info=info, status=json.dumps(status), version=version))
        options = {"api_version": V1, "interactive_mode": "Never", "args": (str(script), "--login"), **config}
        return ExecCredentials(ExecConfig(sys.executable, **options), lambda: self.now)

    @property
    def runs(self) -> int:
        return len((self._directory / "runs").read_text())

    @property
    def told(self) -> list[Any]:
        told: list[Any] = json.loads((self._directory / "info").read_text())
        return told


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return Plugin(tmp_path)


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
async def test_the_plugin_is_told_what_the_protocol_says(plugin: Plugin, version: str) -> None:
    cluster = {"server": "https://x"}
    credentials = plugin.make({"token": "t"}, api_version=version, env={"EXTRA": "e"}, cluster=cluster)
    assert await credentials.authorization() == "Bearer t"
    spec = {"interactive": False, "cluster": cluster}
    assert plugin.told == [{"kind": "ExecCredential", "apiVersion": version, "spec": spec}, "e", ["--login"]]


async def test_many_requests_share_one_run(plugin: Plugin) -> None:
    credentials = plugin.make({"token": "COUNT"})
    tokens = await asyncio.gather(*[credentials.authorization() for _ in range(50)])
    assert set(tokens) == {"Bearer 1"}
    assert plugin.runs == 1


async def test_expired_credentials_are_fetched_again_once(plugin: Plugin) -> None:
    expires = (START + timedelta(seconds=2)).isoformat(timespec="microseconds")
    credentials = plugin.make({"token": "COUNT", "expirationTimestamp": expires})
    assert await credentials.authorization() == "Bearer 1"
    plugin.now += timedelta(seconds=2)
    assert await credentials.authorization() == "Bearer 1"
    plugin.now += timedelta(milliseconds=1)
    assert await credentials.authorization() == "Bearer 2"


async def test_refused_credentials_are_fetched_again_once_for_all_who_used_them(plugin: Plugin) -> None:
    credentials = plugin.make({"token": "COUNT"})
    used = await credentials.authorization()
    assert await asyncio.gather(*[credentials.refused(used) for _ in range(20)]) == [True] * 20
    assert await credentials.authorization() == "Bearer 2"
    assert plugin.runs == 2


async def test_credentials_that_do_not_change_are_not_worth_another_try(plugin: Plugin) -> None:
    credentials = plugin.make({"token": "same"})
    assert not await credentials.refused(await credentials.authorization())


async def test_a_client_certificate(plugin: Plugin) -> None:
    credentials = plugin.make({"clientCertificateData": "CERT", "clientKeyData": "KEY"})
    pair = await credentials.certificate()
    assert pair is not None
    assert (pair.certificate, pair.key) == (b"CERT", b"KEY")
    assert await credentials.authorization() is None
    assert not await credentials.refused(None, pair)
    assert await credentials.certificate() is pair
    assert plugin.runs == 2


async def test_a_refused_certificate_is_fetched_again_once_for_all_who_showed_it(plugin: Plugin) -> None:
    credentials = plugin.make({"clientCertificateData": "COUNT", "clientKeyData": "KEY"})
    used = await credentials.certificate()
    assert await asyncio.gather(*[credentials.refused(None, used) for _ in range(20)]) == [True] * 20
    fresh = await credentials.certificate()
    assert fresh is not None
    assert fresh.certificate == b"2"
    assert plugin.runs == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: p.make({}), "did not return a token or cert/key pair"),
        (lambda p: p.make({"clientKeyData": "K"}), "only certificate or key, not both"),
        (lambda p: p.make({"token": "t"}, version="v9"), "is configured for .*/v1, but returned v9"),
        (lambda p: p.make({"token": "t", "expirationTimestamp": "soon"}), "'soon' is no RFC 3339 time"),
        (lambda p: p.make({}, args=("-c", "print('hello')")), "did not print JSON"),
        (lambda p: p.make({}, args=("-c", "print('{}')")), "did not print an ExecCredential"),
        (lambda p: p.make({}, args=("-c", "raise SystemExit(3)")), "failed with exit code 3"),
        (lambda p: p.make({}, interactive_mode="Always"), "needs a terminal"),
    ],
)
async def test_what_may_go_wrong(plugin: Plugin, make: Callable[[Plugin], ExecCredentials], message: str) -> None:
    with pytest.raises(CredentialsError, match=message):
        await make(plugin).authorization()


async def test_a_missing_plugin_says_how_to_install_it() -> None:
    config = ExecConfig("/absent/login", V1, interactive_mode="Never", install_hint="try: install login\n")
    with pytest.raises(CredentialsError, match=r"^cannot run the exec plugin /absent/login: .*; try: install login$"):
        await ExecCredentials(config).authorization()
