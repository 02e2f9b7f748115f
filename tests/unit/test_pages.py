"""Pages of the documentation: their links lead somewhere, and what runs their code tells right from wrong."""

import re
from functools import cache
from pathlib import Path

import pytest
from support.pages import agree, blocks, run, shape

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *CHECKOUT.glob("*.md"),
        *(CHECKOUT / "docs").rglob("*.md"),
        *(CHECKOUT / "benchmarks").glob("*.md"),
        *(CHECKOUT / "examples").rglob("*.md"),
    ]
)
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+(?:\([^()\s]*\))?)\)")


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL))


@cache
def anchors(page):
    """Names of a page's headings, as the site and the host of the repository make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_link_leads_to_a_file_and_a_heading(page):
    for link in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"https?:|mailto:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def named(page):
    """Paths in backticks that begin with a folder of the repository or with a room of the package."""
    rooms = "|".join(
        [path.name for path in (CHECKOUT / "dpsyn_sql").iterdir() if path.is_dir()] + ["measure"]
    )
    folders = rf"(?:dpsyn_sql|tests|sql|benchmarks|docs|examples|{rooms})"
    return re.findall(rf"`({folders}/[\w./*]*)`", page.read_text(encoding="utf-8"))


def test_every_path_that_a_page_names_exists():
    """``measure/`` alone stands for ``private/measure/``; change log and decisions name what there was."""
    roots = [CHECKOUT, CHECKOUT / "dpsyn_sql", CHECKOUT / "dpsyn_sql" / "private"]
    history = {CHECKOUT / "CHANGELOG.md", *(CHECKOUT / "docs" / "decisions").glob("*.md")}
    found = {name for page in PAGES if page not in history for name in named(page)}
    assert len(found) > 100
    missing = {name for name in found if not any(list(root.glob(name.rstrip("/"))) for root in roots)}
    # a file to be written, and a folder of the installed package
    assert missing == {"cli/my_command.py", "dpsyn_sql/_sql"}


def test_a_block_has_its_output_and_its_indentation_goes(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nx = 1\n```\n\n```text\n```\n1. so\n\n   ```sh\n   echo a\n     # b\n   ```\n\n   ```text\n   a\n"
        '   ```\n\nwords\n\n```text\nno output\n```\n\n```yaml title="a.yml"\na: 1\n```\n'
    )
    found = blocks(page)
    assert [(one.language, one.title, one.text, one.prints) for one in found] == [
        ("python", "", "x = 1\n", ""),
        ("sh", "", "echo a\n  # b\n", "a\n"),
        ("text", "", "no output\n", None),
        ("yaml", "a.yml", "a: 1\n", None),
    ]


def test_shapes_differ_in_words_and_lines_not_in_numbers_hashes_times_and_folders():
    assert agree("spent epsilon=0.98 at 1.8e-09", "spent  epsilon=1 at 9e-10")
    assert agree("Release f3fec6bbc332c3ea, 29,982 rows", "Release 7f65269b9bfd21fa, 3 rows")
    assert agree("debited 2026-11-23T17:32:44+00:00", "debited 2027-01-01T00:00:01+00:00")
    assert agree("to visits_2025.parquet", "to /home/me/visits_2025.parquet")
    assert agree("a\n...\nb", "a\nb") and agree("a\n...\nb", "a\nx\ny\nb") and agree("┌───┐", "┌─────┐")
    for expected, printed in (
        ("no limit", "no limit."),
        ("a\nb", "a"),
        ("a", "a\nb"),
        ("a\n...\nb", "x\na\nb"),
        ("5 codes", "five codes"),
        ("exit code 3", "exit code"),
    ):
        assert not agree(expected, printed), (expected, printed, shape(expected))


def test_a_page_whose_output_differs_or_whose_command_fails_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    good = '```yaml title="a.yml"\nkey: 1\n```\n\n```sh\ncat a.yml\n```\n\n```text\nkey: 2\n```\n\n'
    python = "```python\nx = 2\n```\n\n```python\nprint(x + 1)\n```\n\n"
    page.write_text(good + python)
    assert run(page, tmp_path) == 3
    for wrong, words in (
        (good.replace("key: 2", "word: 2"), "prints"),
        ("```sh\nfalse\n```\n", "ends with 1"),
        (python + "```text\nthree\n```\n", "prints"),
    ):
        page.write_text(wrong)
        with pytest.raises(AssertionError, match=words):
            run(page, tmp_path)
