"""A control plane in a thread, for code that blocks."""

from __future__ import annotations

import json
import urllib.request

import pytest

from steersman.store.interface import StoreError
from steersman.testing import control_plane


def get(url: str) -> dict:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def test_blocking_code_talks_to_it() -> None:
    with control_plane() as plane:
        names = [item["metadata"]["name"] for item in get(f"{plane.url}/api/v1/namespaces")["items"]]
        assert names == ["default", "kube-node-lease", "kube-public", "kube-system"]


def test_two_run_side_by_side() -> None:
    with control_plane() as one, control_plane() as other:
        assert one.url != other.url
        uids = {get(f"{plane.url}/api/v1/namespaces/default")["metadata"]["uid"] for plane in (one, other)}
        assert len(uids) == 2


def test_it_is_gone_when_the_block_ends() -> None:
    with control_plane() as plane:
        url = plane.url
    with pytest.raises(OSError):
        get(f"{url}/readyz")


def test_what_keeps_it_from_starting_is_raised() -> None:
    with pytest.raises(StoreError, match="unknown kind of store"), control_plane("redis://localhost"):
        pass


def test_the_kubeconfig_file(tmp_path) -> None:
    with control_plane() as plane:
        path = tmp_path / "kubeconfig"
        plane.write_kubeconfig(path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert json.loads(path.read_text())["clusters"][0]["cluster"]["server"] == plane.url
