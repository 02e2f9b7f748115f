"""Columns that a hierarchy stands for, in everything that a release writes, keeps, tells and draws again."""

from __future__ import annotations

import warnings
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from support.shapes import shape_of_domain

import dpsyn_sql
from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.output import output_statement, units_of
from dpsyn_sql.attributes.points import Points
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.attributes.taxonomy import from_prefixes
from dpsyn_sql.attributes.text import Texts
from dpsyn_sql.attributes.trees import HierarchyColumn, Leaves
from dpsyn_sql.discovery.labels import recoded
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.variances import one_way_counts
from dpsyn_sql.fit.views import Margins
from dpsyn_sql.methods.models.margins import ProductModel
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.planning.workload import read_workload
from dpsyn_sql.report.complaints import complaint_of
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.report.loss_words import column_facts
from dpsyn_sql.report.losses import Losses, PairLosses, _column
from dpsyn_sql.rows.write.persist import StoredRelease, drawn_from, persist
from dpsyn_sql.sqltext.fragments import Fragment

pytestmark = pytest.mark.slow

SPEC = {
    "columns": {
        "place": {"type": "point", "columns": {"lat": [40.0, 41.0], "lon": [-75.0, -73.0]}},
        "since": {"type": "dyadic", "lower": "2020-01-01", "upper": "2021-12-31"},
        "code": {"type": "taxonomy", "ids": ["11", "12", "13", "21", "22", "30"], "prefixes": [1]},
        "who": {"type": "string", "alphabet": "a-z", "longest": 5},
        "n": {"type": "numeric", "lower": 0, "upper": 3},
    }
}
ROWS = """
    SELECT
        40 + CAST(hash(i) % 1000 AS DOUBLE) / 2000 AS lat,
        CAST(i % 4 AS INTEGER) AS n,
        -74 + CAST(hash(i + 99999) % 1000 AS FLOAT) / 1100 AS lon,
        CASE WHEN i % 10 > 0 THEN ['ann', 'anna', 'bob', 'zoe'][1 + i % 4] END AS who,
        [11, 12, 13, 21, 22, 30][CAST(1 + hash(i * 7) % 6 AS BIGINT)] AS code,
        DATE '2020-03-01' + CAST(hash(i * 3) % 60 AS INTEGER) AS since
    FROM range(20000) AS r(i)
"""
TYPES = {
    "lat": "DOUBLE",
    "n": "INTEGER",
    "lon": "FLOAT",
    "who": "VARCHAR",
    "code": "INTEGER",
    "since": "DATE",
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def spec(**changes):
    return {"columns": SPEC["columns"] | changes.pop("columns", {}), **changes}


@pytest.fixture
def con(tmp_path):
    with duckdb.connect(str(tmp_path / "data.duckdb")) as connection:
        connection.execute(f"CREATE TABLE trips AS {ROWS}")
        yield connection


def released(con, tmp_path, **options):
    options = {"epsilon": 8.0, "domain": spec(), "ledger": tmp_path / "ledger", "seed": 5} | options
    return dpsyn_sql.release(con, "trips", **options)


def inside(con, table):
    """Whether every value of a table is one that its column can have."""
    return con.execute(
        f"""SELECT bool_and(COALESCE(lat BETWEEN 40 AND 41 AND lon BETWEEN -75 AND -73, TRUE))
            AND bool_and((lat IS NULL) = (lon IS NULL)) AND bool_and(n BETWEEN 0 AND 3)
            AND bool_and(COALESCE(code IN (11, 12, 13, 21, 22, 30), TRUE))
            AND bool_and(COALESCE(since BETWEEN DATE '2020-01-01' AND DATE '2021-12-31', TRUE))
            AND bool_and(COALESCE(regexp_full_match(who, '[a-z]*[*]?|__other__'), TRUE)) FROM {table}"""
    ).fetchone() == (True,)


def test_a_table_with_every_kind_is_released_whole(con, tmp_path):
    """Columns in source order and of their types; macros, model and figures name the attributes."""
    made = released(con, tmp_path)
    table = "trips_synthetic"
    described = con.execute(f"DESCRIBE {table}").fetchall()
    assert {name: kind for name, kind, *_ in described} == TYPES
    assert [name for name, *_ in described] == list(TYPES)
    assert inside(con, table)
    [(near, rows)] = con.execute(
        f"SELECT count(*) FILTER (lat <= 40.51 AND lon >= -74.01), count(*) FROM {table}"
    ).fetchall()
    assert near > 0.9 * rows and abs(rows - 20_000) < 400
    sampled = con.execute("FROM dpsyn_sample('trips_synthetic', 900, seed := 2)").df()
    assert list(sampled.columns) == list(TYPES) and len(sampled) == 900
    con.execute("CREATE TEMP TABLE sampled AS FROM dpsyn_sample('trips_synthetic', 900, seed := 2)")
    assert inside(con, "sampled")
    places = con.execute("FROM dpsyn_marginal('trips_synthetic', ['place', 'n'])").fetchall()
    rounding = 0.05 * len(places)  # each count is rounded to a tenth
    assert abs(sum(row[2] for row in places) - rows) < 1 + rounding
    domain = con.execute("SELECT name, sql_type FROM dpsyn_domain('trips_synthetic')").fetchall()
    wanted = {"place": "lat DOUBLE, lon FLOAT", "since": "DATE", "code": "INTEGER", "n": "INTEGER"}
    assert {name: kind for name, kind in domain if name != "who"} == wanted
    loaded = dpsyn_sql.load(con, "trips_synthetic")
    assert loaded.model.domain["place"].leaves.hierarchies[0].columns[1].sql_type == "FLOAT"
    assert loaded.certificate() == made.certificate()
    for model in (made, loaded):
        with pytest.raises(InputError, match="column 'lat' is part of the attribute 'place'"):
            model.marginal(["lat"])
    [(comment,)] = con.execute(
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'trips_synthetic' AND column_name = 'lon'"
    ).fetchall()
    assert "leaves of the hierarchy 'place'" in comment


def test_a_frame_and_a_file_of_text_are_sources(con, tmp_path):
    frame = con.execute("FROM trips").df()
    made = dpsyn_sql.release(frame, "trips", epsilon=8, domain=spec(), ledger=tmp_path / "l")
    assert list(made.to_df()) == list(TYPES)
    con.execute(f"COPY trips TO '{tmp_path}/trips.csv'")
    kinds = {"since": {**SPEC["columns"]["since"], "sql_type": "DATE"}}
    kinds["code"] = {**SPEC["columns"]["code"], "sql_type": "INTEGER"}
    kinds["place"] = {"type": "point", "columns": {"lat": [40, 41], "lon": [-75, -73]}}
    out = tmp_path / "out.parquet"
    dpsyn_sql.release(
        f"{tmp_path}/trips.csv", into=out, epsilon=8, domain=spec(columns=kinds), ledger=tmp_path / "l"
    )
    con.execute(f"CREATE TABLE from_text AS FROM '{out}'")
    assert inside(con, "from_text")
    assert con.execute("SELECT count(*) FROM from_text WHERE lat <= 40.51").fetchone()[0] > 18_000


def test_owners_statements_use_the_columns_of_a_point(con, tmp_path):
    """Derived columns, conditions, NOT NULL, exclude and target name columns as they are written."""
    con.execute("CREATE TABLE strict AS FROM trips")
    for name in ("lat", "lon", "since"):
        con.execute(f"ALTER TABLE strict ALTER {name} SET NOT NULL")
    con.execute("ALTER TABLE strict ADD COLUMN north BOOLEAN; UPDATE strict SET north = lat > 40.25")
    domain = spec(columns={"north": {"derived": "lat > 40.25"}}, never=["lat > 40.4 AND lon > -73.5"])
    options = {"domain": domain, "workload": "lon", "exclude": ["who"]}
    domain["columns"].pop("who")
    dpsyn_sql.release(con, "strict", epsilon=8, ledger=tmp_path / "l", into="made", **options)
    found = con.execute("SELECT * FROM made").df()
    assert list(found.columns) == ["lat", "n", "lon", "code", "since", "north"]
    assert (found["north"] == (found["lat"] > 40.25)).all() and found["lon"].notna().all()
    assert not ((found["lat"] > 40.4) & (found["lon"] > -73.5)).any()
    strict = con.execute(
        "SELECT column_name FROM duckdb_columns() WHERE table_name = 'made' AND NOT is_nullable"
    ).fetchall()
    assert {name for (name,) in strict} == {"lat", "lon", "since"}


# -- parts ------------------------------------------------------------------------------------------


def leafy(hierarchy, levels, nodes, rows, codes, nullable=False):
    leaves = Leaves((hierarchy,), (levels,), (nodes,), rows, codes)
    labels = tuple(f"code {code}" for code in range(max(codes) + 1))
    name = hierarchy.name
    return Attribute(
        name,
        "VARCHAR",
        "categorical",
        labels,
        other=True,
        nullable=nullable,
        origin="discovered",
        leaves=leaves,
    )


BOX = Points(
    "place", (HierarchyColumn("x", "DOUBLE"), HierarchyColumn("seed", "INTEGER")), (0.0, 0), (1.0, 63), 5
)
PLACE = leafy(BOX, (1,) * 4, (0, 1, 2, 3), (1.0, 2.0, 3.0, 0.0), (0, 0, 1, 1))
WORD = leafy(
    Texts(HierarchyColumn("row", "VARCHAR"), "'ab", (1, 2), 2),
    (1, 1, 2, 2, 2, 2, 1),
    ("\x03", "'", "a\x03", "a'", "aa", "ab", "b"),
    (1.0, 4.0, 2.0, 0.0, 2.0, 1.0, 9.0),
    (0, 0, 1, 1, 1, 1, 2),
)
KIND = leafy(
    from_prefixes(HierarchyColumn("kind", "INTEGER"), ["11", "12", "20"], [1]),
    (1, 1),
    (0, 2),
    (5.0, 5.0),
    (0, 1),
)
ATTRIBUTES = (PLACE, Attribute("n", "INTEGER", "numeric", edges=(0, 1, 5)), WORD, KIND)


@pytest.mark.parametrize("line", ["dpsyn_sample", "iid"])
def test_rows_of_a_stored_model_are_those_that_were_written(tmp_path, line):
    """The macros have seeds and rows as parameters; what they draw is what a release writes."""
    domain = Domain(ATTRIBUTES)
    rng = np.random.default_rng(0)
    shares = {one.name: rng.dirichlet(np.ones(one.size)) for one in ATTRIBUTES}
    model = ProductModel(domain, Margins(300.0, shares))
    shape = shape_of_domain(domain)
    labels = [code_labels(one) for one in ATTRIBUTES]
    facts = {"method": "independent", "guarantee": {}, "sampling": {"rows": 300}}
    kept = StoredRelease("r", "id", "2026-11-01", facts, shape, model, drawn_from(model), (), labels)
    with duckdb.connect(str(tmp_path / "o.duckdb")) as con:
        persist(DuckDBEngine(con), "o", kept)
        call = "dpsyn_sample('r', 300, seed := 7)" if line == "dpsyn_sample" else 'dpsyn."iid_r"(300, 7)'
        found = con.execute(f"FROM {call}").fetchall()
        names = [name for name, *_ in con.description]
        assert names == ["x", "seed", "n", "row", "kind"]
        assert con.execute(f"FROM {call}").fetchall() == found
        assert con.execute(f"FROM {call.replace('7', '8')}").fetchall() != found
        assert len(found) == 300
        words = {word for _, _, _, word, _ in found}
        assert words <= {"", "'*", "a", "aa", "ab", "b*", "__other__"} and "a'" not in words
        assert {kind for *_, kind in found} == {11, 12, 20}
    with duckdb.connect() as con:
        con.execute(
            'CREATE TEMP TABLE staged ("row" BIGINT, a0 UTINYINT, a1 UTINYINT, a2 UTINYINT, a3 UTINYINT)'
        )
        con.execute("INSERT INTO staged SELECT i, 1, 0, 2, 1 FROM range(9) AS r(i)")
        query = output_statement(shape, Fragment("staged"), 9, units_of(None, 9), 7)
        assert {row[3:] for row in con.execute(query).fetchall()} == {("b*", 20)}


def test_a_workload_names_a_point_or_its_columns():
    shape = Shape(ATTRIBUTES)
    assert read_workload("SEED").matched(shape).target == "place"
    found = read_workload({("x", "n"): 5, "kind": 2}).matched(shape)
    assert dict(found.sets) == {("place", "n"): 5, ("kind",): 2}
    with pytest.raises(InputError, match="twice"):
        read_workload({("x", "seed"): 5}).matched(shape)


def losses_of_column(attribute, counts):
    """Of one column with these numbers of rows, with noise of deviation 1."""
    table = NoisyMarginal((attribute.name,), np.array(counts, np.int64), 1.0)
    known = one_way_counts(Domain((attribute,)), [table])[attribute.name]
    total = float(sum(counts))
    return Losses(total, (_column(attribute, known, total, (1, 0), {}),), PairLosses(0, 0, 0))


def test_rows_that_keep_only_a_beginning_are_told():
    """Of code 0 four rows in five, of code 1 none, of code 2 all; by brute force over the leaves."""
    losses = losses_of_column(WORD, [500, 300, 200, 0])
    (column,) = losses.columns
    assert column.shortened.share == pytest.approx((0.8 * 500 + 200) / 1000)
    facts = column_facts(column)
    assert facts["lost"].startswith("60.0 % ± ") and "keep only the beginning" in facts["lost"]
    assert "found" not in facts
    assert losses_of_column(PLACE, [5, 5, 0]).columns[0].shortened is None
    bare = replace(WORD, leaves=replace(WORD.leaves, rows=(0.0,) * 7))
    (empty,) = losses_of_column(bare, [500, 300, 200, 0]).columns
    assert empty.shortened.share == pytest.approx((0.5 * 500 + 200) / 1000)


def test_a_column_of_beginnings_alone_has_a_warning():
    """Of code 0 four rows in five keep a beginning, of code 1 none."""

    def told(counts):
        losses = losses_of_column(WORD, counts)
        return complaint_of(losses.columns[0], in_workload=False, units="rows", total=losses.total)

    assert "72 % of the rows keep only the beginning of 'row'" in told([900, 100, 0, 0]).text
    assert "48 % of the rows keep only the beginning of 'row'" in told([600, 400, 0, 0]).text
    assert told([150, 850, 0, 0]) is None


def test_a_hierarchy_that_does_not_fit_is_told():
    (column,) = losses_of_column(PLACE, [100, 100, 800]).columns
    complaint = complaint_of(column, in_workload=False, units="rows", total=1000.0)
    assert "80 %" in complaint.text and "outside of the hierarchy 'place'" in complaint.text


@pytest.mark.parametrize(("attribute", "written"), [(PLACE, False), (WORD, True), (KIND, False)])
def test_rows_outside_are_written_where_a_value_can_say_so(attribute, written):
    """Text has __other__; numbers and ids have NULL, where the column has it."""
    counts = [400, *[300] * (attribute.regular - 1), 200]
    table = NoisyMarginal((attribute.name,), np.array(counts, np.int64), 1.0)
    known = one_way_counts(Domain((attribute,)), [table])
    (found,) = recoded(Shape((attribute,)), known, float(sum(counts))).measured
    assert (found.recoding is None) == written
    nullable = replace(attribute, nullable=True)
    table = NoisyMarginal((attribute.name,), np.array([*counts, 200], np.int64), 1.0)
    known = one_way_counts(Domain((nullable,)), [table])
    (found,) = recoded(Shape((nullable,)), known, float(sum(counts) + 200)).measured
    assert found.recoding is None
