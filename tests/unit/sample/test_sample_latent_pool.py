"""Pools of latent vectors: passes of one pool are as good as normals of their own."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from dpsyn_sql.fit.copula import Block, FittedCopula, calibrated_offsets
from dpsyn_sql.fit.views import Margins
from dpsyn_sql.rows.sample import copula
from dpsyn_sql.rows.sample.copula import (
    BALANCED_ROWS,
    FIRST_LOOK,
    PASSES,
    STAGES,
    LatentPool,
    _meet,
    _scores,
    _winners,
    copula_rows,
)
from dpsyn_sql.rows.sample.systematic import listed, rounded_counts

SIZES = (4, 2, 6, 1, 3)


def correlation(width, seed=3):
    raw = np.random.default_rng(seed).standard_normal((width, width + 4))
    raw = raw @ raw.T
    return raw / np.sqrt(np.outer(np.diag(raw), np.diag(raw)))


def fitted():
    """A copula of five attributes with any correlations, also within an attribute."""
    rng, blocks, start = np.random.default_rng(4), [], 0
    shares = [rng.dirichlet(np.full(size, 2.0)) for size in SIZES]
    for share in shares:
        stop = start + (share.size if share.size > 2 else share.size - 1)
        blocks.append(Block(np.arange(share.size), share, start, stop))
        start = stop
    matrix = correlation(start)
    offsets = [
        calibrated_offsets(matrix[b.start : b.stop, b.start : b.stop], b.probabilities)
        if not b.of_two
        else np.array([0.3])
        for b in blocks
        if b.stop > b.start
    ]
    return FittedCopula(
        margins=Margins(1000.0, {f"x{i}": share for i, share in enumerate(shares)}),
        positions={f"x{i}": i for i in range(len(SIZES))},
        pairs={},
        blocks=tuple(blocks),
        factor=np.linalg.cholesky(matrix).astype(np.float32),
        offsets=np.concatenate(offsets).astype(np.float32),
    )


def all_columns(pool):
    return np.array([pool.column(place).copy() for place in range(len(pool.values))]) / pool.scale


def passes(factor, rows, number, seed=1):
    generator = np.random.default_rng(seed)
    pool = LatentPool(factor, rows, generator)
    yield all_columns(pool)
    for _ in range(number - 1):
        pool.rotate(generator)
        yield all_columns(pool)


def test_every_pass_has_the_wanted_covariance_and_normal_rows():
    matrix = correlation(9)
    factor = np.linalg.cholesky(matrix).astype(np.float32)
    for latent in passes(factor, 4096, PASSES):
        assert np.all(np.isfinite(latent))
        np.testing.assert_allclose(latent @ latent.T / 4096, matrix, atol=2e-5)
        direction = np.linalg.solve(np.linalg.cholesky(matrix), latent)
        assert min(kstest(column, "norm").pvalue for column in direction) > 1e-6
        fourth = (direction**4).mean(axis=1)  # 3, with a deviation of sqrt(96 / 4096)
        assert np.abs(fourth - 3).max() < 6 * np.sqrt(96 / 4096)


def test_a_row_of_the_next_pass_is_made_of_eight_rows_with_equal_weights():
    generator = np.random.default_rng(0)
    pool = LatentPool(np.eye(64, dtype=np.float32), 64, generator)
    pool.values = np.eye(64, dtype=np.float32)
    pool.rotate(generator)
    turned = all_columns(pool)
    np.testing.assert_allclose(turned @ turned.T, np.eye(64), atol=1e-6)
    weights = np.sort(np.abs(turned), axis=0)
    assert np.all(weights[: -(2**STAGES)] == 0)
    np.testing.assert_allclose(weights[-(2**STAGES) :], 2.0 ** (-STAGES / 2), rtol=1e-6)


def test_few_rows_are_not_balanced_and_vary_as_normals_do():
    width, rows = 8, BALANCED_ROWS * 8 - 2
    factor = np.eye(width, dtype=np.float32)
    squares = [(next(passes(factor, rows, 1, seed)) ** 2).mean() for seed in range(400)]
    wanted = np.sqrt(2 / (width * rows))
    assert 0.8 < np.std(squares) / wanted < 1.2 and abs(np.mean(squares) - 1) < 5 * wanted / 20
    (balanced,) = passes(factor, rows + 2, 1)
    np.testing.assert_allclose(balanced @ balanced.T / (rows + 2), np.eye(width), atol=1e-5)


def pair_counts(rows, pools, number):
    """Counts of the pairs of two attributes in every pass: (pools, passes, 24)."""
    model, found = fitted(), []
    first, second = model.blocks[0], model.blocks[2]
    for seed in range(pools):
        generator = np.random.default_rng(seed)
        pool = LatentPool(model.factor, rows, generator)
        for done in range(number):
            if done:
                pool.rotate(generator)
            codes = [_winners(pool, b, pool.scale * model.offsets[b.start : b.stop]) for b in (first, second)]
            pool.column(first.stop)  # the attribute between, and the last
            for place in range(second.stop, len(pool.values)):
                pool.column(place)
            found.append(np.bincount(6 * codes[0].astype(int) + codes[1], minlength=24))
    return np.array(found, dtype=float).reshape(pools, number, 24)


def variances(counts):
    """Of the sum over passes, relative to rows of their own normals, over all cells."""
    share = counts.mean(axis=(0, 1)) / counts[0, 0].sum()
    sums = counts.sum(axis=1)
    return sums.var(axis=0, ddof=1).sum() / (sums[0].sum() * share * (1 - share)).sum()


def test_passes_together_vary_no_more_than_rows_with_normals_of_their_own(monkeypatch):
    counts = pair_counts(1024, 80, 32)
    assert 0.5 < variances(counts) < 1.15
    deviation = counts - counts.mean(axis=(0, 1))
    after = (deviation[:, 1:] * deviation[:, :-1]).mean() / (deviation**2).mean()
    assert abs(after) < 0.06
    # Without balance the error of the first pass stays, and all but one pass say nothing new.
    monkeypatch.setattr(copula, "BALANCED_ROWS", 10**6)
    assert variances(pair_counts(1024, 80, 32)) > 3


@pytest.mark.parametrize("sign", [1, -1])
def test_the_winner_is_the_largest_whatever_the_sign_and_scale(sign):
    model, generator = fitted(), np.random.default_rng(2)
    pool = LatentPool(model.factor, 500, generator)
    pool.values *= np.float32(sign * 2.0**90)
    pool.scale *= np.float32(sign * 2.0**90)
    block = model.blocks[2]
    offsets = pool.scale * model.offsets[block.start : block.stop]
    latent = (
        pool.values[block.start : block.stop] / pool.scale + model.offsets[block.start : block.stop, None]
    )
    winners = _winners(pool, block, offsets)
    np.testing.assert_array_equal(winners, latent.argmax(axis=0))
    rows, places = np.array([3, 7, 400]), np.array([5, 0])
    scores = _scores(pool, block, offsets)
    given = latent.T[rows[:, None], places] * 2.0**90
    np.testing.assert_allclose(scores(rows[:, None], places), given, rtol=1e-5, atol=1e-4 * 2.0**90)
    np.testing.assert_allclose(scores(rows, winners[rows]), latent.max(axis=0)[rows] * 2.0**90, rtol=1e-5)


@pytest.fixture
def small(monkeypatch):
    """Pools from some thousand rows."""
    monkeypatch.setattr(copula, "BATCH_ROWS", 4096)
    monkeypatch.setattr(copula, "FRESH_ROWS", 10_000)
    monkeypatch.setattr(copula, "PASSES", 7)


def test_rows_of_pools_meet_one_way_counts_and_follow_from_the_seed(small, monkeypatch):
    made = []
    turned = LatentPool.rotate
    monkeypatch.setattr(
        LatentPool, "rotate", lambda self, generator: (made.append(1), turned(self, generator))[1]
    )
    sampler, rows = copula_rows(fitted()), 99_999
    batches = list(sampler.batches(rows, 5))
    codes = np.concatenate(batches)
    assert codes.shape == (rows, 5) and codes.dtype == np.uint8 and len(batches) == 25
    assert len(made) == 25 - 4  # pools of 13 and 12 batches, seven from each
    for axis, block in enumerate(fitted().blocks):
        for so_far in (len(batches[0]), rows):
            seen = np.bincount(codes[:so_far, axis], minlength=block.codes.size)
            assert np.abs(seen - so_far * block.probabilities).max() <= 1 + 1e-6
    np.testing.assert_array_equal(codes, np.concatenate(list(sampler.batches(rows, 5))))
    assert not np.array_equal(codes, np.concatenate(list(sampler.batches(rows, 6))))
    assert not np.array_equal(batches[0], batches[2])


def test_rows_of_pools_have_the_distribution_of_fresh_rows(small, monkeypatch):
    sampler, rows = copula_rows(fitted()), 400_000
    pooled = np.concatenate(list(sampler.batches(rows, 1)))
    monkeypatch.setattr(copula, "FRESH_ROWS", rows)
    fresh = np.concatenate(list(sampler.batches(rows, 2)))
    for scope in ((0, 1), (0, 2), (1, 2), (2, 4), (0, 1, 2), (0, 2, 4)):
        shape = [SIZES[axis] for axis in scope]
        first, second = (
            np.bincount(np.ravel_multi_index(codes[:, scope].T.astype(int), shape), minlength=np.prod(shape))
            for codes in (pooled, fresh)
        )
        many = first + second > 20
        statistic = ((first - second)[many] ** 2 / (first + second)[many]).sum()
        # Counts that are met take out some of the chance: below the quantile all the more.
        assert statistic < chi2.ppf(1 - 1e-6, many.sum() - 1)


def test_few_and_no_rows_and_no_columns():
    sampler = copula_rows(fitted())
    assert list(sampler.batches(0, 1)) == []
    for rows in (1, 2, 3):
        assert [len(batch) for batch in sampler.batches(rows, 1)] == [rows]
    constant = FittedCopula(
        margins=Margins(9.0, {"x": np.array([0.0, 1.0])}),
        positions={"x": 0},
        pairs={},
        blocks=(Block(np.array([1]), np.array([1.0]), 0, 0),),
        factor=np.zeros((0, 0), np.float32),
        offsets=np.zeros(0, np.float32),
    )
    assert np.concatenate(list(copula_rows(constant).batches(300_000, 1))).all()


@pytest.mark.parametrize(("rows", "rare"), [(40_000, 0.2), (40_000, 1e-4), (12, 0.2)])
def test_quotas_are_met_by_the_first_rows_if_they_have_enough(rows, rare):
    shares = np.array([0.5, 0.3 - rare / 2, 0.2 - rare / 2, rare])
    latent = np.random.default_rng(6).standard_normal((rows, 4))
    scores = latent + np.log(shares)
    winners, quota = scores.argmax(axis=1), rounded_counts(shares[::-1], rows)
    quota = rounded_counts(0.9 * np.bincount(winners, minlength=4) + 0.1 * quota, rows)
    before = winners.copy()
    _meet(listed(scores), winners, quota)
    np.testing.assert_array_equal(np.bincount(winners, minlength=4), quota)
    moved = np.flatnonzero(before != winners)
    assert moved.size == np.abs(np.bincount(before, minlength=4) - quota).sum() // 2
    if (rows, rare) == (40_000, 0.2):
        assert moved.max() < rows // FIRST_LOOK


def test_first_rows_with_too_few_of_a_code_are_not_enough():
    scores = np.zeros((400, 3))
    scores[:100, 0] = scores[100:, 1] = 1.0  # the second is only in the last rows
    winners = scores.argmax(axis=1)
    _meet(listed(scores), winners, np.array([100, 200, 100]))
    np.testing.assert_array_equal(np.bincount(winners), [100, 200, 100])
    assert np.all(winners[:100] == 0)
