"""Flags about service-account tokens."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from steersman.apiserver.authn.service_accounts import ServiceAccountConfig
from steersman.apiserver.authn.signing_keys import generate, public_keys
from steersman.controlplane.service_account_flags import add_flags, configuration
from steersman.net.pki import create_ca


def read(directory: Path, *arguments: str) -> ServiceAccountConfig:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_flags(parser, lambda text: text == "true")
    return configuration(parser.parse_args(arguments), directory)


def test_without_flags_a_key_is_made_at_its_first_use(tmp_path: Path) -> None:
    config = read(tmp_path)
    assert config.issuers == ("https://kubernetes.default.svc",)
    assert not list(tmp_path.iterdir())
    made = config.keys().signing.id
    assert [path.name for path in tmp_path.iterdir()] == ["sa.key"]
    assert read(tmp_path).keys().signing.id == made


def test_named_keys_sign_and_verify(tmp_path: Path) -> None:
    for name in ("new", "old"):
        (tmp_path / name).write_bytes(generate())
    files = ("--service-account-signing-key-file", f"{tmp_path}/new", "--service-account-key-file", f"{tmp_path}/old")
    keys = read(tmp_path, *files).keys()
    assert keys.verifying[0].id == keys.signing.id
    assert len(keys.verifying) == 2


def test_several_issuers_and_audiences(tmp_path: Path) -> None:
    issuers = ("--service-account-issuer", "https://a", "--service-account-issuer", "https://b")
    config = read(tmp_path, *issuers, "--api-audiences", "x, y", "--service-account-max-token-expiration", "24h")
    assert (config.issuers, config.audiences, config.max_seconds) == (("https://a", "https://b"), ("x", "y"), 86400)


def test_a_key_and_its_certificate_are_used_without_loading_what_reads_keys(tmp_path: Path) -> None:
    """Its import would be a good part of a server's start."""
    signer = create_ca("signer")
    (tmp_path / "sa.key").write_bytes(signer.key)
    (tmp_path / "sa.crt").write_bytes(signer.cert)
    files = ("--service-account-signing-key-file", f"{tmp_path}/sa.key")
    files += ("--service-account-key-file", f"{tmp_path}/sa.crt")
    code = (
        "import argparse, pathlib, sys\n"
        "from steersman.controlplane.service_account_flags import add_flags, configuration\n"
        "parser = argparse.ArgumentParser(); add_flags(parser, bool)\n"
        "configuration(parser.parse_args(), pathlib.Path()); print('cryptography' in sys.modules)"
    )
    command = [sys.executable, "-c", code, *files]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "False\n"
    assert [key.id for key in read(tmp_path, *files).keys().verifying] == [public_keys(signer.cert)[0].id]


def test_a_file_beside_a_good_pair_is_looked_at(tmp_path: Path) -> None:
    signer = create_ca("signer")
    for name, content in (("sa.key", signer.key), ("sa.crt", signer.cert), ("text", b"no key")):
        (tmp_path / name).write_bytes(content)
    files = ("--service-account-signing-key-file", f"{tmp_path}/sa.key")
    for name in ("sa.crt", "text"):
        files += ("--service-account-key-file", f"{tmp_path}/{name}")
    with pytest.raises(ValueError, match=f"--service-account-key-file {tmp_path}/text cannot be used: it holds no key"):
        read(tmp_path, *files)


@pytest.mark.parametrize("flag", ["--service-account-signing-key-file", "--service-account-key-file"])
def test_files_that_are_no_keys_are_named(tmp_path: Path, flag: str) -> None:
    (tmp_path / "text").write_text("no key")
    for name, why in (("absent", "No such file"), ("text", "it holds no")):
        with pytest.raises(ValueError, match=f"{flag} {tmp_path}/{name} cannot be used: {why}"):
            read(tmp_path, flag, f"{tmp_path}/{name}")


@pytest.mark.parametrize("text", ["soon", "1m", "2000000h"])
def test_a_longest_life_is_an_hour_at_least(tmp_path: Path, text: str) -> None:
    with pytest.raises(argparse.ArgumentError):
        read(tmp_path, "--service-account-max-token-expiration", text)
