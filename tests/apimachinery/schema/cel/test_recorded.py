"""Expressions, as a kube-apiserver judged them when definitions and objects were created with them.

`record.py` asks one anew.
"""

from __future__ import annotations

import json

import pytest
from tests.conftest import RunningServer

from .differential import ask_all, asking
from .recordings import COSTS, EXPRESSIONS, Recording

_PARTS = 4


@pytest.mark.parametrize("part", range(_PARTS))
@pytest.mark.parametrize("recording", [EXPRESSIONS, COSTS], ids=lambda each: str(each.name))
async def test_answers_are_as_recorded(apiserver: RunningServer, recording: Recording, part: int) -> None:
    expected = json.loads(recording.answers.read_text())[part::_PARTS]
    expressions = [each["expression"] for each in expected]
    assert expressions == recording.expressions()[part::_PARTS]
    async with apiserver.session() as session:
        ask = asking(session)
        found = await ask_all(ask, recording.schema, recording.inputs, expressions, size=recording.size)
    records = [each.record() for each in found]
    different = [f"{ours}\n  was {theirs}" for ours, theirs in zip(records, expected, strict=True) if ours != theirs]
    assert not different, "\n".join(different)
