"""The fitted copula: the value rule keeps one-way marginals, and pairs follow the data."""

from itertools import combinations

import numpy as np
import pytest
from support.domains import domain_of

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.copula import calibrated_offsets, fit_copula
from dpsyn_sql.fit.gaussian import floored
from dpsyn_sql.methods.models.margins import CopulaModel, checked_names
from dpsyn_sql.planning.queries import NoisyMarginal


def tables_of(codes, sizes, sigma=0.0, seed=0):
    rng = np.random.default_rng(seed)
    result = []
    for size in (1, 2):
        for axes in combinations(range(len(sizes)), size):
            counts = np.zeros([sizes[axis] for axis in axes])
            np.add.at(counts, tuple(codes[:, axes].T), 1)
            values = counts + np.rint(sigma * rng.standard_normal(counts.shape))
            result.append(NoisyMarginal(tuple(f"x{i}" for i in axes), values.astype(np.int64), sigma))
    return result


def copula(shape, tables):
    return CopulaModel(shape, fit_copula(shape, tables))


def correlated_codes(rows, seed=0):
    """Three attributes of 2, 5 and 9 codes that follow one hidden factor; one of a single code."""
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal(rows)
    columns = [
        (factor + 0.5 * rng.standard_normal(rows) > 0.8).astype(int),
        np.digitize(factor + 0.7 * rng.standard_normal(rows), [-1.5, 0.2, 0.9, 2.5]),
        np.digitize(factor + 1.0 * rng.standard_normal(rows), np.linspace(-2, 2, 8)),
        np.zeros(rows, dtype=int),
    ]
    return np.column_stack(columns)


SIZES = (2, 5, 9, 1)


def correlation(size, seed):
    factor = np.random.default_rng(seed).standard_normal((size, size + 2))
    raw = factor @ factor.T
    return floored(raw / np.sqrt(np.outer(np.diag(raw), np.diag(raw))), 1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_each_code_wins_with_its_own_probability(seed):
    size = 6
    probabilities = np.random.default_rng(seed).dirichlet(np.full(size, 0.5)) * 0.99 + 0.01 / size
    matrix = correlation(size, seed)
    offsets = calibrated_offsets(matrix, probabilities)
    draws = np.random.default_rng(99).standard_normal((200_000, size)) @ np.linalg.cholesky(matrix).T
    won = np.bincount((draws + offsets).argmax(axis=1), minlength=size) / len(draws)
    assert 0.5 * np.abs(won - probabilities).sum() < 0.02


def test_rare_codes_get_finite_offsets():
    probabilities = np.array([1.0 - 2e-7 - 0.3, 0.3, 1e-7, 1e-7])
    offsets = calibrated_offsets(correlation(4, 1), probabilities)
    assert np.all(np.isfinite(offsets)) and offsets[0] > offsets[2]


def total_variation(first, second):
    return 0.5 * np.abs(first / first.sum() - second / second.sum()).sum()


def test_one_way_marginals_are_met_and_would_not_be_by_a_plain_argmax():
    codes = correlated_codes(20_000)
    model = copula(domain_of(SIZES), tables_of(codes, SIZES))
    sample = np.concatenate(list(model.sampler().batches(20_000, seed=1)))
    rng = np.random.default_rng(1)
    latent = rng.standard_normal((20_000, len(model.fitted.factor))) @ model.fitted.factor.T
    worst_plain = 0.0
    for axis, block in enumerate(model.fitted.blocks):
        wanted = np.bincount(codes[:, axis], minlength=SIZES[axis])
        got = np.bincount(sample[:, axis], minlength=SIZES[axis])
        assert np.abs(got - wanted).max() <= 1
        if block.stop > block.start:
            winners = latent[:, block.start : block.stop].argmax(axis=1)
            plain = np.bincount(block.codes[winners], minlength=SIZES[axis])
            worst_plain = max(worst_plain, total_variation(plain, wanted))
    assert worst_plain > 0.1


def test_pairs_of_the_sample_follow_the_data():
    codes = correlated_codes(20_000)
    shape = domain_of(SIZES)
    model = copula(shape, tables_of(codes, SIZES, sigma=15.0))
    sample = np.concatenate(list(model.sampler().batches(20_000, seed=1)))
    for first, second in combinations(range(3), 2):
        tables = [np.zeros((SIZES[first], SIZES[second])) for _ in range(2)]
        for table, rows in zip(tables, (codes, sample), strict=True):
            np.add.at(table, (rows[:, first], rows[:, second]), 1)
        truth, drawn = tables
        independent = np.outer(truth.sum(1), truth.sum(0)) / truth.sum()
        assert total_variation(drawn, truth) < 0.35 * total_variation(independent, truth)
        fitted = model.project([f"x{first}", f"x{second}"])
        assert total_variation(fitted, truth) < 0.02


def test_noise_alone_gives_nearly_independent_attributes():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 1000, (5000, 3)) % np.array([4, 6, 8])
    model = copula(domain_of((4, 6, 8)), tables_of(codes, (4, 6, 8), sigma=60.0))
    matrix = model.fitted.factor @ model.fitted.factor.T
    between = [matrix[a.start : a.stop, b.start : b.stop] for a, b in combinations(model.fitted.blocks, 2)]
    assert np.mean([np.abs(part).mean() for part in between]) < 0.1


@pytest.mark.parametrize(
    "wrong",
    [
        np.array(["Anna Secret"]),
        {"Anna Secret"},
        {"Anna Secret": 1}.keys(),
        (name for name in ["Anna Secret"]),
        [("Anna Secret",)],
    ],
    ids=["array", "set", "keys", "generator", "fetched rows"],
)
def test_data_in_the_place_of_names_is_not_printed(wrong):
    with pytest.raises(InputError, match="give a list of names") as caught:
        checked_names(Domain((Attribute("x", "INTEGER", "categorical", labels=(0, 1)),)), wrong)
    assert "Secret" not in str(caught.value)
