"""Records the security matrix: `python -m tests.security.record URL CA_FILE`, URL being a kube-apiserver's.

The server needs the tokens of tests/conformance/record.py, RBAC, and a controller that aggregates ClusterRoles. It
keeps what the matrix creates. Nothing is written where two runs differ.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from steersman.net.tls import client_ssl_context

from .matrix import ACTIONS, RECORDED, SUBJECTS, Target, connect, play


async def main(url: str, ca: bytes) -> int:
    """Returns the exit status."""
    async with connect(url, client_ssl_context(ca)) as session:
        target = Target(session)
        await target.prepare()
        first, second = await play(target, ACTIONS), await play(target, ACTIONS)
    unstable = [str(action) for action, one, other in zip(ACTIONS, first, second, strict=True) if one != other]
    if unstable:
        print("two runs differ:", *unstable, sep="\n", file=sys.stderr)
        return 1
    texts = list(dict.fromkeys(answer for answers in first for answer in answers))
    index = {text: number for number, text in enumerate(texts)}
    rows = [
        f"{json.dumps(str(action))}: {json.dumps([index[answer] for answer in answers], separators=(',', ':'))}"
        for action, answers in zip(ACTIONS, first, strict=True)
    ]
    written = {"subjects": [json.dumps(subject.name) for subject in SUBJECTS], "texts": [json.dumps(t) for t in texts]}
    parts = [f"{json.dumps(key)}: [\n{_lines(values)}\n]" for key, values in written.items()]
    RECORDED.write_text(f'{{{_lines(parts)},\n"answers": {{\n{_lines(rows)}\n}}}}\n')
    print(f"{len(ACTIONS) * len(SUBJECTS)} cells, {len(texts)} different answers")
    return 0


def _lines(values: list[str]) -> str:
    return ",\n".join(values)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1], Path(sys.argv[2]).read_bytes())))
