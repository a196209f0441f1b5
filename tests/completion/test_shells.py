"""What shells offer at a TAB, asked of them: bash always, zsh and fish where they are installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from steersman.cli import COMMANDS, main

CASES = [
    ("steersman va", {"validate"}),
    ("steersman ", {*COMMANDS, "help"}),
    ("steersman help fi", {"finalizers"}),
    ("steersman crd ", {"lint"}),
    ("steersman generate ", {"crd", "models", "rbac", "webhook", "deploy"}),
    ("steersman generate deploy --re", {"--replicas", "--requests"}),
    ("steersman serve --log-format ", {"json", "text"}),
    ("steersman crd lint x.yaml --fail-on w", {"warning"}),
    ("steersman serve --secure-port ", set()),
    ("steersman finalizers ", {"list", "strip"}),
    ("steersman completion z", {"zsh"}),
    ("steersman serve --kubeconfig clu", {"cluster.yaml"}),
    ("steersman validate clu", {"cluster.yaml"}),
    ("steersman serve --cert-dir ", {"certs"}),
]
"""What a line begins with, and all that may come next."""

BASH = r"""
source "$1"
read -ra COMP_WORDS <<< "$2"
[[ $2 == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
compopt() { :; }
_steersman
printf '%s\n' "${COMPREPLY[@]}"
"""


def script(shell: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", shell]) == 0
    path = directory / "scripts" / shell
    path.parent.mkdir()
    path.write_text(capsys.readouterr().out)
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where there is something to complete."""
    below = tmp_path / "here"
    (below / "certs").mkdir(parents=True)
    (below / "cluster.yaml").touch()
    return below


def asked(directory: Path, *command: str | Path) -> list[str]:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.parametrize(("line", "offered"), CASES)
def test_bash(
    line: str, offered: set[str], tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked(directory, "bash", "--norc", "-c", BASH, "bash", script("bash", tmp_path, capsys), line)
    assert set(filter(None, found)) == offered


def test_bash_knows_values_behind_an_equals_sign(
    tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script("bash", tmp_path, capsys)
    for line in ("steersman serve --log-format =", "steersman serve --log-format = j"):
        found = asked(directory, "bash", "--norc", "-c", BASH, "bash", path, line)
        assert "json" in found


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
@pytest.mark.parametrize(("line", "offered"), CASES)
def test_fish(
    line: str, offered: set[str], tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = script("fish", tmp_path, capsys)
    found = asked(directory, "fish", "--no-config", "-c", f"source {path}; complete -C '{line}'")
    assert {each.partition("\t")[0].rstrip("/") for each in found} == offered


ZSH = r"""
compdef() { :; }
# What zsh's own functions are asked to offer.
_describe() { print -r -- "${(@)commands%%:*}" }
_arguments() {
    if [[ $1 == -C ]]; then
        if (( $#words > 2 )); then
            state=arguments; line=("${words[2]}"); shift words; (( CURRENT-- ))
        else
            state=command
        fi
    else
        print -rl -- "$@"
    fi
}
source "$1"
words=(${(z)2} '')
_steersman
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_comes_to_what_a_command_takes(tmp_path: Path, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = script("zsh", tmp_path, capsys)

    def at(line: str) -> list[str]:
        return asked(directory, "zsh", "-f", "-c", ZSH, "zsh", path, line)

    assert set(at("steersman")[0].split()) == {*COMMANDS, "help"}
    assert set(at("steersman crd")[0].split()) == {"lint"}
    lint = at("steersman crd lint")
    assert "--fail-on=[from which severity on the exit status is 1]:FAIL_ON:(info warning error)" in lint
    assert "*:FILE:_files" in lint
