"""What scenarios need: a control plane, a webhook server, the recorded users; the list of those not passing yet."""

from __future__ import annotations

import json
import tomllib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from steersman.apiserver.authn.service_accounts import ServiceAccountConfig
from steersman.apiserver.authn.signing_keys import generated
from steersman.net.pki import ServerFiles

from .. import etcd
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
        yield Stage(Target([session], tokens), webhook)


@asynccontextmanager
async def set_up_several(certificates: ServerFiles, directory: Path, program: Path) -> AsyncIterator[Stage]:
    """A stage with two control planes on one etcd; each request goes to any of them."""
    tokens = {user.name: token for token, user in TOKENS.items()}
    accounts = ServiceAccountConfig(keys=cache(generated))  # who asks one server must be known to the other
    async with AsyncExitStack() as stack:
        cluster = await stack.enter_async_context(etcd.etcd(program, directory))
        sessions = []
        for name in ("one", "other"):
            place = directory / name
            place.mkdir()
            server = await stack.enter_async_context(
                running(certificates, place, cluster.url, service_accounts=accounts)
            )
            sessions.append(await stack.enter_async_context(server.session(None)))
        yield Stage(Target(sessions, tokens), await stack.enter_async_context(serving()))
