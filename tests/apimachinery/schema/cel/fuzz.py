"""Looks for expressions that something else than CEL's own errors comes out of, for as long as it is told.

python -m tests.apimachinery.schema.cel.fuzz [SECONDS] [SEED]
"""

from __future__ import annotations

import sys
import time
from random import Random

from .grammar import Grammar
from .test_laws import attempt


def main(seconds: float, seed: int) -> None:
    grammar = Grammar(Random(seed))
    end, count, slowest = time.monotonic() + seconds, 0, (0.0, "")
    while time.monotonic() < end:
        depth = grammar.random.randint(0, 6)
        source = grammar.broken(depth) if count % 2 else grammar.expression(depth)
        start = time.monotonic()
        try:
            attempt(source)
        except BaseException:
            print(f"seed {seed}, number {count}: {source}")
            raise
        slowest = max(slowest, (time.monotonic() - start, source))
        count += 1
    print(f"{count} expressions (seed {seed}); the slowest took {slowest[0] * 1000:.0f} ms: {slowest[1][:200]}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
