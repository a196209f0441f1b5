"""`python -m tests.docs.reference` writes docs/reference/ anew; a test holds the pages to the code."""

from __future__ import annotations

from .pages import DIRECTORY, pages

DIRECTORY.mkdir(parents=True, exist_ok=True)
for name, text in pages().items():
    (DIRECTORY / name).write_text(text, encoding="utf-8")
