"""Releases whose questions depend on answers, killed between questions: one debit, and the answers already had.

All columns go together, so that adaptive marginals have three-way tables to ask for, in a third round.
Discovery of texts has a column for each order of its questions.
"""

import shutil
from contextlib import closing

import pytest
from test_release_crash import Case

from dpsyn_sql.ledger.sqlite import SqliteLedger

pytestmark = [pytest.mark.slow, pytest.mark.required]

SPEC = {"columns": {name: {"type": "categorical", "categories": list(range(6))} for name in "abcdef"}}
COLUMNS = [
    "i % 6",
    "(i // 3) % 6",
    "(i % 6 + i // 7 % 2) % 6",
    "(i * i) % 6",
    "i % 3 + i // 3 % 3",
    "i * i // 3 % 6",
]
ROWS = f"SELECT {', '.join(f'{sql} AS {name}' for sql, name in zip(COLUMNS, 'abcdef', strict=True))}"


DEATHS = [  # the method, the output, and the phase at whose n-th beginning it dies
    ("adaptive", "database", "select", 1),
    ("adaptive", "parquet", "model", 2),
    ("adaptive", "database", "fit", 3),
    ("dpsyn", "parquet", "noise", 2),
    ("privbayes", "database", "noise", 6),
    ("dpcopula", "database", "noise", 2),
    ("mixture", "database", "noise", 4),
]
SETTINGS = {"dpcopula": {"hybrid": True}, "mixture": {"components": 5}}


@pytest.mark.parametrize(("method", "kind", "phase", "time"), DEATHS)
def test_killed_between_questions_and_resumed(children, tmp_path, method, kind, phase, time):
    settings = {"name": method, **SETTINGS.get(method, {})}
    options = {"domain": SPEC, "method": settings, "query": f"{ROWS} FROM range(40000) AS r(i)"}
    case = Case(children, tmp_path / "case", kind, **options)
    assert case.run(phase=(phase, time)) is None
    before, stored = case.checked()
    assert [one.state for one in before.releases] == ["debited"] and stored
    assert case.output(killed=True) is None
    again = case.run()
    assert "error" not in again, again
    after, now = case.checked()
    assert again["replayed"] and again["id"] == after.releases[0].release_id == before.releases[0].release_id
    assert after.accounts[0].spent == before.accounts[0].spent
    assert now.startswith(stored)
    assert len(case.output(killed=True)) == again["rows"] > 0


PEOPLE = "SELECT i // 2 AS person, 'v' || (i % 3) AS word, (i % 97 / 4)::DECIMAL(8,2) AS pay FROM range(3000) AS r(i)"
PERSON = {"unit": "person", "most": 2, "weights": False}
COUNTED = [  # what counts for each question, in order
    "counting units per cell of a grid",
    *("counting units per type of text", "counting units per type of text"),
    *("counting units per key", "counting units per key", "counting units per cell of a grid"),
    "counting units per step of their values",
    *("counting units per cell of a grid", "counting units per cell of a grid"),
    *("counting units by their rows", "counting marginals on the codes"),
]


@pytest.fixture(scope="module")
def undeclared(children, tmp_path_factory):
    """A CSV file of texts and numbers without a domain, and the steps at which a question is counted."""
    options = {"domain": None, "method": "independent", **PERSON}
    case = Case(children, tmp_path_factory.mktemp("undeclared") / "case", "csv", query=PEOPLE, **options)
    labels = case.copy("undisturbed").run()["steps"]
    counts = [step for step, label in enumerate(labels) if label in COUNTED]
    assert [labels[step] for step in counts] == COUNTED
    return case, counts


def ledger_rows(case):
    with closing(SqliteLedger(case.folder / "ledger")) as ledger:
        return [tuple(row) for row in ledger._store.all("all_events")], [
            tuple(row) for row in ledger._store.all("all_answers")
        ]


@pytest.mark.parametrize("answers", (0, 4, len(COUNTED) - 1))
def test_discovery_killed_when_a_question_is_charged_and_resumed(undeclared, answers):
    """The question is paid for once, and what was answered stays; the last death is after discovery."""
    case, counts = undeclared
    case = case.copy(f"answers{answers}")
    assert case.run(step=counts[answers]) is None
    before, _ = case.checked()
    events, stored = ledger_rows(case)
    charged = {4: 7}.get(answers, answers + 1)  # what is asked together is charged together
    assert (len(events), len(stored)) == (charged, answers) and case.output(killed=True) is None
    again = case.run()
    assert "error" not in again, again["text"]
    after, _ = case.checked()
    assert again["replayed"] and again["id"] == after.releases[0].release_id == before.releases[0].release_id
    assert after.accounts[0].spent == before.accounts[0].spent
    paid, now = ledger_rows(case)
    assert paid[:charged] == events and now[:answers] == stored
    assert len(paid) == len(now) == len(COUNTED) and len(case.output()) == again["rows"] > 0
    shutil.rmtree(case.folder)
