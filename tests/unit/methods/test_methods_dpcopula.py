"""DPCopula and DPHybrid: what they ask for, and that margins, correlations and parts come back."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau
from support.domains import SOURCE, domain_of
from support.doors import FakeCurator, ran, table_of

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.errors import InputError, PlanTooLarge
from dpsyn_sql.methods import DPCopula
from dpsyn_sql.source.relation import PrivacyUnit, Relation, Source

BUDGET = Budget.from_epsilon("1", "1e-9")
LARGE = Budget.from_epsilon("100", "1e-9")


def domain(*sizes):
    return domain_of(sizes)


def fitted(method, codes, sizes, *, budget=LARGE, sigma=1.0, noise=False, source=SOURCE):
    shape, rng = domain(*sizes), np.random.default_rng(8)

    def table(query):
        exact = table_of(shape, codes, query)
        return exact + np.rint(sigma * rng.standard_normal(exact.shape)).astype(np.int64) * noise

    curator = FakeCurator(shape, table, sigma=sigma)
    return ran(method, method.plan(source, shape, budget), curator), curator


def drawn(model, rows=60_000, seed=5):
    return np.concatenate(list(model.sampler().batches(rows, seed))).T.astype(int)


def normals(correlation, rows, rng):
    return rng.multivariate_normal(np.zeros(len(correlation)), correlation, rows).T


MATRIX = np.array([[1.0, 0.7, -0.4], [0.7, 1.0, 0.1], [-0.4, 0.1, 1.0]])
CUTS = [[0.5], [-1.0, -0.2, 0.3, 1.1], np.linspace(-2.5, 2.5, 39)]
SIZES = (2, 5, 40)


def one_table(rows=40_000):
    latent = normals(MATRIX, rows, np.random.default_rng(6))
    return np.array([np.digitize(x, cuts) for x, cuts in zip(latent, CUTS, strict=True)])


# -- what is asked -----------------------------------------------------------------------------------


def test_pairs_are_asked_for_over_bins_and_the_whole_budget_is_spent():
    _, curator = fitted(DPCopula(), one_table(), SIZES)
    *ones, (kind, pairs, budget) = curator.asked
    assert kind == "measure" and [query.attrs for query in pairs] == list(combinations(("x0", "x1", "x2"), 2))
    assert max(np.prod(query.shape(domain(*SIZES))) for query in pairs) <= 5 * 17
    assert sum(part.amount for *_, part in curator.asked) == LARGE.amount
    # The ratio is that of the margins' budget to that of the pairs.
    assert sum(float(part.amount) for *_, part in ones) == pytest.approx(DPCopula().ratio * budget.amount)


def test_a_part_is_a_cell_and_never_a_question_of_its_own():
    codes, sizes = parted_table()
    _, curator = fitted(DPCopula(hybrid=True), codes, sizes)
    asked = [query.attrs for _, queries, _ in curator.asked for query in queries]
    in_parts = [attrs for attrs in asked if len(attrs) > 1]
    assert in_parts == [
        ("x0", "x1"),
        ("x0", "x1", "x2"),
        ("x0", "x1", "x3"),
        ("x0", "x1", "x2", "x3"),
    ]
    assert sum(part.amount for *_, part in curator.asked) == LARGE.amount


# -- what comes back ---------------------------------------------------------------------------------


def test_correlations_of_discretised_normals_come_back_and_margins_are_met():
    codes = one_table()
    model, _ = fitted(DPCopula(), codes, SIZES)
    np.testing.assert_allclose(model.fitted.correlations[0], MATRIX, atol=0.03)
    rows = drawn(model)
    for i, j in combinations(range(3), 2):
        there, here = (kendalltau(x[i], x[j]).statistic for x in (codes, rows))
        assert here == pytest.approx(there, abs=0.02)
    for axis, name in enumerate(model.domain.names):
        wanted = model.project([name]) / model.total * rows.shape[1]
        assert np.abs(np.bincount(rows[axis], minlength=wanted.size) - wanted).max() < 3
    np.testing.assert_allclose(model.project(["x1"]), np.bincount(codes[1]), rtol=0.01)


def test_what_the_model_answers_is_what_its_rows_hold():
    model, _ = fitted(DPCopula(), one_table(), SIZES)
    rows = drawn(model, 200_000)
    for i, j in ((0, 1), (1, 0), (1, 2)):
        wanted = model.project([f"x{i}", f"x{j}"]) / model.total
        seen = np.zeros(wanted.shape)
        np.add.at(seen, (rows[i], rows[j]), 1 / rows.shape[1])
        assert np.abs(seen - wanted).sum() / 2 < 0.02 + 0.06 * (
            j == 2
        )  # codes within bins follow in the rows


def test_noise_alone_gives_no_correlation_and_little_noise_leaves_it():
    independent = np.array([np.random.default_rng(i).integers(0, k, 3000) for i, k in enumerate((4, 12, 9))])
    model, _ = fitted(DPCopula(), independent, (4, 12, 9), sigma=150.0, noise=True, budget=BUDGET)
    off = model.fitted.correlations[0][np.triu_indices(3, 1)]
    assert np.abs(off).max() < 0.6 and np.count_nonzero(np.abs(off) < 1e-6) >= 1
    close, _ = fitted(DPCopula(), one_table(), SIZES, sigma=60.0, noise=True)
    np.testing.assert_allclose(close.fitted.correlations[0], MATRIX, atol=0.06)


def parted_table(rows=60_000):
    """Two binary columns; two large ones that go together in some parts and against each other in others."""
    rng = np.random.default_rng(7)
    first, second = rng.random(rows) < 0.4, rng.random(rows) < 0.5
    sign = np.where(first ^ second, 0.8, -0.8)
    x = rng.standard_normal(rows)
    y = sign * x + 0.6 * rng.standard_normal(rows)
    cuts = np.linspace(-2, 2, 11)
    codes = np.array([first, second, np.digitize(x + first, cuts), np.digitize(y, cuts)]).astype(int)
    return codes, (2, 2, 12, 12)


def test_parts_keep_their_own_correlations_and_margins_where_one_copula_sees_none():
    codes, sizes = parted_table()
    hybrid, _ = fitted(DPCopula(hybrid=True), codes, sizes, sigma=20.0, noise=True)
    plain, _ = fitted(DPCopula(), codes, sizes, sigma=20.0, noise=True)
    assert hybrid.fitted.split == (0, 1) and plain.fitted.split == ()
    together = []
    for model in (hybrid, plain):
        rows = drawn(model)
        for first in (0, 1):
            for second in (0, 1):
                there, here = (x[:, (x[0] == first) & (x[1] == second)] for x in (codes, rows))
                taus = [kendalltau(x[2], x[3]).statistic for x in (there, here)]
                together.append(abs(taus[0] - taus[1]))
                if model is hybrid:
                    assert here.shape[1] / rows.shape[1] == pytest.approx(
                        there.shape[1] / codes.shape[1], abs=0.01
                    )
                    assert here[2].mean() == pytest.approx(there[2].mean(), abs=0.1)
    assert max(together[:4]) < 0.05 and min(together[4:]) > 0.3
    for attrs in (["x0", "x1"], ["x2", "x0"], ["x3", "x2"]):
        table = hybrid.project(attrs)
        assert table.sum() == pytest.approx(hybrid.total)
        np.testing.assert_allclose(table.sum(axis=1), hybrid.project(attrs[:1]), atol=1e-6 * hybrid.total)


def test_too_little_budget_for_parts_leaves_one_copula():
    codes, sizes = parted_table()
    for epsilon, split in (("0.001", ()), ("100", (0, 1))):
        model, _ = fitted(DPCopula(hybrid=True), codes, sizes, budget=Budget.from_epsilon(epsilon, "1e-9"))
        assert model.fitted.split == split
    noisy_units = Source(Relation("t", "table", "t", ()), PrivacyUnit("who", 1_000_000))
    model, _ = fitted(DPCopula(hybrid=True), codes, sizes, source=noisy_units)
    assert model.fitted.split == ()


def test_a_table_of_small_columns_alone_can_become_one_joint_table():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, 20_000)
    codes = np.array([x, x ^ (rng.random(20_000) < 0.1), rng.integers(0, 3, 20_000)])
    model, curator = fitted(DPCopula(hybrid=True), codes, (2, 2, 3))
    assert model.fitted.split == (0, 1, 2) and curator.asked[-1][1][0].attrs == ("x0", "x1", "x2")
    rows = drawn(model)
    np.testing.assert_allclose(np.mean(rows[0] == rows[1]), 0.9, atol=0.01)


def test_parts_are_so_few_that_the_noise_of_their_tables_takes_seconds():
    rng = np.random.default_rng(2)
    sizes = (3,) * 9 + (40,) * 3
    codes = np.array([rng.integers(0, size, 300_000) for size in sizes])
    model, curator = fitted(DPCopula(hybrid=True), codes, sizes)
    cells = sum(np.prod(q.shape(domain(*sizes))) for _, queries, _ in curator.asked for q in queries)
    assert 2**18 < cells < 2**20 + 200 and len(model.fitted.split) >= 6


# -- unusual tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("hybrid", [False, True])
def test_unusual_tables_give_a_model(hybrid):
    rng = np.random.default_rng(3)
    many = rng.integers(0, 20, 2000)
    tables = {
        "one column": (many[None], (20,)),
        "two identical columns": (np.array([many, many]), (20, 20)),
        "two identical small columns": (np.array([many > 5, many > 5, many]).astype(int), (2, 2, 20)),
        "one value in a column": (np.array([many, np.full(2000, 3), many // 2]), (20, 5, 10)),
        "columns of one code": (np.array([many * 0, many * 0]), (1, 1)),
        "no rows": (np.empty((3, 0), int), (4, 30, 2)),
        "very many codes": (rng.integers(0, 50_000, (2, 2000)), (50_000, 50_000)),
    }
    for name, (codes, sizes) in tables.items():
        model, _ = fitted(DPCopula(hybrid=hybrid), codes, sizes)
        rows = drawn(model, 3000)
        assert rows.shape == (len(sizes), 3000), name
        if "identical" in name:
            assert np.mean(rows[0] == rows[1]) > 0.9, name
        if name == "one value in a column":
            assert np.all(rows[1] == 3)


def test_too_many_columns_are_refused_with_numbers():
    with pytest.raises(PlanTooLarge, match=r"2,000 columns have up to .* above the limit of 16,777,216"):
        DPCopula().plan(SOURCE, domain(*[9] * 2000), BUDGET)


@pytest.mark.parametrize("ratio", [0.0, -1.0, 1001.0])
def test_a_ratio_that_divides_nothing_is_refused(ratio):
    with pytest.raises(InputError, match="ratio=.* above 0 and at most 1000"):
        DPCopula(ratio=ratio).plan(SOURCE, domain(2, 2), BUDGET)
