"""Sampling in SQL: random bits, distance to the model, the same rows however they are drawn."""

from itertools import combinations

import duckdb
import numpy as np
import pytest
from scipy.stats import chi2

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.adaptive import GraphicalModel
from dpsyn_sql.fit.belief import calibrate
from dpsyn_sql.fit.graph import junction_tree
from dpsyn_sql.sample import sql_sampler, sql_text
from dpsyn_sql.sample.sql_network import Network, Node, network_of
from dpsyn_sql.sample.sql_sampler import append_network, load_distributions, mode_of, stage_network
from dpsyn_sql.sample.sql_text import Tables, chunk_statements, iid_query, low_variance_query, script_of
from dpsyn_sql.sqltext.fragments import Fragment

ROWS = 20_000
STAGED = Fragment("temp.main.staged")
SCOPES = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "clique": [(0, 1, 2), (2, 3, 4)],
    "independent": [(0,), (1,), (2,), (3,), (4,)],
}


def model(scopes, sizes=(4,) * 5):
    rng = np.random.default_rng(7)
    potentials = {scope: rng.normal(0, 1.5, [sizes[v] for v in scope]) for scope in scopes}
    domain = Domain(tuple(Attribute(f"x{i}", "INTEGER", "categorical", tuple(range(6))) for i in range(5)))
    bins, within = np.array([0, 1, 1, 2, 3, 3]), np.array([1, 0.3, 0.7, 1, 0.0, 1])
    beliefs = calibrate(junction_tree(sizes, potentials), potentials)
    return GraphicalModel(domain, 1000.0, beliefs, (bins,) * 5, (within,) * 5)


def sampled(network, rows, seed, mode, threads=2, **settings):
    with duckdb.connect(config={"threads": threads, **settings}) as con:
        stage_network(DuckDBEngine(con), network, rows, seed, STAGED, mode=mode)
        columns = con.execute(f"FROM {STAGED} ORDER BY row").fetchnumpy()
        left = con.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert left == [("staged",)]  # nothing of the sampler's own stays
    assert np.array_equal(columns["row"], np.arange(max(0, rows)))
    return np.stack([columns[f"a{i}"] for i in range(len(network.codes))], axis=1).astype(np.int64)


# -- random bits --------------------------------------------------------------------------------

PURPOSES = ("rank", "jitter", "slot")


def test_random_bits_are_even_and_independent():
    """Top and low bits, within and across attributes, purposes, seeds and neighbouring rows."""
    rows = 100_000
    streams = [
        (attribute, purpose, seed)
        for attribute in ("x0", "x1", "a", "b")
        for purpose in PURPOSES
        for seed in (0, 1, 2, 12345678901234567890)
    ]
    picked = streams[::3] + streams[:6]
    picked = list(dict.fromkeys(picked))
    query = ", ".join(
        f"hash(xor(CAST(range AS UBIGINT), hash('{a}|{p}|' || {s}))) AS s{i}"
        for i, (a, p, s) in enumerate(picked)
    )
    with duckdb.connect() as con:
        bits = con.execute(f"SELECT {query} FROM range({rows}) ORDER BY range").fetchnumpy()
    values = [bits[f"s{i}"].astype(np.uint64) for i in range(len(picked))]
    views = {"top": lambda v: v >> np.uint64(60), "low": lambda v: v & np.uint64(15)}
    p_values = []
    for view in views.values():
        parts = [view(value).astype(np.int64) for value in values]
        for index, part in enumerate(parts):
            p_values.append(chi_square(part, 16))
            p_values.append(chi_square(part[1:] * 16 + part[:-1], 256))
            p_values += [chi_square(part * 16 + other, 256) for other in parts[:index]]
    for index, value in enumerate(values):  # top bits of one stream against low bits of another
        other = values[index - 1]
        p_values.append(
            chi_square(((value >> np.uint64(60)) * 16 + (other & np.uint64(15))).astype(int), 256)
        )
    p_values = np.sort(p_values)
    assert p_values[0] > 1e-3 / len(p_values) and p_values[-1] < 1 - 1e-3 / len(p_values)
    # And they are spread as p-values of true randomness are.
    even = (np.arange(p_values.size) + 0.5) / p_values.size
    assert np.abs(p_values - even).max() < 2.5 / np.sqrt(p_values.size)


def chi_square(values, cells):
    counts = np.bincount(values, minlength=cells)
    expected = values.size / cells
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), cells - 1)


def test_the_hash_of_several_arguments_would_fail_that_test():
    """Why one word per use is hashed: the last argument only flips bits."""
    with duckdb.connect() as con:
        bits = con.execute(
            "SELECT hash(range, 'x0', 1) AS a, hash(range, 'x0', 2) AS b FROM range(100000)"
        ).fetchnumpy()
    low = [bits[name].astype(np.uint64) & np.uint64(15) for name in ("a", "b")]
    assert chi_square((low[0] * np.uint64(16) + low[1]).astype(np.int64), 256) < 1e-12


# -- distance to the model ------------------------------------------------------------------------


def distances(codes, fitted):
    """L1 distance of every pair (in and across cliques) to the model, and that of chance."""
    rng = np.random.default_rng(2)
    own, chance = [], []
    for i, j in combinations(range(5), 2):
        wanted = fitted.project([f"x{i}", f"x{j}"]).ravel() / 1000
        drawn = np.bincount(codes[:, i] * 6 + codes[:, j], minlength=36) / len(codes)
        own.append(np.abs(drawn - wanted).sum())
        chance.append(
            np.mean(
                [np.abs(rng.multinomial(len(codes), wanted) / len(codes) - wanted).sum() for _ in range(40)]
            )
        )
    return np.array(own), np.array(chance)


@pytest.mark.parametrize("scopes", SCOPES.values(), ids=SCOPES)
def test_rows_follow_the_model(scopes):
    fitted = model(scopes)
    network = network_of(fitted)
    means = {}
    for mode in ("low_variance", "iid"):
        own, chance = distances(sampled(network, ROWS, 1, mode), fitted)
        assert np.all(own < 1.6 * chance)
        means[mode] = own.mean() / chance.mean()
    assert 0.8 < means["iid"] < 1.2
    assert means["low_variance"] < 0.9 * means["iid"]


@pytest.mark.parametrize("scopes", SCOPES.values(), ids=SCOPES)
def test_low_variance_meets_one_way_counts(scopes):
    fitted = model(scopes)
    codes = sampled(network_of(fitted), ROWS, 5, "low_variance")
    wanted = np.array([ROWS * fitted.project([f"x{i}"]) / 1000 for i in range(5)])
    found = np.array([np.bincount(codes[:, i], minlength=6) for i in range(5)])
    # Independent draws are off by about 60.
    assert np.abs(found - wanted).max() < 25 and np.abs(found - wanted).mean() < 6
    assert np.all(found[:, 4] == 0)  # a code of probability 0 in its bin


def test_every_conditional_count_is_within_one_and_unbiased():
    weights = np.array([[1.0, 2, 7], [1, 1, 0], [0, 3, 1]])
    network = Network(
        (3, 3),
        (
            Node("p", 0, (), np.zeros(1, np.int64), np.array([[0.5, 0.3, 0.2]])),
            Node("c", 1, (0,), np.arange(3), weights),
        ),
        (0, 1),
    )
    runs = 60
    surplus = np.zeros((3, 3))
    for seed in range(runs):
        codes = sampled(network, 997, seed, "low_variance", threads=1)
        counts = np.bincount(codes[:, 0] * 3 + codes[:, 1], minlength=9).reshape(3, 3)
        expected = counts.sum(axis=1, keepdims=True) * weights / weights.sum(axis=1, keepdims=True)
        assert np.abs(counts - expected).max() < 1
        surplus += (counts - expected) / runs
    assert np.abs(surplus).max() < 4 * 0.5 / np.sqrt(runs)


def test_two_children_of_one_parent_do_not_move_together():
    network = Network(
        (4, 4),
        tuple(Node(f"x{i}", i, (), np.zeros(1, np.int64), np.ones((1, 4))) for i in range(2)),
        (0, 1),
    )
    for mode in ("low_variance", "iid"):
        codes = sampled(network, 5000, 0, mode)
        joint = np.bincount(codes[:, 0] * 4 + codes[:, 1], minlength=16)
        assert np.abs(joint / 5000 - 1 / 16).sum() < 0.1


# -- the same rows ----------------------------------------------------------------------------------


def test_the_same_rows_at_any_number_of_threads_and_others_for_another_seed(monkeypatch):
    small_chunks(monkeypatch, 14)
    network = network_of(model(SCOPES["clique"]))
    for mode in ("low_variance", "iid"):
        one = sampled(network, 60_000, 7, mode, threads=1)
        assert np.array_equal(one, sampled(network, 60_000, 7, mode, threads=4))
        assert np.array_equal(
            one, sampled(network, 60_000, 7, mode, threads=4, preserve_insertion_order=False)
        )
        assert np.any(one != sampled(network, 60_000, 8, mode))


@pytest.mark.parametrize("scopes", [SCOPES["clique"], SCOPES["chain"]], ids=["clique", "chain"])
def test_one_query_gives_the_rows_of_the_chunks(scopes, monkeypatch):
    small_chunks(monkeypatch, 12)
    network = network_of(model(scopes))
    rows = 3 * 2**12 + 17
    chunks = sampled(network, rows, 2**64 - 1, "low_variance")
    with duckdb.connect() as con:
        engine = DuckDBEngine(con)
        load_distributions(engine, network, Fragment("temp.main.model"), "low_variance")
        script = script_of(network, Fragment(str(2**64 - 1)))
        query = low_variance_query(script, Fragment(str(rows)), Tables(Fragment("temp.main.model")))
        columns = con.execute(f"FROM ({query}) ORDER BY row").fetchnumpy()
    assert np.array_equal(chunks, np.stack([columns[f"a{i}"] for i in range(5)], axis=1))


def small_chunks(monkeypatch, bits):
    monkeypatch.setattr(sql_text, "CHUNK_BITS", bits)
    monkeypatch.setattr(sql_sampler, "CHUNK_ROWS", 2**bits)


def test_rows_are_those_of_every_version_and_machine():
    """Frozen: a change of these numbers changes every table that was released with a seed."""
    codes = sampled(network_of(model(SCOPES["independent"])), 6, 1, "iid")
    assert codes.tolist() == FROZEN["iid"]
    codes = sampled(network_of(model(SCOPES["independent"])), 6, 1, "low_variance")
    assert codes.tolist() == FROZEN["low_variance"]


FROZEN = {
    "iid": [
        [3, 5, 5, 0, 1],
        [2, 5, 0, 5, 5],
        [0, 5, 2, 2, 2],
        [0, 5, 5, 3, 3],
        [2, 5, 3, 0, 2],
        [0, 5, 1, 3, 2],
    ],
    "low_variance": [
        [1, 5, 0, 5, 3],
        [2, 5, 3, 5, 2],
        [2, 0, 3, 0, 1],
        [3, 5, 5, 1, 5],
        [0, 5, 5, 3, 2],
        [0, 5, 3, 5, 0],
    ],
}


# -- edges --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["low_variance", "iid"])
@pytest.mark.parametrize("rows", [-3, 0, 1, 2])
def test_hardly_any_rows(mode, rows):
    assert sampled(network_of(model(SCOPES["chain"])), rows, 1, mode).shape == (max(0, rows), 5)


@pytest.mark.parametrize("mode", ["low_variance", "iid"])
def test_constants_and_many_words(mode):
    """Attributes of one value have no node; 70 attributes of 1000 codes take several words."""
    sizes = (1, *[1000] * 70, 1)
    nodes = [
        Node(f"x{i}", i, (i - 1,), np.arange(1000), np.eye(1000)[np.roll(np.arange(1000), i)])
        for i in range(2, 71)
    ]
    first = Node("x1", 1, (), np.zeros(1, np.int64), np.ones((1, 1000)))
    network = Network(sizes, (first, *nodes), tuple(range(72)))
    codes = sampled(network, 2000, 3, mode)
    assert np.all(codes[:, [0, -1]] == 0)
    for i in range(2, 71):
        assert np.array_equal(codes[:, i], np.roll(np.arange(1000), i)[codes[:, i - 1]])


def test_no_variable_at_all():
    network = Network((1, 1), (), (0, 1))
    assert np.all(sampled(network, 5, 1, "low_variance") == 0)
    assert np.all(sampled(network, 5, 1, "iid") == 0)


def test_a_lost_row_is_noticed():
    missing = Node("b", 1, (0,), np.array([0]), np.array([[0.5, 0.5]]))
    first = Node("a", 0, (), np.zeros(1, np.int64), np.array([[0.5, 0.5]]))
    for mode in ("low_variance", "iid"):
        with pytest.raises(InternalError, match="lost"):
            sampled(Network((2, 2), (first, missing), (0, 1)), 100, 1, mode)


def test_the_mode_follows_the_number_of_rows():
    node = Node("a", 0, (), np.zeros(1, np.int64), np.array([[0.5, 0.5]]))
    few, many = Network((2,), (node,), (0,)), Network((2,), (node,) * 121, (0,))
    assert mode_of(20_000_000, few) == "low_variance" and mode_of(20_000_001, few) == "iid"
    assert mode_of(20_000_001, many) == "low_variance"


@pytest.mark.parametrize("mode", ["low_variance", "iid"])
def test_more_rows_go_on_with_the_numbers(mode):
    network = network_of(model(SCOPES["chain"]))
    with duckdb.connect() as con:
        engine = DuckDBEngine(con)
        stage_network(engine, network, 1000, 1, STAGED, mode=mode)
        first = con.execute(f"FROM {STAGED} ORDER BY row").fetchall()
        assert append_network(engine, network, 500, 2, STAGED, first=1000, mode=mode) == 500
        rows = con.execute(f"FROM {STAGED} ORDER BY row").fetchall()
    assert rows[:1000] == first and [row[0] for row in rows] == list(range(1500))


# -- the text -----------------------------------------------------------------------------------------

TINY = Network(
    (3, 2, 1),
    (
        Node("it's", 0, (), np.zeros(1, np.int64), np.array([[1.0, 2, 1]])),
        Node("b", 1, (0,), np.arange(3), np.array([[1.0, 1], [1, 3], [3, 1]])),
    ),
    (0, 1, 2),
)
MODEL = Tables(Fragment("model"))


def plain(statement):
    """Without comments and line breaks."""
    lines = [line.split("-- ")[0].strip() for line in statement.splitlines()]
    return " ".join(line for line in lines if line)


def test_the_statements_of_a_chunk():
    scratch = [Fragment(name) for name in ("work", "shuffled", "outcomes")]
    script = script_of(TINY, Fragment("7"))
    found = [plain(s) for s in chunk_statements(script, MODEL, STAGED, scratch, 2**20, 2**20 + 5)]
    assert len(found) == 7
    assert found[3] == (
        'CREATE OR REPLACE TEMP TABLE shuffled AS SELECT w0, "row", (((w0 & 3) >> 0)) AS parent '
        "FROM ( FROM work ) ORDER BY parent, hash(xor(\"row\", hash('b|rank|' || 7)))"
    )
    assert found[1] == (
        "CREATE OR REPLACE TEMP TABLE outcomes AS WITH groups AS ( SELECT parent, count(*) AS size "
        "FROM shuffled GROUP BY parent ), jittered AS ( SELECT parent, size, 4294967295 - "
        "CAST(hash(xor(parent + 1099511627776, hash('it''s|jitter|' || 7))) & 4294967295 AS BIGINT) AS rest "
        "FROM groups ), counted AS ( SELECT d.parent, d.value, ((d.high * j.size + j.rest) >> 32) - "
        "((d.low * j.size + j.rest) >> 32) AS number FROM jittered AS j INNER JOIN "
        "( SELECT CAST(parent AS UBIGINT) AS parent, CAST(value AS UBIGINT) << 0 AS value, high, low "
        "FROM model WHERE TRUE AND node = 0 ) AS d ON d.parent = j.parent ), ordered AS ( SELECT value, "
        "number FROM counted WHERE number > 0 ORDER BY parent, value ) "
        "SELECT unnest(list_resize([value], number, value)) AS value FROM ordered"
    )
    assert found[2] == (
        'CREATE OR REPLACE TEMP TABLE work AS SELECT w0 | value AS w0, "row" '
        "FROM shuffled POSITIONAL JOIN outcomes"
    )
    assert found[6] == (
        f'INSERT INTO {STAGED} SELECT CAST("row" AS BIGINT) AS "row", '
        "CAST((w0 >> 0) & 3 AS UTINYINT) AS a0, CAST((w0 >> 2) & 1 AS UTINYINT) AS a1, "
        "CAST(0 AS UTINYINT) AS a2 FROM ( FROM work )"
    )


def test_the_queries_are_one_step_a_variable():
    script = script_of(TINY, Fragment("7"))
    iid = plain(iid_query(script, Fragment("0"), Fragment("5"), MODEL))
    assert iid.startswith(
        'WITH started AS ( SELECT CAST(0 AS UBIGINT) AS w0, CAST(range AS UBIGINT) AS "row" FROM range(0, 5) ), '
        "step0_bits AS ( SELECT *, hash(xor(\"row\", hash('it''s|slot|' || 7))) AS bits FROM started )"
    )
    assert "ON t.key = (((w0 & 3) << 1)) | (b.bits & 1) ), step1 AS" in iid
    one = plain(low_variance_query(script, Fragment("5"), MODEL))
    assert (
        'step1_ranked AS ( SELECT *, row_number() OVER ( PARTITION BY "group" '
        "ORDER BY hash(xor(\"row\", hash('b|rank|' || 7))) ) - 1 AS rank, "
        'count(*) OVER (PARTITION BY "group") AS size FROM step1_grouped )'
    ) in one
    assert one.count("ASOF INNER JOIN") == 2 and one.endswith("FROM step1")
