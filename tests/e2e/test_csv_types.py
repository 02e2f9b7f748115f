"""A CSV file without a domain file: types are found through the door, told before the debit, and written."""

import gzip
import re

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.source.slices import Partition

ROWS = 6_000
HEADER = "age,price,born,seen,zip,sure,city,note,nothing\n"


def line(i):
    """Numbers with marks and odd texts, money, dates and moments, codes, words, no value."""
    age = "NA" if i % 3 == 0 else "old" if i % 50 == 1 else str(20 + i % 50)
    day = f"20{10 + i % 12}-0{1 + i % 9}-1{i % 10}"
    price, seen, code = f"{i % 90}.{i % 100:02}", f"{day}T12:{i % 60:02}:00", f"{i % 7:05}"
    return f'{age},"{price}", {day},{seen},{code},{"TRUE" if i % 2 else "false"},{"ab"[i % 2]},"1,234",\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("csv")
    lines = [line(i) for i in range(ROWS)]
    (made / "t.csv").write_text("\ufeff" + HEADER + "".join(lines), encoding="utf-8")
    with gzip.open(made / "t.csv.gz", "wt", encoding="utf-8") as file:
        file.write(HEADER + "".join(lines))
    for part in range(2):
        (made / f"part{part}.csv").write_text(HEADER + "".join(lines[part::2]), encoding="utf-8")
    return made


TYPES = {
    "age": "BIGINT",
    "price": "DECIMAL(18,2)",
    "born": "DATE",
    "seen": "TIMESTAMP",
    "zip": "VARCHAR",
    "sure": "BOOLEAN",
    "city": "VARCHAR",
    "note": "VARCHAR",
    "nothing": "VARCHAR",
}


def told(caught):
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("t.csv", "parquet"),
        pytest.param("t.csv.gz", "csv", marks=pytest.mark.slow),
        pytest.param("part*.csv", "parquet", marks=pytest.mark.slow),
    ],
)
def test_the_types_are_found_and_written(folder, tmp_path, name, ending):
    out = tmp_path / f"o.{ending}"
    with pytest.warns(UserWarning) as caught:
        release = dpsyn_sql.release(
            None,
            folder / name,
            epsilon=20,
            into=out,
            seed=1,
            ledger=tmp_path / "l.sqlite",
            method="independent",
        )
    assert {one.name: one.sql_type for one in release.model.domain.attributes} == TYPES
    assert (
        len([text for text in told(caught) if "9 columns of the CSV file have no stated type" in text]) == 1
    )
    facts = release.certificate()["found_types"]
    assert {column: one["type"] for column, one in facts.items()} == TYPES
    assert facts["age"]["becomes_null"] == pytest.approx(0.02, abs=0.01)
    (odd,) = [text for text in told(caught) if "do not fit the type" in text]
    assert re.search(r"'age' \([123]% are no BIGINT\)", odd) and "'price'" not in odd
    with duckdb.connect() as con:
        if ending == "parquet":
            assert {row[0]: row[1] for row in con.execute(f"DESCRIBE FROM '{out}'").fetchall()} == TYPES
        else:
            con.execute(f"CREATE VIEW o AS FROM read_csv('{out}', all_varchar = true)")
            assert con.execute("SELECT bool_and(price SIMILAR TO '[0-9]+[.][0-9]{2}') FROM o").fetchone() == (
                True,
            )
            con.execute("CREATE VIEW typed AS SELECT TRY_CAST(age AS BIGINT) AS age, zip, sure, born FROM o")
            assert con.execute("SELECT count(DISTINCT sure) FROM o").fetchone() == (2,)
        source = f"read_csv('{out}', all_varchar = true)" if ending == "csv" else f"'{out}'"
        zips = {row[0] for row in con.execute(f"SELECT DISTINCT zip FROM {source}").fetchall()}
        assert {f"{digit:05}" for digit in range(7)} <= zips
        empty, far = con.execute(
            f"SELECT avg((age IS NULL)::INT), avg((age::BIGINT NOT BETWEEN 10 AND 130)::INT) FROM {source}"
        ).fetchone()
        assert empty == pytest.approx(1 / 3 + 0.02, abs=0.03)
        assert far < 0.005  # noise gives some rows to a range beside the found one now and then


def test_the_plan_tells_before_anything_is_charged(folder, tmp_path):
    with pytest.warns(UserWarning, match="learnt from the rows with noise, at 2.00% of the budget"):
        text = dpsyn_sql.plan(folder / "t.csv", into=tmp_path / "o.csv", ledger=tmp_path / "l").verbose()
    assert text.count("type and values to be discovered") == 9
    assert text.count("type of the text: numbers of units with noise") == 9
    assert text.count("if it is text: values that at least") == 9


def test_columns_whose_type_is_needed_first_stay_text(folder, tmp_path):
    domain = {
        "columns": {"note": {"derived": "CASE WHEN age > '30' THEN 'x' END"}},
        "never": ["born = '2010-01-10'"],
    }
    with pytest.warns(UserWarning, match="'age', 'born' have no stated type and are read as text"):
        plan = dpsyn_sql.plan(folder / "t.csv", domain=domain, into=tmp_path / "o.csv", ledger=tmp_path / "l")
    assert plan.shape.untyped == ("price", "seen", "zip", "sure", "city", "nothing")
    with pytest.warns(UserWarning, match="csv={'on_error': 'fail'}"):
        strict = dpsyn_sql.plan(
            folder / "t.csv", csv={"on_error": "fail"}, into=tmp_path / "o.csv", ledger=tmp_path / "l"
        )
    assert strict.shape.untyped == ()
    with pytest.warns(UserWarning, match="'city' has no stated type and is read as text"):
        sliced = dpsyn_sql.plan(
            folder / "t.csv", window=Partition("city", "a"), into=tmp_path / "o.csv", ledger=tmp_path / "l"
        )
    assert "city" not in sliced.shape.untyped and len(sliced.shape.untyped) == 8


@pytest.mark.parametrize("body", ["", "7,x\n", ",\n" * 500, '"1,5",2\n' * 400 + "3,4\n" * 400])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_hardly_any_rows_and_mixed_columns(tmp_path, body):
    (tmp_path / "t.csv").write_text("a,b\n" + body)
    done = dpsyn_sql.release(
        tmp_path / "t.csv", epsilon=1, rows=50, into=tmp_path / "o.parquet", ledger=tmp_path / "l"
    )
    assert done.rows == 50


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stated", [{}, {"bins": 12}, {"nullable": True}, {"nullable": True, "bins": 12}])
def test_a_declared_date_that_no_text_is_names_the_cause(tmp_path, stated):
    source = tmp_path / "days.csv"
    source.write_text("day,n\n" + "".join(f"{1 + i % 28:02}/12/2020,{i % 5}\n" for i in range(3000)))
    day = {"type": "temporal", "sql_type": "DATE", "lower": "2020-01-01", "upper": "2020-12-31", **stated}
    made = dpsyn_sql.release(
        None, str(source), into=str(tmp_path / "copy.parquet"), epsilon=5, domain={"columns": {"day": day}}
    )
    told = (
        "text that is no DATE as DuckDB reads it, such as 31/12/2020, counts as NULL: convert it in a query, "
        "try_strptime(x, '%d/%m/%Y')"
    )
    assert told in made.summary()
    assert any(told in note for note in made.notes)


@pytest.mark.filterwarnings("ignore")
def test_a_learnt_type_is_not_to_blame_for_missing_values(tmp_path):
    source = tmp_path / "sums.csv"
    source.write_text(
        "amount,n\n" + "".join(f"{i % 90 if i % 40 == 0 else ''},{i % 5}\n" for i in range(4000))
    )
    made = dpsyn_sql.release(None, str(source), into=str(tmp_path / "copy.parquet"), epsilon=10)
    (own,) = (one for one in made.facts["losses"]["columns"] if one["name"] == "amount")
    assert own["verdict"] != "do not use" and "CSV" not in made.summary()
