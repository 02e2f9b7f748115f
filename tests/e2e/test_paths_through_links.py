"""``here/link/../x`` means what the operating system opens: the link is followed first, then its parent.

Beside every file that is meant stands a decoy, where the path would lead if ``..`` only took away a name.
"""

import gzip

import duckdb
import pytest
from support.ledgers import granted

import dpsyn_sql
from dpsyn_sql.engines.open_source import open_source
from dpsyn_sql.errors import SourceError
from dpsyn_sql.source.files import find_files
from dpsyn_sql.source.names import LedgerNames

pytestmark = pytest.mark.slow

SPEC = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}


@pytest.fixture
def places(tmp_path, monkeypatch):
    """(what is meant, the decoy): two folders with files of equal names and other rows."""
    meant, decoy = tmp_path / "meant", tmp_path / "here"
    (meant / "deep").mkdir(parents=True)
    decoy.mkdir()
    (decoy / "link").symlink_to(meant / "deep")
    for folder, value in ((meant, 1), (decoy, 7)):
        with duckdb.connect(folder / "w.duckdb") as con:
            con.execute(f"CREATE TABLE t AS SELECT {value}::INTEGER AS n FROM range(500)")
            con.execute(f"COPY t TO '{folder}/x.csv'; COPY t TO '{folder}/x.parquet'")
    monkeypatch.chdir(tmp_path)
    return meant, decoy


SOURCES = {
    "csv": (None, "here/link/../x.csv", "x.csv"),
    "parquet": (None, "here/link/../x.parquet", "x.parquet"),
    "glob": (None, "here/link/../x*.parquet", "x.parquet"),
    "query": (None, "SELECT n FROM 'here/link/../x.parquet'", "x.parquet"),
    "trusted": (None, "SELECT DISTINCT n FROM 'here/link/../x.parquet'", "x.parquet"),
    "database": ("here/link/../w.duckdb", "t", "w.duckdb:main.t"),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_what_is_read_is_what_is_charged(places, kind):
    con, source, name = SOURCES[kind]
    meant, _ = places
    with open_source(con, source, trust_query=kind == "trusted") as session:
        found = session.engine.fetch(f"SELECT n FROM {session.relation.sql}", step="a look")
        assert {int(value) for value in found["n"]} == {1}
        home = LedgerNames.of(meant / "ledger")
        assert session.private_sources(home) == (name,)
        assert ".." not in session.resolved_name(home).split("/") or session.relation.kind == "query"


def test_a_folder_through_a_link_is_the_folder_that_is_meant(places):
    meant, decoy = places
    for folder in (meant, decoy):
        (folder / "x.parquet").unlink()
    (decoy / "extra.csv").write_text("n\n7\n")
    assert find_files("here/link/..").paths == (str(meant / "x.csv"),)
    with open_source(None, "here/link/..") as session:
        assert session.pattern == str(meant / "*.csv")


@pytest.mark.parametrize("kind", ["csv", "glob", "database"])
def test_the_ledger_and_the_budget_are_those_of_the_file_that_is_meant(places, kind):
    con, source, name = SOURCES[kind]
    meant, decoy = places
    place = meant / ("w.duckdb.dpsyn-ledger" if kind == "database" else ".dpsyn-ledger")
    granted(place, "main.t#row" if kind == "database" else f"{name}#row", "0.1")
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded):
        dpsyn_sql.release(con, source, domain=SPEC, into="out.csv")
    assert not list(decoy.glob("*dpsyn-ledger*")) and not (decoy / ".dpsyn-ledger").exists()


def test_ledger_and_output_are_made_where_they_are_meant(places):
    meant, decoy = places
    before = sorted(decoy.iterdir())
    dpsyn_sql.release(
        None, "here/x.csv", domain=SPEC, ledger="here/link/../L", into="here/link/../out.parquet"
    )
    assert {"L", "out.parquet", "out.parquet.dpsyn.duckdb"} <= {item.name for item in meant.iterdir()}
    dpsyn_sql.release(None, "here/link/../x.csv", domain=SPEC)  # the default output is beside the source
    assert (meant / "x_synthetic.parquet").exists()
    dpsyn_sql.release("here/link/../w.duckdb", "t", domain=SPEC)
    with duckdb.connect(meant / "w.duckdb", read_only=True) as con:
        assert con.execute("SELECT count(*) > 0 FROM t_synthetic").fetchone() == (True,)
    assert sorted(decoy.iterdir()) == before


def test_an_output_that_is_the_source_or_joins_it_is_seen_through_links(places):
    meant, decoy = places
    (decoy / "again").symlink_to(meant)
    packed = meant / "packed"
    packed.mkdir()
    with gzip.open(packed / "x.csv.gz", "wt") as stream:
        stream.write("n\n1\n")
    (packed / "out.csv.gz").symlink_to(decoy / "elsewhere.csv.gz")
    for source, into in [
        ("meant/x.csv", "here/link/../x.csv"),
        ("meant/*.parquet", "here/link/../new.parquet"),
        ("here/link/../*.parquet", "meant/new.parquet"),
        ("here/again/*.parquet", "meant/new.parquet"),
        ("here/again/packed", "meant/packed/new.CSV.gz"),
        ("meant/packed", "here/again/packed/out.csv.gz"),
    ]:
        with pytest.raises(dpsyn_sql.errors.TargetError, match="is the source or would become part of it"):
            dpsyn_sql.plan(None, source, domain=SPEC, into=into)


def test_a_pattern_does_not_turn_back_after_a_wildcard(places):
    with pytest.raises(SourceError, match="after a wildcard"):
        find_files("me*/../here/x.csv")
    with pytest.raises(SourceError, match="after a wildcard"):
        find_files("**/deep/../x.csv")
