"""However a file is spelled, its people are charged once, to one account; and no row counts twice."""

import os
from contextlib import closing

import duckdb
import pytest
from support.ledgers import granted, overview

import dpsyn_sql
from dpsyn_sql.ledger.sqlite import SqliteLedger

pytestmark = [pytest.mark.slow, pytest.mark.required]

SPEC = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}


@pytest.fixture
def folder(tmp_path):
    data = tmp_path / "acc"
    data.mkdir()
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT (i % 10)::INTEGER AS n FROM range(50) AS r(i)) TO '{data}/p.parquet'")
    (data / "link.parquet").symlink_to(data / "p.parquet")
    return data


def test_every_spelling_of_a_file_has_one_limit(folder, tmp_path):
    granted(tmp_path / "acc" / ".dpsyn-ledger", "p.parquet#row")
    spellings = ["p.parquet", "p*.parquet", "p.parque[t]", "link.parquet", "../acc/p.parquet"]
    done = 0
    for number, spelling in enumerate(spellings):
        try:
            into = tmp_path / f"{number}.csv"
            dpsyn_sql.release(
                None, f"{folder}/{spelling}", domain=SPEC, epsilon=0.9, into=into, name=str(number)
            )
            done += 1
        except dpsyn_sql.errors.PrivacyBudgetExceeded:
            pass
    query = f"SELECT n FROM '{folder}/p.parquet'"
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded):
        dpsyn_sql.release(None, query, domain=SPEC, epsilon=0.9, into=tmp_path / "q.csv")
    assert done == 1


def test_a_file_named_twice_is_refused(folder):
    os.link(folder / "p.parquet", folder / "hard.parquet")
    for source in (folder, f"{folder}/*.parquet", f"{folder}/[hp]*.parquet"):
        with pytest.raises(dpsyn_sql.errors.SourceError, match="twice"):
            dpsyn_sql.release(None, source, domain=SPEC, into=folder / "o.csv")


def test_a_growing_folder_keeps_its_release_and_its_account(tmp_path):
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 1 AS n FROM range(50)) TO '{tmp_path}/d1.parquet'")
        first = dpsyn_sql.release(None, f"{tmp_path}/d*.parquet", domain=SPEC, into=tmp_path / "o.csv")
        con.execute(f"COPY (SELECT 2 AS n FROM range(50)) TO '{tmp_path}/d2.parquet'")
    again = dpsyn_sql.release(None, f"{tmp_path}/d*.parquet", domain=SPEC, into=tmp_path / "o.csv")
    assert again.id == first.id and again.replayed


def test_files_of_one_source_have_one_shape(tmp_path):
    (tmp_path / "a.csv").write_text("n,s\n1,2\n")
    (tmp_path / "b.csv").write_text("s,n\n1,2\n")
    with pytest.raises(dpsyn_sql.errors.SourceError, match="header"):
        dpsyn_sql.plan(None, f"{tmp_path}/*.csv", domain=SPEC, into=tmp_path / "o.parquet")
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 1::INTEGER AS n) TO '{tmp_path}/a.parquet'")
        con.execute(f"COPY (SELECT 'x' AS n) TO '{tmp_path}/b.parquet'")
    with pytest.raises(dpsyn_sql.errors.SourceError, match="same columns"):
        dpsyn_sql.plan(None, f"{tmp_path}/*.parquet", domain=SPEC, into=tmp_path / "o.csv")


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE t AS SELECT (i % 10)::INTEGER AS n, 'SECRET' || i AS s FROM range(9) AS r(i)"
        )
        yield connection


def test_a_view_cannot_be_called_public(con):
    con.execute("CREATE VIEW agg AS SELECT n, count(*) AS c FROM t GROUP BY n")
    with pytest.raises(dpsyn_sql.errors.SourceError, match="views"):
        dpsyn_sql.plan(
            con, "SELECT n, c FROM t JOIN agg USING (n)", public_tables=["agg"], into="o", domain=SPEC
        )


def test_a_temporary_table_does_not_hide_what_a_query_reads(con):
    con.execute("CREATE TEMP TABLE t AS SELECT 1 AS n")
    with pytest.raises(dpsyn_sql.errors.SourceError, match="temporary"):
        dpsyn_sql.plan(con, "SELECT n FROM t", domain=SPEC, into="o")


def test_the_certificate_of_a_query_names_its_unit(con):
    result = dpsyn_sql.release(con, "SELECT n FROM t UNION ALL SELECT n FROM t", domain=SPEC, into="o")
    assert result.certificate()["guarantee"]["privacy_unit"] == "a row of the query's result"


def test_a_ledger_has_one_home_however_it_is_named(folder, tmp_path, monkeypatch):
    place = folder / "L"
    granted(place, "p.parquet#row")
    (tmp_path / "other").symlink_to(place)
    first = dpsyn_sql.release(None, folder / "p.parquet", domain=SPEC, ledger=place, into=tmp_path / "1.csv")
    assert first.rows >= 0
    monkeypatch.setenv("DPSYN_LEDGER", str(tmp_path / "other"))
    with closing(SqliteLedger(place)) as opened:
        for number, ledger in enumerate((opened, tmp_path / "other", None)):
            options = {"ledger": ledger, "into": tmp_path / f"o{number}.csv", "new_debit": True}
            with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded):
                dpsyn_sql.release(None, folder / "p.parquet", domain=SPEC, **options)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t AS SELECT i % 7 AS person, (i % 10)::INTEGER AS n FROM range(70) AS r(i)")
        con.execute("CREATE VIEW v AS FROM t")
        con.execute("CREATE VIEW v2 AS FROM v")
        con.execute("CREATE TABLE dummy AS SELECT 1 AS one")
        con.execute("CREATE MACRO m() AS (SELECT count(*) FROM t)")
    return path


def trusted(file, source, **options):
    settings = {"domain": SPEC, "exclude": ["person"], "into": "o", "trust_query": True, **options}
    return dpsyn_sql.release(file, source, **settings)


@pytest.mark.parametrize(
    "source",
    [
        "v2",
        "SELECT * FROM v",
        "WITH RECURSIVE t AS (SELECT * FROM t) SELECT * FROM t",
        "SELECT n, person FROM dummy CROSS JOIN v2",
    ],
)
def test_a_trusted_query_is_charged_to_every_table_behind_it(file, source):
    granted(f"{file}.dpsyn-ledger", "main.t#row", "0.1")
    with pytest.raises((dpsyn_sql.errors.PrivacyBudgetExceeded, dpsyn_sql.errors.SourceError)):
        trusted(file, source)
    with pytest.raises((dpsyn_sql.errors.TargetError, dpsyn_sql.errors.SourceError)):
        trusted(file, source, into="t", replace=True, epsilon="0.01")


def test_macros_cannot_hide_a_table(file):
    with pytest.raises(dpsyn_sql.errors.SourceError, match="macro"):
        trusted(file, "SELECT (m() % 10)::INTEGER AS n, 1 AS person FROM dummy")


def test_a_grant_cannot_be_passed_by_another_account_or_unit(file):
    granted(f"{file}.dpsyn-ledger", "main.t#row", "0.1")
    with pytest.raises(dpsyn_sql.errors.AccountError):
        dpsyn_sql.release(file, "t", domain=SPEC, exclude=["person"], account="mine")
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded):
        dpsyn_sql.release(file, "t", domain=SPEC, unit="person", most=10, weights=False)


def test_what_a_resumed_release_reads_is_recorded(file):
    with duckdb.connect(str(file)) as con:
        con.execute("CREATE TABLE bad AS SELECT 'a' AS n")
        con.execute("CREATE VIEW w AS SELECT n::INTEGER AS n FROM bad UNION ALL SELECT 1 AS n FROM bad")
    with pytest.raises(dpsyn_sql.errors.EngineFailure):
        dpsyn_sql.release(file, "w", domain=SPEC, into="s")
    with duckdb.connect(str(file)) as con:
        con.execute(
            "CREATE OR REPLACE VIEW w AS SELECT 1 AS n FROM bad UNION ALL SELECT n FROM t UNION ALL SELECT 2 FROM t"
        )
    dpsyn_sql.release(file, "w", domain=SPEC, into="s")
    (account,) = overview(f"{file}.dpsyn-ledger").accounts
    assert set(account.sources) == {"main.bad", "main.t"}


def test_a_certificate_names_no_folder(folder, tmp_path):
    query = f"SELECT n FROM '{folder}/p.parquet'"
    result = dpsyn_sql.release(None, query, domain=SPEC, into=tmp_path / "o.csv")
    assert str(tmp_path) not in str(result.certificate())


def test_a_file_is_charged_where_a_glob_above_it_was(tmp_path):
    (tmp_path / "g" / "y").mkdir(parents=True)
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 1 AS n FROM range(50)) TO '{tmp_path}/g/y/p.parquet'")
    for number, source in enumerate((f"{tmp_path}/g/*/*.parquet", tmp_path / "g/y/p.parquet")):
        dpsyn_sql.release(None, source, domain=SPEC, epsilon=0.5, into=tmp_path / f"{number}.csv")
    found = overview(tmp_path / "g/.dpsyn-ledger")
    assert len(found.accounts) == 1 and len(found.releases) == 2
    assert found.accounts[0].epsilon > 0.6
