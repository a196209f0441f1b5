"""The `steersman` command: what it knows, what it tells of it, and that it loads no more than it needs."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import steersman
from steersman._util.commandline import VALUES, AnsweringParser, Parser
from steersman.cli import ANSWERING, COMMANDS, main, parser_of

PLAIN = {"CRD", "DIR", "FILE", "GROUP", "IMAGE", "IP", "KIND", "MODES", "NAME", "NAMES", "NAMESPACE", "PORT"}
PLAIN |= {"FROM", "REQUIREMENT", "RULE", "SELECTOR", "STORE", "TEXT", "TO", "URL", "VERSION"}
"""Values whose names say what they are."""


def parsers() -> Iterator[Parser]:
    """The parsers of all commands, and of those below them."""
    todo = [parser_of()]
    while todo:
        parser = todo.pop()
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                todo += action.choices.values()


ALL = {parser.prog: parser for parser in parsers()}


def helped(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_tells_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"usage: steersman {name} " in helped(capsys, name, "--help")


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    listed = helped(capsys, "--help")
    assert set(COMMANDS) <= set(re.findall(r"^    ([a-z-]+)", listed, re.M))
    assert helped(capsys, "help") == listed


@pytest.mark.parametrize("words", [["serve"], ["crd"], ["crd", "lint"], ["generate", "deploy"]])
def test_help_of_a_command_is_its_manual(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert helped(capsys, "help", *words) == helped(capsys, *words, "--help")


@pytest.mark.parametrize("arguments", [[], ["--store"], ["fly"], ["fly", "serve"], ["help", "fly"]])
def test_what_is_no_command_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("steersman: ")
    assert said.endswith("; see steersman --help\n")


@pytest.mark.parametrize("prog", ALL)
def test_every_command_has_a_manual(prog: str) -> None:
    parser, told = ALL[prog], ALL[prog].format_help()
    assert parser.description
    assert parser.manual.examples
    assert {0, 1} <= set(parser.manual.statuses)
    assert 2 in parser.manual.statuses or prog.split()[1] not in ANSWERING
    for section in ("usage:", "options:", "exit status:", "examples:"):
        assert re.search(f"^{section}", told, re.M), section


@pytest.mark.parametrize("prog", ALL)
def test_every_option_says_what_it_does_and_what_its_value_is(prog: str) -> None:
    formatter = ALL[prog]._get_formatter()
    for action in ALL[prog]._actions:
        name = "/".join(action.option_strings) or action.metavar or action.dest
        if isinstance(action, argparse._SubParsersAction):
            continue
        assert action.help, name
        told = formatter._expand_help(action)
        assert not told.endswith("."), name
        if not action.option_strings or action.nargs == 0:
            continue
        metavar = action.metavar
        assert action.choices or metavar in VALUES or metavar in PLAIN or metavar in told or re.search("[=/]", metavar)
        if action.required:
            assert told.endswith("(required)"), name
        elif action.default is not None and action.default != []:
            assert "default" in told, name
        if isinstance(action, argparse._AppendAction):
            assert "may be repeated" in told, name


def _examples() -> Iterator[tuple[str, str]]:
    for prog, parser in ALL.items():
        for example in parser.manual.examples:
            yield prog, example.command


@pytest.mark.parametrize(("prog", "command"), list(_examples()))
def test_examples_are_lines_that_a_command_takes(prog: str, command: str) -> None:
    found = re.findall(r"\bsteersman ((?:'[^']*'|[^|>)'])*)", command)
    assert any(f"steersman {words}".startswith(prog) for words in found)
    for words in found:
        given = shlex.split(words)
        name = given[1] if given[0] == "help" else given[0]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Parser, "exit", _refused)
            if given[0] != "help":
                parser_of([name], answering=name in ANSWERING).parse_args(given)
            else:
                assert " ".join(["steersman", *given[1:]]) in ALL


def _refused(parser: Parser, status: int = 0, message: str | None = None) -> None:
    raise AssertionError(message)


def test_wrong_arguments_are_told_apart_from_an_answer() -> None:
    for name in COMMANDS:
        parser = parser_of([name], answering=name in ANSWERING)
        assert isinstance(parser, AnsweringParser) == (name in ANSWERING)


def test_tells_its_version() -> None:
    for program in (["-m", "steersman"], ["-m", "steersman.cli"]):
        done = subprocess.run([sys.executable, *program, "--version"], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == (f"steersman {steersman.__version__}\n", "")


@pytest.mark.parametrize("command", ["demo", "run", "migrate", "completion", "init"])
def test_a_command_starts_without_loading_either_half(command: str) -> None:
    halves = ("steersman.apiserver", "steersman.client.", "aiohttp", "pydantic", "orjson")
    code = (
        f"import sys; from steersman.cli import parser_of; parser_of(['{command}']).format_help(); "
        f"print(*(name for name in sys.modules if name.startswith({halves})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {"steersman.client.cluster_flags"}


def test_manual_pages_are_made_of_the_same_parsers(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "tools.man", str(tmp_path)], cwd=Path(__file__).parents[1], check=True)
    assert {path.name for path in tmp_path.iterdir()} == {f"{prog.replace(' ', '-')}.1" for prog in ALL}
    serve = (tmp_path / "steersman-serve.1").read_text()
    for section in ("NETWORK AND TLS", "EXIT STATUS", "FILES", "ENVIRONMENT", "EXAMPLES"):
        assert f"\n.SH {section}\n" in serve
    if groff := shutil.which("groff"):
        command = [groff, "-man", "-ww", "-z", "-Tascii", *sorted(tmp_path.iterdir())]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert [line for line in done.stderr.splitlines() if "can't break" not in line] == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--sotre", "x"], "steersman serve: unrecognized arguments: --sotre x (is it --store?); see"),
        (["generate", "crd", "--otput=x", "a.py"], "steersman generate crd: unrecognized arguments: --otput=x (is it"),
        (["serve", "--zzz"], "steersman serve: unrecognized arguments: --zzz; see steersman serve --help"),
        (["serve", "--secure-port", "abc"], "argument --secure-port: 'abc' is not a whole number; see"),
    ],
)
def test_the_command_that_was_called_says_what_is_wrong(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert words in capsys.readouterr().err
