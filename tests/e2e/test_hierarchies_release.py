"""Releases of tables with places, strings, dyadic numbers and taxonomies: alone, and beside other columns."""

import duckdb
import numpy as np
import pytest

import dpsyn_sql
from dpsyn_sql.errors import InputError
from dpsyn_sql.methods import METHODS

pytestmark = pytest.mark.slow

ROWS = 6000
PLACES = {"x": (40.2, -73.8), "y": (40.5, -73.2), "z": (40.8, -73.5)}
POINT = {"type": "point", "columns": {"lat": [40, 41], "lon": [-74, -73]}, "depth": 8, "nullable": False}
NAME = {"type": "string", "alphabet": "a-z", "longest": 8}
PARENTS = {"250": "240-279", "241": "240-279", "310": "290-319", "300": "290-319"}
DOMAIN = {
    "columns": {
        "pickup": POINT,
        "zone": {"type": "categorical", "categories": [*PLACES], "other": False},
        "name": NAME,
        "tip": {"type": "dyadic", "lower": 0, "upper": 50},
        "diag": {
            "type": "taxonomy",
            "parents": {**PARENTS, "240-279": "all", "290-319": "all"},
            "nullable": False,
        },
    }
}


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(1)
    zones = generator.integers(0, 3, ROWS)
    centres = np.array([*PLACES.values()])[zones] + generator.normal(0, 0.02, (ROWS, 2))
    return {
        "lat": centres[:, 0],
        "zone": np.array([*PLACES])[zones],
        "lon": centres[:, 1],
        "name": np.array(["anna", "anne", "bob", "carla", "carl", "zoe"])[
            zones * 2 + generator.integers(0, 2, ROWS)
        ],
        "tip": np.round(generator.gamma(2, 2, ROWS), 2),
        "diag": np.array([*PARENTS])[zones + generator.integers(0, 2, ROWS)],
    }


@pytest.fixture
def con(rows):
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE trips (lat DOUBLE, zone VARCHAR, lon DOUBLE, name VARCHAR, tip DECIMAL(6,2), "
            "diag VARCHAR)"
        )
        names = ", ".join(f"unnest(${name}) AS {name}" for name in rows)
        connection.execute(
            f"INSERT INTO trips SELECT {names}", {name: own.tolist() for name, own in rows.items()}
        )
        yield connection


def counts(con, table, columns):
    found = con.execute(f"SELECT {columns}, count(*) FROM {table} GROUP BY ALL").fetchall()
    return {row[:-1]: row[-1] for row in found}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
def test_every_method_takes_them(con, method):
    if method == "dpcopula":
        con.execute("ALTER TABLE trips DROP COLUMN name")
        con.execute("ALTER TABLE trips DROP COLUMN diag")
        domain = {"columns": {k: v for k, v in DOMAIN["columns"].items() if k not in ("name", "diag")}}
    else:
        domain = DOMAIN
    release = dpsyn_sql.release(con, "trips", epsilon=100, method=method, domain=domain)
    true = counts(con, "trips", "round(lat, 1), round(lon, 1)")
    found = counts(con, "trips_synthetic", "round(lat, 1), round(lon, 1)")
    off = sum(abs(true.get(key, 0) - found.get(key, 0)) for key in {**true, **found})
    assert off < 0.3 * ROWS
    assert release.certificate()["method"] == method


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "settings",
    [
        *({"splitter": one} for one in ("privtree", "basic", "direct")),
        *({"splitter": "improved", "discount": one} for one in ("uniform", "proportional")),
    ],
    ids=lambda settings: "-".join(settings.values()),
)
def test_a_table_of_places_by_every_splitter(con, settings):
    domain = {"columns": {"pickup": POINT}}
    method = {"name": "hierarchical", **settings}
    exclude = ("zone", "name", "tip", "diag")
    release = dpsyn_sql.release(con, "trips", epsilon=20, method=method, domain=domain, exclude=exclude)
    assert abs(release.rows - ROWS) < 60
    true, found = (counts(con, t, "round(lat, 1), round(lon, 1)") for t in ("trips", "trips_synthetic"))
    off = sum(abs(true.get(key, 0) - found.get(key, 0)) for key in {**true, **found})
    assert off < 0.1 * ROWS
    table = release.marginal(["pickup"])
    assert table["estimate"].sum() == pytest.approx(release.model.total, rel=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_committed_counts_are_met_by_the_rows_that_are_written(con):
    """Every committed count of a subtree, and the noisy total."""
    method = {"name": "hierarchical", "splitter": "direct", "depth": 5}
    exclude = ("zone", "name", "tip", "diag")
    point = {**POINT, "nullable": True}  # rows outside are written as NULL
    release = dpsyn_sql.release(
        con, "trips", epsilon=2, method=method, domain={"columns": {"pickup": point}}, exclude=exclude
    )
    model = release.model
    assert release.rows == model.total == model.rows.sum()
    (attribute,) = model.domain.attributes
    (hierarchy,) = attribute.leaves.hierarchies
    placed = con.execute("SELECT lat, lon FROM trips_synthetic").fetchnumpy()
    leaves = zip(attribute.leaves.levels[0], attribute.leaves.nodes[0], attribute.leaves.codes, strict=True)
    for level, node, code in leaves:
        (lat_low, lat_high), (lon_low, lon_high) = [
            (low[0], high[0]) for low, high in pairs(hierarchy.boxes(np.array([node]), level))
        ]
        lat, lon = (np.ma.filled(placed[name], np.nan) for name in ("lat", "lon"))
        inside = (lat >= lat_low) & (lat <= lat_high) & (lon >= lon_low) & (lon <= lon_high)
        assert inside.sum() == model.rows[code]


def pairs(boxes):
    return [tuple(np.asarray(end) for end in box) for box in boxes]


def test_a_column_that_is_no_hierarchy_is_refused(con):
    with pytest.raises(InputError, match="all hierarchies; these are none: 'zone'.*method='auto'"):
        dpsyn_sql.release(con, "trips", method="hierarchical", domain=DOMAIN)
    with pytest.raises(InputError, match="structure=1.5"):
        dpsyn_sql.plan(con, "trips", method={"name": "hierarchical", "structure": 1.5}, domain=DOMAIN)
    with pytest.raises(InputError, match="discount='uniform', which only splitter='improved' has"):
        dpsyn_sql.plan(con, "trips", method={"name": "hierarchical", "discount": "uniform"}, domain=DOMAIN)
    exclude = ("zone", "name", "tip", "diag")
    deep = {"name": "hierarchical", "depth": 9}
    with pytest.raises(InputError, match="depth=9, and the columns have 8 levels"):
        dpsyn_sql.plan(con, "trips", method=deep, domain={"columns": {"pickup": POINT}}, exclude=exclude)
