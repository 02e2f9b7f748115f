"""The tutorial from an empty folder: every block runs, and prints what the page shows."""

from pathlib import Path

import pytest
from support.commands import search_path
from support.pages import run

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def test_the_tutorial_runs_as_it_stands(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", search_path(tmp_path))
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    folder = tmp_path / "tour"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert run(ROOT / "docs" / "tutorial.md", folder) == 12
