"""Values are encrypted as kube-apiserver does it."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.apiserver.encryption.ciphers import AESCBC, AESGCM, Cipher, FirstOf, Identity, Secretbox, Undecipherable
from steersman.apiserver.encryption.configuration import read_configuration
from steersman.apiserver.encryption.store import EncryptedStore
from steersman.apiserver.foreign import canonical
from steersman.store.memory import MemoryStore

HERE = Path(__file__).parent
RECORDED: dict[str, str] = json.loads((HERE / "recorded.json").read_text())["values"]
CIPHERS: list[Cipher] = [
    AESGCM(b"k" * 16),
    AESGCM(b"k" * 32),
    AESCBC(b"k" * 24),
    AESCBC(b"k" * 32),
    Secretbox(b"k" * 32),
]
PLACE = b"/registry/secrets/default/a"


@given(st.sampled_from(CIPHERS), st.binary(max_size=200))
def test_any_value_comes_back(cipher: Cipher, value: bytes) -> None:
    encrypted = cipher.encrypt(value, PLACE)
    assert cipher.decrypt(encrypted, PLACE) == (value, False)
    assert len(value) < 8 or value not in encrypted
    assert cipher.encrypt(value, PLACE) != encrypted


@given(st.sampled_from(CIPHERS), st.binary(max_size=200))
def test_anything_else_is_undecipherable_or_some_value(cipher: Cipher, data: bytes) -> None:
    try:
        value, _ = cipher.decrypt(data, PLACE)
    except Undecipherable:
        return
    assert isinstance(cipher, AESCBC) and len(value) < len(data)


@pytest.mark.parametrize("cipher", [AESGCM(b"k" * 16), Secretbox(b"k" * 32)])
def test_a_changed_value_is_noticed(cipher: Cipher) -> None:
    encrypted = cipher.encrypt(b"value", PLACE)
    for place in range(len(encrypted)):
        changed = encrypted[:place] + bytes((encrypted[place] ^ 1,)) + encrypted[place + 1 :]
        with pytest.raises(Undecipherable):
            cipher.decrypt(changed, PLACE)


def test_aesgcm_binds_a_value_to_its_place() -> None:
    cipher = AESGCM(os.urandom(32))
    with pytest.raises(Undecipherable, match="cipher: message authentication failed"):
        cipher.decrypt(cipher.encrypt(b"value", PLACE), PLACE + b"b")


def test_values_of_earlier_keys_are_read_and_are_stale() -> None:
    new, old = AESGCM(b"n" * 32), AESGCM(b"o" * 32)
    before = FirstOf([(b"k8s:enc:gcm:", FirstOf([(b"old:", old)], "no key")), (b"", Identity())], "no prefix")
    after = FirstOf(
        [(b"k8s:enc:gcm:", FirstOf([(b"new:", new), (b"old:", old)], "no key")), (b"", Identity())], "no prefix"
    )
    encrypted = before.encrypt(b"value", PLACE)
    assert encrypted.startswith(b"k8s:enc:gcm:old:")
    assert before.decrypt(encrypted, PLACE) == (b"value", False)
    assert after.decrypt(encrypted, PLACE) == (b"value", True)
    assert after.decrypt(b"never encrypted", PLACE) == (b"never encrypted", True)
    assert after.encrypt(b"value", PLACE).startswith(b"k8s:enc:gcm:new:")
    with pytest.raises(Undecipherable, match=r"^no key$"):
        before.decrypt(after.encrypt(b"value", PLACE), PLACE)
    with pytest.raises(Undecipherable, match=r"^no prefix$"):
        FirstOf([(b"gcm:", new)], "no prefix").decrypt(b"other", PLACE)


def test_a_provider_that_is_named_twice_is_tried_with_each_key() -> None:
    one, two = AESCBC(b"1" * 32), Secretbox(b"2" * 32)
    both = FirstOf([(b"p:", one), (b"p:", two)], "no prefix")
    assert both.decrypt(b"p:" + two.encrypt(b"value", PLACE), PLACE) == (b"value", True)
    with pytest.raises(Undecipherable, match=r"^\[the stored data .*, the stored data was shorter .*\]$|^the stored"):
        both.decrypt(b"p:x", PLACE)


@pytest.mark.parametrize("key", RECORDED)
async def test_what_kube_apiserver_has_stored_is_read(key: str) -> None:
    raw = MemoryStore()
    store = EncryptedStore(raw, read_configuration((HERE / "configuration.yaml").read_bytes()), "/deep")
    stored = base64.b64decode(RECORDED[key])
    assert stored.startswith(b"k8s:enc:")
    await raw.swap(key.encode(), 0, stored)
    found = await store.get(key.encode())
    assert found is not None
    name = json.loads(canonical(found.value))["metadata"]["name"]
    assert key.endswith(f"/{name}")
    elsewhere = EncryptedStore(raw, read_configuration((HERE / "configuration.yaml").read_bytes()))
    readable = await elsewhere.get(key.encode()) is not None
    assert readable != stored.startswith(b"k8s:enc:aesgcm:")
    assert await store.is_stale(key.encode()) is False


async def test_each_resource_is_encrypted_as_the_file_says() -> None:
    raw = MemoryStore()
    store = EncryptedStore(raw, read_configuration((HERE / "configuration.yaml").read_bytes()))
    expected = {
        b"/registry/secrets/default/a": b"k8s:enc:aesgcm:v1:one:",
        b"/registry/configmaps/default/a": b"k8s:enc:aescbc:v1:two:",
        b"/registry/leases/kube-system/a": b"k8s:enc:aescbc:v1:two:",
        b"/registry/minions/a": b"k8s:enc:secretbox:v1:three:",
        b"/registry/services/specs/default/a": b"k8s:enc:secretbox:v1:three:",
        b"/registry/example.com/secrets/default/a": b"k8s:enc:secretbox:v1:three:",
    }
    for key, prefix in expected.items():
        await store.swap(key, 0, b"value")
        stored = await raw.get(key)
        assert stored is not None and stored.value.startswith(prefix), key
    assert {item.value for item in (await store.range(b"", b"\xff")).items} == {b"value"}
