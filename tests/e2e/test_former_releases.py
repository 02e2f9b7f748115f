"""Releases of the version before replay: a stored ledger and database, in a folder that was moved since."""

import tarfile
from pathlib import Path

import duckdb
import numpy as np
import pytest
from former.make import calls, released

from dpsyn_sql.ledger.sqlite import SqliteLedger

pytestmark = pytest.mark.slow

ARCHIVE = Path(__file__).parent / "former" / "0.1.0.tar.gz"
NAMES = sorted(calls(Path()))


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("former")
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


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_release_replays_its_answers_at_no_cost(shop, name):
    before = list(spent(shop))
    with pytest.warns(UserWarning, match="Replayed .* Nothing was charged"):
        release = released(shop, name, replace=True)
    assert release.replayed and release.id == (shop / f"{name}.id").read_text()
    with np.load(shop / f"{name}.npz") as stored:
        assert len(stored.files) == len(release.measurements)
        for key, table in zip(sorted(stored.files), release.measurements, strict=True):
            np.testing.assert_array_equal(stored[key], table.values)
    assert list(spent(shop)) == before


def test_the_macros_of_a_stored_database_still_draw_rows(shop):
    with duckdb.connect(str(shop / "shop.duckdb"), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM dpsyn_sample('declared', 50, 1)").fetchone() == (50,)
        assert {row[0] for row in con.execute("SELECT name FROM dpsyn_releases()").fetchall()} >= {"units"}
