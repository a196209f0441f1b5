"""How long a polite user waits while a greedy one asks on many connections at once.

    python bench/fairness.py URL CA_FILE POLITE_TOKEN GREEDY_TOKEN [--connections 300] [--objects 500]

Both users must be allowed to read ConfigMaps in `default`, the greedy one to write them, too: it makes the objects that
it lists. Compare with a server that runs with `--enable-priority-and-fairness=false`.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import ssl
import statistics
import time
from multiprocessing.synchronize import Event

import aiohttp

SECONDS = 5.0
MAPS = "/api/v1/namespaces/default/configmaps"
SELECTED = "?labelSelector=bench%3D1"
TOO_MANY = 429


def session(token: str, ca: str) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=ca), limit=0)
    headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"}
    return aiohttp.ClientSession(headers=headers, connector=connector)


async def prepare(options: argparse.Namespace) -> None:
    async with session(options.greedy, options.ca) as client:
        for number in range(options.objects):
            labels = {"bench": str(number % 7)}
            body = {"metadata": {"name": f"bench-{number}", "labels": labels}, "data": {"k": "v" * 1000}}
            async with client.post(options.url + MAPS, json=body) as answer:
                await answer.read()


async def be_greedy(options: argparse.Namespace, begun: Event, enough: Event) -> None:
    asked = refused = 0

    async def ask(client: aiohttp.ClientSession) -> None:
        nonlocal asked, refused
        while not enough.is_set():
            async with client.get(options.url + MAPS + SELECTED) as answer:
                await answer.read()
            asked += 1
            if answer.status == TOO_MANY:
                refused += 1
                await asyncio.sleep(0.05)

    async with session(options.greedy, options.ca) as client:
        asking = [asyncio.create_task(ask(client)) for _ in range(options.connections)]
        await asyncio.sleep(2)
        begun.set()
        await asyncio.gather(*asking)
    print(f"greedy: {asked} requests on {options.connections} connections, {refused} refused")


async def be_polite(options: argparse.Namespace, seconds: float) -> list[float]:
    taken = []
    async with session(options.polite, options.ca) as client:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            began = time.perf_counter()
            async with client.get(f"{options.url}{MAPS}/bench-0") as answer:
                await answer.read()
                answer.raise_for_status()
            taken.append(time.perf_counter() - began)
            await asyncio.sleep(0.02)
    return sorted(taken)


def tell(what: str, taken: list[float]) -> None:
    last = taken[int(len(taken) * 0.99)]
    print(f"{what}: median {statistics.median(taken) * 1e3:.1f} ms, 99 % {last * 1e3:.1f} ms of {len(taken)} requests")


def greedy_process(options: argparse.Namespace, begun: Event, enough: Event) -> None:
    asyncio.run(be_greedy(options, begun, enough))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "ca", "polite", "greedy"):
        parser.add_argument(name)
    parser.add_argument("--connections", type=int, default=300)
    parser.add_argument("--objects", type=int, default=500)
    options = parser.parse_args()
    asyncio.run(prepare(options))
    tell("alone", asyncio.run(be_polite(options, 1.0)))
    begun, enough = multiprocessing.Event(), multiprocessing.Event()
    other = multiprocessing.Process(target=greedy_process, args=(options, begun, enough))
    other.start()
    begun.wait()
    tell("beside a greedy client", asyncio.run(be_polite(options, SECONDS)))
    enough.set()
    other.join()


if __name__ == "__main__":
    main()
