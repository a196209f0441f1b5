"""Records what a kube-apiserver says about the expressions in `recorded/`.

python -m tests.apimachinery.schema.cel.record https://127.0.0.1:6443 TOKEN CA_FILE
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from .differential import ask_all, dump, server
from .recordings import COSTS, EXPRESSIONS


async def main(url: str, token: str, ca: bytes) -> None:
    async with server(url, token, ca) as ask:
        for each in (EXPRESSIONS, COSTS):
            findings = await ask_all(ask, each.schema, each.inputs, each.expressions(), size=each.size)
            each.answers.write_text(dump(findings))
            print(f"{each.answers.name}: {len(findings)} expressions")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]).read_bytes()))
