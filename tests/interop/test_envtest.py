"""Tests of an operator in Go that use controller-runtime's envtest, unmodified, on our stand-ins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .go_programs import build, run


@pytest.mark.timeout(900)
async def test_a_suite(tmp_path: Path) -> None:
    suite = await build("test", "-c", "./suite", into=tmp_path / "suite")
    assets = tmp_path / "assets"
    code, out = await run(sys.executable, "-m", "steersman.cli", "envtest-assets", str(assets), cwd=tmp_path)
    assert code == 0, out

    code, out = await run(str(suite), "-test.v", cwd=tmp_path, KUBEBUILDER_ASSETS=str(assets))

    assert code == 0, out
    assert "--- PASS: TestOperator" in out
