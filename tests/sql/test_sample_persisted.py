"""What stays with a release: tables and macros that work from a plain connection, without this package."""

import subprocess
import sys
from dataclasses import replace

import duckdb
import numpy as np
import pytest
from support.domains import domain_of
from support.shapes import decode_statement

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.roles import Constant, Derived, Key, UnitId
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import EngineFailure, InputError
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.copula import fit_copula
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.fit.variances import Components, Variances
from dpsyn_sql.fit.views import Margins
from dpsyn_sql.methods.models.margins import CopulaModel, ProductModel
from dpsyn_sql.methods.models.networks import GraphicalModel
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.labels import code_labels
from dpsyn_sql.report.marginals import marginal_table
from dpsyn_sql.rows.sample.sql_rows import load_distributions
from dpsyn_sql.rows.sample.sql_text import Script, Tables
from dpsyn_sql.rows.write import macros
from dpsyn_sql.rows.write.persist import StoredRelease, check_name, drawn_from, persist, persist_beside
from dpsyn_sql.sqltext.fragments import Fragment, ident

pytestmark = pytest.mark.slow

HOSTILE = """it's "x"); DROP TABLE kept; --|"""
SEED = 2**64 - 1
RNG = np.random.default_rng(0)

DOMAIN = Domain(
    (
        Attribute("age", "INTEGER", "numeric", edges=(0, 10, 20, 40, 100), nullable=True),
        Attribute(
            HOSTILE,
            "VARCHAR",
            "categorical",
            labels=("", "it's", 'a"b,\n[c]', "NULL"),
            other=True,
            nullable=True,
        ),
        Attribute("seed", "BOOLEAN", "categorical", labels=(False, True)),
        Attribute("row", "DOUBLE", "numeric", edges=(0.0, 0.5, 2.5)),
        Attribute("one", "VARCHAR", "categorical", labels=("x",)),
    )
)
SIZES = (3, 6, 2, 2, 1)
BINS = (np.array([0, 0, 1, 2, 2]), np.arange(6), np.arange(2), np.arange(2), np.arange(1))
WITHIN = (np.array([0.25, 0.75, 1, 0.5, 0.5]), np.ones(6), np.ones(2), np.ones(2), np.ones(1))


def graphical():
    potentials = {scope: RNG.normal(0, 1, [SIZES[v] for v in scope]) for scope in [(0, 1, 2), (2, 3)]}
    beliefs = calibrate(junction_tree(SIZES, potentials), potentials)
    return GraphicalModel(DOMAIN, 500.0, beliefs, BINS, WITHIN)


def noisy(*names, maps=(), sigma=2.0):
    shape = [
        max(m) + 1 if m else DOMAIN[n].size for n, m in zip(names, maps or (None,) * len(names), strict=True)
    ]
    return NoisyMarginal(names, RNG.integers(-5, 60, shape), sigma, maps)


MEASURED = (
    noisy("age", sigma=3.0),
    noisy(HOSTILE, "age"),
    noisy("age", HOSTILE, "seed", sigma=1.5),
    noisy("seed", "row", maps=((0, 0), None), sigma=0.5),
    replace(noisy("one"), fitted=True),
)
PRODUCT = ProductModel(
    DOMAIN, Margins(100.0, {a.name: RNG.dirichlet(np.ones(a.size)) for a in DOMAIN.attributes})
)


VARIANCES = Variances(
    WITHIN,
    {
        **{(place,): Components(0.0, (3.0 + place) ** -2) for place in range(5)},
        **{(0, 1): Components(2.5, 0.0), (0, 2): Components(0.0, 0.04), (0, 3): Components(7e5, 0.01)},
        **{(0, 4): Components(0.0, 0.0), (2, 3): Components(0.5, 1e-3)},
    },
)


def kept(name="r", model=None, domain=DOMAIN, measured=MEASURED, release_id="id-1", **shape):
    order = shape.pop("order", domain.names)
    facts = {
        "method": "adaptive",
        "guarantee": {"epsilon": 1.0, "delta": 1e-9},
        "sampling": {"rows": 500, "seed": SEED},
        "note": 'it\'s "quoted"\n',
    }
    model = model or graphical()
    return StoredRelease(
        name,
        release_id,
        "2026-11-01T00:00:00Z",
        facts,
        Shape(domain.attributes, order=order, **shape),
        model,
        drawn_from(model),
        measured,
        [code_labels(attribute) for attribute in domain.attributes],
        VARIANCES,
    )


def written(path, *releases):
    """The releases in a file, written through a connection that has it attached."""
    with duckdb.connect() as con:
        con.execute(f'ATTACH \'{path}\' AS "the out"; CREATE TABLE "the out".kept AS SELECT 42')
        engine = DuckDBEngine(con)
        for release in releases:
            with engine.transaction():
                persist(engine, "the out", release)
        assert con.execute("SELECT current_database()").fetchone() == ("memory",)
    return path


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def listed(names):
    return "[" + ", ".join(map(quoted, names)) + "]"


BASIS = {
    (1, "age"): "measured",
    (1, HOSTILE): "summed",
    (1, "row"): "summed",
    (1, "one"): "modelled",
    (2, "age", HOSTILE): "measured",
    (2, HOSTILE, "age"): "measured",
    (2, "row", "seed"): "grouped",
    (2, "row", "age"): "modelled",
    (2, "one", "row"): "modelled",
    (3, "seed", "age"): "measured",
}

# -- marginals ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [graphical(), PRODUCT], ids=["graphical", "independent"])
def test_marginals_are_those_of_the_release(tmp_path, model):
    """Also how they are known: of "one" there is a curve, of "row" and "seed" a table over groups."""
    path = written(tmp_path / "o.duckdb", kept(model=model))
    known = Variances(model.tables().within, VARIANCES.components)
    asked = [["age"], [HOSTILE], ["row"], ["one"], ["age", HOSTILE], [HOSTILE, "age"], ["row", "seed"]]
    asked += [["row", "age"], ["seed", "age", HOSTILE], ["one", "row"]]
    with duckdb.connect(str(path), read_only=True) as con:
        for names in asked:
            expected = marginal_table(model, MEASURED, names, known)
            found = con.execute(f"FROM dpsyn_marginal('r', {listed(names)})").df()
            exact_figures = con.execute(f"FROM dpsyn.marginal('r', {listed(names)}) ORDER BY cell").df()
            assert list(found.columns) == list(expected.columns)
            for name in names:
                labels = [None if label is None else str(label) for label in expected[name]]
                assert [None if v is None or v != v else v for v in found[name]] == labels
            # Of the model seven digits are kept.
            figures = (
                ("estimate", 1e-7),
                ("estimate_error", 1e-6),
                ("noisy", 1e-9),
                ("standard_error", 1e-9),
            )
            for name, exact in figures:
                full = exact_figures[name].astype(float)
                np.testing.assert_allclose(full, expected[name].astype(float), atol=1e-9, rtol=exact)
                np.testing.assert_array_equal(found[name].astype(float), full.round(1))
            assert (
                list(found["basis"])
                == list(expected["basis"])
                == [BASIS[len(names), *names[:2]]] * len(found)
            )
            unknown = len(names) > 2 or names == ["one", "row"]
            assert expected["estimate_error"].isna().all() == found["estimate_error"].isna().all() == unknown


def test_names_are_those_of_the_database_case_aside(tmp_path):
    with duckdb.connect(str(written(tmp_path / "o.duckdb", kept("Ärger_R")))) as con:
        named = [["age", "seed"], ["AGE", "Seed"]]
        first, again = (
            con.execute(f"SELECT * FROM dpsyn_marginal('Ärger_{r}', {listed(names)})").df()
            for r, names in zip("Rr", named, strict=True)
        )
        assert list(again.columns[:2]) == named[1] and len(first) == len(again) > 0
        np.testing.assert_allclose(first["estimate"], again["estimate"], rtol=1e-9)
        assert len(con.execute("FROM dpsyn_sample('ÄRGER_R', 3)").fetchall()) == 3
        for call in ("'Ärger_r', ['age', 'AGE']", "'ärger_r', ['age']"):
            with pytest.raises(duckdb.Error, match="each once|there is no release"):
                con.execute(f"FROM dpsyn_marginal({call})").fetchall()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("dpsyn_marginal('r', ['row', 'age', 'one'])", "dpsyn_sample"),
        ("dpsyn_marginal('r', ['nobody'])", "each once"),
        ("dpsyn_marginal('r', ['age', 'age'])", "each once"),
        ("dpsyn_marginal('r', [])", "each once"),
        ("dpsyn_marginal('s', ['age'])", "there is no release 's' here; there are 'r'"),
        ("dpsyn_sample('s', 1)", "there is no release 's' here; there are 'r'"),
        ("dpsyn_sample(NULL, 1)", "there is no release NULL"),
        ("dpsyn_sample('r', NULL)", "how many rows"),
        ("dpsyn_sample('r', 1, seed := NULL)", "seed is NULL"),
        ("dpsyn_sample('r', 1, seed := -1)", ""),
        ("dpsyn_sample('r', '1); DROP TABLE kept; --')", "convert"),
        ("dpsyn_sample('r', 1, seed := '1), (SELECT 1')", "convert"),
        ("dpsyn_sample('r\"(1, 1); DROP TABLE kept; --', 1)", "there is no release"),
        ("dpsyn_marginal('r'', []) --', ['age'])", "there is no release"),
        ("dpsyn_marginal('r', ['age\", (SELECT 1) AS \"x'])", "each once"),
    ],
)
def test_what_cannot_be_answered_is_an_error_and_nothing_else_happens(tmp_path, call, message):
    with duckdb.connect(str(written(tmp_path / "o.duckdb", kept()))) as con:
        with pytest.raises(duckdb.Error, match=message):
            con.execute(f"FROM {call}").fetchall()
        assert con.execute("FROM kept").fetchall() == [(42,)]


# -- rows --------------------------------------------------------------------------------------------------


def released(model, rows, seed, mode):
    """The queries run over a table of this connection's own."""
    with duckdb.connect() as con:
        network, table = model.network(), Fragment("temp.main.model")
        load_distributions(DuckDBEngine(con), network, table)
        script, number = Script(network, Fragment(str(seed))), Fragment(str(rows))
        if mode == "iid":
            query = script.iid(number, Tables(table))
        else:
            query = script.low_variance(number, Tables(table))
        con.execute(f"CREATE TEMP TABLE staged AS {query}")
        return con.execute(decode_statement(DOMAIN, Fragment("temp.main.staged"), seed)).fetchall()


@pytest.mark.parametrize("model", [graphical(), PRODUCT], ids=["graphical", "independent"])
def test_the_release_can_be_drawn_again(tmp_path, model):
    path = written(tmp_path / "o.duckdb", kept(HOSTILE, model))
    with duckdb.connect(str(path), read_only=True) as con:
        for seed in (1, SEED):
            found = con.execute(f"FROM dpsyn_sample({quoted(HOSTILE)}, 1500, seed := {seed})").fetchall()
            assert found == released(model, 1500, seed, "low_variance")
        assert con.execute(f"FROM dpsyn_sample({quoted(HOSTILE)}, 9)").fetchall() == released(
            model, 9, 1, "low_variance"
        )
        assert con.execute(f"FROM dpsyn_sample({quoted(HOSTILE)}, 0)").fetchall() == []
        iid = con.execute(f"FROM dpsyn.{ident('iid_' + HOSTILE)}(700, 3)").fetchall()
        assert iid == released(model, 700, 3, "iid")
        described = con.execute(f"DESCRIBE FROM dpsyn_sample({quoted(HOSTILE)}, 1)").fetchall()
        assert [(name, kind) for name, kind, *_ in described] == [
            (a.name, a.sql_type) for a in DOMAIN.attributes
        ]


def test_computed_columns_keys_and_conditions(tmp_path):
    roles = (
        Constant("state", "VARCHAR", "it's"),
        Derived("twice", "BIGINT", Fragment('"age" * 2')),
        Key("id", "BIGINT"),
        UnitId("person", "VARCHAR"),
    )
    order = ("id", "age", HOSTILE, "seed", "row", "one", "state", "twice", "person")
    release = kept(
        roles=roles, order=order, never=(Fragment('"age" >= 40'), Fragment("CAST('x' AS INTEGER) > 1"))
    )
    with duckdb.connect(str(written(tmp_path / "o.duckdb", release))) as con:
        found = con.execute("FROM dpsyn_sample('r', 500)").df()
    assert list(found.columns) == list(order)
    assert 0 < len(found) < 500 and not (found["age"] >= 40).any() and found["age"].isna().any()
    assert found["id"].isna().all() and found["person"].isna().all() and set(found["state"]) == {"it's"}
    present = found["age"].notna()
    assert (found["twice"][present] == 2 * found["age"][present]).all()


def test_a_copula_keeps_its_marginals_and_says_what_it_cannot_do(tmp_path):
    names = [attribute.name for attribute in DOMAIN.attributes]
    model = CopulaModel(DOMAIN, fit_copula(DOMAIN, [noisy(name, sigma=1.0) for name in names]))
    with duckdb.connect(str(written(tmp_path / "o.duckdb", kept(model=model, measured=())))) as con:
        for read in ("*", "count(*)", "1"):
            with pytest.raises(duckdb.Error, match="is no network"):
                con.execute(f"SELECT {read} FROM dpsyn_sample('r', 3)").fetchall()
        found = con.execute("FROM dpsyn_marginal('r', ['age', 'seed'])").df()
    np.testing.assert_allclose(found["estimate"], model.project(["age", "seed"]).ravel(), atol=0.051)
    assert set(found["basis"]) == {"modelled"} and found["noisy"].isna().all()


def test_facts_without_words_of_their_own_come_last_under_their_names(tmp_path):
    release = kept()
    release.facts["window"] = {
        "of_calendar": "month",
        "edges": ["2020-01-01", {"a_b": 1, "c": [2], "d": None}],
        "no": [],
    }
    with duckdb.connect(str(written(tmp_path / "o.duckdb", release))) as con:
        told = con.execute("FROM dpsyn_certificate('r')").fetchall()
    assert told[-5:] == [
        ("note", "note", 'it\'s "quoted"\n'),
        ("window", "of calendar", "month"),
        ("window", "edges", "2020-01-01"),
        ("window", "edges", "a b 1, c [2], d none"),
        ("window", "no", "none"),
    ]


def test_too_many_variables_for_one_query_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(macros, "MOST_NODES", 0)
    path = written(tmp_path / "o.duckdb", kept())
    with duckdb.connect(str(path)) as con, pytest.raises(duckdb.Error, match="too many variables"):
        con.execute("FROM dpsyn_sample('r', 3)").fetchall()


# -- where and how long --------------------------------------------------------------------------------------


def counts(con):
    tables = con.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'dpsyn'").fetchall()
    return {name: con.execute(f"SELECT count(*) FROM dpsyn.{name}").fetchone()[0] for (name,) in tables}


def test_a_release_of_the_same_name_replaces_the_earlier_one(tmp_path):
    other = kept("other", PRODUCT, release_id="id-2")
    again = kept("R", release_id="id-3")
    with duckdb.connect(str(written(tmp_path / "a.duckdb", kept("r", PRODUCT), other, again))) as con:
        found = counts(con)
        releases = con.execute(
            "SELECT name, release_id, epsilon, rows, seed FROM dpsyn_releases()"
        ).fetchall()
        assert sorted(releases) == [("R", "id-3", 1.0, 500, SEED), ("other", "id-2", 1.0, 500, SEED)]
        assert len(con.execute("FROM dpsyn_sample('other', 5)").fetchall()) == 5
        assert con.execute("FROM dpsyn_sample('r', 50)").fetchall() == released(again.model, 50, 1, None)
    with duckdb.connect(str(written(tmp_path / "b.duckdb", other, again))) as con:
        assert counts(con) == found


def test_nothing_stays_of_a_publication_that_fails(tmp_path):
    with duckdb.connect(str(tmp_path / "o.duckdb")) as con:
        engine = DuckDBEngine(con)
        with pytest.raises(ZeroDivisionError), engine.transaction():
            persist(engine, "o", kept())
            raise ZeroDivisionError
        left = "SELECT count(*) FROM duckdb_schemas() WHERE schema_name = 'dpsyn'"
        assert con.execute(left).fetchone() == (0,)
        macros = "SELECT count(*) FROM duckdb_functions() WHERE function_name LIKE 'dpsyn%'"
        assert con.execute(macros).fetchone() == (0,)


USED = """
import duckdb, sys
con = duckdb.connect()
con.execute("ATTACH '" + sys.argv[1] + "' AS f (READ_ONLY)")
con.execute("USE f")
print(con.execute("SELECT count(*), sum(hash(t)::HUGEINT) FROM dpsyn_sample('r', 100) AS t").fetchall())
print(con.execute("SELECT count(*), round(sum(estimate)) FROM dpsyn_marginal('r', ['age', 'row'])").fetchall())
print(con.execute("SELECT name FROM dpsyn_releases()").fetchall())
assert not [name for name in sys.modules if name.startswith("dpsyn")]
"""


def used(path):
    return subprocess.run(
        [sys.executable, "-c", USED, str(path)], capture_output=True, text=True, check=True
    ).stdout


def test_a_file_that_is_attached_copied_or_exported_serves_as_before(tmp_path):
    path = written(tmp_path / "o.duckdb", kept())
    first = used(path)
    assert "(100, " in first and "(10, 500.0)" in first
    with duckdb.connect(str(path)) as con:
        con.execute(f"EXPORT DATABASE '{tmp_path / 'exported'}'")
    with duckdb.connect(str(tmp_path / "again.duckdb")) as con:
        con.execute(f"IMPORT DATABASE '{tmp_path / 'exported'}'")
    assert used(tmp_path / "again.duckdb") == first


def test_a_database_called_dpsyn_is_refused_in_time():
    with pytest.raises(InputError, match="another name"):
        check_name("DPSYN", "r")
    with pytest.raises(InputError, match="NUL"):
        check_name("o", "r\x00")
    check_name("o", HOSTILE)


def test_a_column_that_is_called_like_a_parameter_keeps_its_values(tmp_path):
    attributes = tuple(
        replace(a, name=n) for a, n in zip(DOMAIN.attributes[2:4], ("DPSYN_rows", "dpsyn_seed_"), strict=True)
    )
    domain = Domain(attributes)
    margins = Margins(9.0, {a.name: np.full(a.size, 1 / a.size) for a in attributes})
    release = kept(model=ProductModel(domain, margins), domain=domain, measured=())
    with duckdb.connect(str(written(tmp_path / "o.duckdb", release))) as con:
        found = con.execute("SELECT DPSYN_rows FROM dpsyn_sample('r', 50)").fetchall()
        assert sorted(set(found)) == [(False,), (True,)] and len(found) == 50


def test_more_attributes_than_an_array_has_axes(tmp_path):
    domain = Domain(
        tuple(Attribute(f"b{i}", "BOOLEAN", "categorical", labels=(False, True)) for i in range(70))
    )
    model = ProductModel(domain, Margins(100.0, {name: np.array([0.25, 0.75]) for name in domain.names}))
    release = kept(model=model, domain=domain, measured=())
    with duckdb.connect(str(written(tmp_path / "o.duckdb", release))) as con:
        found = con.execute("SELECT estimate FROM dpsyn_marginal('r', ['b3', 'b69'])").fetchall()
        assert found == [(6.3,), (18.8,), (18.8,), (56.3,)]


def test_the_first_error_is_the_one_that_is_shown(tmp_path, monkeypatch):
    """Also where the session looks names up and what is attached afterwards are cleared away."""
    module = sys.modules["dpsyn_sql.rows.write.persist"]
    monkeypatch.setattr(module, "_macros", lambda *arguments: [Fragment("SELECT no_such_column")])
    with duckdb.connect() as con:
        with pytest.raises(EngineFailure) as caught:
            persist_beside(DuckDBEngine(con), tmp_path / "m.duckdb", [kept()])
        assert caught.value.kind == "BinderException"


def test_an_empty_release(tmp_path):
    nothing = replace(graphical(), total=-3.0)
    with duckdb.connect(str(written(tmp_path / "o.duckdb", kept(model=nothing)))) as con:
        assert con.execute("SELECT sum(estimate) FROM dpsyn_marginal('r', ['age'])").fetchone() == (0,)


# -- how much ------------------------------------------------------------------------------------------------


def wide():
    """A model of the shape of UCI Adult's at epsilon 1: 15 attributes of 650 codes, and large cliques that hold
    coarse twins of two of them."""
    sizes = (8, 7, 14, 6, 2, 2, 7, 15, 15, 18, 10, 12, 8, 8, 5, 6, 5)
    codes = (9, 7, 15, 6, 2, 2, 7, 16, 99, 74, 13, 42, 128, 128, 102)
    cliques = [(0, 2, 3, 4, 5, 6, 15, 16), (1, 2, 3, 4, 5, 15), (2, 3, 4, 5, 7, 15, 16)]
    cliques += [(5, 10), (5, 11), (4, 12), (4, 13), (5, 14)]
    rng = np.random.default_rng(3)
    potentials = {scope: rng.normal(0, 2.0, [sizes[v] for v in scope]) for scope in cliques}
    for attribute, twin in ((9, 15), (8, 16)):
        coarse = np.arange(sizes[attribute]) // 3
        potentials[attribute, twin] = np.where(coarse[:, None] == np.arange(sizes[twin]), 0.0, -1000.0)
    bins = tuple(np.arange(number) * size // number for size, number in zip(sizes, codes, strict=False))
    within = tuple((1 / np.bincount(own))[own] for own in bins)
    domain = domain_of(codes)
    beliefs = calibrate(junction_tree(sizes, potentials), potentials)
    return GraphicalModel(domain, 48_842.0, beliefs, bins, within)


def test_what_is_kept_of_a_model_is_small_and_there_once(tmp_path):
    """A line of the model's distributions takes three bytes or so, and what follows from lines is not kept."""
    model = wide()
    assert sum(a.size for a in model.domain.attributes) == 650
    release = kept("r", model, model.domain, ())
    lines = sum(len(node.weights) for node in release.drawn.network.nodes)
    assert lines > 600_000
    beside, table = tmp_path / "beside.duckdb", tmp_path / "table.duckdb"
    with duckdb.connect() as con:
        persist_beside(DuckDBEngine(con), beside, [release])
    written(table, release)
    assert beside.stat().st_size < 4_000_000 and table.stat().st_size < 5_000_000
    with duckdb.connect(str(beside), read_only=True) as con:
        assert con.execute("SELECT free_blocks FROM pragma_database_size()").fetchone() == (0,)
        found = con.execute("SELECT count(*), count(DISTINCT (node, parent, value)) FROM dpsyn.shares")
        number, different = found.fetchone()
        assert number == different <= lines
        scopes = [
            set(scope)
            for (scope,) in con.execute("SELECT list(attribute) FROM dpsyn.axes GROUP BY number").fetchall()
            if len(scope) > 1  # a few cells, which answer faster than a sum
        ]
        assert not any(a <= b for i, a in enumerate(scopes) for b in scopes[:i] + scopes[i + 1 :])
