"""Manual pages of the `steersman` command, made of its parsers as --help is: one for each command.

python -m tools.man DIRECTORY
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from steersman import __version__
from steersman._util.commandline import Manual, Parser, values
from steersman.cli import parser_of


def pages() -> Iterator[tuple[str, str]]:
    """The name and the text (roff) of each page."""
    todo = [(parser_of(), "an API server for custom resources, and an operator runtime")]
    while todo:
        parser, about = todo.pop()
        yield f"{parser.prog.replace(' ', '-')}.1", page(parser, about)
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                told = {each.dest: each.help or "" for each in action._choices_actions}
                todo += [(each, told[name]) for name, each in action.choices.items()]


def page(parser: Parser, about: str) -> str:
    """The text of a command's page."""
    name = parser.prog.replace(" ", "-")
    synopsis = parser.format_usage().removeprefix("usage: ")
    lines = [f'.TH {name.upper()} 1 "" "steersman {__version__}"', ".SH NAME", f"{name} \\- {_roff(about)}"]
    lines += [".SH SYNOPSIS", _roff(" ".join(synopsis.split()))]
    lines += [".SH DESCRIPTION", _roff(parser.description or "")]
    for group in parser._action_groups:
        entries = list(_entries(parser, group))
        if entries:
            lines += [f".SH {_roff((group.title or '').upper())}", *_listed(entries)]
    for title, told in {"values": values(parser), **parser.manual.sections()}.items():
        if told:
            lines += [f".SH {_roff(title.upper())}", *_listed(told.items())]
    return "\n".join([*lines, *_examples(parser.manual)]) + "\n"


def _entries(parser: Parser, group: argparse._ArgumentGroup) -> Iterator[tuple[str, str]]:
    formatter = parser._get_formatter()
    for action in group._group_actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from ((each.dest, each.help or "") for each in action._choices_actions)
        else:
            yield formatter._format_action_invocation(action), formatter._expand_help(action)


def _listed(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, about in entries:
        yield from (".TP", f".B {_roff(name)}", _roff(about))


def _examples(manual: Manual) -> Iterator[str]:
    if manual.examples:
        yield ".SH EXAMPLES"
    for example in manual.examples:
        yield from (".PP", _roff(f"{example.about}:"), ".PP", ".RS 4", ".nf", _roff(example.command), ".fi", ".RE")


def _roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def main() -> int:
    """Write the pages. Returns the exit status."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (directory / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
