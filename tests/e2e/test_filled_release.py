"""Values inside declared bins: a wide last bin does not ruin a column, and every way to rows fills bins alike."""

import json
from itertools import pairwise

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.attributes.attribute import FILL_PIECES

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

EDGES = [0, 1000, 5000, 10_000, 20_000, 50_000, 100_000, 2_000_000]
DOMAIN = {
    "columns": {
        "pay": {"type": "numeric", "edges": EDGES},
        "rate": {"type": "numeric", "edges": [0, 0.5, 1, 2, 100], "granularity": 0.01},
        "kind": {"type": "categorical", "categories": ["a", "b"]},
    }
}
# Log-normal with median 2,100: Box and Muller's transform of evenly spread numbers.
ROWS = """CREATE TABLE bills AS
SELECT
    CAST(least(2100 * exp(1.4 * z), 1.7e6) AS INTEGER) AS pay,
    round(-0.6 * ln(u), 2) AS rate,
    CASE WHEN u < 0.5 THEN 'a' ELSE 'b' END AS kind
FROM (
    SELECT u, sqrt(-2 * ln(u)) * cos(2 * pi() * w) AS z
    FROM (SELECT (i + 0.5) / 40000 AS u, (i * 0.6180339887498949) % 1 AS w FROM range(40000) r(i))
)"""


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    path = tmp_path_factory.mktemp("filled") / "shop.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(ROWS)
        true = con.execute("SELECT avg(pay), avg(rate), stddev(rate) FROM bills").fetchone()
    release = dpsyn_sql.release(
        path, "bills", into="made", epsilon=1, domain=DOMAIN, method="independent", seed=5
    )
    return path, release, true


def figures(path, source):
    with duckdb.connect(str(path)) as con:
        return con.execute(f"SELECT avg(pay), avg(rate), stddev(rate), max(pay) FROM {source}").fetchone()


def test_a_wide_last_bin_keeps_the_mean(released):
    path, _, (pay, rate, spread) = released
    with duckdb.connect(str(path)) as con:
        written = np.array(con.execute("SELECT pay FROM made").fetchall()).ravel()
    counts = np.histogram(written, EDGES)[0]
    even = counts @ [(low + high) / 2 for low, high in pairwise(EDGES)] / counts.sum()
    assert even > 1.25 * pay  # what even bins would give
    for source in ("made", "dpsyn_sample('made', 40000, seed := 3)"):
        written = figures(path, source)
        assert written[0] == pytest.approx(pay, rel=0.1)
        assert written[1] == pytest.approx(rate, rel=0.04) and written[2] == pytest.approx(spread, rel=0.1)
        assert written[3] < 2_000_000


def test_the_certificate_says_how_bins_are_filled(released):
    path, release, _ = released
    pay, rate, kind = release.certificate()["public_facts"]["domain"]
    assert "fill" not in kind and "granularity" not in pay and rate["granularity"] == "0.01"
    assert {None if cuts is None else len(cuts) for cuts in pay["fill"]} <= {None, FILL_PIECES + 1}
    for (low, high), cuts in zip(pairwise(EDGES), pay["fill"], strict=True):
        assert cuts is None or low <= cuts[0] <= cuts[-1] <= high
    loaded = dpsyn_sql.load(path, "made")
    assert loaded.certificate() == json.loads(json.dumps(release.certificate()))
    stored = loaded.model.domain["pay"].fill
    assert stored[-1] == tuple(pay["fill"][-1]) and len(stored) == len(EDGES) - 1


def test_a_changed_fill_is_damage(released):
    path, _, _ = released
    with duckdb.connect(str(path)) as con:
        (text,) = con.execute("SELECT certificate FROM dpsyn.releases").fetchone()
        facts = json.loads(text)
        for fill in ([[1]], [[5000, 1]] + [None] * 6, [["x"]] + [None] * 6, 5):
            facts["public_facts"]["domain"][0]["fill"] = fill
            con.execute("BEGIN")
            con.execute("UPDATE dpsyn.releases SET certificate = ?", [json.dumps(facts)])
            con.execute("COMMIT")
            with pytest.raises(dpsyn_sql.errors.InputError, match="changed or is damaged"):
                dpsyn_sql.load(con, "made")
        con.execute("UPDATE dpsyn.releases SET certificate = ?", [text])
