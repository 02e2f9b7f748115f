"""Every how-to page runs as it stands, on the table of the tutorial and the examples."""

import shutil
from pathlib import Path

import pytest
from support.commands import search_path
from support.pages import blocks, run

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "howto").glob("*.md"))

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """``people.parquet`` and its domain file, as the first steps of the tutorial make them."""
    folder = tmp_path_factory.mktemp("people")
    first, *rest = blocks(ROOT / "docs" / "tutorial.md")[1:]
    text = first.text.replace("'people.parquet'", f"'{folder / 'people.parquet'}'")
    exec(compile(text, "the tutorial", "exec"), {})
    (domain,) = (block for block in rest if block.title)
    (folder / domain.title).write_text(domain.text, encoding="utf-8")
    return folder


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs_as_it_stands(page, table, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", search_path(tmp_path))
    monkeypatch.delenv("DPSYN_LEDGER", raising=False)
    folder = tmp_path / "work"
    shutil.copytree(table, folder)
    shutil.copytree(
        ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("clinic.*", "visits_*")
    )
    monkeypatch.chdir(folder)
    assert run(page, folder) > 0
