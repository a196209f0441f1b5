"""Parsers of command lines, whose --help is the whole manual of a command.

They are the one source of what is told of a command: its help, its manual page, the completion of shells and the
reference in the documentation are made of them.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

WIDTH = 100
VALUES: dict[str, str] = {
    "ADDRESS": "HOST:PORT to listen at, such as 127.0.0.1:8081; without a host, such as :8081, at all addresses",
    "BOOL": "true or false",
    "BYTES": "a number of bytes",
    "DAYS": "a number of days",
    "MB": "a number of megabytes (2^20 bytes)",
    "MINUTES": "a number of minutes, fractions too",
    "N": "a whole number",
    "PATH": "a file, or a directory of files",
    "TIME": "a duration with its unit, such as 500ms, 30s, 5m or 1h30m; 0 is none",
}
"""What values with these names look like: this is told where one is used."""


class Example(NamedTuple):
    """A command line as it is typed in a shell, and what it is good for."""

    about: str
    command: str


class Manual(NamedTuple):
    """What a command's --help tells beside its options."""

    examples: Sequence[Example] = ()
    statuses: Mapping[int, str] = MappingProxyType({})
    files: Mapping[str, str] = MappingProxyType({})
    environment: Mapping[str, str] = MappingProxyType({})
    more: Mapping[str, Mapping[str, str]] = MappingProxyType({})
    """Further sections: their titles, and what they have."""

    def sections(self) -> dict[str, Mapping[str, str]]:
        """All but the examples, by title: names, and what is said of them."""
        statuses = {str(status): text for status, text in self.statuses.items()}
        named = {"exit status": statuses, "files": self.files, "environment": self.environment}
        return {**self.more, **{title: entries for title, entries in named.items() if entries}}


class Formatter(argparse.HelpFormatter):
    """Tells each default that is one, in the words of the command line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=min(WIDTH, _columns()))

    def _get_help_string(self, action: argparse.Action) -> str:
        about, default = action.help or "", action.default
        if action.required and action.option_strings:
            return f"{about} (required)"
        if action.nargs == 0 or default is None or default in ("", [], argparse.SUPPRESS) or "default" in about:
            return about
        told = str(default).lower() if isinstance(default, bool) else str(default)
        return f"{about} (default: {told.replace('%', '%%')})"


class Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments in one line, and exits with 1 as for any other failure."""

    usage_status = 1
    manual = Manual()

    def __init__(self, **options: object) -> None:
        super().__init__(**{"formatter_class": Formatter, **options})  # type: ignore[arg-type]
        self.register("type", int, _whole_number)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """A command tells itself what it does not know: the one above it would name itself."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(unknown)}{self._likely(unknown[0])}")
        return found, unknown

    def _likely(self, word: str) -> str:
        """What may have been meant by an option."""
        close = get_close_matches(word.partition("=")[0], self._option_string_actions, 1)
        return f" (is it {close[0]}?)" if close else ""

    def error(self, message: str) -> NoReturn:
        self.exit(self.usage_status, f"{self.prog}: {message}; see {self.prog} --help\n")

    def format_help(self) -> str:
        """The usage, what the command does, its options; then what their values look like, and its manual."""
        sections = {"values": values(self), **self.manual.sections()}
        parts = [_section(title, entries) for title, entries in sections.items() if entries]
        if self.manual.examples:
            shown = [f"  # {each.about}\n{textwrap.indent(each.command, '  ')}" for each in self.manual.examples]
            parts.append("examples:\n" + "\n\n".join(shown) + "\n")
        return "\n".join([super().format_help(), *parts])


class AnsweringParser(Parser):
    """For commands for which 1 is an answer."""

    usage_status = 2


def explain(
    parser: argparse.ArgumentParser,
    examples: Sequence[tuple[str, str]],
    statuses: Mapping[int, str],
    *,
    files: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    more: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Give a command its manual; `examples` are pairs of what for, and a command line.

    Parsers of another class, which have no manual, stay as they are.
    """
    if isinstance(parser, Parser):
        shown = [Example(about, command) for about, command in examples]
        parser.manual = Manual(shown, statuses, files or {}, environment or {}, more or {})


def values(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The names of values that a command's options use, and what those look like, where a name does not say it."""
    used = {action.metavar for action in parser._actions if isinstance(action.metavar, str)}
    return {name: VALUES[name] for name in sorted(used & set(VALUES))}


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None


def _columns() -> int:
    """How much is written in a line. `argparse` asks `shutil`, which loads all that it compresses with."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns) - 2
    try:
        return (os.get_terminal_size(sys.__stdout__.fileno()).columns or 80) - 2  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 78


def _section(title: str, entries: Mapping[str, str]) -> str:
    width = min(WIDTH, _columns())
    lines = [f"{title}:"]
    for name, about in entries.items():
        indent = " " * 18
        first = f"  {name:<14}  " if len(name) <= 14 else f"  {name}\n{indent}"
        told = textwrap.wrap(about, width - len(indent), break_on_hyphens=False)
        lines.append(first + f"\n{indent}".join(told))
    return "\n".join(lines) + "\n"
