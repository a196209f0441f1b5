"""Flags as Go programs write them: `--name=value`, `--name value`, `--name` alone for a switch."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple


class FlagError(ValueError):
    """The arguments cannot be read; worded as pflag words it."""


class Known(NamedTuple):
    """Flags of a program: all that it has, and those that need no value."""

    names: frozenset[str]
    switches: frozenset[str]


def known_flags(program: str) -> Known:
    """Those of kube-apiserver 1.37.2, or of etcd 3.7."""
    with open(os.path.join(os.path.dirname(__file__), "data", "flags.json"), "rb") as file:
        content = json.load(file)[program]
    return Known(frozenset(content["flags"]), frozenset(content["switches"]))


def flags(arguments: Sequence[str], known: Collection[str], switches: Collection[str]) -> Iterator[tuple[str, str]]:
    """(name, value) of each flag; a switch without a value has "true". One dash is as good as two.

    Raises FlagError for names that are not `known`, and for what is no flag.
    """
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-") or argument in ("-", "--"):
            raise FlagError(f'unknown command "{argument}"')
        name, equals, value = argument.lstrip("-").partition("=")
        if name not in known:
            raise FlagError(f"unknown flag: --{name}")
        if not equals:
            value = "true" if name in switches else next(rest, "")
            if not value:
                raise FlagError(f"flag needs an argument: --{name}")
        yield name, value
