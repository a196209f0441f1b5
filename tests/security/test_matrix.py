"""The security matrix, played against a server: each cell as a kube-apiserver answered it."""

from __future__ import annotations

import json

from tests.conftest import RunningServer
from tests.security.matrix import ACTIONS, RECORDED, SUBJECTS, Target, connect, play


async def test_everyone_is_answered_as_recorded(apiserver: RunningServer) -> None:
    recorded = json.loads(RECORDED.read_text())
    texts, expected = recorded["texts"], recorded["answers"]
    assert recorded["subjects"] == [subject.name for subject in SUBJECTS]
    assert list(expected) == [str(action) for action in ACTIONS]
    async with connect(apiserver.url, apiserver.ssl) as session:
        target = Target(session)
        await target.prepare()
        answers = await play(target, ACTIONS)
    different = [
        f"{action}\n    as {subject.name}: {got}\n    recorded: {texts[index]}"
        for action, row in zip(ACTIONS, answers, strict=True)
        for subject, got, index in zip(SUBJECTS, row, expected[str(action)], strict=True)
        if got != texts[index]
    ]
    assert not different, f"{len(different)} cells differ:\n" + "\n".join(different[:40])
