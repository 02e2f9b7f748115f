"""``dpsyn_sample`` of releases whose rows go together: units, then their rows, by SQL alone."""

from dataclasses import replace

import duckdb
import numpy as np
import pytest
from support.families import (
    CHAIN,
    MISSED,
    MOST,
    VISITS,
    born,
    chain,
    dated,
    mean_places,
    plain,
    timed,
    visits,
)

from dpsyn_sql.attributes.attribute import Domain, Recoding, edge_ticks
from dpsyn_sql.attributes.roles import Key, UnitId
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.rows.write.families import together
from dpsyn_sql.rows.write.persist import StoredRelease, drawn_from, persist


def noisy():
    """``timed`` with NULL days, which are but noise: days of the first or sixth bin are written for them."""
    model = timed(nullable=True)
    day = replace(model.domain.attributes[2], recoding=Recoding((12,), (0, 0, 5)))
    families = model.families.with_attributes(Domain((*model.domain.attributes[:2], day)))
    return replace(model, domain=families.domain, families=families)


MODELS = {
    "plain": plain,
    "chain": chain,
    "dated": dated,
    "born": born,
    "timed": timed,
    "noisy": noisy,
    "visits": visits,
}


def kept(name, model):
    families = model.families
    measured = model.domain.attributes[: families.written]
    roles = (UnitId("person", "BIGINT"), Key("id", "BIGINT"))
    order = ("person", "id", *(one.name for one in measured))
    shape = together(Shape(measured, roles, order), families)
    labels = [code_labels(attribute) for attribute in model.domain.attributes]
    return StoredRelease(name, "id-1", "2026-11-01", {}, shape, model, drawn_from(model), (), labels)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A database with the releases; nothing of it is attached any more."""
    file = tmp_path_factory.mktemp("families") / "out.duckdb"
    with duckdb.connect(str(file)) as con:
        engine = DuckDBEngine(con)
        for name, model in MODELS.items():
            with engine.transaction():
                persist(engine, "out", kept(name, model()))
    return file


@pytest.fixture
def con(path):
    with duckdb.connect(str(path), read_only=True) as connection:
        connection.execute("SET threads = 2")
        yield connection


def sampled(con, name, units=20_000, seed=1):
    return con.execute(f"FROM dpsyn_sample('{name}', {units}, {seed})").df()


def of_macro(con, kind, name, units, seed=1):
    return con.execute(f"FROM dpsyn.{kind}_{name}({units}, {seed})").df()


def test_rows_that_meet_what_the_model_excludes_follow_their_own_moment(con):
    frame = sampled(con, "visits", 4000)
    assert frame.day.isna().mean() == pytest.approx(MISSED, abs=0.02)
    assert (frame.day == frame.nr - 1).fillna(False).mean() == pytest.approx(1 - MISSED, abs=0.02)
    assert frame.nr.value_counts(normalize=True).to_numpy() == pytest.approx([1 / VISITS] * VISITS, abs=0.02)


@pytest.mark.parametrize("kind", ["sample", "iid"])
def test_rows_of_units_follow_the_model(con, kind):
    frame, model, units = of_macro(con, kind, "plain", 60_000), plain(), 60_000
    assert frame.id.isna().all() and frame.person.nunique() == units
    assert (frame.groupby("person").age.nunique() == 1).all()
    rows = frame.groupby("person").person.transform("size")
    found = np.zeros((3, MOST, 2))
    np.add.at(found, (frame.age, rows - 1, frame.color), 1 / (rows * units))
    np.testing.assert_allclose(found, model.project(["age", "n", "color"]) / model.total, atol=6e-3)
    pair = np.zeros((2, 3))
    np.add.at(pair, (frame.color, frame.kind), 1 / (rows * units))
    np.testing.assert_allclose(pair, model.project(["color", "kind"]) / model.total, atol=6e-3)


def test_rows_of_a_unit_share_values_within_bins(con):
    frame = sampled(con, "born", 3000)
    assert (frame.groupby("person").born.nunique() == 1).all() and frame.born.nunique() == 60


def test_siblings_are_independent_given_their_unit(con):
    frame = sampled(con, "plain", 100_000)
    place = frame.groupby("person").cumcount()
    rows = frame.groupby("person").person.transform("size")
    wide = frame[(rows == 2)].assign(place=place).pivot(index="person", columns="place", values="color")
    age = frame[rows == 2].groupby("person").age.first()
    for code in range(3):
        pairs = wide[age == code].to_numpy()
        share = pairs.mean()
        agree = (pairs[:, 0] == pairs[:, 1]).mean()
        expected = share**2 + (1 - share) ** 2
        assert abs(agree - expected) < 4 * np.sqrt(0.25 / len(pairs))


def test_walks_follow_a_planted_chain(con):
    frame = sampled(con, "chain")
    before = frame.groupby("person", sort=False).state.shift().fillna(3).astype(int)
    found = np.zeros((4, 3))
    np.add.at(found, (before, frame.state), 1)
    np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), CHAIN, atol=0.02)


@pytest.mark.parametrize("kind", ["sample", "iid"])
def test_dates_never_go_backwards(con, kind):
    frame = of_macro(con, kind, "dated", 5000)
    steps = frame.groupby("person", sort=False).day.diff().dropna().dt.days
    assert (steps >= 0).all() and len(steps) > 5000 and (steps > 0).mean() > 0.5
    days = (frame.day - np.datetime64("1970-01-01")).dt.days
    edges = edge_ticks(dated().domain.attributes[1])
    assert days.min() >= edges[0] and days.max() < edges[-1]


def days_of(frame):
    """Codes of the days."""
    edges = edge_ticks(timed().domain.attributes[2])
    return np.searchsorted(edges, (frame.day - np.datetime64("1970-01-01")).dt.days, side="right") - 1


def test_rows_in_one_bin_are_spread_over_it(con):
    frame = of_macro(con, "sample", "timed", 20_000)
    days = (frame.day - np.datetime64("1970-01-01")).dt.days.to_numpy()
    first = edge_ticks(timed().domain.attributes[2])[0]
    places, runs = mean_places(frame.person.to_numpy(), days_of(frame), days - first)
    assert runs > 1000 and np.abs(np.subtract(places, [0.25, 0.5, 0.75])).max() < 0.03


@pytest.mark.parametrize("kind", ["sample", "iid"])
def test_moments_have_the_distribution_of_the_model_for_every_number_of_rows(con, kind):
    frame, model = of_macro(con, kind, "timed", 30_000), timed()
    joint = model.project(["region", "n", "day"])
    given = joint / joint.sum(axis=2, keepdims=True)
    rows = frame.groupby("person").person.transform("size")
    found = np.zeros_like(joint)
    np.add.at(found, (frame.region, rows - 1, days_of(frame)), 1)
    wanted = found.sum(axis=2, keepdims=True) * given
    assert (np.abs(found - wanted) < 4.5 * np.sqrt(wanted) + 2).all()
    assert (frame.groupby("person", sort=False).day.diff().dropna().dt.days >= 0).all()


def test_rows_follow_the_moment_and_the_row_before(con):
    frame, model = sampled(con, "timed", 30_000), timed()
    before = frame.groupby("person", sort=False).state.shift().fillna(3).astype(int)
    found = np.zeros((4, 12, 3))
    np.add.at(found, (before, days_of(frame), frame.state), 1)
    joint = model.project(["state before", "day", "state"])
    wanted, rows = joint / joint.sum(axis=2, keepdims=True), found.sum(axis=2, keepdims=True)
    assert (np.abs(found - rows * wanted) < 4.5 * np.sqrt(rows * wanted) + 3).all() and rows.min() > 20


def test_moments_that_are_but_noise_become_others_before_they_are_sorted(con):
    frame, model = sampled(con, "noisy", 30_000), timed(nullable=True)
    rows = frame.groupby("person").person.transform("size")
    joint = model.project(["n", "day"])
    given = joint / joint.sum(axis=1, keepdims=True)
    given = (
        given[:, :12] + given[:, [12]] * np.isin(range(12), [0, 5]) * np.where(np.arange(12) == 0, 2, 1) / 3
    )
    found = np.zeros((MOST, 12))
    np.add.at(found, (rows - 1, days_of(frame)), 1)
    wanted = found.sum(axis=1, keepdims=True) * given
    assert frame.day.notna().all() and (np.abs(found - wanted) < 4.5 * np.sqrt(wanted) + 2).all()
    assert (frame.groupby("person", sort=False).day.diff().dropna().dt.days >= 0).all()


@pytest.mark.parametrize("name", MODELS)
def test_rows_depend_on_units_and_seed_alone(con, name):
    one, again, other = (sampled(con, name, 3000, seed) for seed in (4, 4, 5))
    con.execute("SET threads = 1")
    alone = sampled(con, name, 3000, 4)
    assert one.equals(again) and one.equals(alone) and not one.equals(other)
    assert sampled(con, name, 0).empty


def test_marginals_of_what_ties_rows_together_are_stored_too(con):
    model = plain()
    found = con.execute("SELECT estimate FROM dpsyn.marginal('plain', ['age', 'n']) ORDER BY cell").df()
    np.testing.assert_allclose(found.estimate, model.project(["age", "n"]).ravel(), rtol=1e-5)
