"""Rewrites not_passing_yet.toml: `python -m tests.conformance.update_list [-v] [--add] [name or folder ...]`.

Plays the named scenarios (all without a name) and takes off the list those that pass. With `--add`, those that fail are
listed, too, each under the number of the issue that will bring it: the first rule's that fits. `-v` prints differences.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from pathlib import Path

from steersman.net.pki import load_or_create

from .player import Patience
from .stage import LIST_FILE, Stage, not_passing_yet, scenario_names, set_up

PATIENCE = Patience(wait=5.0, events=20.0, request=15.0)
AT_A_TIME = 8
ISSUE_OF = [  # the first that fits
    (r"crd/(cel-|seed-.*-cel|.*cel)", 5),
    (r"crd/seed-.*-openapi", 5),
    (r"crd/seed-.*-webhook", 7),
    (r"crd/", 4),
    (r"apply/.*webhook", 7),
    (r"admission/", 7),
    (r"", 6),
]
HEAD = """\
# Scenarios that do not pass yet, by the number of the issue that will bring them. One that is listed and passes fails
# the suite, as one that is not listed and fails. Rewritten by `python -m tests.conformance.update_list`.
"""


def issue_of(name: str) -> int:
    return next(issue for pattern, issue in ISSUE_OF if re.match(pattern, name))


def write(listed: dict[str, int]) -> None:
    sections = []
    for issue in sorted(set(listed.values())):
        names = "".join(f'  "{name}",\n' for name in sorted(listed) if listed[name] == issue)
        sections.append(f"\n{issue} = [\n{names}]\n")
    LIST_FILE.write_text(HEAD + "".join(sections))


async def failures(stage: Stage, names: list[str]) -> dict[str, list[str]]:
    """The scenarios of `names` that fail, with their differences."""
    limit = asyncio.Semaphore(AT_A_TIME)

    async def play(name: str) -> list[str]:
        async with limit:
            return await stage.play(name, PATIENCE)

    found = await asyncio.gather(*map(play, names), return_exceptions=True)
    results = dict(zip(names, found, strict=True))
    return {name: [repr(each)] if isinstance(each, BaseException) else each for name, each in results.items() if each}


async def main(prefixes: list[str], *, verbose: bool, add: bool) -> int:
    before, names = not_passing_yet(), scenario_names()
    played = [name for name in names if not prefixes or any(name.startswith(prefix) for prefix in prefixes)]
    with tempfile.TemporaryDirectory() as directory:
        certificates = load_or_create(Path(directory, "certs"), ["127.0.0.1", "localhost"])
        async with set_up(certificates, Path(directory)) as stage:
            failed = await failures(stage, played)
    for name, lines in failed.items():
        if verbose:
            print(name, *lines[:25], sep="\n    ")
    new = failed.keys() - before
    listed = {name: issue for name, issue in before.items() if name in names and (name not in played or name in failed)}
    write(listed | {name: issue_of(name) for name in new if add})
    print(f"{len(played) - len(failed)} passed, {len(failed)} failed")
    for title, changed in (("passes now", before.keys() - listed), ("FAILS NOW", new)):
        print(*(f"{title}: {name}" for name in sorted(changed)), sep="\n", end="\n" if changed else "")
    return 1 if new and not add else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="name or folder")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--add", action="store_true")
    arguments = parser.parse_args()
    sys.exit(asyncio.run(main(arguments.names, verbose=arguments.verbose, add=arguments.add)))
