"""Releases of slices: what plan, certificate and ledger say, and which rows are counted."""

import warnings
from dataclasses import replace
from datetime import datetime

import duckdb
import pytest
from support.ledgers import granted, overview

import dpsyn_sql
from dpsyn_sql.errors import InputError, PrivacyBudgetExceeded, ReleaseChanged
from dpsyn_sql.front.request import Request
from dpsyn_sql.source.slices import Partition, Window

pytestmark = pytest.mark.slow

EDGES = ("2013-01-01", "2013-02-01", "2013-03-01", "2013-04-01", "2013-05-01")
DOMAIN = {"columns": {"a": {"type": "categorical", "categories": ["x", "y"]}}}


@pytest.fixture
def place(tmp_path):
    """4,000 rows a month: in month m the value of a is x in even months and y in odd ones; 1,000 customers."""
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(path) as con:
        con.execute(
            "CREATE TABLE sale AS SELECT i % 1000 AS id, DATE '2013-01-01' + INTERVAL (i // 4000) MONTH "
            "+ INTERVAL (i % 28) DAY AS day, CASE WHEN (i // 4000) % 2 = 0 THEN 'x' ELSE 'y' END AS a, "
            "CASE WHEN i % 2 = 0 THEN 'north' ELSE 'south' END AS region FROM range(16000) AS s(i)"
        )
        con.execute("ALTER TABLE sale ALTER day TYPE TIMESTAMP")
    return path


def request(index, *, most=1, unit="row", **changes):
    given = {
        "window": Window("DAY", "month", EDGES, index, most=most),
        "version": EDGES[index][:7],
        "name": "sales",
        "into": f"sale_{index}",
        "domain": DOMAIN,
        "exclude": ["day", "region"] + (["id"] if unit == "row" else []),
        "unit": unit,
        "most": 1 if unit == "row" else 4,
        "weights": False,
        "epsilon": 8,
    }
    return Request(**{"source": "sale", **given, **changes})


def released(place, one):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.release(place, replace(one, ledger=ledger_of(place)))


def planned(place, one):
    return dpsyn_sql.plan(place, replace(one, ledger=ledger_of(place)))


def ledger_of(place):
    return place.with_name("spent.db")


def spent(place):
    (account,) = overview(ledger_of(place)).accounts
    return account.spent.amount


def line(plan, label):
    return next(text for text in str(plan).splitlines() if text.startswith(label))


def test_a_month_at_a_time_of_rows_costs_one_month(place):
    sums = []
    for index in range(4):
        plan = planned(place, request(index))
        done = released(place, request(index))
        sums.append(spent(place))
        assert plan.cost.amount == (0 if index else sums[0])
        assert "2013-0" in line(plan, "Slice") and f"window {index + 1} of 'month'" in line(plan, "Slice")
        assert ("costs nothing more" in line(plan, "Release")) == (index > 0)
        table = {measured.attrs: measured.values for measured in done.measurements}[("a",)]
        right, wrong = (table[0], table[1]) if index % 2 == 0 else (table[1], table[0])
        assert right > 3500 and wrong < 500  # noise of a few rows: it is this month and no other
        told = done.facts["slice"]
        assert (told["from"], told["until_before"], told["at_most"]) == (EDGES[index], EDGES[index + 1], 1)
        assert "rows that were there stay" in told["assumed"]
    assert len(set(sums)) == 1
    assert released(place, request(2)).replayed and spent(place) == sums[0]


def test_customers_count_in_their_first_month_alone(place):
    for index in range(3):
        done = released(place, request(index, unit="id"))
        table = {measured.attrs: measured.values for measured in done.measurements}[("a",)]
        assert (table[0] > 3500) == (index == 0) and table[1] < 500
    first = spent(place)
    released(place, request(0, unit="id", name="all", most=None, into="sale_all"))
    assert spent(place) > first


def test_another_slice_under_one_version_is_refused_and_a_limit_holds(place):
    released(place, request(0))
    with pytest.raises(ReleaseChanged, match="slice"):
        released(place, request(1, version="2013-01"))
    (account,) = overview(ledger_of(place)).accounts
    granted(ledger_of(place), account.name, 8, "8e-9")
    released(place, request(1))
    with pytest.raises(PrivacyBudgetExceeded):
        released(place, request(2, most=None))
    with pytest.raises(InputError, match="a row has one date"):
        released(place, request(2, most=2))


WIDE = {
    "columns": {
        **DOMAIN["columns"],
        "day": {
            "type": "temporal",
            "lower": "2013-01-01",
            "upper": "2013-12-31",
            "bins": 7,
            "nullable": True,
        },
        "region": {"type": "categorical", "categories": ["north", "south"], "nullable": True},
    }
}


@pytest.mark.parametrize("domain", [WIDE, DOMAIN], ids=["declared", "learnt"])
def test_rows_of_a_window_are_dated_in_it(place, domain):
    done = released(place, request(1, domain=domain, exclude=["id"], epsilon=0.5))
    with duckdb.connect(place, read_only=True) as con:
        dates = con.execute(f"SELECT min(day), max(day), count(day), count(*) FROM {done.table}").fetchone()
    assert dates[0] >= datetime(2013, 2, 1) and dates[1] < datetime(2013, 3, 1)
    assert dates[2] == dates[3] == done.rows > 1000


@pytest.mark.parametrize("domain", [WIDE, DOMAIN], ids=["declared", "learnt"])
def test_rows_of_a_partition_have_its_value(place, domain):
    one = request(
        0, window=Partition("region", "south"), version="south", domain=domain, exclude=["id", "day"]
    )
    done = released(place, replace(one, epsilon=0.5, workload={("a", "region"): 2}))
    with duckdb.connect(place, read_only=True) as con:
        assert con.execute(f"SELECT DISTINCT region FROM {done.table}").fetchall() == [("south",)]
    assert (done.marginal(["region"])["estimate"] > 1000).all()


@pytest.mark.parametrize(
    "source",
    [
        "seen",
        "SELECT a, id, CAST(met AS DATE) AS day FROM made",
        "made",
    ],
)
def test_another_time_zone_makes_other_windows(tmp_path, source):
    """The last hour of January in UTC is February in Tokyo: rows would be in both windows for the price of one."""
    con = duckdb.connect(tmp_path / "zones.duckdb")
    con.execute(
        "CREATE TABLE made (a VARCHAR, id INTEGER, met TIMESTAMPTZ, "
        "day DATE GENERATED ALWAYS AS (CAST(met AS DATE)))"
    )
    con.execute(
        "INSERT INTO made SELECT 'x', i, TIMESTAMPTZ '2013-01-31 23:30:00+00' FROM range(500) AS s(i)"
    )
    con.execute("CREATE VIEW seen AS SELECT a, id, CAST(met AS DATE) AS day FROM made")
    sums = []
    for index, zone in enumerate(("Etc/UTC", "Asia/Tokyo", "UTC")):
        con.execute(f"SET GLOBAL TimeZone = '{zone}'")
        left_out = ["day", "id", *(["met"] if source == "made" else [])]
        one = request(index, exclude=left_out, into=f"out_{index}", epsilon=1, unit="row")
        released_on(con, replace(one, source=source, ledger=ledger_of(tmp_path / "zones.duckdb")))
        sums.append(spent(tmp_path / "zones.duckdb"))
    assert sums[1] == 2 * sums[0]
    assert sums[2] == sums[1], "names of one zone make one panel"


def released_on(con, one):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpsyn_sql.release(con, one)
