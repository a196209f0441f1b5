"""What scenarios need: a control plane, a webhook server, the recorded users; the list of those not passing yet."""

from __future__ import annotations

import json
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from steersman.net.pki import ServerFiles

from ..conftest import TOKENS, running
from .player import Patience, Player, Target
from .webhook import Webhook, serving

SCENARIOS = Path(__file__).parent / "scenarios"
LIST_FILE = Path(__file__).parent / "not_passing_yet.toml"
IMPATIENT = Patience(sleep=0.1, wait=0.5, events=0.5, request=5.0)  # for those that are known to fail


def scenario_names() -> list[str]:
    """`folder/name` of each scenario."""
    return sorted(path.relative_to(SCENARIOS).with_suffix("").as_posix() for path in SCENARIOS.rglob("*.json"))


def not_passing_yet() -> dict[str, int]:
    """The listed scenarios, each with the number of the issue that will bring it."""
    listed = tomllib.loads(LIST_FILE.read_text()) if LIST_FILE.exists() else {}
    return {name: int(issue) for issue, names in listed.items() for name in names}


@dataclass
class Stage:
    """Plays scenarios by name; several may be played at a time."""

    target: Target
    webhook: Webhook

    async def play(self, name: str, patience: Patience) -> list[str]:
        """Every difference from what was recorded, a line each."""
        scenario = json.loads((SCENARIOS / f"{name}.json").read_text())
        return await Player(self.target, self.webhook, patience).play(scenario)


@asynccontextmanager
async def set_up(certificates: ServerFiles, directory: Path) -> AsyncIterator[Stage]:
    """A stage with a control plane of its own on a memory store."""
    tokens = {user.name: token for token, user in TOKENS.items()}
    async with running(certificates, directory) as server, serving() as webhook, server.session(None) as session:
        yield Stage(Target(session, tokens), webhook)
