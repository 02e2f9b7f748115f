"""Sampling in SQL: random bits, distance to the model, the same rows however they are drawn."""

import time
from functools import partial
from itertools import combinations

import duckdb
import numpy as np
import pytest
from scipy.stats import chi2
from support.domains import domain_of
from support.networks import SCOPES, graphical_model

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit import network as networks
from dpsyn_sql.fit.network import Network, node_of, slot_bits_of
from dpsyn_sql.rows.sample import sql_rows as sql_sampler
from dpsyn_sql.rows.sample import sql_text
from dpsyn_sql.rows.sample.sql_rows import (
    alias_lists,
    append_network,
    independent_rows,
    load_distributions,
)
from dpsyn_sql.rows.sample.sql_text import Script, Tables
from dpsyn_sql.rows.write.staging import make_room, rows_in_place
from dpsyn_sql.sqltext.fragments import Fragment

ROWS = 20_000
STAGED = Fragment("temp.main.staged")
MODEL = Tables(Fragment("temp.main.model"))

model = partial(graphical_model, seed=7)


def room(engine, network):
    sizes = [network.sizes[variable] for variable in network.codes]
    make_room(engine, domain_of(sizes), STAGED)


def sampled(network, rows, seed, mode, threads=2, **settings):
    with duckdb.connect(config={"threads": threads, **settings}) as con:
        engine = DuckDBEngine(con)
        if mode == "iid":
            room(engine, network)
            with alias_lists(engine, network) as lists:
                append_network(engine, network, lists, rows, seed, STAGED)
            assert con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("staged",)]
            query = f"FROM {STAGED}"
        else:
            load_distributions(engine, network, MODEL.table)
            query = Script(network, Fragment(str(seed))).low_variance(Fragment(str(rows)), MODEL)
        columns = con.execute(f"FROM ({query}) ORDER BY row").fetchnumpy()
    assert np.array_equal(columns["row"], np.arange(max(0, rows)))
    return np.stack([columns[f"a{i}"] for i in range(len(network.codes))], axis=1).astype(np.int64)


# -- random bits --------------------------------------------------------------------------------

PURPOSES = ("rank", "jitter", "value")


@pytest.mark.slow
@pytest.mark.parametrize("number", ["range", "(range // 100 << 40) + range % 100"], ids=["rows", "groups"])
def test_random_bits_are_even_and_independent(number):
    """Top and low bits, and the lowest that are used, within and across attributes, purposes, seeds and
    neighbouring rows; row numbers, and numbers of groups, whose low bits are those of parents."""
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
        f"hash(xor(CAST({number} AS UBIGINT), hash('{a}|{p}|' || {s}))) AS s{i}"
        for i, (a, p, s) in enumerate(picked)
    )
    with duckdb.connect() as con:
        bits = con.execute(f"SELECT {query} FROM range({rows}) ORDER BY range").fetchnumpy()
    values = [bits[f"s{i}"].astype(np.uint64) for i in range(len(picked))]
    p_values = []
    for shift in (60, 32, 0):
        parts = [((value >> np.uint64(shift)) & np.uint64(15)).astype(np.int64) for value in values]
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


@pytest.mark.parametrize("together", [0, 2**18], ids=["clique by clique", "drawn together"])
@pytest.mark.parametrize("scopes", SCOPES.values(), ids=SCOPES)
def test_rows_follow_the_model(scopes, together, monkeypatch):
    monkeypatch.setattr(networks, "MOST_JOINED", together)
    fitted = model(scopes)
    network = fitted.network()
    means = {}
    for mode in ("low_variance", "iid"):
        own, chance = distances(sampled(network, ROWS, 1, mode), fitted)
        assert np.all(own < 1.6 * chance)
        means[mode] = own.mean() / chance.mean()
    assert 0.8 < means["iid"] < 1.2
    assert means["low_variance"] < 0.9 * means["iid"]


@pytest.mark.slow
@pytest.mark.parametrize("scopes", SCOPES.values(), ids=SCOPES)
def test_independent_rows_pass_a_chi_square_test_of_every_pair(scopes, monkeypatch):
    """Measured and unmeasured; drawn with seeds and row numbers that follow one another."""
    fitted, network = model(scopes), apart(monkeypatch, scopes)
    p_values = []
    for seed in (1, 2):
        codes = sampled(network, ROWS, seed, "iid")
        for i, j in combinations(range(5), 2):
            wanted = fitted.project([f"x{i}", f"x{j}"]).ravel() / 1000
            counts = np.bincount(codes[:, i] * 6 + codes[:, j], minlength=36)
            assert not counts[wanted < 1e-12].any()
            cells = wanted * ROWS >= 5
            rare = [counts[~cells].sum()], [wanted[~cells].sum() * ROWS]
            found, expected = np.append(counts[cells], rare[0]), np.append(wanted[cells] * ROWS, rare[1])
            enough = expected > 5
            statistic = ((found - expected)[enough] ** 2 / expected[enough]).sum()
            p_values.append(chi2.sf(statistic, enough.sum() - 1))
    assert min(p_values) > 1e-3 / len(p_values)


@pytest.mark.slow
def test_every_conditional_count_is_within_one_and_unbiased():
    weights = np.array([[1.0, 2, 7], [1, 1, 0], [0, 3, 1]])
    network = Network(
        (3, 3),
        (node_of("p", (), (0,), np.array([0.5, 0.3, 0.2])), node_of("c", (0,), (1,), weights)),
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


# -- the same rows ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_rows_at_any_number_of_threads_and_others_for_another_seed(monkeypatch):
    monkeypatch.setattr(sql_text, "CHUNK_BITS", 14)
    monkeypatch.setattr(sql_sampler, "CHUNK_ROWS", 2**14)
    network = apart(monkeypatch, SCOPES["clique"])
    for mode in ("low_variance", "iid"):
        one = sampled(network, 60_000, 7, mode, threads=1)
        assert np.array_equal(one, sampled(network, 60_000, 7, mode, threads=4))
        assert np.array_equal(
            one, sampled(network, 60_000, 7, mode, threads=4, preserve_insertion_order=False)
        )
        assert np.any(one != sampled(network, 60_000, 8, mode))


def apart(monkeypatch, scopes):
    """The network with a node a clique."""
    monkeypatch.setattr(networks, "MOST_JOINED", 0)
    return model(scopes).network()


def test_rows_are_those_of_every_version_and_machine(monkeypatch):
    """Frozen: a change of these numbers changes every table that was released with a seed."""
    network = apart(monkeypatch, SCOPES["independent"])
    for mode, rows in FROZEN.items():
        assert sampled(network, 6, 1, mode).tolist() == rows


FROZEN = {
    "iid": [
        [2, 5, 2, 3, 2],
        [1, 0, 3, 5, 2],
        [0, 5, 2, 1, 3],
        [3, 5, 5, 0, 2],
        [1, 5, 3, 5, 5],
        [3, 5, 3, 1, 2],
    ],
    "low_variance": [
        [1, 5, 1, 5, 2],
        [2, 5, 3, 5, 2],
        [3, 3, 3, 0, 1],
        [5, 5, 5, 2, 5],
        [0, 5, 5, 3, 1],
        [2, 5, 3, 5, 0],
    ],
}


# -- edges --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["low_variance", "iid"])
@pytest.mark.parametrize("rows", [-3, 0, 1, 2])
def test_hardly_any_rows(mode, rows):
    assert sampled(model(SCOPES["chain"]).network(), rows, 1, mode).shape == (max(0, rows), 5)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["low_variance", "iid"])
def test_constants_and_many_words(mode):
    """Attributes of one value have no node; 70 attributes of 1000 codes take several words."""
    sizes = (1, *[1000] * 70, 1)
    nodes = [
        node_of(f"x{i}", (i - 1,), (i,), np.eye(1000)[np.roll(np.arange(1000), i)]) for i in range(2, 71)
    ]
    first = node_of("x1", (), (1,), np.ones(1000))
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
    missing = node_of("b", (0,), (1,), np.array([[0.5, 0.5], [0, 0]]))
    first = node_of("a", (), (0,), np.array([0.5, 0.5]))
    with pytest.raises(InternalError, match="lost"):
        sampled(Network((2, 2), (first, missing), (0, 1)), 100, 1, "iid")


def test_many_rows_are_drawn_independently(monkeypatch):
    few, many = model(SCOPES["chain"]), model(SCOPES["chain"]).network()
    assert independent_rows(few, 20_000_000) is None
    assert independent_rows(few, 20_000_001).sizes == many.sizes
    monkeypatch.setattr("dpsyn_sql.rows.sample.sql_rows.MOST_NODES", 0)
    assert independent_rows(few, 20_000_001) is None


def test_more_rows_go_on_with_the_numbers():
    network, told = model(SCOPES["chain"]).network(), []
    with duckdb.connect() as con:
        engine = DuckDBEngine(con)
        room(engine, network)
        with alias_lists(engine, network) as lists:
            append_network(engine, network, lists, 1000, 1, STAGED)
            first = con.execute(f"FROM {STAGED} ORDER BY row").fetchall()
            args = network, lists, 500, 2, STAGED
            assert append_network(engine, *args, first=1000, advance=told.append) == 500
        rows = con.execute(f"FROM {STAGED} ORDER BY row").fetchall()
    assert rows[:1000] == first and [row[0] for row in rows] == list(range(1500)) and told == [500]


@pytest.mark.slow
def test_queries_of_many_variables_are_planned_in_time():
    """On DuckDB 1.5 the time to plan doubled with every window that stood in one pipeline."""
    variables = 60
    nodes = tuple(
        node_of(f"x{i}", (i - 1,) if i else (), (i,), np.ones((3, 3) if i else 3)) for i in range(variables)
    )
    network = Network((3,) * variables, nodes, tuple(range(variables)))
    begun = time.process_time()
    for mode in ("low_variance", "iid"):
        assert sampled(network, 100, 1, mode).shape == (100, variables)
    assert time.process_time() - begun < 60


def test_values_too_wide_for_an_entry_are_drawn_alike(monkeypatch):
    network = model(SCOPES["chain"]).network()
    one = sampled(network, 5000, 3, "iid")
    monkeypatch.setattr(sql_text, "WORD", 40)
    assert len(Script(network, Fragment("1")).steps(MODEL)[0].columns) == 3
    assert np.array_equal(one, sampled(network, 5000, 3, "iid"))


def test_rows_lie_in_the_order_of_their_numbers(monkeypatch):
    """Statement by statement, at several threads; without the setting DuckDB may stage them in any order."""
    monkeypatch.setattr(sql_sampler, "CHUNK_ROWS", 300_000)
    network = model(SCOPES["chain"]).network()
    for keeps in (True, False):
        with duckdb.connect(config={"threads": 4, "preserve_insertion_order": keeps}) as con:
            engine = DuckDBEngine(con)
            room(engine, network)
            with alias_lists(engine, network) as lists:
                append_network(engine, network, lists, 1_000_000, 1, STAGED)
            assert rows_in_place(engine, STAGED) == (1_000_000, keeps)
            if keeps:
                rows = con.execute(f"SELECT row FROM {STAGED}").fetchnumpy()["row"]
                assert np.array_equal(rows, np.arange(1_000_000))
                con.execute(f"INSERT INTO {STAGED} FROM {STAGED} WHERE row = 5")
                assert rows_in_place(engine, STAGED) == (1_000_001, False)


@pytest.mark.parametrize("seed", range(12))
def test_slots_draw_every_value_as_often_as_its_stretch_is_long(seed):
    """Of weights of every kind: even, of one value only, far apart, of configurations that cannot occur."""
    rng = np.random.default_rng(seed)
    rows, size = int(rng.integers(1, 40)), int(rng.integers(2, 40))
    weights = rng.random((rows, size)) ** rng.choice([0.0, 1.0, 8.0]) * (rng.random((rows, size)) < 0.7)
    weights[rng.random(rows) < 0.2] = 0
    weights[0, -2:] = 1
    first = node_of("p", (), (0,), np.ones(rows))
    node = node_of("c", (0,), (1,), weights, rng.random(rows) ** 20)
    network, bits = Network((rows, size), (first, node), (0, 1)), slot_bits_of(node)
    script = Script(network, Fragment("1"))
    with duckdb.connect() as con:
        load_distributions(DuckDBEngine(con), network, MODEL.table)
        step = script.steps(MODEL)[1]
        slots = con.execute(f"FROM ({script.slots(MODEL)[1]}) ORDER BY position").fetchnumpy()
        lists = con.execute(f"FROM {step.lists}").fetchone()
        low, high, touched = (
            con.execute(f"SELECT {column} FROM {step.relation} ORDER BY key, low").fetchnumpy()[column]
            for column in ("low", "high", "key")
        )
        value = con.execute(f"SELECT value FROM {step.relation} ORDER BY key, low").fetchnumpy()["value"]
    assert slots["position"].tolist() == list(range(rows << bits)) and set(slots["node"]) == {1}
    own, alias = (np.ma.filled(np.ma.asarray(slots[name]), size) for name in ("value", "alias"))
    threshold, capacity = slots["threshold"], 2 ** (32 - bits)
    assert threshold.min() >= 0 and threshold.max() <= capacity
    configuration = slots["position"] >> bits
    drawn = np.zeros((rows, size + 1), np.int64)
    np.add.at(drawn, (configuration, own), threshold)
    np.add.at(drawn, (configuration, alias), capacity - threshold)
    parent = touched.astype(np.int64) >> bits
    once = np.unique(np.stack([parent, value, low, high]), axis=1).astype(np.int64)
    expected = np.zeros_like(drawn)
    expected[once[0], once[1]] = once[3] - once[2] + 1
    expected[weights.sum(axis=1) == 0, size] = 2**32
    assert np.array_equal(drawn, expected) and np.all(drawn.sum(axis=1) == 2**32)
    assert np.all(drawn[:, :-1][weights == 0] == 0)
    width = (size - 1).bit_length()
    for place, entry in enumerate(*lists):
        found = slots["value"][place], slots["alias"][place]
        if entry is None:
            assert np.all(np.ma.getmaskarray(np.ma.asarray(slots["alias"]))[place])
            continue
        assert entry & (2 ** (33 - bits) - 1) == threshold[place]
        assert (entry >> (33 - bits)) & (2**width - 1) == (found[0] if threshold[place] else 0)
        assert entry >> (33 - bits + width) == found[1]
    # Each slot lists what touches it.
    slot = touched.astype(np.int64) & (2**bits - 1)
    assert np.all((low >> (32 - bits) <= slot) & (slot <= high >> (32 - bits)))
    assert len(touched) == sum((once[3] >> (32 - bits)) - (once[2] >> (32 - bits)) + 1)
