"""Centres of noisy tables, and tables that are centred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import wrightomega

from dpsyn_sql.fit.arrays import FloatArray, IntArray, posterior_means, raked
from dpsyn_sql.fit.belief import Beliefs, marginals
from dpsyn_sql.fit.estimate import Observation, Potentials
from dpsyn_sql.fit.graph import Scope


def centred(noisy: IntArray, groups: IntArray, totals: IntArray) -> IntArray:
    """Counts of 0 or more that sum to the total of their group.

    Negative counts become 0. Then one row at a time is added to, or taken off, each count of a group in turn
    until the sum is right; a count of 0 stays 0 while rows are taken off.

    Args:
        noisy: int64[n].
        groups: int64[n], the group of each count: 0, 0, 1, ..., never descending, none left out.
        totals: int64[groups], 0 or more.

    Returns:
        int64[n].
    """
    counts = np.maximum(noisy, 0)
    missing = totals - group_sums(counts, groups)
    counts = take_rows_in_turns(counts, groups, np.maximum(-missing, 0))
    rounds, remainder = np.divmod(np.maximum(missing, 0), group_sums(np.ones_like(groups), groups))
    return np.asarray(counts + rounds[groups] + (_turns(groups) < remainder[groups]), dtype=np.int64)


def take_rows_in_turns(counts: IntArray, groups: IntArray, number: IntArray) -> IntArray:
    """What is left of the counts of each group after ``number`` rows are taken off it, one at a time from
    each count in turn that is above 0; nothing of a group that has no more rows.

    The turn begins at a place that follows from the group's number alone.

    Args:
        counts: int64[n], 0 or more.
        groups: as for ``centred``.
        number: int64[groups], 0 or more.

    Returns:
        int64[n].
    """
    # Rows are taken in the order (round, turn). Full rounds: the most that take no more than the number.
    low, high = np.zeros_like(number), number.copy()
    while (low < high).any():
        middle = high - (high - low) // 2
        fits = group_sums(np.minimum(counts, middle[groups]), groups) <= number
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    left = counts - np.minimum(counts, low[groups])
    remainder = number - group_sums(counts - left, groups)
    # The last round takes a row of each of the first ``remainder`` counts in turn that have one left.
    order = np.lexsort((_turns(groups), groups))
    has = np.asarray(left > 0, dtype=np.int64)
    before = np.cumsum(has[order]) - has[order]
    before -= before[_firsts(groups)][groups]
    removed = np.empty_like(left)
    removed[order] = has[order] & (before < remainder[groups])
    return left - removed


def _firsts(groups: IntArray) -> IntArray:
    """Where each group begins."""
    return np.flatnonzero(np.diff(groups, prepend=-1))


def group_sums(values: IntArray, groups: IntArray) -> IntArray:
    """The sum of each group; ``groups`` as for ``centred``."""
    return np.asarray(np.add.reduceat(values, _firsts(groups)), dtype=np.int64) if len(groups) else values


def _turns(groups: IntArray) -> IntArray:
    """The turn of each count in its group: 0, 1, ... from a place that is spread over the groups, so that
    the first counts are not always favoured."""
    firsts = _firsts(groups)
    sizes = np.diff(firsts, append=len(groups))
    starts = _mixed(len(firsts)) % sizes
    positions = np.arange(len(groups)) - firsts[groups]
    return np.asarray((positions - starts[groups]) % sizes[groups], dtype=np.int64)


def _mixed(number: int) -> IntArray:
    """Whole numbers from 0 that look random: the finaliser of SplitMix64 on 0, 1, ... (Steele, Lea, Flood
    2014)."""
    mixed = np.arange(1, number + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1), dtype=np.int64)


# -- centres -----------------------------------------------------------------------------------------

# What the noisy tables of a graphical model make likely together: sums that agree, centres of potentials, and
# pairs that the model does not hold. *One-way sums.* Every table tells the counts of the codes of its
# variables, with independent noise. Their best linear unbiased estimate is the inverse-variance mean; tables
# of a coarse twin correct the sums over the codes of each of its bins, and what is missing to the number of
# rows goes to the codes by their variance. A ridge alone weights tables by 1 / sigma: too much for wide
# tables, whose sums are the noisiest.
#
# *Centres*: which cells cannot be, and which stand out, learnt from noisy pair tables. A fit draws potentials
# to 0, independence (``fit/estimate.py``). For a pair that depends strongly this keeps about half a sigma of
# rows in each cell that is empty, together percents of all rows. So after a first fit every pair table says
# what its potentials are near to. With E the rows that the model expects of a block of cells without the
# potentials of this table, the noisy count is y = E r + noise, of known sigma. The distribution of log r over
# the blocks of a table is the one on a grid that makes their counts most likely (Kiefer and Wolfowitz 1956),
# found by expectation maximisation from one that is steep around log r = 0; each block gets its posterior
# mean (empirical Bayes, Jiang and Zhang 2009): of cells that cannot be a low one, of a table that is nothing
# but noise 0.
#
# Codes in order have neighbours: blocks of 8 codes come first, then those of 4, 2 and 1 within them, each
# relative to what the larger ones found, so that many cells that expect less than their noise are seen
# together. Row and column sums stay those of the model.
#
# Post-processing of noisy answers only.
#
# *Targets*: what a measured pair table makes of the table that a model expects, without changing the model.

_SMALLEST_VARIANCE = 1e-12
# Exact tables (tests only) would otherwise get an infinite weight.


def agreeing(
    observed: Mapping[Scope, Observation], links: Mapping[Scope, FloatArray], total: float
) -> dict[Scope, Observation]:
    """Noisy tables (rows), each shifted by least squares to the one-way sums that all of them make best.

    Args:
        observed: noisy tables by scope.
        links: of (variable, coarse twin) a table (codes, bins), largest where a code is in a bin.
        total: rows.
    """
    sums = one_way_sums(observed, links, total)
    return {
        scope: replace(table, values=with_sums(table.values, [sums[v] for v in scope], total))
        for scope, table in observed.items()
    }


def one_way_sums(
    observed: Mapping[Scope, Observation], links: Mapping[Scope, FloatArray], total: float
) -> dict[int, FloatArray]:
    """Rows (codes,) of each variable with a table, and of each twin of one; they sum to ``total``.

    ``links`` as for ``agreeing``. Filled tables tell nothing of sums.
    """
    observed = {scope: table for scope, table in observed.items() if not table.filled}
    precision, weighted = dict[int, FloatArray](), dict[int, FloatArray]()
    for scope, table in observed.items():
        variance = np.broadcast_to(table.sigma, table.values.shape) ** 2
        for axis, variable in enumerate(scope):
            weight, none = 1 / np.maximum(_over_others(variance, axis), _SMALLEST_VARIANCE), np.zeros(1)
            precision[variable] = precision.get(variable, none) + weight
            weighted[variable] = weighted.get(variable, none) + weight * _over_others(table.values, axis)
    twins = {twin for _, twin in links}
    estimates = {variable: weighted[variable] / precision[variable] for variable in precision}
    spread = {variable: 1 / precision[variable] for variable in precision}  # covariances with the total
    for (variable, twin), link in links.items():
        if variable not in estimates:
            continue
        bin_of = link.argmax(axis=1)
        if twin in estimates:
            within = np.bincount(bin_of, spread[variable], link.shape[1])
            gap = estimates[twin] - np.bincount(bin_of, estimates[variable], link.shape[1])
            gain = spread[variable] / (within + 1 / precision[twin])[bin_of]
            estimates[variable] = estimates[variable] + gain * gap[bin_of]
            spread[variable] = spread[variable] - gain * within[bin_of]
    for variable in estimates.keys() - twins:
        missing = total - estimates[variable].sum()
        estimates[variable] = estimates[variable] + spread[variable] / spread[variable].sum() * missing
    for (variable, twin), link in links.items():
        if variable in estimates:
            sums = np.bincount(link.argmax(axis=1), estimates[variable], link.shape[1])
            estimates[twin] = sums.astype(np.float64)
    return estimates


def with_sums(values: FloatArray, sums: list[FloatArray], total: float) -> FloatArray:
    """A table (rows) shifted by least squares to these sums (codes,) of each axis, all ``total`` rows."""
    mean = (total - values.sum()) / values.size
    moved = values + mean
    for axis, wanted in enumerate(sums):
        shift = (wanted - _over_others(values, axis)) * values.shape[axis] / values.size - mean
        moved = moved + shift.reshape([-1 if other_axis == axis else 1 for other_axis in range(values.ndim)])
    return np.asarray(moved)


def _over_others(values: FloatArray, axis: int) -> FloatArray:
    """Sums (codes,) over all axes but one."""
    return np.asarray(
        values.sum(axis=tuple(other_axis for other_axis in range(values.ndim) if other_axis != axis))
    )


_STEPS_UP = [0.25, 0.5, 0.8, 1.2, 1.7, 2.3, 3]
_GRID = np.array([-7, -5, -4, *(-step for step in reversed(_STEPS_UP)), 0, *_STEPS_UP, 3.8, 4.6, 5.5, 6.5])
# Values of log r.

_PRIOR = np.exp(-1.5 * np.abs(_GRID)) / np.exp(-1.5 * np.abs(_GRID)).sum()
# Where expectation maximisation starts; it also counts as one block.

_EM_STEPS = 15

_BLOCKS = (8, 4, 2, 1)
# Codes of an ordered attribute that are looked at together.

_SMALLEST = 1e-300


def centres(
    potentials: Mapping[Scope, FloatArray],
    beliefs: Beliefs,
    observed: Mapping[Scope, Observation],
    total: float,
    ordered: Sequence[bool],
) -> Potentials:
    """Of each observed pair table (l1, l2) the potentials that it makes likely, 0 for a table of noise.

    Args:
        potentials: of a fit, by scope.
        beliefs: its model.
        observed: noisy tables (rows).
        total: rows of the model, above 0.
        ordered: of each variable, whether neighbouring codes are alike.
    """
    pairs = [scope for scope in potentials if len(scope) == 2 and scope in observed]
    model, likely = marginals(beliefs, pairs), Potentials()
    for scope in pairs:
        margins = model[scope].sum(axis=1), model[scope].sum(axis=0)
        logs = np.log(np.maximum(model[scope], _SMALLEST)) - potentials[scope]
        shares = np.exp(logs - logs.max())
        expected = total * raked(shares / shares.sum(), *margins)
        denoised = denoised_pair(observed[scope], expected, [ordered[variable] for variable in scope])
        likely[scope] = np.log(np.maximum(denoised, _SMALLEST) / total) - logs
    return likely


def denoised_pair(table: Observation, expected: FloatArray, ordered: Sequence[bool]) -> FloatArray:
    """Rows (l1, l2) that a noisy table makes likely where ``expected`` (positive) were, with the same sums
    of rows and columns."""
    variance = np.broadcast_to(table.sigma, expected.shape) ** 2
    rows = expected
    for block in _BLOCKS:
        sides = [block if has_order else 1 for has_order in ordered]
        if block > 1 and not _halves(expected.shape, sides):
            continue
        first, second = (np.arange(size) // side for size, side in zip(expected.shape, sides, strict=True))
        block_of = (first[:, None] * (int(second[-1]) + 1) + second).ravel()
        counts, means, squares = (
            np.bincount(block_of, cells.ravel()).astype(np.float64)
            for cells in (table.values, rows, variance)
        )
        if table.filled:
            squares *= np.multiply.outer(_kept_noise(first), _kept_noise(second)).ravel()
        change = log_ratios(counts, means, np.sqrt(squares))
        rows = rows * np.exp(change)[block_of].reshape(expected.shape)
    total = float(expected.sum())
    return total * raked(rows / rows.sum(), expected.sum(axis=1) / total, expected.sum(axis=0) / total)


def _kept_noise(blocks: IntArray) -> FloatArray:
    """Of each block of codes the variance of its sum of projected noise, relative to that of the noise:
    1 - n/k for n of k codes. A block of all codes tells nothing; its noise counts as that of all apart."""
    codes = np.bincount(blocks)
    return np.where(codes < blocks.size, 1 - codes / blocks.size, 1 - 1 / blocks.size)


def _halves(shape: Sequence[int], sides: Sequence[int]) -> bool:
    """Whether blocks of these sides cut the table anywhere along an ordered axis."""
    return any(side > 1 and size > side for size, side in zip(shape, sides, strict=True))


def log_ratios(counts: FloatArray, expected: FloatArray, sigma: FloatArray) -> FloatArray:
    """Posterior means (n,) of log r, where ``counts`` = ``expected`` r + Gaussian noise ``sigma``.

    The distribution of log r is learnt from all of them.
    """
    least = np.maximum(sigma, _SMALLEST**0.25)
    exponents = -0.5 * ((counts[:, None] - expected[:, None] * np.exp(_GRID)) / least[:, None]) ** 2
    likelihood = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    return posterior_means(
        likelihood,
        _GRID,
        _PRIOR,
        _EM_STEPS,
        lambda posterior: (posterior.sum(axis=0) + _PRIOR) / (counts.size + 1),
    )


_FARTHEST = 30.0
# Log-ratios are in [-30, 30].

_LEAST_ROWS = 1e-6


def target(table: Observation, expected: FloatArray, ordered: Sequence[bool]) -> FloatArray:
    """Rows (l1, l2) between those ``expected`` by a model and those of a noisy table, with the sums of rows
    and columns of the model.

    Each cell is m e^theta with m e^theta + sigma (theta - c) = y: the penalised likelihood of
    ``fit/estimate.py`` for one table alone, c the centre that the table makes likely (``fit/centres.py``).
    With w = m e^theta / sigma that is w + log w = c + y / sigma + log(m / sigma), whose solution is Wright's
    omega function (Corless and Jeffrey 2002).

    Args:
        table: noisy counts y of standard deviation sigma.
        expected: m, not negative.
        ordered: of each axis, whether neighbouring codes are alike.
    """
    means = np.maximum(expected, _LEAST_ROWS)
    sigma = np.maximum(np.broadcast_to(table.sigma, means.shape), _LEAST_ROWS)
    centre = np.log(np.maximum(denoised_pair(table, means, ordered), _LEAST_ROWS**2) / means)
    along = centre + table.values / sigma
    omega = np.maximum(wrightomega(along + np.log(means / sigma)), _SMALLEST)
    theta = np.where(omega > 1, np.log(omega * sigma / means), along - omega)
    rows, total = means * np.exp(np.clip(theta, -_FARTHEST, _FARTHEST)), float(expected.sum())
    return total * raked(rows / rows.sum(), expected.sum(axis=1) / total, expected.sum(axis=0) / total)
