"""The script for zsh: what its own `_arguments` is told of each command."""

from __future__ import annotations

from steersman.completion.commands import Command, Option, Value

_HEAD = "#compdef steersman\n# Completion of steersman in zsh, made by `steersman completion zsh`.\n"
_FOOT = """
if [[ $funcstack[1] == _steersman ]]; then
    _steersman "$@"
else
    compdef _steersman steersman
fi
"""


def script(whole: Command) -> str:
    """The text of the script; it works as a file `_steersman` on the $fpath, and where it is sourced."""
    return _HEAD + "".join(_function(each) for each in whole.all()) + _FOOT


def _function(command: Command) -> str:
    specs = [_option(each) for each in command.options]
    if not command.below:
        specs += [_positional(each) for each in command.values]
        body = "    _arguments -s -S " + " \\\n        ".join(specs) + "\n"
    else:
        body = _below(command, specs)
    return f"\n{_name(command)}() {{\n{body}}}\n"


def _below(command: Command, specs: list[str]) -> str:
    listed = [f"        {_quoted(f'{each.path[-1]}:{each.about}')}" for each in command.below]
    calls = [f"        {each.path[-1]}) {_name(each)} ;;" for each in command.below]
    if not command.path:
        listed.append(f"        {_quoted('help:show the manual of a command')}")
        calls.append("        help) _describe command commands ;;")
    arguments = " \\\n        ".join([*specs, "'1: :->command'", "'*:: :->arguments'"])
    return "\n".join(
        (
            "    local -a commands",
            "    local context state state_descr line",
            "    typeset -A opt_args",
            "    commands=(",
            *listed,
            "    )",
            f"    _arguments -C {arguments}",
            "    if [[ $state == command ]]; then",
            "        _describe command commands",
            "    elif [[ $state == arguments ]]; then",
            "        case $line[1] in",
            *(f"    {call}" for call in calls),
            "        esac",
            "    fi",
            "",
        )
    )


def _name(command: Command) -> str:
    return "_".join(["_steersman", *(word.replace("-", "_") for word in command.path)])


def _option(option: Option) -> str:
    names = option.names[0] if len(option.names) == 1 else "{" + ",".join(option.names) + "}"
    again = "'*'" if option.repeated else f"'({' '.join(option.names)})'" if len(option.names) > 1 else ""
    value = f":{_escaped(option.value.name)}:{_action(option.value)}" if option.value else ""
    equals = "=" if option.value and len(option.names) == 1 and option.names[0].startswith("--") else ""
    return f"{again}{names}{_quoted(f'{equals}[{_escaped(option.about)}]{value}')}"


def _positional(value: Value) -> str:
    return _quoted(f"{'*' if value.repeated else ''}:{_escaped(value.name)}:{_action(value)}")


def _action(value: Value) -> str:
    if value.choices:
        return f"({' '.join(value.choices)})"
    return "_files -/" if value.directories else "_files" if value.files else " "


def _escaped(text: str) -> str:
    for character in "\\[]:":
        text = text.replace(character, f"\\{character}")
    return text


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
