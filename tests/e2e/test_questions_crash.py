"""Releases whose questions depend on answers, killed between questions: one debit, and the answers already had.

All columns go together, so that adaptive marginals have three-way tables to ask for, in a third round.
"""

import shutil

import pytest
from test_release_crash import Case, children  # noqa: F401 - a fixture

from dpsyn_sql.methods import METHODS, Static

pytestmark = pytest.mark.slow

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


DEATHS = {
    # One death for each number of answers that the ledger can hold, and one with the other kind of output: the
    # expectations of a later round ("model") and its choice ("select") store nothing before they are over.
    "adaptive": [
        ("database", "select", 1),
        ("database", "fit", 1),
        ("parquet", "model", 2),
        ("database", "fit", 2),
        ("database", "select", 3),
        ("database", "fit", 3),
    ],
    # A question is charged, and its noise is not drawn yet: the views; before the fit, all answers are there.
    "dpsyn": [("database", "noise", 2), ("parquet", "fit", 1)],
    # The first choice, the first table, a later choice, the last table.
    "privbayes": [("database", "noise", time) for time in (2, 3, 6, 11)],
    # The margins of the parts, and then their pairs.
    "dpcopula": [("database", "noise", 2), ("parquet", "noise", 3)],
}
SETTINGS = {"dpcopula": {"hybrid": True}}


@pytest.fixture
def case(children, tmp_path, kind, method):  # noqa: F811
    options = {"domain": SPEC, "method": {"name": method, **SETTINGS.get(method, {})}}
    return Case(children, tmp_path / "case", kind, query=f"{ROWS} FROM range(40000) AS r(i)", **options)


def test_every_method_whose_questions_depend_on_answers_is_killed():
    assert set(DEATHS) == {name for name, method in METHODS.items() if not isinstance(method, Static)}


@pytest.mark.parametrize(
    ("method", "kind", "phase", "time"),
    [(method, *death) for method, deaths in DEATHS.items() for death in deaths],
)
def test_killed_between_questions_and_resumed(case, phase, time):
    assert case.run(phase=(phase, time)) is None
    before, stored = case.checked()
    assert [one.state for one in before.releases] == ["debited"] and stored
    assert case.output(killed=True) is None
    backup = case.folder.with_name("backup")
    shutil.copytree(case.folder, backup)
    for _ in range(2):  # whatever machine goes on, it asks what was asked
        again = case.run()
        assert "error" not in again, again
        after, now = case.checked()
        assert (
            again["replayed"] and again["id"] == after.releases[0].release_id == before.releases[0].release_id
        )
        assert after.accounts[0].spent == before.accounts[0].spent
        assert now.startswith(stored)
        assert len(case.output(killed=True)) == again["rows"] > 0
        shutil.rmtree(case.folder)
        shutil.copytree(backup, case.folder)


@pytest.mark.parametrize(("method", "kind"), [*((m, "database") for m in DEATHS), ("adaptive", "parquet")])
def test_a_finished_release_is_replayed_without_the_source(case):
    first = case.run()
    _, stored = case.checked()
    again = case.run({"seed": 5, "replace": True})
    assert again["noisy"] == first["noisy"] and case.checked()[1] == stored
