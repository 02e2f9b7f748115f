"""A person's rows, released together: what the page says of them, stored or not, and what an evaluation finds."""

import re

import duckdb
import numpy as np
import pytest

import dpsyn_sql

PERSONS = 3_000
DOMAIN = {
    "columns": {
        "age": {"type": "numeric", "lower": 0, "upper": 3, "nullable": False, "per_unit": True},
        "ward": {"type": "categorical", "categories": ["ear", "eye", "heart"], "other": False},
    }
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Persons of four ages with one to five visits: the older the more, and the more to one ward."""
    rng = np.random.default_rng(1)
    age = rng.integers(4, size=PERSONS)
    who = np.repeat(np.arange(PERSONS), 1 + rng.binomial(4, (1 + age) / 5))
    heart = rng.random(len(who)) < age[who] / 3
    ward = np.where(heart, "heart", rng.choice(["ear", "eye"], len(who)))
    folder = tmp_path_factory.mktemp("families")
    with duckdb.connect(str(folder / "w.duckdb")) as con:
        frame = {"who": who, "age": age[who].astype(np.int32), "ward": ward}
        con.register("frame", frame)
        con.execute("CREATE TABLE visits AS SELECT who, age, ward FROM frame")
        given = {"domain": DOMAIN, "unit": "who", "most": 6, "epsilon": 10}
        alone = {**DOMAIN["columns"], "age": {**DOMAIN["columns"]["age"], "per_unit": False}}
        release = dpsyn_sql.release(con, "visits", into="copy", **given)
        plain = dpsyn_sql.release(
            con, "visits", into="plain", **{**given, "weights": False, "domain": {"columns": alone}}
        )
        yield con, release, plain, folder


def words(release, path):
    text = re.sub(r"<[^>]+>", " ", release.report(path).read_text(encoding="utf-8"))
    return " ".join(text.split())


def test_the_page_shows_a_persons_rows(made):
    con, release, plain, folder = made
    page = words(release, folder / "r.html")
    assert "A person&#39;s rows" in page
    assert "All rows of a person have the same value of: age" in page
    assert "rows of the unit" not in page
    assert "A person&#39;s rows" not in words(plain, folder / "p.html")
    loaded = dpsyn_sql.load(con, "copy")
    assert words(loaded, folder / "l.html") == page


def test_an_evaluation_finds_the_rows_of_a_person_together(made):
    con, _release, _plain, _folder = made
    found = {name: dpsyn_sql.evaluate(con, "visits", name, unit="who").tables for name in ("copy", "plain")}
    age, ward = (found["copy"]["relative_columns"].iloc[place] for place in (0, 1))
    assert (age["constant_real"], age["constant_synthetic"]) == (1, 1)
    assert ward["excess_real"] > 0.08
    assert ward["excess_synthetic"] == pytest.approx(ward["excess_real"], abs=0.03)
    assert found["copy"]["links"]["tv"][0] < 0.05
    assert age["rows_tv"] < 0.06
    strangers = found["plain"]["relative_columns"]
    assert strangers["excess_synthetic"].abs().max() < 0.03
    assert strangers["rows_tv"][0] > 0.1


@pytest.mark.parametrize("never", [[], ["age = 0 AND ward = 'heart'"]], ids=["", "drawn again"])
def test_rows_of_a_person_share_the_value_within_a_bin(made, never):
    """Two ages are in a bin: each person has one of them, and both occur; also of rows that SQL draws."""
    con = made[0]
    binned = {**DOMAIN["columns"], "age": {**DOMAIN["columns"]["age"], "bins": 2}}
    release = dpsyn_sql.release(
        con,
        "visits",
        into="binned",
        domain={"columns": binned, "never": never},
        unit="who",
        most=6,
        epsilon=10,
        replace=True,
        new_debit=True,
    )
    if never:
        assert con.execute(f"SELECT count(*) FROM binned WHERE {never[0]}").fetchone() == (0,)
    for frame in (release.to_df(), release.sample(1_000)):
        by_unit = frame.groupby("who")["age"]
        assert by_unit.nunique().max() == 1
        assert by_unit.size().max() > 1
        shares = by_unit.first().value_counts(normalize=True).sort_index()
        assert shares.index.tolist() == [0, 1, 2, 3]
        assert shares.min() > 0.15
