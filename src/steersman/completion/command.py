"""`steersman completion`: a shell's script that completes the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module

from steersman._util.commandline import explain

SHELLS = ("bash", "zsh", "fish")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `completion` to the subcommands."""
    parser = commands.add_parser(
        "completion",
        help="write a script that completes commands and options in a shell",
        description="Write a script by which a shell completes commands, options and their values. It is static: a TAB "
        "starts no program. Make it anew with a new version.",
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")
    explain(parser, _EXAMPLES, {0: "it is written", 1: "there is no such shell"}, files=_FILES)
    parser.set_defaults(run=run)


_EXAMPLES = (
    ("in bash, for this user", "steersman completion bash > ~/.local/share/bash-completion/completions/steersman"),
    ("in zsh, where ~/.zfunc is on the $fpath", "steersman completion zsh > ~/.zfunc/_steersman"),
    ("in fish", "steersman completion fish > ~/.config/fish/completions/steersman.fish"),
    ("in this bash only", 'eval "$(steersman completion bash)"'),
)
_FILES = {
    "~/.local/share/bash-completion/completions/": "where bash-completion looks for scripts",
    "~/.config/fish/completions/": "where fish does",
}


def run(options: argparse.Namespace) -> int:
    """Print the script. Returns the exit status."""
    from steersman.completion.commands import command_of

    whole: Callable[[], argparse.ArgumentParser] = options.whole
    sys.stdout.write(import_module(f"steersman.completion.{options.shell}").script(command_of(whole())))
    return 0
