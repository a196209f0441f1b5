"""OwnerReferencesPermissionEnforcement as a kube-apiserver that has it enabled answers."""

from __future__ import annotations

import json
from pathlib import Path

from steersman.net.pki import ServerFiles

from ...conformance.player import Patience, Player, Target
from ...conformance.webhook import serving
from ...conftest import TOKENS, running

RECORDED = Path(__file__).parent / "recorded" / "owner-permissions.json"
NAME = "OwnerReferencesPermissionEnforcement"


async def test_owners_need_permissions(certificates: ServerFiles, tmp_path: Path) -> None:
    tokens = {user.name: token for token, user in TOKENS.items()}
    scenario = json.loads(RECORDED.read_text())
    started = running(certificates, tmp_path, enabled_plugins=frozenset({NAME}))
    async with started as server, serving() as webhook, server.session(None) as session:
        assert await Player(Target([session], tokens), webhook, Patience()).play(scenario) == []


async def test_it_is_off_unless_it_is_enabled(certificates: ServerFiles, tmp_path: Path) -> None:
    tokens = {user.name: token for token, user in TOKENS.items()}
    scenario = json.loads(RECORDED.read_text())
    async with running(certificates, tmp_path) as server, serving() as webhook, server.session(None) as session:
        differences = await Player(Target([session], tokens), webhook, Patience()).play(scenario)
    assert any("got 201, expected 403" in line for line in differences)
