"""Releases and their ledger: replay, versions, limits, accounts, units."""

import sqlite3
import sys
import warnings
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from support.ledgers import granted, overview

import dpsyn_sql
from dpsyn_sql.ledger import store
from dpsyn_sql.ledger.sqlite import SqliteLedger
from dpsyn_sql.report import certificate

pytestmark = pytest.mark.slow

SPEC = {"columns": {"n": {"type": "numeric", "lower": 0, "upper": 9}}}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "w.duckdb"
    with duckdb.connect(str(file)) as con:
        con.execute(
            "CREATE TABLE t AS SELECT i // 4 AS person, (i % 10)::INTEGER AS n FROM range(400) AS r(i)"
        )
    return file


def release(path, source="t", **options):
    options.setdefault("exclude", ["person"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.release(path, source, domain=SPEC, **options)


def shown(path):
    return overview(f"{path}.dpsyn-ledger")


def rows_of(path, table="t_synthetic"):
    with duckdb.connect(str(path), read_only=True) as con:
        return con.execute(f"FROM {table}").fetchall()


def change_source(path):
    with duckdb.connect(str(path)) as con:
        con.execute("DELETE FROM t WHERE n > 2")


def test_the_same_release_replays_byte_for_byte_whatever_the_data_are_now(path, monkeypatch):
    """In a later version of the package too."""
    first = release(path)
    rows = rows_of(path)
    change_source(path)
    monkeypatch.setattr(certificate, "_versions", lambda: {"dpsyn_sql": "9.9.9"})
    monkeypatch.setattr(dpsyn_sql, "__version__", "9.9.9")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that it costs nothing is no warning
        warnings.filterwarnings("ignore", "Of 1 column")  # the verdict depends on the noise
        again = dpsyn_sql.release(path, "t", domain=SPEC, exclude=["person"])
    assert again.notes[0].startswith("Replayed ") and "Nothing was charged" in again.notes[0]
    assert ", replayed)" in repr(again) and "replayed" not in repr(first)
    assert again.replayed and not first.replayed and again.id == first.id
    assert again.facts["versions"] == {"dpsyn_sql": "9.9.9"}
    assert rows_of(path) == rows
    for left, right in zip(first.measurements, again.measurements, strict=True):
        assert left.values.tobytes() == right.values.tobytes()
    assert len(shown(path).releases) == 1


def test_a_replay_leaves_alone_what_it_did_not_write(path, tmp_path):
    outputs = ["t_synthetic", tmp_path / "o.csv"]
    for into in outputs:
        release(path, into=into, new_debit=True)
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE OR REPLACE TABLE t_synthetic AS SELECT 42 AS mine")
    (tmp_path / "o.csv").write_text("my notes")
    for into in outputs:
        with pytest.raises(dpsyn_sql.errors.PublishError, match=r"it was changed.*replace=True"):
            release(path, into=into)
    with duckdb.connect(str(path)) as con:
        assert con.execute("FROM t_synthetic").fetchall() == [(42,)]
    assert (tmp_path / "o.csv").read_text() == "my notes"
    for into in outputs:
        assert release(path, into=into, replace=True).replayed
    assert len(shown(path).releases) == 2


def test_a_replay_leaves_the_model_beside_its_file_alone(path, tmp_path):
    output, model = tmp_path / "o.csv", tmp_path / "o.csv.dpsyn.duckdb"
    release(path, into=output)
    with duckdb.connect(str(model)) as con:
        con.execute("CREATE TABLE mine AS SELECT 42 AS n")
    before = output.stat().st_mtime_ns, output.stat().st_ino
    assert release(path, into=output).replayed
    assert (output.stat().st_mtime_ns, output.stat().st_ino) == before
    with duckdb.connect(str(model)) as con:
        assert con.execute("FROM mine").fetchall() == [(42,)]
    output.unlink()
    for epsilon in (1, 2):  # nothing says whose model it is
        with pytest.raises(dpsyn_sql.errors.TargetError, match="model of .* exists"):
            release(path, into=output, epsilon=epsilon)
    with duckdb.connect(str(model)) as con:
        assert con.execute("FROM mine").fetchall() == [(42,)]
    model.unlink()
    release(path, into=output)
    model.unlink()
    release(path, into=output)
    with duckdb.connect(str(model)) as con:
        assert con.execute("SELECT count(*) FROM dpsyn_releases()").fetchone() == (1,)


def test_a_new_version_measures_anew_and_costs(path):
    release(path, version="1", epsilon=0.5)
    change_source(path)
    second = release(path, version="2", epsilon=0.5, replace=True)
    assert not second.replayed and second.rows < 280
    found = shown(path)
    assert [entry.version for entry in found.releases] == ["1", "2"]
    assert found.accounts[0].epsilon == pytest.approx(0.71, abs=0.05)


def test_output_rows_and_seed_are_not_part_of_the_identity(path):
    first = release(path, name="r", into="a")
    assert release(path, name="r", into="b", rows=5, seed=3).id == first.id
    assert len(rows_of(path, "b")) == 5


def test_a_limit_is_kept_and_the_message_says_what_is_left(path):
    granted(f"{path}.dpsyn-ledger", "main.t#row")
    release(path, epsilon=1)
    with pytest.raises(dpsyn_sql.errors.PrivacyBudgetExceeded, match=r"(?s)left.*Nothing was read"):
        release(path, epsilon="0.001", version="2", into="o")
    assert len(shown(path).releases) == 1


@pytest.mark.parametrize("fault", ["locked", "read-only"])
@pytest.mark.parametrize("kind", ["table", "file"])
def test_a_note_that_fails_after_publishing_says_that_the_output_stands(
    path, tmp_path, monkeypatch, fault, kind
):
    into = "o" if kind == "table" else tmp_path / "o.parquet"
    monkeypatch.setattr(store, "BUSY_SECONDS", 0.05)
    kept = SqliteLedger(f"{path}.dpsyn-ledger")
    other = sqlite3.connect(f"{path}.dpsyn-ledger", isolation_level=None)
    publish = sys.modules["dpsyn_sql.front.publish"].publish

    def published(*arguments):
        publish(*arguments)
        if fault == "locked":
            other.execute("BEGIN IMMEDIATE")
        else:
            kept._store._connection.execute("PRAGMA query_only = ON")

    with monkeypatch.context() as patched, closing(kept) as ledger:
        patched.setattr(sys.modules["dpsyn_sql.front.publish"], "publish", published)
        with pytest.raises(dpsyn_sql.errors.LedgerError, match="output was written, and the") as failed:
            release(path, into=into, ledger=ledger)
    other.close()
    text = str(failed.value)
    assert "the debit is recorded" in text and "The same call again costs nothing and completes it" in text
    assert "nothing behind" not in text and failed.value.__context__ is None
    rows = rows_at(path, into)
    assert rows
    assert release(path, into=into).replayed and rows_at(path, into) == rows
    (only,) = shown(path).releases
    assert only.state == "published" and len(only.published) == 1


def rows_at(path, into):
    if isinstance(into, str):
        return rows_of(path, into)
    with duckdb.connect() as con:
        return con.execute(f"FROM '{into}'").fetchall()


def test_a_source_keeps_its_unit(path):
    release(path)
    with pytest.raises(dpsyn_sql.errors.InputError, match="unit"):
        release(path, unit="person", most=4, weights=False, into="o", exclude=[])


def test_units_of_several_rows(path):
    result = release(path, unit="PERSON", most=2, weights=False, epsilon=20, exclude=[])
    certificate = result.certificate()
    assert certificate["guarantee"]["privacy_unit"] == "person"
    assert certificate["guarantee"]["rows_per_unit"] == 2
    # How many rows a unit has is one cell of a unit; the total has up to two rows of it, and so has the
    # residual of 10 codes.
    assert [m["l2_squared"] for m in certificate["mechanisms"]] == [1, 2**2, 2**2 * 10 * 9]
    assert abs(result.rows - 200) < 60
    with duckdb.connect(str(path), read_only=True) as con:
        assert [row[0] for row in con.execute("DESCRIBE t_synthetic").fetchall()] == ["person", "n"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "nobody", "most": 1}, "nobody"),
        ({"unit": "", "most": 1}, "unit="),
        ({"most": 2, "weights": False}, "most="),
        ({"unit": "person", "most": 0, "weights": False}, "most="),
        ({"unit": "person", "most": 1.5, "weights": False}, "most="),
        ({"account": "", "exclude": ["person"]}, "account"),
        ({"name": "\ud800", "exclude": ["person"]}, "name"),
    ],
)
def test_bad_units_and_labels(path, options, message):
    with pytest.raises(dpsyn_sql.errors.InputError, match=message):
        release(path, **{"exclude": [], **options})
    ledger = Path(f"{path}.dpsyn-ledger")
    assert not ledger.exists() or overview(ledger).releases == ()


def test_a_ledger_can_be_chosen_by_path_or_variable(path, tmp_path, monkeypatch):
    release(path, ledger=tmp_path / "mine")
    monkeypatch.setenv("DPSYN_LEDGER", str(tmp_path / "variable"))
    release(path, into="o")
    assert (tmp_path / "mine").exists() and (tmp_path / "variable").exists()
    assert not path.with_name("w.duckdb.dpsyn-ledger").exists()


def test_plan_names_ledger_and_engine_and_makes_no_file(path):
    text = dpsyn_sql.plan(path, "t", domain=SPEC, exclude=["person"]).verbose()
    assert f"{path}.dpsyn-ledger" in text and "encrypted" in text
    assert not path.with_name("w.duckdb.dpsyn-ledger").exists()
    with duckdb.connect(str(path)) as con:
        assert "your connection" in dpsyn_sql.plan(con, "t", domain=SPEC, exclude=["person"]).verbose()


def test_a_source_in_memory_keeps_its_ledger_with_the_connection():
    with duckdb.connect() as con:
        con.execute("CREATE TABLE t AS SELECT true AS b FROM range(50)")
        with pytest.warns(UserWarning, match="in memory"):
            first = dpsyn_sql.release(con, "t")
        assert dpsyn_sql.release(con, "t").id == first.id
