"""Backup files: what was written is read back, and nothing else is taken for it."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.store.backup import Backup, BackupError, BackupWriter
from steersman.store.interface import KeyValue

ITEMS = [
    KeyValue(b"/registry/b", b"2", 3, 9),
    KeyValue(b"/registry/a", b"1" * 5000, 7, 7),
    KeyValue(b"/registry/empty", b"", 8, 8),
]


def write(path: Path, items: list[KeyValue] = ITEMS, *, force: bool = False) -> Path:
    with BackupWriter(path, 10, "/root", force=force) as writer:
        for item in items:
            writer.add(item)
    return path


def test_what_was_written_is_read_in_the_order_of_its_revisions(tmp_path: Path) -> None:
    path = write(tmp_path / "backup")
    with Backup(path) as backup:
        assert (backup.manifest.revision, backup.manifest.root, backup.keys, backup.distinct) == (10, "/root", 3, True)
        assert [item.mod_revision for item in backup.items()] == [7, 8, 9]
        assert sorted(backup.items(), key=lambda item: item.key) == sorted(ITEMS, key=lambda item: item.key)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["backup"]


@given(
    st.lists(
        st.builds(
            KeyValue,
            st.binary(min_size=1, max_size=40),
            st.binary(max_size=300),
            st.integers(1, 2**63),
            st.integers(1, 2**63),
        ),
        max_size=12,
    )
)
def test_any_keys_and_values_come_back(tmp_path_factory: pytest.TempPathFactory, items: list[KeyValue]) -> None:
    path = write(tmp_path_factory.mktemp("any") / "backup", items)
    with Backup(path) as backup:
        assert list(backup.items()) == sorted(items, key=lambda item: item.mod_revision)
        assert backup.distinct == (len({item.mod_revision for item in items}) == len(items))


def test_any_changed_byte_and_any_cut_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "backup", [KeyValue(b"/registry/a", b"value", 2, 2)])
    whole = path.read_bytes()
    for place in range(len(whole)):
        for damaged in (whole[:place], whole[:place] + bytes((whole[place] ^ 1,)) + whole[place + 1 :]):
            path.write_bytes(damaged)
            with pytest.raises(BackupError) as raised:
                Backup(path)
            assert "\n" not in str(raised.value)
    path.write_bytes(whole)
    with Backup(path) as backup:
        assert backup.keys == 1


def test_a_file_is_replaced_only_when_that_is_wanted(tmp_path: Path) -> None:
    path = write(tmp_path / "backup")
    before = path.read_bytes()
    with pytest.raises(BackupError, match=r"exists; choose another file, or overwrite it with --force"):
        write(path, [])
    assert path.read_bytes() == before
    write(path, [], force=True)
    with Backup(path) as backup:
        assert backup.keys == 0


def test_a_backup_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), BackupWriter(tmp_path / "backup", 1) as writer:
        writer.add(ITEMS[0])
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == []
    with pytest.raises(BackupError, match=r"cannot write to .*: No such file or directory"):
        write(tmp_path / "missing" / "backup")
    with pytest.raises(BackupError, match="is a directory"):
        write(tmp_path)


def test_other_files_are_no_backups(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for text in (b"", b"hello\n", b"SQLite format 3\0" * 100):
        path.write_bytes(text)
        with pytest.raises(BackupError, match=r"is not a backup|is damaged or cut off"):
            Backup(path)
    with pytest.raises(BackupError, match=r"cannot read .*: No such file"):
        Backup(tmp_path / "missing")


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "backup")
    changed = path.read_bytes()[:-32].replace(b"steersman-backup 1\n", b"steersman-backup 2\n")
    path.write_bytes(changed + hashlib.sha256(changed).digest())
    with pytest.raises(BackupError, match="another format"):
        Backup(path)
