"""Asks a server everything that its own OpenAPI description offers: nothing may fail (5xx).

    python -m tests.security.openapi URL TOKEN CA_FILE [--rounds 20] [--seed 1] [--reference URL --reference-ca FILE]

With `--reference` a failure counts only if the other server, asked the same, does not fail too. Every failure is
printed with the request; the exit status is 1 if there was one. The server is filled with rubbish: use one to throw
away.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import ssl
import sys
from dataclasses import dataclass

import aiohttp
from tests.security.operations import Drawn, Operation, draw, operations

_FAILED = 500
_AS_UPSTREAM = "resourceVersion: Invalid value"
"""What kube-apiserver, too, calls its own failure: a watch from a resourceVersion that is no number."""


@dataclass(slots=True)
class _Server:
    url: str
    tls: ssl.SSLContext
    session: aiohttp.ClientSession

    async def get(self, path: str) -> dict[str, object]:
        async with self.session.get(self.url + path, ssl=self.tls) as answer:
            found: dict[str, object] = json.loads(await answer.read())
            return found

    async def ask(self, drawn: Drawn) -> tuple[int, str]:
        """The status code, and how the answer begins."""
        import yarl

        target = f"{self.url}{drawn.path}{'?' if drawn.query else ''}{drawn.query}"
        async with self.session.request(
            drawn.method, yarl.URL(target, encoded=True), data=drawn.body, headers=dict(drawn.headers), ssl=self.tls
        ) as answer:
            return answer.status, (await answer.content.read(300)).decode("utf-8", "replace")


async def _all_operations(server: _Server) -> list[Operation]:
    index = await server.get("/openapi/v3")
    paths = index["paths"]
    assert isinstance(paths, dict)
    documents = [await server.get(item["serverRelativeURL"]) for _, item in sorted(paths.items())]
    return [operation for document in documents for operation in operations(document)]


async def _run(options: argparse.Namespace) -> int:
    rng = random.Random(options.seed)
    headers = {"Authorization": f"Bearer {options.token}"}
    failures = asked = 0
    async with aiohttp.ClientSession(headers=headers) as session:
        server = _Server(options.url, ssl.create_default_context(cafile=options.ca), session)
        reference = None
        if options.reference:
            trusted = ssl.create_default_context(cafile=options.reference_ca)
            reference = _Server(options.reference, trusted, session)
        found = await _all_operations(server)
        for turn in range(options.rounds):
            rng.shuffle(found)
            for operation in found:
                drawn = draw(operation, rng)
                status, text = await server.ask(drawn)
                asked += 1
                expected = (await reference.ask(drawn))[0] if reference else 0
                if status >= _FAILED > expected and _AS_UPSTREAM not in text:
                    failures += 1
                    _tell(f"{status} {drawn.method} {drawn.path}?{drawn.query} {dict(drawn.headers)}\n  {drawn.body!r}")
                    _tell(f"  -> {text}")
            _tell(f"round {turn + 1}: {len(found)} operations, {asked} requests, {failures} failures")
    return 1 if failures else 0


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("ca")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reference", default="")
    parser.add_argument("--reference-ca", default=None)
    return asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
