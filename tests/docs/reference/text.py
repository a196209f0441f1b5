"""Docstrings and helps as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

MADE = "<!-- Made by `python -m tests.docs.reference`: change the code, not this page. -->"
_CODE = re.compile(r"(`[^`]*`)")


def escaped(text: str) -> str:
    """Text in which nothing but what stands between backticks means anything to Markdown."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>\[\]])", r"\\\1", part) for part in parts)


def docstring(text: str) -> str:
    """A docstring's paragraphs; what is indented in it is code."""
    out = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.startswith("    "):
            out.append(code(textwrap.dedent(paragraph)))
            continue
        lines = paragraph.split("\n")
        items = [line for line in lines if line.startswith(("- ", "* "))]
        out.append(bullets(lines) if items else escaped(paragraph))
    return "\n\n".join(out)


def bullets(lines: Sequence[str]) -> str:
    """A paragraph that is a list."""
    found: list[str] = []
    for line in lines:
        if line.startswith(("- ", "* ")) or not found:
            found.append(line.removeprefix("- ").removeprefix("* "))
        else:
            found[-1] += f" {line.strip()}"
    return "\n".join(f"- {escaped(each)}" for each in found)


def code(text: str) -> str:
    """Code that is shown, but is no program of its own."""
    return textwrap.indent(text.strip("\n"), "    ")


def cell(text: str) -> str:
    """Text in a table."""
    return escaped(text).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; what is in `rows` is Markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def page(title: str, about: str, *parts: str) -> str:
    """A page of the reference."""
    return "\n\n".join([f"# {title}", MADE, about, *(part for part in parts if part)]) + "\n"
