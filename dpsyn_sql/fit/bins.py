"""Working bins: attributes in as many bins as stand out of the noise, and codes within bins.

Post-processing of noisy one-way tables only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.consistency import simplex_projection
from dpsyn_sql.fit.denoise import denoised, within_bins, working_bins
from dpsyn_sql.fit.estimate import Observation, total_of
from dpsyn_sql.fit.reproducible import snapped

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_GRID = 2.0**-10
# Rows.

_MANY_CODES = 1_000
# Above it the noise of empty neighbours would make bins; below it raw counts give better bins.

_TRACE = 1e-9
# The part of the total that is added to each code, so that every code can occur.


@dataclass(frozen=True, slots=True)
class Binned:
    """The attributes of a domain in their working bins, in domain order.

    ``bins[i]`` (int64, one per code) is the bin of each code, ``within[i]`` (float64, one per code) its
    probability given the bin. ``observed[i]`` is the smoothed one-way table over bins with the noise that it
    was measured with, ``shares[i]`` (float64, one per bin) its probabilities.
    """

    domain: Domain
    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    observed: tuple[Observation, ...]
    shares: tuple[FloatArray, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each attribute."""
        return tuple(table.values.size for table in self.observed)


def binned(
    domain: Domain,
    one_ways: Sequence[Observation],
    least: Sequence[float],
    most: float,
    *,
    finer_tails: bool = False,
) -> Binned:
    """Denoise the one-way tables and choose working bins.

    Args:
        domain: the public domain.
        one_ways: one noisy table per attribute, in domain order.
        least: for each attribute the rows below which a code does not stand alone.
        most: about how many bins an ordered attribute gets at most.
        finer_tails: as for ``merged_neighbours``.
    """
    total = max(total_of(one_ways), 1.0)
    found = Binned(domain, (), (), (), ())
    columns: list[tuple[IntArray, FloatArray, Observation, FloatArray]] = []
    for attribute, table, rows in zip(domain.attributes, one_ways, least, strict=True):
        sigma = float(table.sigma)
        smooth = denoised(attribute, table.values, sigma)
        fine = simplex_projection(smooth, total) / total + _TRACE
        many = attribute.ordered and attribute.size > _MANY_CODES
        seen = snapped(total * fine, _GRID) if many else table.values
        bins = working_bins(attribute, seen, rows, most, finer_tails=finer_tails)
        observed = Observation(
            np.asarray(np.bincount(bins, weights=smooth), dtype=np.float64),
            np.asarray(sigma * np.sqrt(np.bincount(bins))),
        )
        columns.append((bins, within_bins(fine, bins), observed, np.bincount(bins, fine).astype(np.float64)))
    if columns:
        found = Binned(domain, *map(tuple, zip(*columns, strict=True)))
    return found
