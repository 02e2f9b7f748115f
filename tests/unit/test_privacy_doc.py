"""Who cites a claim of docs/privacy.md finds it there, and every question of the door cites one."""

import re
from itertools import chain
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
CLAIMS = (CHECKOUT / "docs" / "privacy.md").read_text(encoding="utf-8")
HEADINGS = set(re.findall(r"^#+ (.+)$", CLAIMS, flags=re.MULTILINE))
CITING = sorted(
    chain(
        *((CHECKOUT / folder).rglob("*.py") for folder in ("dpsyn_sql", "tests", "benchmarks")),
        (CHECKOUT / "sql").rglob("*.sql"),
        *((CHECKOUT / folder).glob("*.md") for folder in ("", "docs", "docs/decisions", "benchmarks")),
    )
)
QUOTED = r'"([^"]+)"'
LISTED = rf"{QUOTED}(?:(?:,| and|, and) {QUOTED})*"


def cited(text):
    """Every heading in quotes behind the name of the document; names may go on in the next line or comment."""
    flat = re.sub(r"\s+(?:(?:#|--) )?", " ", text)
    for found in re.finditer(rf"docs/privacy\.md(?:\)|`)*, {LISTED}", flat):
        yield from re.findall(QUOTED, found[0])


def unknown(text):
    """What is cited and not there."""
    return set(cited(text)) - HEADINGS


def test_citations_are_found_wherever_lines_end_and_a_wrong_one_is_told():
    text = """    # docs/privacy.md, "The
    # ledger", "Keys" and "Locks". The "fourth" is none.
    [docs](docs/privacy.md), "Doors". docs/privacy.md says "six" nowhere."""
    assert list(cited(text)) == ["The ledger", "Keys", "Locks", "Doors"]
    assert unknown(text) == {"Locks", "Doors"}


def test_every_heading_that_is_cited_exists():
    texts = {path: path.read_text(encoding="utf-8") for path in CITING if path != Path(__file__)}
    assert sum(len(list(cited(text))) for text in texts.values()) > 12
    assert {str(path): wrong for path, text in texts.items() if (wrong := unknown(text))} == {}


def test_the_document_cites_its_own_headings_and_tests_that_there_are():
    own = {name for found in re.findall(rf"\({LISTED}\)", CLAIMS) for name in found if name}
    own = {" ".join(name.split()) for name in own}  # whatever lines they stand in
    assert len(own) > 3 and own <= HEADINGS
    tests = CHECKOUT / "tests"
    sources = {path.name: path.read_text(encoding="utf-8") for path in tests.rglob("test_*.py")}
    named = set(re.findall(r"\btest_\w+", CLAIMS))
    assert len(named) > 30
    for name in named:
        assert f"{name}.py" in sources or any(f"def {name}(" in text for text in sources.values()), name


QUESTIONS = sorted((CHECKOUT / "dpsyn_sql" / "measure" / "questions").glob("[!_]*.py"))


@pytest.mark.parametrize("file", QUESTIONS, ids=lambda path: path.stem)
def test_every_question_of_the_door_cites_its_claim(file):
    assert list(cited(file.read_text(encoding="utf-8").split('"""')[1]))
