"""The pages of commands and of the server's flags, made of the parsers of the command line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from importlib import resources

from steersman._util.commandline import Parser, values
from steersman.cli import COMMANDS, parser_of

from .text import cell, code, docstring, escaped, page, table


def commands_page() -> str:
    parts = [
        part for name in COMMANDS for path, parser in _below(name, _subparser(name)) for part in _command(path, parser)
    ]
    return page(
        "Commands",
        "`steersman COMMAND --help` says the same. `steersman completion SHELL` makes the shell complete it.",
        *parts,
    )


def flags_page() -> str:
    """The flags of `serve` beside kube-apiserver's."""
    known = json.loads(resources.files("steersman.envtest").joinpath("data/flags.json").read_text())["kube-apiserver"]
    theirs = set(known["flags"])
    mine = {
        option.removeprefix("--"): action
        for action in _subparser("serve")._actions
        for option in action.option_strings
        if option.startswith("--") and option != "--help"
    }
    shared, own = sorted(mine.keys() & theirs), sorted(mine.keys() - theirs)
    rows = [[f"`--{name}`", cell(mine[name].help or ""), _default(mine[name])] for name in shared]
    more = [[f"`--{name}`", cell(mine[name].help or ""), _default(mine[name])] for name in own]
    head = ["Flag", "What it does", "Default"]
    return page(
        "Flags of serve beside kube-apiserver's",
        "`steersman serve` has those of kube-apiserver's flags that make sense for it, under their names.",
        "## In both\n\n" + table(head, rows),
        "## steersman's own\n\n" + table(head, more),
        "## kube-apiserver's alone\n\nThe stand-in that `steersman envtest-assets` writes takes these, too, and passes "
        "over those that mean nothing to it; `steersman serve` refuses them.",
        ", ".join(f"`--{name}`" for name in sorted(theirs - mine.keys())),
    )


def _subparser(name: str) -> argparse.ArgumentParser:
    return next(iter(_choices(parser_of([name])).values()))


def _choices(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    return {}


def _below(path: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield path, parser
    for name, inner in _choices(parser).items():
        yield from _below(f"{path} {name}", inner)


def _command(path: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"{'##' if ' ' not in path else '###'} steersman {path}"
    if not parser.description:
        raise LookupError(f"steersman {path} has no description")
    yield docstring(parser.description)
    if below := _choices(parser):
        yield "\n".join(f"- [`steersman {path} {name}`](#steersman-{path}-{name})".replace(" -", "-") for name in below)
        return
    yield code(_usage(path, parser))
    for group in parser._action_groups:
        rows = [_row(action) for action in group._group_actions if action.help is not argparse.SUPPRESS]
        rows = [row for row in rows if row[0] != "`-h`, `--help`"]
        if rows:
            yield f"**{escaped(_first_upper(group.title or ''))}**\n\n{table(['', '', 'Default'], rows)}"
    manual = parser.manual if isinstance(parser, Parser) else None
    for title, entries in {"values": values(parser), **(manual.sections() if manual else {})}.items():
        if entries:
            rows = [[f"`{name}`", cell(about)] for name, about in entries.items()]
            yield f"**{title.capitalize()}**\n\n{table(['', ''], rows)}"
    if manual and manual.examples:
        shown = "\n\n".join(f"# {each.about}\n{each.command}" for each in manual.examples)
        yield f"**Examples**\n\n{code(shown)}"


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _usage(path: str, parser: argparse.ArgumentParser) -> str:
    words = []
    for action in parser._actions:
        if not action.option_strings:
            name = str(action.metavar or action.dest)
            many = {"+": f"{name} ...", "*": f"[{name} ...]", "?": f"[{name}]"}
            words.append(many.get(str(action.nargs), name))
    return " ".join(["steersman", path, "[OPTION ...]", *words])


def _row(action: argparse.Action) -> list[str]:
    if not action.help:
        raise LookupError(f"{action.option_strings or action.dest} has no help")
    if not action.option_strings:
        return [f"`{action.metavar or action.dest}`", cell(action.help.replace("%%", "%")), ""]
    value = "" if action.nargs == 0 else f" {_value(action)}"
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    return [f"{names}{value}", cell(action.help.replace("%%", "%")), _default(action)]


def _value(action: argparse.Action) -> str:
    if action.choices is not None:
        return " ".join(["`" + "`, `".join(map(str, action.choices)) + "`"])
    return f"`{action.metavar or action.dest.upper()}`"


def _default(action: argparse.Action) -> str:
    default = action.default
    if action.nargs == 0 or default in (None, False, argparse.SUPPRESS, "", []):
        return ""
    return f"`{'true' if default is True else default}`"
