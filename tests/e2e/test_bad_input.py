"""Each bad input is one clear error of our own; nothing is written, nothing is charged."""

import inspect

import duckdb
import pandas as pd
import pytest

import dpsyn_sql
from dpsyn_sql.ledger.sqlite import MemoryLedger

pytestmark = pytest.mark.slow

SPEC = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}


@pytest.fixture
def con(tmp_path):
    with duckdb.connect(str(tmp_path / "w.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT (i % 10)::INTEGER AS n, i % 2 = 0 AS b FROM range(99) AS r(i)"
        )
        connection.execute(
            "CREATE TABLE nested(n INTEGER, l INTEGER[], s STRUCT(a INTEGER), m MAP(INTEGER, INTEGER), x BLOB)"
        )
        yield connection


def existing(con, tmp_path):
    tables = con.execute("SELECT database_name, table_name FROM duckdb_tables() ORDER BY ALL").fetchall()
    return tables, sorted(path.name for path in tmp_path.iterdir())


def column(**facts):
    return {"columns": {"n": facts}}


CASES = {
    "missing table": (dict(source="nope"), dpsyn_sql.errors.SourceError, "nope"),
    "window": (dict(source="SELECT n, row_number() OVER () AS r FROM t", into="o"), dpsyn_sql.errors.SourceError, "window"),
    "no columns left": (dict(exclude=["n", "b"]), dpsyn_sql.errors.InputError, "(?i)no column"),
    "exclude as text": (dict(exclude="b"), dpsyn_sql.errors.InputError, "list"),
    "nested types": (dict(source="nested"), dpsyn_sql.errors.DomainError, "(?s)exclude"),
    "no domain": (dict(domain=None, discover=False), dpsyn_sql.errors.DomainError, '"?n"?'),
    "unknown on_error": (dict(csv={"on_error": "ignore"}), dpsyn_sql.errors.InputError, "on_error.*null, fail"),
    "unknown column": (dict(domain={"columns": {"q": {"type": "numeric", "lower": 0, "upper": 1}}}), dpsyn_sql.errors.DomainError, "q"),
    "lower above upper": (dict(domain=column(type="numeric", lower=5, upper=5)), dpsyn_sql.errors.DomainError, "lower"),
    "missing domain file": (dict(domain="missing.yml"), dpsyn_sql.errors.InputError, "missing.yml"),
    "epsilon zero": (dict(epsilon=0), dpsyn_sql.errors.BudgetError, "epsilon"),
    "unknown method": (dict(method="magic"), dpsyn_sql.errors.InputError, "copula"),
    "into exists": (dict(into="nested"), dpsyn_sql.errors.TargetError, "replace"),
    "unknown ending": (dict(into="folder/o.xlsx"), dpsyn_sql.errors.TargetError, "parquet"),
    "rows below zero": (dict(rows=-1), dpsyn_sql.errors.InputError, "rows"),
    "seed too large": (dict(seed=2**64), dpsyn_sql.errors.InputError, "seed"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_refused_without_a_trace(con, tmp_path, case):
    options, error, message = CASES[case]
    arguments = {"source": "t", "domain": SPEC, **options}
    before, ledger = existing(con, tmp_path), MemoryLedger()
    with pytest.raises(error, match=message) as caught:
        dpsyn_sql.release(con, arguments.pop("source"), ledger=ledger, **arguments)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert existing(con, tmp_path) == before
    assert ledger.overview().releases == ()


STRANGE = [
    'quo"te',
    "{{ brace }}",
    "x" * 5000,
    "שלום עולם",
    "a.b",
    "é",
]


@pytest.mark.parametrize("name", STRANGE, ids=range(len(STRANGE)))
def test_strange_names_work(con, name):
    quoted = '"' + name.replace('"', '""') + '"'
    con.execute(f"CREATE TABLE {quoted} AS SELECT true AS {quoted}, 3 AS n FROM range(50)")
    result = dpsyn_sql.release(con, quoted, domain=SPEC, into="o", epsilon=20)
    assert [row[0] for row in con.execute("DESCRIBE o").fetchall()] == [name, "n"]
    assert con.execute("SELECT count(*) FROM o").fetchone()[0] == result.rows > 20
    assert len(result.marginal([name, "n"])) == result.marginal([name, "n"]).shape[0] > 0


def test_noise_in_place_of_rows_is_a_warning():
    """A bound far above what units have: sensitivity, and with it the noise, belongs to the bound."""
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT i AS person, (i % 10)::INTEGER AS n FROM range(2000) AS r(i)")
        options = dict(domain=SPEC, unit="person", most=1, method="independent", replace=True, new_debit=True)
        with pytest.warns(UserWarning, match="standard error of .* or count fewer than 10000 rows of a unit"):
            release = dpsyn_sql.release(con, "t", most=10_000, weights=False, **options)
        assert any("is uncertain" in note for note in release.notes)
        fine = dpsyn_sql.release(con, "t", most=1, **options)
        assert not any("is uncertain" in note for note in fine.notes)


ARGUMENTS = [name for name in inspect.signature(dpsyn_sql.release).parameters if name != "progress"]
NESTED = {
    "domain of a column": ("domain", lambda wrong: {"columns": {"n": wrong}}),
    "a bound": ("domain", lambda wrong: column(type="numeric", lower=wrong, upper=9)),
    "a category": ("domain", lambda wrong: column(type="categorical", categories=[wrong])),
    "a weight": ("workload", lambda wrong: {"n": wrong}),
    "a list": ("exclude", lambda wrong: [wrong]),
}


@pytest.mark.parametrize("kind", ["data frame", "series", "relation"])
@pytest.mark.parametrize("argument", [*ARGUMENTS, *NESTED])
def test_data_in_the_place_of_an_argument_is_not_printed(con, tmp_path, argument, kind):
    frame = pd.DataFrame({"name": ["Anna Secret", "Bob Secret"], "n": [1, 2]})
    con.execute("CREATE TABLE people AS SELECT 'Anna Secret' AS name, 1 AS n")
    wrong = {"data frame": frame, "series": frame["name"], "relation": con.sql("FROM people")}[kind]
    if (argument, kind) == ("con", "data frame"):
        pytest.skip("a data frame in the place of the connection is a source")
    place, nested = NESTED.get(argument, (argument, lambda value: value))
    arguments = {"con": con, "source": "t", "domain": SPEC, "ledger": tmp_path / "l", place: nested(wrong)}
    with pytest.raises((dpsyn_sql.errors.InputError, TypeError)) as caught:
        dpsyn_sql.release(**arguments)
    error = caught.value
    while error is not None:
        assert "Secret" not in str(error)
        error = error.__cause__ or error.__context__
    assert not (tmp_path / "l").exists()


def test_a_file_alone_is_the_source(tmp_path):
    (tmp_path / "p.csv").write_text("n\n1\n")
    spec = {"columns": {"n": {"type": "numeric", "sql_type": "INTEGER", "lower": 0, "upper": 9}}}
    for file in (tmp_path / "p.csv", str(tmp_path / "p.csv"), tmp_path):
        into = tmp_path.parent / "o.parquet"
        assert "(csv)" in dpsyn_sql.plan(file, domain=spec, into=into).verbose()
    with duckdb.connect() as con:
        for alone, words in (
            (con, "source="),
            (None, "source="),
            (tmp_path / "w.duckdb", "name the table too"),
        ):
            with pytest.raises(dpsyn_sql.errors.InputError, match=words):
                dpsyn_sql.release(alone)
