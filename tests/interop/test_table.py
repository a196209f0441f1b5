"""The page of clients says what is run."""

from pathlib import Path

from .table import text

PAGE = Path(__file__).parents[2] / "docs/clients.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == text(), "make it anew: python -m tests.interop.table > docs/clients.md"
