"""Releases of the version before replay: a stored ledger and database, in a folder that was moved since."""

import json
import tarfile
from pathlib import Path

import duckdb
import numpy as np
import pytest
from former.make import calls, released

import dpsyn_sql
from dpsyn_sql.errors import DpsynError
from dpsyn_sql.ledger.sqlite import SqliteLedger

pytestmark = pytest.mark.slow

ARCHIVE = Path(__file__).parent / "former" / "0.1.0.tar.gz"
NAMES = sorted(calls(Path()))
LEARNT = "discovered"  # by questions that are asked differently since


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    return unpacked(tmp_path_factory.mktemp("former"))


def unpacked(folder):
    with tarfile.open(ARCHIVE) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.3 and older have none
        packed.extractall(folder)
    for ledger in ledgers(folder / "shop"):
        ledger.moved(with_data=True)
        ledger.close()
    return folder / "shop"


def ledgers(folder):
    for name in ("shop.duckdb.dpsyn-ledger", "files.dpsyn.sqlite"):
        yield SqliteLedger(folder / name, create=False)


def spent(folder):
    for ledger in ledgers(folder):
        overview = ledger.overview()
        ledger.verify(None)
        ledger.close()
        yield [(account.name, account.epsilon) for account in overview.accounts], len(overview.releases)


@pytest.mark.parametrize("name", [name for name in NAMES if name != LEARNT])
def test_a_stored_release_replays_its_answers_at_no_cost(shop, name):
    before = list(spent(shop))
    release = released(shop, name, replace=True)
    assert release.replayed and release.id == (shop / f"{name}.id").read_text()
    with np.load(shop / f"{name}.npz") as stored:
        assert len(stored.files) == len(release.measurements)
        for key, table in zip(sorted(stored.files), release.measurements, strict=True):
            np.testing.assert_array_equal(stored[key], table.values)
    assert list(spent(shop)) == before


def test_answers_to_other_questions_are_never_taken_for_ours(shop):
    """The release is refused, at no cost; what it wrote stays, and its stored model still gives rows."""
    before = list(spent(shop))
    with duckdb.connect(str(shop / "shop.duckdb"), read_only=True) as con:
        written = con.execute("FROM discovered_synthetic").fetchall()
    with pytest.raises(DpsynError, match="another version of dpsyn_sql"):
        released(shop, LEARNT, replace=True)
    assert list(spent(shop)) == before
    with duckdb.connect(str(shop / "shop.duckdb"), read_only=True) as con:
        assert con.execute("FROM discovered_synthetic").fetchall() == written and written
        assert con.execute(f"SELECT count(*) FROM dpsyn_sample('{LEARNT}', 50, 1)").fetchone() == (50,)
    loaded = dpsyn_sql.load(shop / "shop.duckdb", LEARNT)
    assert len(loaded.sample(50, seed=1)) == 50


def test_the_macros_of_a_stored_database_still_draw_rows(shop):
    with duckdb.connect(str(shop / "shop.duckdb"), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM dpsyn_sample('declared', 50, 1)").fetchone() == (50,)
        assert {row[0] for row in con.execute("SELECT name FROM dpsyn_releases()").fetchall()} >= {"units"}


def test_a_new_release_brings_macros_that_read_the_stored_ones(tmp_path):
    folder = unpacked(tmp_path)
    released(folder, "query", replace=True)
    with duckdb.connect(str(folder / "shop.duckdb"), read_only=True) as con:
        stored = dict(con.execute("SELECT name, certificate FROM dpsyn_releases()").fetchall())
        assert len(stored) == len(NAMES) - 2  # those of files are elsewhere
        for name, text in stored.items():
            facts = json.loads(text)
            told = con.execute(f"SELECT section, fact, value FROM dpsyn_certificate('{name}')").fetchall()
            found = {(section, fact): value for section, fact, value in told}
            assert float(found["guarantee", "epsilon"]) == facts["guarantee"]["epsilon"]
            assert found["release", "id"] == facts["release"] and found["release", "name"] == name
            public = facts["public_facts"]
            columns = [item["name"] for item in (*public["domain"], *public["roles"])]
            assert [fact for section, fact, _ in told if section == "columns"] == columns
            described = con.execute(
                f"SELECT name, codes, labels, edges FROM dpsyn_domain('{name}')"
            ).fetchall()
            assert [row[0] for row in described] == columns
            for (_, codes, labels, edges), item in zip(described, public["domain"], strict=False):
                assert codes == item["codes"] and len(labels or edges) >= codes - 1
            times = sum(int(value.split(" x ")[0]) for section, _, value in told if section == "mechanisms")
            assert times == len(facts["mechanisms"])
