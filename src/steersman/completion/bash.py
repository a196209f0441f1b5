"""The script for bash (3.2 and later)."""

from __future__ import annotations

from collections.abc import Iterable

from steersman.completion.commands import Command, Value

_SCRIPT = """\
# Completion of steersman in bash, made by `steersman completion bash`.
_steersman() {{
    local cur prev path
    COMPREPLY=()
    cur=${{COMP_WORDS[COMP_CWORD]}}
    prev=${{COMP_WORDS[COMP_CWORD-1]}}
    # --option=value arrives in three words.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $prev == = && $COMP_CWORD -gt 2 ]]; then
        prev=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    path=
    if [[ $COMP_CWORD -gt 1 ]]; then
        path=${{COMP_WORDS[1]}}
    fi
    case $path in
        help)
            _steersman_words '{top}'
            return
            ;;
        {nested})
            if [[ $COMP_CWORD -gt 2 ]]; then
                path="$path ${{COMP_WORDS[2]}}"
            fi
            ;;
    esac
    case "$path $prev" in
{values}    esac
    case $path in
{commands}    esac
}}

_steersman_words() {{
    COMPREPLY=($(compgen -W "$1" -- "$cur"))
}}

_steersman_paths() {{
    local IFS=$'\\n'
    if type compopt >/dev/null 2>&1; then
        compopt -o filenames
    fi
    COMPREPLY=($(compgen "$1" -- "$cur"))
}}

complete -F _steersman steersman
"""


def script(whole: Command) -> str:
    """The text of the script."""
    commands = list(whole.all())
    return _SCRIPT.format(
        top=" ".join(each.path[0] for each in whole.below),
        nested="|".join(each.path[0] for each in whole.below if each.below) or "-",
        values="".join(_after_options(commands)),
        commands="".join(_case(each) for each in commands),
    )


def _after_options(commands: Iterable[Command]) -> Iterable[str]:
    """What may stand behind each option that takes a value."""
    patterns: dict[str, list[str]] = {}
    for command in commands:
        for option in command.options:
            if option.value is not None:
                names = [f"'{' '.join(command.path)} {name}'" for name in option.names]
                patterns.setdefault(_offer(option.value), []).extend(names)
    for offer, names in patterns.items():
        yield f"        {' | '.join(names)})\n            {offer}return\n            ;;\n"


def _offer(value: Value) -> str:
    if value.choices:
        return f"_steersman_words '{' '.join(value.choices)}'\n            "
    if value.files or value.directories:
        return f"_steersman_paths {'-d' if value.directories else '-f'}\n            "
    return ""


def _case(command: Command) -> str:
    """What may stand where no option waits for its value."""
    flags = " ".join(name for option in command.options for name in option.names)
    words = " ".join([each.path[-1] for each in command.below] + ["help"] * (not command.path))
    words = " ".join([words, *(choice for value in command.values for choice in value.choices)]).strip()
    offer = f"_steersman_words '{words}'" if words else "_steersman_paths -f" if _takes_files(command) else ":"
    return (
        f"        '{' '.join(command.path)}')\n            if [[ $cur == -* ]]; then\n"
        f"                _steersman_words '{flags}'\n            else\n                {offer}\n            fi\n"
        f"            ;;\n"
    )


def _takes_files(command: Command) -> bool:
    return any(value.files or value.directories for value in command.values)
