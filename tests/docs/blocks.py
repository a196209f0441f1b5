"""The blocks of code in README.md and docs/, and what a comment before one says about how it is run.

    <!-- background: serving on -->     it goes on until the page ends; ready when it has printed this
    <!-- prints: 200 = 200 -->          what it must print, among other things; may stand several times
    <!-- fails -->                      its last command must fail
    <!-- output -->                     what the block before has printed
    <!-- not run: it needs Docker -->   why it cannot be run here

In what is expected, `...` stands for anything, and a port for any port.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")))
_FENCE = re.compile(r'^```(?P<language>[\w-]+)(?: title="(?P<title>[^"]+)")?$')
_COMMENT = re.compile(r"<!--(.*?)-->", re.S)
_DIRECTIVES = ("background", "prints", "not run")
_ALONE = ("fails", "output")


@dataclass(frozen=True)
class Block:
    """One block: `title` names the file that it is, `directives` are those of the comments before it."""

    page: str
    line: int
    language: str
    title: str
    code: str
    directives: tuple[tuple[str, str], ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    def told(self, directive: str) -> list[str]:
        """What comments of a kind say."""
        return [text for name, text in self.directives if name == directive]

    def has(self, directive: str) -> bool:
        """Whether there is a comment of a kind."""
        return any(name == directive for name, _ in self.directives)

    @property
    def is_test(self) -> bool:
        return self.language == "python" and "def test_" in self.code

    @property
    def is_operator(self) -> bool:
        return self.language == "python" and "st.Manager(" in self.code and not self.is_test


def blocks(page: str) -> list[Block]:
    """The blocks of a page in their order. Raises ValueError for one that is not understood."""
    return read(page, (ROOT / page).read_text(encoding="utf-8"))


def read(page: str, text: str) -> list[Block]:
    """The blocks of a page's text. Raises ValueError for one that is not understood."""
    return list(_blocks(page, text))


def _blocks(page: str, text: str) -> Iterator[Block]:
    lines = text.splitlines()
    number, before = 0, 0
    while number < len(lines):
        line = lines[number]
        if line.lstrip().startswith("```"):
            found = _FENCE.match(line)
            if found is None:
                raise ValueError(f"{page}:{number + 1}: a block begins as ```LANGUAGE, or with a title behind it")
            end = lines.index("```", number + 1)
            yield Block(
                page,
                number + 1,
                found["language"],
                found["title"] or "",
                "\n".join([*lines[number + 1 : end], ""]),
                tuple(_directives(f"{page}:{number + 1}", "\n".join(lines[before:number]))),
            )
            number = before = end
        elif line and not _is_comment(lines, number):
            before = number + 1
        number += 1


def _is_comment(lines: list[str], number: int) -> bool:
    """Whether a line is within a comment that fills whole lines."""
    start = next((i for i in range(number, -1, -1) if lines[i].startswith("<!--")), None)
    return start is not None and not any(line.endswith("-->") for line in lines[start:number])


def _directives(where: str, text: str) -> Iterator[tuple[str, str]]:
    for comment in _COMMENT.findall(text):
        name, _, told = " ".join(comment.split()).partition(": ")
        if name not in (_DIRECTIVES if told else _ALONE):
            raise ValueError(f"{where}: {comment.strip()!r} says nothing about how a block is run")
        yield name, told


def pattern(expected: str) -> re.Pattern[str]:
    """Finds what is expected: `...` is anything, or any lines; widths of columns and ports do not matter."""
    lines = []
    for line in expected.strip("\n").split("\n"):
        if line.strip() == "...":
            lines.append(r"(?:.*\n)*?")
            continue
        parts = (re.sub(r"(\\ )+", r"\\s+", re.escape(part)) for part in line.rstrip().split("..."))
        lines.append(".*?".join(parts) + r"[ \t]*(?:\n|\Z)")
    return re.compile(r"^" + re.sub(r"(127\\\.0\\\.0\\\.1:)\d+", r"\1\\d+", "".join(lines)), re.M)
