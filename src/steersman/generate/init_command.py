"""`steersman init`: its options, and what it prints."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from steersman._util.commandline import explain

REQUIREMENT_VARIABLE = "STEERSMAN_REQUIREMENT"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `init` to the subcommands."""
    parser = commands.add_parser(
        "init",
        help="make a project for an operator",
        description="Make a directory with an operator that runs, tests and deploys: a kind, a reconciler, webhooks, "
        "tests, a Makefile, a Dockerfile. In the directory, `make test` runs the tests, `make manifests` writes what "
        "is to be applied.",
    )
    add = parser.add_argument
    add("name", metavar="NAME", help="the project's name, and its directory: of a-z, 0-9 and -")
    add("--kind", metavar="KIND", help="the kind of its objects, in CamelCase (default: made of the name)")
    add("--group", metavar="GROUP", help="the API group of the kind (default: NAME.example.com)")
    add(
        "--steersman",
        metavar="REQUIREMENT",
        default=os.environ.get(REQUIREMENT_VARIABLE) or "steersman",
        help=f"where the project gets steersman from: a requirement, a directory or wheel, a URL "
        f"(default: ${REQUIREMENT_VARIABLE}, or steersman)",
    )
    explain(
        parser,
        _EXAMPLES,
        {0: "it is made", 1: "it cannot be; files that are there already stay as they are"},
        environment={REQUIREMENT_VARIABLE: "what --steersman says where it is not given"},
    )
    parser.set_defaults(run=run)


_EXAMPLES = (
    ("a project in the directory shop", "steersman init shop"),
    ("of a kind with a name of its own", "steersman init shop --kind WebShop --group shop.example.com"),
)


def run(options: argparse.Namespace) -> int:
    """Make the project. Returns the exit status."""
    from steersman.generate.errors import GenerateError, told
    from steersman.generate.project import Project

    try:
        project = Project.named(options.name, options.kind, options.group, options.steersman)
        files = project.write(Path(options.name))
    except (GenerateError, OSError) as error:
        print(f"steersman init: {told(error)}", file=sys.stderr)
        return 1
    for file in files:
        print(file)
    print(f"\ncd {options.name} && make test")
    return 0
