"""Records scenarios: `python -m tests.conformance.record URL TOKENS_CSV CA_FILE FILE.yaml ...`.

Plays each on the kube-apiserver at URL, twice, and writes FILE.json: its steps, each with the normalised answer as
`expect`. Nothing is written where the two runs differ. TOKENS_CSV is the file of that server's --token-auth-file, with
the users admin (in system:masters), alice (in devs) and bob; the webhook is called on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from steersman.apiserver.authn.tokens import parse_token_file
from steersman.apiserver.authn.user import UserInfo
from steersman.net.tls import client_ssl_context

from .normalise import Normaliser, differences
from .player import Patience, Player, Scenario, Step, Target
from .webhook import Webhook, serving

PATIENCE = Patience(sleep=60.0, wait=60.0)


class Recorder(Player):
    """Keeps what the steps are answered, instead of comparing it."""

    recorded: list[Any]

    def _compare(self, steps: list[Step], answers: list[Any]) -> list[str]:
        normalise = Normaliser(self._variables, "".join(self._sent), answers)
        self.recorded = [normalise(answer) for answer in answers]
        return []


class UnstableError(Exception):
    """The scenario cannot be recorded; the message says why."""


async def record(scenario: Scenario, target: Target, webhook: Webhook) -> Scenario:
    """The scenario with what it is answered. Raises UnstableError when two runs differ or wait in vain."""
    runs = []
    for _ in range(2):
        recorder = Recorder(target, webhook, PATIENCE)
        if problems := await recorder.play(scenario):
            raise UnstableError("\n".join(problems))
        runs.append(recorder.recorded)
    if found := differences(*runs):
        raise UnstableError("\n".join(["two runs differ:", *found]))
    return {**scenario, "steps": [_with(step, each) for step, each in zip(scenario["steps"], runs[0], strict=True)]}


def _with(step: Step, answer: Any) -> Step:
    return {**{key: value for key, value in step.items() if key != "expect"}, "expect": answer}


async def record_files(target: Target, files: list[str]) -> int:
    """Record each; returns how many could not be."""
    failures = 0
    async with serving() as webhook:
        for file in map(Path, files):
            try:
                recorded = await record(yaml.safe_load(file.read_text()), target, webhook)
            except UnstableError as error:
                failures += 1
                print(f"{file}: {error}", file=sys.stderr)
            else:
                file.with_suffix(".json").write_text(json.dumps(recorded, indent=1) + "\n")
    return failures


async def main(url: str, users: Mapping[str, UserInfo], ca: bytes, files: list[str]) -> int:
    """Returns the exit status."""
    tokens = {user.name: token for token, user in users.items()}
    connector = aiohttp.TCPConnector(ssl=client_ssl_context(ca), limit=0)
    async with aiohttp.ClientSession(url, connector=connector) as session:
        return min(1, await record_files(Target([session], tokens), files))


if __name__ == "__main__":
    given_url, token_file, ca_file, *scenarios = sys.argv[1:]
    known = parse_token_file(Path(token_file).read_text(), token_file)
    sys.exit(asyncio.run(main(given_url, known, Path(ca_file).read_bytes(), scenarios)))
