"""Moments of rows in order: where the first lies so that all lie where rows do. Post-processing.

A row's moment is that of the row before and the time since. Rows of a unit of n rows are then spread like
A s, with s the moments of first rows and A the mean of the first n powers of one step. s is found by
expectation maximisation (Richardson 1972, Lucy 1974), which keeps shares above zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from dpsyn_sql.fit.arrays import FloatArray, IntArray

_POINTS = 8
# Moments of a bin, and times of a bin, whose sums say which bin comes next.

_ROUNDS = 30
# Of expectation maximisation: few, so that noise is not followed.


@dataclass(frozen=True, slots=True)
class Ahead:
    """Lines of which bin comes next: ``before`` (the bin of the row before), ``since`` (the bin of the time),
    ``after``, all int64 (n,), and ``shares`` (n,); sorted."""

    before: IntArray
    since: IntArray
    after: IntArray
    shares: FloatArray


def ahead(edges: FloatArray, spans: FloatArray) -> Ahead:
    """A moment anywhere in its bin (``edges``, bins + 1) and a time anywhere in its own (``spans``).

    What would lie after the last bin is left out; if nothing else is left, the last bin comes next.
    """
    parts = (np.arange(_POINTS) + 0.5) / _POINTS
    moments = edges[:-1, None] + np.diff(edges)[:, None] * parts
    times = (spans[:-1, None] + np.diff(spans)[:, None] * parts)[:, None, :]
    bins, found = edges.size - 1, list[tuple[IntArray, ...]]()
    shares = list[FloatArray]()
    for before in range(bins):
        sums = (moments[before][None, :, None] + times).reshape(len(times), -1)
        after = np.searchsorted(edges, sums, side="right") - 1
        counts = np.stack([np.bincount(one, minlength=bins + 1)[:bins] for one in after]).astype(np.float64)
        counts[counts.sum(axis=1) == 0, bins - 1] = 1.0
        counts /= counts.sum(axis=1, keepdims=True)
        since, next_ = np.nonzero(counts)
        found.append((np.full(since.size, before), since, next_))
        shares.append(counts[since, next_])
    earlier, gaps, later = (np.concatenate(column) for column in zip(*found, strict=True))
    return Ahead(earlier, gaps, later, np.concatenate(shares))


def first_moments(lines: Ahead, times: FloatArray, rows: int, all_rows: FloatArray) -> FloatArray:
    """Shares of the bins of first rows so that rows of units of ``rows`` rows are spread like ``all_rows``.

    ``times``: shares of the bins of the time since the row before.
    """
    wanted = all_rows / all_rows.sum()
    if rows < 2:
        return np.asarray(wanted)
    weights = lines.shares * times[lines.since]
    step = csr_array((weights, (lines.before, lines.after)), shape=(wanted.size, wanted.size))
    forward, found = step.T.tocsr(), wanted + 1e-12
    for _ in range(_ROUNDS):
        ratio = wanted / np.maximum(_mean(forward, found, rows), 1e-300)
        found = found * _mean(step, ratio, rows)
        found /= found.sum()
    return np.asarray(found)


def _mean(step: csr_array, start: FloatArray, rows: int) -> FloatArray:
    """The mean of a vector after 0 to ``rows`` - 1 steps."""
    now, summed = start, start.copy()
    for _ in range(rows - 1):
        now = step @ now
        summed += now
    return np.asarray(summed / rows)
