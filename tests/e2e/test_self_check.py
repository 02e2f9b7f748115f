"""A release compares its rows with what was counted: of one table, of rows of persons, of tables, of a panel."""

import re
import warnings
from dataclasses import replace
from importlib import import_module

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.discovery import one_look
from dpsyn_sql.errors import InternalError
from dpsyn_sql.ledger.sqlite import MemoryLedger
from dpsyn_sql.rows.sample import tables
from dpsyn_sql.rows.sample.walk import FamilySampler
from dpsyn_sql.source.slices import Window

DRAWN = import_module("dpsyn_sql.rows.write.families")
LIST = {"type": "categorical", "categories": ["a", "b", "c", "d"], "other": False}
COLUMNS = {"x": LIST, "y": LIST, "z": LIST}
TABLE = """
    SELECT
        (i % 1500)::INTEGER AS person,
        ['a', 'b', 'c', 'd'][1 + i % 4] AS x,
        ['a', 'b', 'c', 'd'][1 + i % 4] AS y,
        ['a', 'b', 'c', 'd'][1 + (hash(i) % 4)::INTEGER] AS z
    FROM range(6000) AS r(i)
"""


@pytest.fixture
def con():
    with duckdb.connect() as connection, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        connection.execute(f"CREATE TABLE t AS {TABLE}")
        yield connection


def released(con, **options):
    given = {"into": "copy", "epsilon": 20.0, "domain": {"columns": COLUMNS}, "exclude": ["person"]}
    given["ledger"] = MemoryLedger()
    return dpsyn_sql.release(con, "t", **{**given, **options})


def of_persons(con, **options):
    together = {"unit": "person", "most": 8, "exclude": []}
    return released(con, **together, **options)


def losses(made):
    return made.certificate()["losses"]


def fits(made):
    """Nothing departs; what is independent in the source may be called independent."""
    good = all(column["verdict"] == "good" for column in losses(made)["columns"])
    return good and "was counted" not in str(losses(made))


def changed(patch, change):
    """Rows of a table are changed as they are drawn."""
    batches = DRAWN._reported
    patch.setattr(DRAWN, "_reported", lambda *given: (change(one.copy()) for one in batches(*given)))


def to_first(share):
    """x of this share of the rows becomes its first code."""

    def change(codes):
        codes[np.flatnonzero(codes[:, 0])[: round(share * len(codes))], 0] = 0
        return codes

    return change


def permuted(codes):
    codes[:, 0] = np.random.default_rng(1).permutation(codes[:, 0])
    return codes


def changed_families(patch, change):
    """Rows of families are changed as they are drawn."""
    rows = FamilySampler.rows

    def changed_rows(self, *given):
        for batch in rows(self, *given):
            yield replace(batch, codes=change(batch.codes))

    patch.setattr(FamilySampler, "rows", changed_rows)


def test_rows_of_the_model_are_good(con):
    assert fits(released(con)) and fits(released(con, into="alone", method="independent"))


def test_a_column_that_moved_is_told_everywhere(con, monkeypatch):
    changed(monkeypatch, to_first(0.04))
    made = released(con)
    why = losses(made)["columns"][0]["why"]
    assert "of the rows have another value of 'x' than was counted: a has" in why
    assert losses(made)["columns"][0]["verdict"] == "rough"
    assert why in made.summary() and why in list(made.verdict["why"])
    assert any(why in note for note in made.notes)


def test_a_table_that_was_ignored_is_told(con, monkeypatch):
    changed(monkeypatch, permuted)
    found = losses(released(con))
    assert found["dependences"]["verdict"] == "do not use"
    assert (
        "of the rows have other values of 'x' and 'y' together than was counted"
        in found["dependences"]["why"]
    )
    assert all(column["verdict"] == "good" for column in found["columns"])


def test_a_column_that_is_wrong_ends_the_call_and_the_same_call_goes_on(con, tmp_path):
    ledger = tmp_path / "ledger"
    with pytest.MonkeyPatch.context() as patch:
        changed(patch, to_first(0.2))
        with pytest.raises(
            InternalError, match=r"another value of 'x'.*Nothing was written.*costs nothing more"
        ):
            released(con, ledger=ledger)
    assert con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'copy'").fetchone() == (0,)
    made = released(con, ledger=ledger)
    assert made.replayed and fits(made)


@pytest.mark.parametrize("most", [10**6, 3_000])
def test_rows_of_persons_are_compared_with_persons(con, monkeypatch, most):
    """The same if only some of the persons are looked at."""
    monkeypatch.setattr(tables, "MOST_ROWS", most)
    assert fits(of_persons(con, into="right"))
    changed_families(monkeypatch, to_first(0.3))
    with pytest.raises(InternalError, match="another value of 'x'"):
        of_persons(con, into="other")


def test_a_column_that_was_looked_at_once_is_compared_with_what_was_counted(con, monkeypatch):
    """The one-way table of a learnt number is a curve through the answers: here it has NULL in all rows."""
    con.execute("CREATE TABLE ages AS SELECT x, (person % 7)::INTEGER AS n FROM t")
    domain = {"columns": {"x": LIST, "n": {"type": "discover"}}}
    options = {"domain": domain, "epsilon": 0.5, "ledger": MemoryLedger()}

    def why(into):
        made = dpsyn_sql.release(con, "ages", into=into, unit="row", new_debit=True, **options)
        return {one["name"]: one.get("why", "") for one in losses(made)["columns"]}

    assert "was counted" not in str(why("good"))
    monkeypatch.setattr(one_look, "_null", lambda count, sigma, total: total)
    told = re.search(r"another value of 'n' than was counted: \(no value\) has ([\d.]+)%", why("bad")["n"])
    assert told is not None and float(told[1]) > 90


def test_rows_that_conditions_replaced_are_counted_in_certificate_and_summary(con):
    """x is a in a quarter of the rows, and then z is b, c or d in three of four."""
    domain = {"columns": COLUMNS, "never": ["x = 'a' AND z <> 'a'"]}
    made = released(con, domain=domain)
    part = made.certificate()["sampling"]["replaced"] / made.rows
    assert part == pytest.approx(3 / 16, abs=0.03)
    note = f"{part:.0%} of the rows met a condition of never: or CHECK"
    assert note in made.summary() and any(note in text for text in losses(made)["warnings"])
    assert "replaced" not in released(con, into="other").certificate()["sampling"]


def test_a_column_of_persons_that_moved_is_told(con, monkeypatch):
    changed_families(monkeypatch, to_first(0.05))
    assert "another value of 'x' than was counted" in losses(of_persons(con))["columns"][0]["why"]


def test_a_part_of_the_rows_of_a_table_is_compared(con, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 3_000)
    assert fits(released(con, into="right"))
    changed(monkeypatch, to_first(0.2))
    with pytest.raises(InternalError, match="another value of 'x'"):
        released(con)


def test_conditions_may_replace_rows_and_it_is_told(con):
    domain = {"columns": COLUMNS, "never": ["x = 'a' AND z <> 'a'"]}
    told = [one["why"] for one in losses(released(con, domain=domain))["columns"] if "why" in one]
    assert any("than was counted" in why for why in told)


@pytest.mark.slow
def test_each_table_of_a_database_is_compared(con, monkeypatch):
    con.execute("CREATE TABLE people AS SELECT DISTINCT person, ['a', 'b'][1 + person % 2] AS sex FROM t")
    con.execute("CREATE TABLE visits AS SELECT row_number() OVER () AS visit, * FROM t")
    sex = {"type": "categorical", "categories": ["a", "b"], "other": False}
    visits = {"key": "visit", "parent": "people", "foreign_key": "person", "most": 8, "columns": COLUMNS}
    domain = {"tables": {"people": {"key": "person", "columns": {"sex": sex}}, "visits": visits}}
    options = dict(unit="people.person", domain=domain, epsilon=20.0, new_debit=True)
    made = dpsyn_sql.release(con, into="right", **options)
    assert fits(made["visits"]) and fits(made["people"])
    changed_families(monkeypatch, lambda codes: to_first(0.05)(codes) if codes.shape[1] > 2 else codes)
    made = dpsyn_sql.release(con, into="wrong", **options)
    assert fits(made["people"])
    assert "another value of 'x' than was counted" in losses(made["visits"])["columns"][0]["why"]


@pytest.mark.slow
def test_each_period_of_a_panel_is_compared(tmp_path, monkeypatch):
    """Of the first period as of a table; of a later one given the rows before."""
    path, edges = str(tmp_path / "w.duckdb"), ("2025-01-01", "2025-02-01", "2025-03-01")
    with duckdb.connect(path) as con:
        months = "DATE '2025-01-10' + to_months(m::INTEGER)"
        con.execute(
            f"CREATE TABLE t AS SELECT p AS person, CAST({months} AS DATE) AS day, ['a', 'b'][1 + p % 2] AS x, "
            "['a', 'b', 'c', 'd'][1 + (hash(p) % 4)::INTEGER] AS y FROM range(1500) AS a(p), range(2) AS b(m)"
        )
    options = {
        "unit": "person",
        "into": "out",
        "domain": {"columns": {"x": LIST, "y": LIST}},
        "epsilon": 20.0,
    }

    def period(number, **others):
        window = Window("day", "month from 2025-01-01", edges, number)
        asked = dpsyn_sql.Request("t", window=window, series="panel", **options, **others)
        return dpsyn_sql.release(path, asked)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert fits(period(0))
        with pytest.MonkeyPatch.context() as patch:
            changed_families(patch, to_first(0.2))
            with pytest.raises(InternalError, match="another value of 'x'"):
                period(1)
        made = period(1)
    assert made.replayed and fits(made)
