"""Measure a store: durable swaps per second by the number of concurrent writers, point reads, ranges, memory.

python bench/store.py --store sqlite:////tmp/bench.db --writers 1 16 64 --seconds 3
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle

import uvloop

from steersman.store.interface import Store
from steersman.store.urls import open_store

PREFIX, END = b"/registry/example.com/widgets/", b"/registry/example.com/widgets0"


def key(number: int) -> bytes:
    return PREFIX + b"namespace-%d/widget-%06d" % (number % 10, number)


async def writer(
    store: Store, numbers: Iterator[int], known: dict[bytes, int], value: bytes, until: float
) -> list[float]:
    delays: list[float] = []
    while (started := time.perf_counter()) < until:
        name = key(next(numbers))
        known[name] = await store.swap(name, known.get(name, 0), value)
        delays.append(time.perf_counter() - started)
    return delays


async def measure_writes(store: Store, writers: int, arguments: argparse.Namespace) -> None:
    value = os.urandom(arguments.size)
    known = {item.key: item.mod_revision for item in (await store.range(PREFIX, END)).items}
    numbers = [cycle(range(first, arguments.objects, writers)) for first in range(writers)]
    started, cpu = time.perf_counter(), time.process_time()
    until = started + arguments.seconds
    tasks = (writer(store, mine, known, value, until) for mine in numbers)
    delays = sorted(delay for task in await asyncio.gather(*tasks) for delay in task)
    elapsed, cpu, count = time.perf_counter() - started, time.process_time() - cpu, len(delays)
    half, most, worst = (delays[int(count * share)] * 1e3 for share in (0.5, 0.99, 1 - 1e-9))
    row = f"{writers:3} writers {count / elapsed:9.0f} swaps/s  p50 {half:6.2f} ms  p99 {most:6.2f} ms"
    print(f"{row}  max {worst:6.2f} ms  {cpu / count * 1e6:5.0f} us CPU/swap")


async def measure_reads(store: Store) -> None:
    started = time.perf_counter()
    for number in range(2000):
        await store.get(key(number % 1000))
    print(f"get     {(time.perf_counter() - started) / 2000 * 1e6:9.1f} us")
    oldest = max(store.compacted, store.revision - 1000)
    for name, limit, revision in (("all, now", 0, 0), ("500, now", 500, 0), ("500, 1000 writes ago", 500, oldest)):
        started = time.perf_counter()
        for _ in range(20):
            found = await store.range(PREFIX, END, limit=limit, revision=revision)
        print(f"range   {(time.perf_counter() - started) / 20 * 1e3:9.2f} ms  ({name}: {len(found.items)} items)")


async def main(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = await open_store(arguments.store or f"sqlite:///{directory}/bench.db")
        for writers in arguments.writers:
            await measure_writes(store, writers, arguments)
        await measure_reads(store)
        await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="URL of the store (default: SQLite in a temporary directory)")
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 16, 64], help="concurrent writers (1 16 64)")
    parser.add_argument("--objects", type=int, default=2000, help="keys that are written (2000)")
    parser.add_argument("--size", type=int, default=2048, help="bytes of a value (2048)")
    parser.add_argument("--seconds", type=float, default=3.0, help="duration of each measurement (3)")
    sys.exit(uvloop.run(main(parser.parse_args())))
