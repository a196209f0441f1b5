"""The `steersman` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from steersman import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; returns the process's exit status."""
    parser = argparse.ArgumentParser(prog="steersman", description=__doc__)
    parser.add_argument("--version", action="version", version=f"steersman {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    from steersman.controlplane import command as serve

    serve.add_parser(commands)
    options = parser.parse_args(arguments)
    run: int = options.run(options)
    return run


if __name__ == "__main__":
    sys.exit(main())
