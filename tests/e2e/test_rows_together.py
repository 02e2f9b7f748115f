"""Whole releases whose rows stay together, as an analyst calls them: wrong calls, odd tables, the second run."""

import re
import warnings

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.errors import InputError

COLUMNS = {
    "kind": {"type": "categorical", "categories": ["a", "b", "c"], "other": False},
    "price": {"type": "numeric", "lower": 0, "upper": 99, "bins": 10},
    "day": {"type": "temporal", "lower": "2024-01-01", "upper": "2024-12-31", "bins": 12},
    "born": {"type": "numeric", "lower": 1940, "upper": 2010, "bins": 7, "per_unit": True},
}
VISITS = """
    SELECT
        (i % 900)::INTEGER AS person,
        ['a', 'b', 'c'][1 + ((hash(i % 900) + (hash(i) % 10 > 7)::INTEGER) % 3)::INTEGER] AS kind,
        (hash(i * 3) % 100)::INTEGER AS price,
        DATE '2024-01-01' + (hash(i * 7) % 360)::INTEGER AS day,
        (1940 + hash((i % 900) * 11) % 70)::INTEGER AS born
    FROM range(4500) AS numbers(i)
"""


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE visits AS {VISITS}")
        yield connection


def released(con, source="visits", **options):
    given = dict(unit="person", most=16, domain={"columns": COLUMNS})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.release(con, source, **{**given, **options})


def test_persons_have_their_rows_their_year_and_their_order(con):
    released(con, epsilon=20, order="day", into="copy")
    persons, rows, most = con.execute(
        "SELECT count(*), sum(n), max(years) FROM "
        "(SELECT count(*) AS n, count(DISTINCT born) AS years FROM copy GROUP BY person)"
    ).fetchall()[0]
    assert abs(persons - 900) < 30 and abs(rows - 4500) < 200 and most == 1
    steps = con.execute(
        "SELECT count(*) FILTER (step < 0), count(*) FROM (SELECT day - lag(day) OVER "
        "(PARTITION BY person ORDER BY rowid) AS step FROM copy)"
    ).fetchall()[0]
    assert steps[0] == 0 and steps[1] > 4000


def test_a_marginal_counts_persons_and_their_rows(con):
    release = released(con, epsilon=20)
    table = release.marginal(["rows of the unit"])
    assert abs(table.estimate.sum() - 900) < 30
    assert table.estimate.idxmax() == 4
    loaded = dpsyn_sql.load(con, "visits_synthetic")
    assert abs(loaded.marginal(["born"]).estimate.sum() - 900) < 30
    sample = con.execute("FROM dpsyn_sample('visits_synthetic', 50)").df()
    assert sample.person.nunique() == 50
    assert (sample.groupby("person").born.nunique() == 1).all()


def test_the_same_call_replays_and_another_order_is_another_release(con):
    first = released(con, order="day", into="copy", name="visits")
    again = released(con, order="day", into="copy", name="visits", replace=True)
    assert again.replayed and again.id == first.id
    for other in ({"order": None}, {"weights": False, "order": None}):
        with pytest.raises(dpsyn_sql.errors.ReleaseChanged):
            released(con, into="copy", name="visits", replace=True, **other)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"most": 1, "order": "day"}, "2 or more"),
        ({"unit": "row", "most": 1, "order": "day"}, "name its column"),
        ({"unit": "row"}, "with unit='row'"),
        ({"weights": False, "order": "day"}, "leave weights=False out"),
        ({"order": "kind"}, "must be a date, a timestamp or a whole number"),
        ({"order": "dya"}, "can be ordered by"),
        ({"order": "born"}, "orders no rows of a unit"),
        ({"order": ""}, "the name of a column"),
        ({"weights": 1}, "True or False"),
        ({"method": "copula"}, "use 'adaptive'"),
        ({"method": "traces"}, "order="),
    ],
)
def test_a_wrong_call_is_one_error_and_costs_nothing(con, options, words):
    with pytest.raises(InputError) as refused:
        released(con, **options)
    assert words in str(refused.value)
    tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall()
    assert tables == [("visits",)]


@pytest.mark.parametrize("order", [None, "day"])
@pytest.mark.parametrize(
    ("odd", "delta"),
    [
        ("SELECT * REPLACE (NULL::INTEGER AS person) FROM visits", 1e-9),
        ("SELECT * REPLACE (1 AS person) FROM visits", 1e-9),
        ("SELECT * REPLACE (NULL::DATE AS day) FROM visits", 0),
        ("SELECT * FROM visits WHERE price < 0", 1e-9),
        ("SELECT * REPLACE ('infinity'::DATE AS day) FROM visits", 1e-9),
    ],
)
def test_odd_tables_end_well(con, odd, delta, order):
    con.execute(f"CREATE TABLE odd AS {odd}")
    release = released(con, "odd", order=order, delta=delta)
    written = con.execute("SELECT count(*), max(day) FROM odd_synthetic").fetchall()[0]
    assert written[0] == release.rows


def test_a_table_of_single_rows_is_told(con):
    con.execute("CREATE TABLE single AS SELECT * REPLACE (rowid::INTEGER AS person) FROM visits")
    notes = released(con, "single", epsilon=5).notes
    assert any("of the units have one row: with weights=False" in note for note in notes)


def test_a_typing_error_in_what_a_person_shares_is_outvoted_and_told(con):
    """Every fourth person has one visit with another year; the second least of their codes."""
    con.execute(
        "CREATE TABLE typed AS SELECT id, CASE WHEN visit = 1 AND id % 4 = 0 THEN 'A' ELSE 'B' END AS kind "
        "FROM range(2000) p(id), range(3) v(visit)"
    )
    kinds = {"type": "categorical", "categories": ["A", "B"], "other": False, "nullable": False}
    release = dpsyn_sql.release(
        con,
        "typed",
        unit="id",
        most=4,
        epsilon=2,
        domain={"columns": {"kind": {**kinds, "per_unit": True}}},
    )
    told = next(note for note in release.notes if "more than one 'kind'" in note)
    number = int(re.search(r"about ([\d,]+) have more than one 'kind'", told)[1].replace(",", ""))
    assert abs(number - 500) < 60
    assert told in release.summary()
    assert told in release.facts["losses"]["warnings"]
    shares = con.execute("SELECT avg((kind = 'B')::INTEGER), count(*) FROM typed_synthetic").fetchone()
    assert shares[0] > 0.95 and shares[1] > 5000


def test_the_plan_says_whom_it_protects(con):
    text = str(
        dpsyn_sql.plan(
            con,
            "visits",
            unit="person",
            most=64,
            order="day",
            domain={"columns": COLUMNS},
        )
    )
    assert "all rows of one person; at most 64 of them are counted" in text
    assert "each person counts the same, however many rows it has" in text
    assert "of one value per unit, the most frequent of its rows: born" in text
    assert "one more table is asked: units of more than one value there" in text
    assert "units in 95 % of releases" in text
