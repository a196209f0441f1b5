"""What many objects and many watchers take: memory, processor time, start-up, and a file that does not grow.

    python bench/capacity.py [--objects 100000] [--watchers 1000] [--hours 8] [--rate 10] [--minutes 3]

Fills a SQLite file with custom resources of 2 kB (through the store; what it holds is what the API would have written),
starts `steersman serve` on it (TLS, RBAC, durable), and measures with `capacity_load.go`: the start; lists by pages and
by label; GETs; writes beside 0, 10, 100 and all watchers; memory for each object and watcher; and at last as many
writes as `--rate` a second make in `--hours`, in `--minutes`, with a history that is shortened as time is. Prints
tables in Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from compare import processor_seconds

from steersman.store.sqlite import SQLiteStore

HERE = pathlib.Path(__file__).parent
GROUP, PLURAL = "capacity.example.com", "things"
SHARDS = 1000
CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"{PLURAL}.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {"plural": PLURAL, "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "turn": {"type": "integer"},
                                    "parts": {"type": "array", "items": {"type": "string"}},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


class Running:
    """A server that serves, and its load generator."""

    def __init__(self, process: subprocess.Popen[str], url: str, seconds: float, loader: pathlib.Path, objects: int):
        self.process, self.url, self.seconds = process, url, seconds
        command = [loader, "-server", url, "-token", "admintoken", "-n", str(max(objects, 1)), "-c", "8"]
        self._load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def do(self, order: str) -> dict:
        """What came of it, and the `cpu` seconds of the server meanwhile."""
        assert self._load.stdin is not None
        assert self._load.stdout is not None
        before = processor_seconds(self.process.pid)
        self._load.stdin.write(f"{order}\n")
        self._load.stdin.flush()
        line = self._load.stdout.readline()
        if not line:
            raise SystemExit(f"{order}: the load generator gave up")
        return {**json.loads(line), "cpu": processor_seconds(self.process.pid) - before}

    @property
    def memory(self) -> float:
        """Resident, in MB."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1000
        raise SystemExit("the server is gone")

    def end(self) -> None:
        self._load.kill()
        self._load.wait()
        self.process.terminate()
        self.process.wait()


@contextmanager
def serving(work: pathlib.Path, database: str, loader: pathlib.Path, objects: int, *flags: str) -> Iterator[Running]:
    (work / "tokens.csv").write_text("admintoken,admin,admin,system:masters\n")
    command = [
        sys.executable,
        "-m",
        "steersman.cli",
        "serve",
        "--secure-port=0",
        f"--store=sqlite:///{work}/{database}",
    ]
    command += [f"--cert-dir={work}/certs", *flags]
    if "--insecure-http" not in flags:
        command.append(f"--token-auth-file={work}/tokens.csv")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    running = Running(process, url, time.perf_counter() - began, loader, objects)
    try:
        time.sleep(2)  # what is done after the start is done
        yield running
    finally:
        running.end()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--hours", type=float, default=8)
    parser.add_argument("--rate", type=float, default=10, help="writes a second")
    parser.add_argument("--minutes", type=float, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        loader = work / "load"
        sources = [str(HERE / "capacity_load.go"), str(HERE / "load_client.go")]
        subprocess.run(["go", "build", "-o", str(loader), *sources], check=True)
        lines = ["| | |", "|---|--:|"]
        for row in measured(work, loader, options):
            lines.append(f"| {row[0]} | {row[1]} |")
            print(lines[-1], file=sys.stderr, flush=True)
        print("\n".join(lines))
    return 0


def measured(work: pathlib.Path, loader: pathlib.Path, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    prepare(work, "things.db", loader, options.objects, thing())
    prepare(work, "maps.db", loader, options.objects // 5, config_map())
    with serving(work, "empty.db", loader, 0):
        pass  # certificates and the default policy are made
    with serving(work, "empty.db", loader, 0) as server:
        empty = server.memory
        yield "memory, nothing stored", f"{empty:.0f} MB"
    with serving(work, "maps.db", loader, options.objects // 5) as server:
        yield "memory for a ConfigMap (of 2 kB)", f"{(server.memory - empty) * 1e6 / (options.objects // 5):,.0f} bytes"
    yield from starts(work, loader, options, empty)
    with serving(work, "things.db", loader, options.objects) as server:
        yield from reads(server, options)
        yield from watched(server, options, "TLS")
    with serving(work, "things.db", loader, options.objects, "--insecure-http") as server:
        server.do("write 100")
        yield from idle(server, options.watchers, "plain HTTP")
    yield from hours(work, loader, options)


def starts(
    work: pathlib.Path, loader: pathlib.Path, options: argparse.Namespace, empty: float
) -> Iterator[tuple[str, str]]:
    seconds, memory = [], []
    for _ in range(3):
        with serving(work, "things.db", loader, options.objects) as server:
            seconds.append(server.seconds)
            memory.append(server.memory)
    held = statistics.median(memory)
    yield f"start with {options.objects:,} objects", f"{statistics.median(seconds):.2f} s"
    yield "memory after the start", f"{held:.0f} MB"
    yield "memory for a custom resource of 2 kB", f"{(held - empty) * 1e6 / options.objects:,.0f} bytes"


def reads(server: Running, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    for turn in ("first", "again"):
        got = server.do("pages 500")
        assert got["items"] == options.objects, got
        yield f"list of all in pages of 500, {turn}", f"{got['seconds']:.2f} s, the longest {got['longest_ms']:.0f} ms"
        yield f"processor time for an item of a page, {turn}", f"{got['cpu'] / got['items'] * 1e6:.1f} us"
        yield f"memory after it, {turn}", f"{server.memory:.0f} MB"
    for turn in ("first", "again", "another"):
        got = server.do(f"label shard={'8' if turn == 'another' else '7'}")
        yield f"list by label, {got['items']} of {options.objects:,}, {turn}", f"{got['seconds'] * 1000:.0f} ms"
    got = server.do("get 5000")
    yield "processor time of a GET", f"{got['cpu'] / 5000 * 1e6:.0f} us"
    yield "memory after all lists", f"{server.memory:.0f} MB"


def watched(server: Running, options: argparse.Namespace, how: str) -> Iterator[tuple[str, str]]:
    for count in (0, 10, 100):
        server.do(f"watch {count}")
        got = server.do("write 1000")
        yield written(got, count, 1000)
    server.do("watch 0")
    yield from idle(server, options.watchers, how)
    yield written(server.do("write 500"), options.watchers, 500)
    yield f"memory with {options.watchers:,} watchers, after writes", f"{server.memory:.0f} MB"


def written(got: dict, watchers: int, writes: int) -> tuple[str, str]:
    assert not got["errors"], got
    assert not got["broken"], got
    label = f"processor time of a write beside {watchers:,} watchers"
    rate = writes / got["seconds"]
    return label, f"{got['cpu'] / writes * 1000:.2f} ms; {rate:,.0f} writes/s, {rate * watchers:,.0f} events/s"


def idle(server: Running, watchers: int, how: str) -> Iterator[tuple[str, str]]:
    server.do("get 2000")
    before = server.memory
    server.do(f"watch {watchers}")
    time.sleep(2)
    yield f"memory for an idle watcher, {how}", f"{(server.memory - before) * 1e6 / watchers:,.0f} bytes"


def hours(work: pathlib.Path, loader: pathlib.Path, options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """As many writes as there are in so many hours; sizes after each tenth of them."""
    total = int(options.hours * 3600 * options.rate)
    shorter = options.hours * 60 / options.minutes
    with serving(work, "things.db", loader, options.objects, f"--history={5 / shorter}") as server:
        sizes = [measure(work, server)]
        began = time.perf_counter()
        for _ in range(10):
            got = server.do(f"paced {total // 10} {options.minutes * 6}")
            assert not got["errors"], got
            sizes.append(measure(work, server))
        took = time.perf_counter() - began
    yield f"{total:,} writes in", f"{took:.0f} s"
    for label, index in (("database", 0), ("WAL", 1), ("memory", 2)):
        found = [size[index] for size in sizes]
        yield f"{label} before, after each tenth of them, MB", ", ".join(f"{each:.0f}" for each in found)


def measure(work: pathlib.Path, server: Running) -> tuple[float, float, float]:
    database, log = (work / name for name in ("things.db", "things.db-wal"))
    return database.stat().st_size / 1e6, log.stat().st_size / 1e6, server.memory


def thing() -> dict:
    parts = [f"{number:03d}-{'abcdefghij' * 4}" for number in range(32)]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Thing",
        "metadata": {"name": "w-000000", "labels": {"shard": "s-000000"}},
        "spec": {"turn": 0, "parts": parts},
    }


def config_map() -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "w-000000", "labels": {"shard": "s-000000"}},
        "data": {f"key-{number:03d}": "abcdefghij" * 4 for number in range(30)},
    }


def prepare(work: pathlib.Path, database: str, loader: pathlib.Path, objects: int, template: dict) -> None:
    """One object is made through the API; the others are like it."""
    with serving(work, database, loader, 0, "--insecure-http", "--unsafe-no-fsync") as server:
        post(f"{server.url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        while post(f"{server.url}/apis/{GROUP}/v1/namespaces/default/{PLURAL}", thing()) != 201:
            time.sleep(0.05)
        post(f"{server.url}/api/v1/namespaces/default/configmaps", config_map())
    kind = "configmaps" if template["kind"] == "ConfigMap" else f"{GROUP}/{PLURAL}"
    asyncio.run(multiply(str(work / database), f"/registry/{kind}/default/", objects))


def post(url: str, obj: dict) -> int:
    command = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Content-Type: application/json"]
    done = subprocess.run([*command, "-d", json.dumps(obj), url], capture_output=True, text=True, check=True)
    return int(done.stdout)


async def multiply(database: str, prefix: str, objects: int) -> None:
    store = await SQLiteStore.open(database, fsync=False)
    found = await store.get(f"{prefix}w-000000".encode())
    assert found is not None
    uid = json.loads(found.value)["metadata"]["uid"]

    async def write(number: int, expected: int) -> None:
        value = found.value.replace(uid.encode(), str(uuid.uuid4()).encode())
        value = value.replace(b"w-000000", b"w-%06d" % number)
        value = value.replace(b"s-000000", b"%d" % (number % SHARDS))
        await store.swap(f"{prefix}w-{number:06d}".encode(), expected, value)

    await write(0, found.mod_revision)
    for start in range(1, objects, 5000):
        await asyncio.gather(*(write(number, 0) for number in range(start, min(start + 5000, objects))))
    await store.close()


if __name__ == "__main__":
    sys.exit(main())
