"""A release whose categories keep a prefix: what is written, counted, stored and told, for all methods."""

import duckdb
import pytest

import dpsyn_sql
from dpsyn_sql.methods import METHODS

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


def test_the_plan_says_it_and_other_lengths_are_another_release(con):
    assert "prefixes of 3, 1 characters" in str(dpsyn_sql.plan(con, "stays", domain=SPEC))
    dpsyn_sql.release(con, "stays", epsilon=1, domain=SPEC)
    icd = {**SPEC["columns"]["icd"], "prefixes": [3]}
    with pytest.raises(dpsyn_sql.ReleaseChanged):
        dpsyn_sql.release(
            con, "stays", epsilon=1, replace=True, domain={"columns": {**SPEC["columns"], "icd": icd}}
        )
