"""The script for fish (3.0 and later)."""

from __future__ import annotations

from collections.abc import Iterator

from steersman.completion.commands import Command, Option, Value

_HEAD = """\
# Completion of steersman in fish, made by `steersman completion fish`.

# Whether these words, and no other command's, are what the line begins with.
function __steersman_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l last (count $argv)
    test $last -eq 0; and return (test (count $words) -eq 0)
    test (count $words) -ge $last; and test "$words[1..$last]" = "$argv"
end

# Whether they are all that the line has so far.
function __steersman_only
    set -l words (commandline -opc)
    set -e words[1]
    test (count $words) -eq (count $argv); and test "$words" = "$argv"
end

complete -c steersman -f
"""


def script(whole: Command) -> str:
    """The text of the script."""
    return _HEAD + "".join(f"{line}\n" for command in whole.all() for line in _lines(command))


def _lines(command: Command) -> Iterator[str]:
    words = " ".join(command.path)
    below = [(each.path[-1], each.about) for each in command.below]
    if not command.path:
        below.append(("help", "show the manual of a command"))
        yield _line("__steersman_only help", f"-a {_quoted(' '.join(name for name, _ in below[:-1]))}")
    for name, about in below:
        yield _line(f"__steersman_only {words}", f"-a {name} -d {_quoted(about)}")
    for option in command.options:
        yield _line(f"__steersman_at {words}", _option(option))
    for value in command.values:
        if offer := _offer(value):
            yield _line(f"__steersman_at {words}", offer)


def _line(condition: str, rest: str) -> str:
    return f"complete -c steersman -n {_quoted(condition.strip())} {rest}"


def _option(option: Option) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names]
    value = ""
    if option.value is not None:
        value = " -r -F" if option.value.files else f" -x {_offer(option.value)}".rstrip()
    return f"{' '.join(names)} -d {_quoted(option.about)}{value}"


def _offer(value: Value) -> str:
    if value.choices:
        return f"-a {_quoted(' '.join(value.choices))}"
    if value.directories:
        return "-a '(__fish_complete_directories)'"
    return "-F" if value.files else ""


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
