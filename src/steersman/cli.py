"""The `steersman` command."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Sequence

from steersman import __version__
from steersman._util.commandline import AnsweringParser, Parser, explain

COMMANDS = {
    "serve": "steersman.controlplane.command",
    "store": "steersman.maintenance.command",
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
    "completion": "steersman.completion.command",
}
"""Subcommands by name, and the module that has each: it is imported when it is called, for start-up's sake."""

ANSWERING = frozenset({"cel", "crd", "finalizers", "migrate", "validate"})
"""Subcommands that exit with 1 to say that something is wrong with what they looked at; wrong arguments give 2."""

_WHOLE = "it is in the server's distribution: pip install steersman, in the place of steersman-client"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns the process's exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given and given[0] == "help":
        given = [*given[1:], "--help"]
    called = next((word for word in given if not word.startswith("-")), "")
    if called in COMMANDS and not _installed(called):
        print(f"steersman {called}: {_WHOLE}", file=sys.stderr)
        return 1
    needed = [called] if called in COMMANDS else [] if given[:1] == ["--version"] else COMMANDS
    options = parser_of(needed, answering=called in ANSWERING).parse_args(given)
    run: int = options.run(options)
    return run


def parser_of(commands: Iterable[str] = COMMANDS, *, answering: bool = False) -> Parser:
    """The parser of the command line, which knows these subcommands: those of them that are installed."""
    parser = (AnsweringParser if answering else Parser)(prog="steersman", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"steersman {__version__}", help="show the version")
    # The completion of shells is made of all parsers.
    parser.set_defaults(whole=parser_of)
    below = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for name in commands:
        if _installed(name):
            importlib.import_module(COMMANDS[name]).add_parser(below)
    examples = [(about, line) for command, about, line in _EXAMPLES if _installed(command)]
    explain(parser, examples, {0: "it is done", 1: "it is not; stderr says why", 2: "see the command's own help"})
    return parser


def _installed(name: str) -> bool:
    """Whether a command is part of what is installed: the client's distribution lacks some."""
    try:
        return importlib.util.find_spec(COMMANDS[name]) is not None
    except ModuleNotFoundError:
        return False


_DESCRIPTION = (
    "A Kubernetes-compatible API server for custom resources, and an operator runtime. `steersman COMMAND --help`, or "
    "`steersman help COMMAND`, is the manual of a command."
)
_EXAMPLES = (
    ("serve", "an API server in memory, for any kubectl", "steersman serve --kubeconfig cluster.kubeconfig"),
    ("init", "a new operator's project, with tests that pass", "steersman init shop"),
    ("generate", "the manual of a command below another", "steersman help generate crd"),
)

if __name__ == "__main__":
    sys.exit(main())
