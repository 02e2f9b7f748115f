"""Keys of which the owner declares a part: the copy has its values, and states no key that it cannot hold."""

import warnings

import duckdb
import pytest

import dpsyn_sql

SQL = """
    CREATE TABLE persons (id INTEGER PRIMARY KEY, old BOOLEAN);
    INSERT INTO persons SELECT i, i % 2 = 0 FROM range(2000) AS r(i);
    CREATE TABLE wages (id INTEGER REFERENCES persons (id), year INTEGER, wage INTEGER, PRIMARY KEY (id, year));
    INSERT INTO wages SELECT id, year, CASE WHEN old THEN 1 ELSE 2 END FROM persons,
        (VALUES (2010, 10), (2011, 8), (2014, 5), (2017, 3)) AS y(year, part) WHERE hash(id, year) % 10 < part
"""
COLUMNS = {
    "year": {"type": "numeric", "lower": 2010, "upper": 2017, "bins": 8},
    "wage": {"type": "numeric", "lower": 1, "upper": 2, "bins": 2},
}


@pytest.fixture
def con(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as connection:
        connection.execute(SQL)
        yield connection


def released(con, *tables, words, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.release(
            con,
            unit="persons.id",
            source=["persons", *tables],
            domain={"tables": words},
            into="copy",
            epsilon=10,
            ledger="ledger.sqlite",
            constraints=True,
            **options,
        )


def shares(con, table, column):
    found = con.execute(f"SELECT {column}, count(*) FROM {table} GROUP BY ALL").fetchall()
    return {value: count / sum(count for _, count in found) for value, count in found}


def keys(con):
    return dict(
        con.execute(
            "SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE schema_name = 'copy' "
            "AND constraint_type = 'PRIMARY KEY'"
        ).fetchall()
    )


@pytest.mark.parametrize("order", [{}, {"order": "year"}])
def test_a_year_in_a_key_has_its_values(con, order):
    released(con, "wages", words={"wages": {"most": 4, "columns": COLUMNS, **order}})
    real, made = shares(con, "main.wages", "year"), shares(con, "copy.wages", "year")
    assert set(real) == {2010, 2011, 2014, 2017}
    assert all(abs(made.get(year, 0) - real.get(year, 0)) < 0.06 for year in {*real, *made})
    assert sum(share for year, share in made.items() if year in real) > 0.97
    assert keys(con) == {"persons": ["id"]}  # two rows of a person can have one year
    joined = con.execute("SELECT count(*) FROM copy.wages JOIN copy.persons USING (id)").fetchone()
    assert joined == con.execute("SELECT count(*) FROM copy.wages").fetchone()


def test_a_made_part_keeps_the_key(con):
    """Rows below name the year that is measured, and find their row."""
    con.execute(
        """
        CREATE TABLE visits (id INTEGER REFERENCES persons (id), year INTEGER, nr INTEGER, PRIMARY KEY (id, year, nr));
        INSERT INTO visits SELECT id, year, row_number() OVER (PARTITION BY id) FROM wages;
        CREATE TABLE notes (id INTEGER, year INTEGER, nr INTEGER, kind INTEGER,
            FOREIGN KEY (id, year, nr) REFERENCES visits (id, year, nr));
        INSERT INTO notes SELECT id, year, nr, 1 FROM visits
        """
    )
    words = {
        "visits": {"most": 4, "columns": {"year": COLUMNS["year"]}},
        "notes": {"most": 1, "columns": {"kind": COLUMNS["wage"]}},
    }
    released(con, "visits", "notes", words=words)
    assert keys(con) == {"persons": ["id"], "visits": ["id", "year", "nr"]}
    joined = "copy.notes LEFT JOIN copy.visits USING (id, year, nr)"
    rows, found = con.execute(f"SELECT count(*), count(visits.id) FROM {joined}").fetchone()
    assert rows == found > 0
    real, made = shares(con, "main.notes", "year"), shares(con, "copy.notes", "year")
    assert all(abs(made.get(year, 0) - share) < 0.06 for year, share in real.items())


def test_the_comparison_has_the_measured_part(con):
    words = {"wages": {"most": 4, "order": "year", "columns": COLUMNS}}
    released(con, "wages", words=words)
    told = dpsyn_sql.evaluate(con, None, "copy", domain={"tables": {"persons": {}, **words}}).tables
    assert "year" in set(told["relative_columns"]["column"])
    (line,) = told["keys"].query("table == 'wages' and names == ''").to_dict("records")
    assert line["key"] == "id, year" and line["broken_real"] == 0
