"""What the demonstration prints: colours on a terminal, plain text elsewhere and with NO_COLOR."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from steersman.client.modify import ConflictReport
    from steersman.demo.race import Result

_BOLD, _DIM, _RED, _GREEN, _YELLOW = "1", "2", "1;31", "1;32", "33"


class Screen:
    """Prints to one stream, a line at a time."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._colours = stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"

    def title(self, writers: int, increments: int) -> None:
        self._line()
        self._line(f"{writers} writers race on one counter; each adds {increments}, one at a time", _BOLD)
        self._line()

    def error(self, message: str) -> None:
        self._line(f"steersman demo: {message}", _RED)

    def fact(self, name: str, text: str) -> None:
        self._line(f"  {self._paint(name.ljust(8), _DIM)} {text}")

    def conflict(self, loser: str, report: ConflictReport) -> None:
        """Who lost, to whom, on which fields, and what comes next."""
        winners = ", ".join(dict.fromkeys(name for change in report.changes for name in change.managers))
        fields = ", ".join(f"{change.path} {change.before} -> {change.after}" for change in report.changes)
        self._line(
            f"  {self._paint('409', _YELLOW)} {loser} lost to {winners or 'another'}: {fields or report.error.message}"
            f"{self._paint(f'; it reads again, try {report.attempt + 1}', _DIM)}"
        )

    def verdict(self, result: Result) -> None:
        self._table(result)
        equal = "=" if result.counter == result.expected else "≠"
        outcome = "no update was lost" if result.complete else "UPDATES WERE LOST"
        self._line()
        self._line(f"  {result.expected} {equal} {result.counter}: {outcome}", _GREEN if result.complete else _RED)
        for writer in result.writers:
            if writer.failure is not None:
                self._line(f"  {writer.name} gave up: {writer.failure}", _RED)
        self._line(
            f"  the counter by a fresh read, metadata.generation {result.generation}; {result.seconds:.2f} s of racing",
            _DIM,
        )
        self._line()

    def _table(self, result: Result) -> None:
        rows = [(w.name, w.writes, w.conflicts, w.retries, w.most) for w in result.writers]
        _, writes, conflicts, retries, most = zip(*rows, strict=True)
        self._line()
        self._line(_row("writer", "writes", "conflicts", "retries", "most tries for one"), _DIM)
        for row in rows:
            self._line(_row(*row))
        self._line(_row("all", sum(writes), sum(conflicts), sum(retries), max(most)), _BOLD)

    def next_steps_now(self, kubeconfig: Path) -> None:
        """The server stays up: what to try with kubectl."""
        self._line("The server stays up until Ctrl-C. In another terminal:", _BOLD)
        self._line()
        for command in (
            f"export KUBECONFIG={shlex.quote(str(kubeconfig))}",
            "kubectl get myapps --watch &",
            "kubectl get myapp example-myapp -o yaml --show-managed-fields",
            "kubectl get myapp example-myapp -o yaml > stale.yaml",
            """kubectl patch myapp example-myapp --type merge -p '{"spec": {"counter": 1000}}'""",
            "kubectl replace -f stale.yaml          # 409: the object has been modified",
        ):
            self._line(f"  {command}")
        self._line()

    def next_steps_after(self, directory: Path | None, database: str) -> None:
        """The server is about to stop: how to go on with kubectl."""
        program = _program()
        self._line("Go on with kubectl:", _BOLD)
        self._line()
        if directory is None:
            self._line(f"  {program} demo --keep          # the same race, and then the server stays up")
        else:
            kubeconfig, url = directory / "kubeconfig", f"sqlite:///{directory / database}"
            self._line(f"  {program} serve --store {shlex.quote(url)} --kubeconfig {shlex.quote(str(kubeconfig))}")
            self._line(f"  KUBECONFIG={shlex.quote(str(kubeconfig))} kubectl get myapps")
        self._line()

    def _line(self, text: str = "", style: str | None = None) -> None:
        print(self._paint(text, style) if style else text, file=self._stream, flush=True)

    def _paint(self, text: str, style: str) -> str:
        return f"\033[{style}m{text}\033[0m" if self._colours else text


def _row(name: str, *cells: str | int) -> str:
    return f"  {name:10}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, (8, 11, 9, 20), strict=True))


def _program() -> str:
    """How this program is called from the current directory."""
    path = sys.argv[0]
    if os.path.basename(path) != "steersman":
        return f"{shlex.quote(sys.executable)} -m steersman"
    if shutil.which("steersman") == path:
        return "steersman"
    relative = os.path.relpath(path)
    return shlex.quote(path if relative.startswith("..") else relative)
