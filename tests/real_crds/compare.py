"""Compares what a real kube-apiserver makes of the definitions in the table with what this server makes of them.

    python -m tests.real_crds.compare URL TOKEN CA_FILE [--write] [--only NAME]

Prints, for each definition, the time until it is established on both, and every difference; `--write` keeps the hashes
of the reference's answers in reference.json, which the tests hold this server to. The definitions are deleted at the
end. Exits with 1 when anything differs, or an example is not accepted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp

from steersman.net.tls import client_ssl_context
from steersman.testing import control_plane

from .definitions import Definition, load
from .modules import Module, Package, fetch
from .observed import CRDS, Observed, observe

REFERENCE = Path(__file__).with_name("reference.json")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("token")
    parser.add_argument("ca_file", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", help="the name of one definition")
    options = parser.parse_args()
    definitions = [each for each in load() if options.only in (None, each.name)]
    with tempfile.TemporaryDirectory() as folder:
        found = fetch({module for each in definitions for module in each.modules}, Path(folder))
    if missing := [why for why in found.values() if isinstance(why, str)]:
        print(*missing, sep="\n")
        return 1
    packages = {module: package for module, package in found.items() if isinstance(package, Package)}
    with control_plane() as plane:
        return asyncio.run(compare(plane.url, options, definitions, packages))


async def compare(
    ours: str, options: argparse.Namespace, definitions: list[Definition], packages: Mapping[Module, Package]
) -> int:
    kept, problems = {}, 0
    headers = {"Authorization": f"Bearer {options.token}"}
    connector = aiohttp.TCPConnector(ssl=client_ssl_context(options.ca_file.read_bytes()))
    async with (
        aiohttp.ClientSession(ours) as us,
        aiohttp.ClientSession(options.url, headers=headers, connector=connector) as them,
    ):
        for definition in definitions:
            mine = await observe(us, definition, packages)
            try:
                theirs = await observe(them, definition, packages, patience=30)
            finally:
                await them.delete(f"{CRDS}/{definition.name}")
            found = list(problems_of(mine, theirs))
            print(f"{definition.name:50} {mine.seconds:7.3f} s {theirs.seconds:7.3f} s", *found, sep="\n  ", flush=True)
            problems += len(found)
            kept[definition.name] = theirs.digests()
    if options.write and not options.only:
        REFERENCE.write_text(json.dumps(kept, indent=1) + "\n")
    return 1 if problems else 0


def problems_of(mine: Observed, theirs: Observed) -> Iterator[str]:
    """What the two answered differently, and what the reference does not accept."""
    if theirs.definition["status"] != 201:
        yield f"not accepted: {theirs.definition['body']['message']}"
    if not theirs.examples:
        yield "no examples"
    for key, answer in theirs.examples.items():
        if answer["status"] != 201:
            yield f"{key} is not accepted: {answer['body']['message']}"
    yield from differences("definition", mine.definition, theirs.definition)
    yield from differences("schemas", mine.schemas, theirs.schemas)
    yield from differences("examples", mine.examples, theirs.examples)


def differences(place: str, mine: Any, theirs: Any) -> Iterator[str]:
    """Every place where two JSON values differ."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        for key in sorted({*mine, *theirs}):
            yield from differences(f"{place}.{key}", mine.get(key), theirs.get(key))
    elif isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        for number, pair in enumerate(zip(mine, theirs, strict=True)):
            yield from differences(f"{place}[{number}]", *pair)
    elif mine != theirs or type(mine) is not type(theirs):
        yield f"{place}: {str(mine)[:300]} instead of {str(theirs)[:300]}"


if __name__ == "__main__":
    sys.exit(main())
