"""k-means on places: costs against numpy, equal places, and what are no places."""

import duckdb
import numpy as np
import pytest
from support.one_compared import opened_one

from dpsyn_sql.errors import InputError
from dpsyn_sql.evaluation.codes import drawn
from dpsyn_sql.evaluation.queries import CENTRES, centres_of, clusters, mean_cost

pytestmark = pytest.mark.slow


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        for name, seed, apart in (("real", 1, 0.0), ("synthetic", 2, 4.0)):
            rng = np.random.default_rng(seed)
            points = (
                rng.normal(0, 0.1, (400, 2))
                + rng.integers(0, 3, (400, 1)) * [10.0 + apart, 5.0]
                + [50.0, 1e6]
            )
            connection.execute(f'CREATE TABLE {name} (lat DOUBLE, "lon ""e" DECIMAL(12, 3), word VARCHAR)')
            rows = [[*map(float, point), "w"] for point in points] + [
                [None, 1.0, "w"],
                [float("inf"), None, "w"],
            ]
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        yield connection


PLACES = ("lat", 'lon "e')


def test_costs_are_those_of_numpy_over_all_real_places(con):
    with opened_one(con, "real", "synthetic") as session:
        table, notes = clusters(session, PLACES)
        columns = session.columns[:2]
        points = {
            name: drawn(session, name, columns, 1).dropna().to_numpy() for name in ("real", "synthetic")
        }
    assert notes == []
    assert list(table["centres"]) == list(CENTRES)
    for line in table.itertuples():
        for name in ("real", "synthetic"):
            centres = centres_of(points[name], line.centres, 1)
            apart = ((points["real"][:, None, :] - centres[None]) ** 2).sum(axis=2).min(axis=1)
            assert mean_cost(points["real"], centres) == pytest.approx(apart.mean(), rel=1e-6)
            assert getattr(line, f"{name}_centres") == pytest.approx(apart.mean(), rel=1e-6)
    assert table["ratio"].tolist() == pytest.approx(
        (table["synthetic_centres"] / table["real_centres"]).tolist()
    )
    assert table["ratio"].iloc[2] > 2


def test_one_centre_is_the_mean_and_clear_groups_are_found():
    rng = np.random.default_rng(0)
    groups = np.array([[0.0, 0.0], [100.0, 0.0], [0.0, 100.0]])
    points = np.concatenate([rng.normal(group, 1, (200, 2)) for group in groups])
    assert centres_of(points, 1, 1)[0] == pytest.approx(points.mean(axis=0))
    found = centres_of(points, 3, 1)
    for group in groups:
        assert np.abs(found - group).sum(axis=1).min() < 0.5


def test_equal_places_have_equal_centres(con):
    con.execute("CREATE TABLE twin AS FROM real")
    with opened_one(con, "real", "twin") as session:
        table, _ = clusters(session, PLACES)
    assert (table["ratio"] == 1).all()


def test_few_places_have_few_centres_and_no_cost_has_no_ratio(con):
    con.execute("CREATE TABLE few AS SELECT i % 2 AS lat FROM range(10) r(i); CREATE TABLE other AS FROM few")
    with opened_one(con, "few", "other") as session:
        table, _ = clusters(session, ["lat"])
    assert list(table["centres"]) == [1, 2]
    assert table["real_centres"].iloc[1] == 0
    assert np.isnan(table["ratio"].iloc[1])


def test_no_place_at_all_is_said(con):
    con.execute("CREATE TABLE gone AS SELECT NULL::DOUBLE AS lat, word FROM real")
    with opened_one(con, "SELECT lat, word FROM real", "gone") as session:
        table, notes = clusters(session, ["lat"])
    assert table.empty
    assert "No synthetic row has all of 'lat'" in notes[0]


@pytest.mark.parametrize("places", ["lat", (), ("lat", "LAT"), ("word",), ("no",), (1,)])
def test_what_are_no_places(con, places):
    with opened_one(con, "real", "synthetic") as session, pytest.raises(InputError, match="places"):
        clusters(session, places)
