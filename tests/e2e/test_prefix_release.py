"""A release whose categories keep a prefix: what is written, counted, stored and told, for all methods."""

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.methods import METHODS

pytestmark = pytest.mark.slow

SPEC = {
    "columns": {
        "icd": {
            "type": "categorical",
            "categories": ["401.9", "250*", "2*", "V*"],
            "prefixes": [3, 1],
            "other": True,
            "nullable": True,
        },
        "sick": {"type": "categorical", "categories": [0, 1], "other": False},
    }
}
COUNTS = {"401.9": 4000, "250*": 3000, "2*": 2000, "V*": 1000, "__other__": 500, None: 500}
VALUES = {
    "401.9": ["401.9"],
    "250*": ["250.00", "250.01", "250"],
    "2*": ["276", "2", "25"],
    "V*": ["V57", "V", "V*"],
    "__other__": ["401", "E8", "", "v57"],
    None: [None],
}


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE stays (icd VARCHAR, sick INTEGER)")
        rows = [
            (VALUES[label][number % len(VALUES[label])], int(label == "250*" or number % 3 == 0))
            for label, count in COUNTS.items()
            for number in range(count)
        ]
        connection.executemany(
            "INSERT INTO stays SELECT unnest(?), unnest(?)",
            [[list(part) for part in zip(*rows, strict=True)]],
        )
        yield connection


@pytest.mark.parametrize("method", METHODS)
def test_values_come_back_as_their_longest_prefix(con, method):
    release = dpsyn_sql.release(con, "stays", epsilon=100, method=method, domain=SPEC)
    written = dict(con.execute("SELECT icd, count(*) FROM stays_synthetic GROUP BY icd").fetchall())
    assert set(written) == set(COUNTS)
    assert all(abs(written[label] - count) < 30 for label, count in COUNTS.items())
    sick = con.execute("SELECT avg(sick) FROM stays_synthetic WHERE icd = '250*'").fetchone()[0]
    assert sick > 0.9 or method in ("independent", "dpcopula")  # of unordered codes these keep no pairs
    (facts,) = [facts for facts in release.certificate()["public_facts"]["domain"] if facts["name"] == "icd"]
    assert facts["prefixes"] == [3, 1]
    table = release.marginal("icd").set_index("icd")
    assert abs(table.loc["250*", "estimate"] - 3000) < 30
    assert dpsyn_sql.load(con, "stays_synthetic").model.domain["icd"].prefixes == (3, 1)


# -- beginnings that are discovered ------------------------------------------------------------------

LEARNT = {"columns": {"icd": {"type": "discover", "prefixes": [3, 1]}, "sick": SPEC["columns"]["sick"]}}


def learn(con, **options):
    return dpsyn_sql.release(
        con, "stays", domain=LEARNT, method="independent", **{"epsilon": 10, "seed": 1, **options}
    )


@pytest.fixture
def rare(con):
    """Whole values that are found, and 2,000 different ones that only their beginnings hold."""
    con.execute(
        "INSERT INTO stays SELECT CASE i % 4 WHEN 0 THEN 'V' || i WHEN 1 THEN '25*' ELSE '789.' || i END, 0 "
        "FROM range(2000) AS r(i)"
    )
    return con


def test_discovered_values_keep_their_beginnings(rare):
    release = learn(rare)
    found = release.model.domain["icd"]
    assert found.prefixes == (3, 1) and found.origin == "discovered"
    assert {"401.9", "250", "789*", "V*"} <= set(found.labels)
    written = dict(rare.execute("SELECT icd, count(*) FROM stays_synthetic GROUP BY icd").fetchall())
    assert abs(written["789*"] - 1000) < 60 and written["401.9"] > 3900
    assert "25*" in written and "789.6" not in written
    assert sum(count for label, count in written.items() if label == "__other__") < 400
    facts = release.certificate()
    asked = [(m["step"], m.get("length")) for m in facts["mechanisms"] if m.get("column") == "icd"]
    assert asked == [("discover keys", None), ("discover prefixes", 3), ("discover prefixes", 1)]
    assert facts["budget"]["used_units_of_1e-15"] <= facts["budget"]["reserved_units_of_1e-15"]
    (lost,) = [column for column in facts["losses"]["columns"] if column["name"] == "icd"]
    assert lost["prefixes"]["found"] == sum(len(found.stems(n)) for n in (3, 1))
    assert "prefixes found" in str(release.summary())
    assert dpsyn_sql.load(rare, "stays_synthetic").model.domain["icd"].prefixes == (3, 1)
    assert learn(rare, replace=True).model.domain["icd"] == found


def test_the_plan_says_what_each_length_can_find(rare):
    text = dpsyn_sql.plan(rare, "stays", domain=LEARNT).verbose()
    for length in (3, 1):
        assert f"first {length} characters of others that at least" in text
    learn(rare)
    other = {"columns": {**LEARNT["columns"], "icd": {"type": "discover", "prefixes": [2]}}}
    with pytest.raises(dpsyn_sql.errors.ReleaseChanged):
        dpsyn_sql.release(rare, "stays", epsilon=10, seed=1, method="independent", replace=True, domain=other)
