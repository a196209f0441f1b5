"""What is wrong on a page is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from .blocks import pattern, read
from .session import Session


def run(text: str, directory: Path) -> None:
    with Session(directory, Path("/bin/false")) as session:
        for block in read("page.md", text):
            session.run(block)
        session.run_tests()


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo one\none\n$ echo two\n...\n```",
        '```text title="a.txt"\nhello\n```'.replace("text", "yaml"),
        "```sh\nexport WORD=hello\nmkdir below\ncd below\n```\n\n```console\n$ echo $WORD; pwd\nhello\n...below\n```",
        "<!-- fails -->\n\n```console\n$ ls nowhere\n...\n```",
        "<!-- prints: b -->\n\n```sh\necho a\necho b\n```",
        "```console\n$ echo a\n```\n\n<!-- output -->\n\n```text\na\n```",
        "<!-- not run: it needs a spaceship -->\n\n```fortran\nSTOP\n```",
        "```python\ndef test_one() -> None:\n    assert True\n```",
    ],
)
def test_what_is_right(text: str, tmp_path: Path) -> None:
    run(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo one\ntwo\n```",
        "```console\n$ false\n```",
        "```sh\nfalse\necho it went on\n```",
        "<!-- fails -->\n\n```console\n$ true\n```",
        "<!-- prints: c -->\n\n```sh\necho a\necho b\n```",
        "<!-- background: ready -->\n\n```sh\necho never\n```",
        "```console\n$ echo a\n```\n\n<!-- output -->\n\n```text\nb\n```",
        "```python\ndef test_one() -> None:\n    assert False\n```",
    ],
)
def test_what_is_wrong(text: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "```\nno language\n```",
        "- in a list\n\n  ```sh\n  echo a\n  ```",
        "<!-- nut run: a slip -->\n\n```sh\necho a\n```",
        "<!-- prints: -->\n\n```sh\necho a\n```",
        "```sh\necho for ever",
    ],
)
def test_what_is_not_understood(text: str) -> None:
    with pytest.raises(ValueError):
        read("page.md", text)


def test_comments_of_another_kind_stand_elsewhere() -> None:
    [block] = read("page.md", "<!-- made by a program -->\n\nText.\n\n```sh\necho a\n```")
    assert block.directives == ()


def test_what_is_expected() -> None:
    assert pattern("a ... c\n...\nserving on https://127.0.0.1:6443").search(
        "a  b  c\nx\ny\nserving on https://127.0.0.1:31999\n"
    )
    assert not pattern("a\nb").search("a\nx\nb\n")
    assert not pattern("a").search("ab\n")
