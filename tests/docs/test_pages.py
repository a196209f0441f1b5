"""Every block of code in README.md and docs/ runs as it is written; those that cannot are listed here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .blocks import PAGES, ROOT, Block, blocks
from .session import LANGUAGES, Session

BLOCKS = [block for page in PAGES for block in blocks(page)]
NOT_RUN = {
    "README.md": 3,
    "docs/eks.md": 7,
    "docs/how-to/envtest.md": 1,
    "docs/how-to/from-kopf.md": 1,
    "docs/how-to/operate-the-store.md": 1,
    "docs/how-to/several-servers.md": 3,
    "docs/tutorial.md": 3,
}
"""How many blocks of each page are not run; each says why in a comment before it."""


def test_every_block_is_run_or_says_why_not() -> None:
    unknown = [str(b) for b in BLOCKS if b.language not in LANGUAGES and not b.has("output") and not b.has("not run")]
    assert unknown == [], "a block of another kind needs a runner in session.py"
    assert [str(b) for b in BLOCKS if b.is_operator and not b.title and b.page != "README.md"] == []
    found: dict[str, int] = {}
    for block in BLOCKS:
        if block.told("not run"):
            found[block.page] = found.get(block.page, 0) + 1
            print(f"{block}: not run: {block.told('not run')[0]}")
    assert found == NOT_RUN


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if any(block.page == page for block in BLOCKS)])
def test_a_page_runs_from_top_to_bottom(page: str, tmp_path: Path, kubectl_binary: Path) -> None:
    with Session(tmp_path, kubectl_binary) as session:
        for block in blocks(page):
            session.run(block)
        session.run_tests()


@pytest.mark.slow
def test_python_type_checks(tmp_path: Path) -> None:
    """The last block of a title is the file; those before it, and those without one, stand for themselves."""
    python = [block for block in BLOCKS if block.language == "python" and not block.told("not run")]
    files = {block.title: block for block in python if block.title}
    assert {title: b.page for title, b in files.items()} == {b.title: b.page for b in reversed(python) if b.title}
    names = [b.title if files.get(b.title) is b else f"{_slug(b)}.py" for b in python]
    for name, block in zip(names, python, strict=True):
        (tmp_path / name).write_text(block.code)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *names]
    environment = {"MYPYPATH": f"{tmp_path}:{ROOT / 'src'}:{ROOT}", "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _slug(block: Block) -> str:
    return f"{Path(block.page).stem.replace('-', '_').lower()}_{block.line}"
