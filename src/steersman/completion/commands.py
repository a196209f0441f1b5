"""What there is to complete, as plain data."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

_FILES = frozenset({"FILE", "FILE_OR_MODULE", "OPERATOR", "PATH"})


@dataclass(frozen=True, slots=True)
class Value:
    """What stands behind an option, or by itself: one of `choices`, a file, a directory, or what nobody can guess."""

    name: str
    choices: tuple[str, ...] = ()
    files: bool = False
    directories: bool = False
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Option:
    """An option: all its names, what it does, its value if it takes one, and whether it may be given again."""

    names: tuple[str, ...]
    about: str
    value: Value | None
    repeated: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command: the words that call it, its options and what else it takes, and the commands below it."""

    path: tuple[str, ...]
    about: str
    options: tuple[Option, ...]
    values: tuple[Value, ...]
    below: tuple[Command, ...]

    def all(self) -> Iterator[Command]:
        """It, and all that are below it."""
        yield self
        for each in self.below:
            yield from each.all()


def command_of(parser: argparse.ArgumentParser, path: tuple[str, ...] = (), about: str = "") -> Command:
    """What a parser knows, as data."""
    options: list[Option] = []
    values: list[Value] = []
    below: list[Command] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            told = {each.dest: each.help or "" for each in action._choices_actions}
            below = [command_of(each, (*path, name), told.get(name, "")) for name, each in action.choices.items()]
        elif action.option_strings:
            value = None if action.nargs in (0, "?") else _value(action)
            repeated = isinstance(action, argparse._AppendAction)
            options.append(Option(tuple(action.option_strings), _about(action), value, repeated))
        else:
            values.append(_value(action))
    return Command(path, about, tuple(options), tuple(values), tuple(below))


def _about(action: argparse.Action) -> str:
    return " ".join((action.help or "").replace("%%", "%").split())


def _value(action: argparse.Action) -> Value:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    choices = tuple(str(each) for each in action.choices or ()) or (("true", "false") if name == "BOOL" else ())
    return Value(name, choices, name in _FILES, name == "DIR", action.nargs in ("+", "*"))
