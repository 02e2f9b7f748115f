"""Pages run as they stand, and print what they show: the README, releases, the tutorial, every how-to page."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.commands import search_path
from support.pages import blocks, run
from typer.testing import CliRunner

from dpsyn_sql.cli.main import app

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]

ROOT = Path(__file__).resolve().parents[2]
HOWTO = sorted((ROOT / "docs" / "howto").glob("*.md"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, in which ``dpsyn`` is on the search path."""
    monkeypatch.setenv("PATH", search_path(tmp_path))
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    made = tmp_path / "work"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """``people.parquet`` and its domain file, as the first steps of the tutorial make them."""
    made = tmp_path_factory.mktemp("people")
    first, *rest = blocks(ROOT / "docs" / "tutorial.md")[1:]
    text = first.text.replace("'people.parquet'", f"'{made / 'people.parquet'}'")
    exec(compile(text, "the tutorial", "exec"), {})
    (domain,) = (block for block in rest if block.title)
    (made / domain.title).write_text(domain.text, encoding="utf-8")
    return made


def examples(folder):
    """What a newcomer has after cloning."""
    left_out = shutil.ignore_patterns("clinic.*", "visits_*", "shop.duckdb*", "shop_synthetic*")
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=left_out)


def test_the_tutorial_from_an_empty_folder(folder):
    assert run(ROOT / "docs" / "tutorial.md", folder) == 12


@pytest.mark.parametrize("page", HOWTO, ids=lambda page: page.stem)
def test_a_how_to_page_on_the_table_of_the_tutorial(page, table, folder):
    shutil.copytree(table, folder, dirs_exist_ok=True)
    examples(folder)
    assert run(page, folder) > 0


def main_job():
    """What the README's first line does after the installation."""
    (job,) = re.findall(
        r"^pip install \. && (dpsyn .+)$", (ROOT / "README.md").read_text(), flags=re.MULTILINE
    )
    return job


PAGES = {"README.md": (2, 2), "docs/releases.md": (4, 3)}
"""Pages of a checkout: how many of their blocks run, and how many releases are charged."""


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_a_checkout_and_a_second_run_of_the_first_costs_nothing(page, folder):
    examples(folder)
    spent = []
    for time in range(2 if page == "README.md" else 1):
        if page == "README.md":
            subprocess.run(["bash", "-c", main_job()], cwd=folder, check=True, capture_output=True)
        assert time or run(ROOT / page, folder) == PAGES[page][0]
        ledgers = sorted(str(path) for path in folder.rglob("*ledger") if path.is_file())
        told = [CliRunner().invoke(app, ["ledger", "show", ledger, "--json"]).output for ledger in ledgers]
        shown = [json.loads(one) for one in told]
        for one in shown:
            for release in one["releases"]:
                del release["written"]  # the second run writes the rows again
        spent.append([(one["accounts"], one["releases"]) for one in shown])
    assert spent[0] == spent[-1]
    assert sum(len(releases) for _, releases in spent[0]) == PAGES[page][1]
