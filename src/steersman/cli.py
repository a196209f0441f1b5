"""The `steersman` command."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from steersman import __version__

COMMANDS = {
    "serve": "steersman.controlplane.command",
    "run": "steersman.runtime.run_command",
    "validate": "steersman.offline.validate_command",
    "crd": "steersman.offline.crd_command",
    "cel": "steersman.offline.cel_command",
    "migrate": "steersman.migration.command",
    "finalizers": "steersman.migration.finalizers_command",
    "generate": "steersman.generate.command",
    "init": "steersman.generate.init_command",
    "envtest-assets": "steersman.envtest.command",
    "demo": "steersman.demo.command",
}
"""Subcommands by name, and the module that has each: it is imported when it is called, for start-up's sake."""

ANSWERING = frozenset({"cel", "crd", "finalizers", "migrate", "validate"})
"""Subcommands that exit with 1 to say that something is wrong with what they looked at; wrong arguments give 2."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments in one line, and exits with 1 as for any other failure."""

    usage_status = 1

    def error(self, message: str) -> NoReturn:
        self.exit(self.usage_status, f"{self.prog}: {message}; see {self.prog} --help\n")


class AnsweringParser(Parser):
    """For commands for which 1 is an answer."""

    usage_status = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns the process's exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    called = next((word for word in given if not word.startswith("-")), "")
    make = AnsweringParser if called in ANSWERING else Parser
    parser = make(prog="steersman", description=_description())
    parser.add_argument("--version", action="version", version=f"steersman {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in [called] if called in COMMANDS else COMMANDS:
        importlib.import_module(COMMANDS[name]).add_parser(commands)
    options = parser.parse_args(given)
    run: int = options.run(options)
    return run


def _description() -> str:
    return (
        "A Kubernetes-compatible API server for custom resources. `steersman COMMAND --help` tells a command's options."
    )


if __name__ == "__main__":
    sys.exit(main())
