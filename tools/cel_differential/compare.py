"""Asks two API servers about expressions made at random, and prints where they differ.

python -m tools.cel_differential.compare [--count 1200] [--seed 1] URL TOKEN CA_FILE URL TOKEN CA_FILE

Two thirds of the expressions are well typed, the others have something wrong. Definitions named `check*` and `subject*`
in cel.example.com are created for it, and deleted. How to run the servers is told in CONTRIBUTING.md.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from random import Random

from tests.apimachinery.schema.cel.differential import Finding, ask_all, server
from tests.apimachinery.schema.cel.grammar import Grammar
from tests.apimachinery.schema.cel.recordings import EXPRESSIONS


def expressions(count: int, seed: int) -> list[str]:
    """That many different expressions, the same for the same seed."""
    grammar = Grammar(Random(seed))
    made: dict[str, None] = {}
    while len(made) < count:
        text = grammar.broken(2) if len(made) % 3 == 2 else grammar.expression(grammar.random.randint(1, 4))
        # a body in JSON cannot carry half a character
        if text.strip() and text.isprintable():
            made[text] = None
    return list(made)


async def ask(url: str, token: str, ca: bytes, sources: list[str]) -> list[Finding]:
    async with server(url, token, ca) as asking:
        return await ask_all(asking, EXPRESSIONS.schema, EXPRESSIONS.inputs, sources)


async def main(servers: list[tuple[str, str, bytes]], count: int, seed: int) -> int:
    """How many expressions the servers differ about."""
    sources = expressions(count, seed)
    first, second = await asyncio.gather(*(ask(*each, sources) for each in servers))
    different = 0
    for mine, theirs in zip(first, second, strict=True):
        if mine.record() != theirs.record():
            different += 1
            print(f"{mine.expression}\n  1: {mine.record()}\n  2: {theirs.record()}")
    print(f"{different} of {count} differ (seed {seed})")
    return different


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("servers", nargs=6)
    parser.add_argument("--count", type=int, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    triples = [(given.servers[at], given.servers[at + 1], Path(given.servers[at + 2]).read_bytes()) for at in (0, 3)]
    sys.exit(1 if asyncio.run(main(triples, given.count, given.seed)) else 0)
