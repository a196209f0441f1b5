"""What is loaded into a test's API server, and other users of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.testing import ApiServer
from steersman.testing.apiserver import fresh_server

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


@pytest.fixture(scope="module")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with fresh_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "there are no objects in it"),
        ("---\n# nothing\n", "there are no objects in it"),
        ("{apiVersion: v1, kind: List, items: []}\n---\nkind: Pod\n", "document 2 has no apiVersion"),
        ("apiVersion: v1\n", "document 1 has no kind"),
        ("- a\n", "document 1 is no object: "),
        ("{apiVersion: v1, kind: Pod}", r"document 1 \(Pod\) has no metadata.name"),
        ("{apiVersion: v1, kind: List}", "document 1 is a List without items"),
        ("{apiVersion: v1, kind: List, items: [3]}", r"document 1, items\[0\] is no object: 3"),
        ("---\n---\na: [", "document 2 is not YAML: "),
    ],
)
def test_what_is_wrong_with_a_file_names_it(apiserver: ApiServer, tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "it.yaml").write_text(content)
    with pytest.raises(ValueError, match=f"it.yaml: {told}"):
        apiserver.load(tmp_path)


def test_a_directory_without_manifests(apiserver: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(ValueError, match=r"there is no file here that ends in \.yaml, \.yml, \.json"):
        apiserver.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"absent\.yaml"):
        apiserver.load(tmp_path / "absent.yaml")


@pytest.mark.parametrize("source", [3, None, [MAP], int, b"a.yaml"])
def test_what_can_not_be_loaded(apiserver: ApiServer, source: Any) -> None:
    with pytest.raises(TypeError, match="files, directories, objects and model classes can be loaded, not "):
        apiserver.load(source)


def test_what_can_be_loaded(apiserver: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "it.json").write_text('{"apiVersion": "v1", "kind": "List", "items": []}')
    assert apiserver.load(tmp_path) == []
    assert [found["metadata"]["name"] for found in apiserver.load(MAP)] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": ""}, ValueError),
        ({"name": " alice"}, ValueError),
        ({"name": "a\r\nb"}, ValueError),
        ({"name": None}, TypeError),
        ({"name": "alice", "groups": "team"}, TypeError),
        ({"name": "alice", "groups": [""]}, ValueError),
        ({"name": "alice", "groups": [3]}, TypeError),
    ],
)
def test_users_that_are_none(apiserver: ApiServer, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^(the name of a user or group is|groups is) "):
        apiserver.user(**arguments)


def test_a_user_whose_name_is_no_object_name(apiserver: ApiServer) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    assert apiserver.user("system:serviceaccount:default:Robot", rules).impersonate is not None
