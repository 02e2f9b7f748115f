"""A newcomer's first hour: the README and the page of releases as they stand, every command once, and wrong
calls that end in one clear line."""

import json
import shutil
from pathlib import Path

import pytest
from support import pages
from support.commands import search_path
from typer.testing import CliRunner

from dpsyn_sql.cli.main import app

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """What a newcomer has after cloning, as far as the README uses it."""
    (tmp_path / "examples").mkdir()
    for name in ("adult.parquet", "adult.domain.yml"):
        shutil.copy(ROOT / "examples" / name, tmp_path / "examples" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    return tmp_path


PAGES = {"README.md": 2, "docs/releases.md": 4}
"""Pages of a checkout, and how many of their blocks run."""


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_it_stands_and_a_second_run_of_the_first_costs_nothing(page, checkout, monkeypatch):
    monkeypatch.setenv("PATH", search_path(checkout))
    spent = []
    for _ in range(2 if page == "README.md" else 1):
        assert pages.run(ROOT / page, checkout) == PAGES[page]
        ledgers = sorted(str(path) for path in checkout.rglob("*ledger") if path.is_file())
        shown = [json.loads(run("ledger", "show", ledger, "--json").output) for ledger in ledgers]
        for one in shown:
            for release in one["releases"]:
                del release["written"]  # the second run writes the rows again
        spent.append([(one["accounts"], one["releases"]) for one in shown])
    assert spent[0] == spent[-1]
    assert sum(len(releases) for _, releases in spent[0]) == {"README.md": 2, "docs/releases.md": 3}[page]
