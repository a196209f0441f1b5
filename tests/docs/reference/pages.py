"""The pages of docs/reference/: what the code says of itself, and nothing else.

A public name without a docstring is an error.
"""

from __future__ import annotations

from pathlib import Path

from . import commands, metrics, python_api

ROOT = Path(__file__).parents[3]
DIRECTORY = ROOT / "docs" / "reference"


def pages() -> dict[str, str]:
    """The text of each page, by its name. Raises LookupError for what is not described."""
    return {
        "python.md": python_api.package_page(),
        "testing.md": python_api.testing_page(),
        "cel.md": python_api.cel_page(),
        "server.md": python_api.server_page(),
        "faults.md": python_api.faults_page(),
        "commands.md": commands.commands_page(),
        "flags.md": commands.flags_page(),
        "metrics.md": metrics.metrics_page(),
    }
