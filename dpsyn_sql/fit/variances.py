"""The error of a model's estimates, from variance components of each marginal; public.

The error of a cell of a pair of attributes i and j, estimated at m rows, has three sources, told apart by
what the noisy answers say of each (the notation: m_i and m_j rows in the row and the column of the cell, of
N):

- *The one-way tables.* Noise of variance s_i^2 in m_i moves the cell by the part p(j | i) of it, and that in
  m_j likewise: s_i^2 p(j | i)^2 + s_j^2 p(i | j)^2. Codes with fewer rows than noise have no p(j | i) of
  their own: it is drawn to m_j / N with the weight of s_i rows.
- *What the model does not see of the pair.* Given its margins, a table of independent attributes still varies
  by m (1 - m_i / N) (1 - m_j / N) (Agresti 2013, "Categorical Data Analysis", 3.5). Dependence that the model
  has not adds k m: overdispersion, as in a quasi-Poisson model (McCullagh and Nelder 1989, section 6.2).
- *A noisy table of the pair*, which sees it with variance s^2 in a cell. Both together leave the variance of
  a posterior: 1 / (1 / (own variance) + 1 / s^2).

Models and noisy tables are over bins. A code with the share w of its cell has w^2 of the variance of the
cell, and (1 - w) of its own sampling error beyond it. Codes are taken to differ within a cell as cells differ
from each other, by k w m, of which (1 - w) is beyond the cell: codes of a bin of unlike places are no copies.
Of a code without rows noise hides some: m counts with the rows that a code of s_i noise has left to expect.

This is in the place of a number for each cell, as survey offices publish variance functions in the place of
standard errors (Wolter 2007, "Introduction to Variance Estimation", chapter 7).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.one_way_counts import one_way_counts
from dpsyn_sql.planning.queries import NoisyMarginal

FloatArray = NDArray[np.float64]

HIDDEN = 0.8
"""A code that is estimated at m rows with noise s has (sqrt(m^2 + (HIDDEN s)^2) - m) / 2 rows more, on
average: 0.4 s at m = 0, as the mean of a Gaussian above 0, and little from m = 2 s on."""

SMALLEST_SHARE = 1e-12
"""Of a cell in which a code has no part, so that nothing is divided by 0."""


@dataclass(frozen=True, slots=True)
class Components:
    """Of a marginal. ``dispersion``: k, 0 or more; it counts for pairs alone. ``precision``: 1 / s^2
    (1 / rows^2) of a cell, 0 where the marginal was not measured; above 0 for one attribute."""

    dispersion: float
    precision: float


@dataclass(frozen=True, slots=True)
class Variances:
    """Of the estimates of a model.

    ``within[i]`` (float64, one per code of attribute i): its share of its working bin. ``components``: by the
    positions of attributes, ascending. A marginal that is not there has no error that is known, and so have
    all of three attributes and more.
    """

    within: Sequence[FloatArray] = ()
    components: Mapping[Scope, Components] = field(default_factory=dict)

    def of(self, positions: Sequence[int], estimate: FloatArray) -> FloatArray | None:
        """Variances (rows^2) of estimated counts (rows, none below 0), of the same shape, axes in the order
        of
        ``positions``; None where they are not known."""
        known = self.components
        own = known.get(tuple(sorted(positions)))
        ones = [known.get((position,)) for position in positions]
        if own is None or None in ones or len(positions) > 2:
            return None
        errors = [1 / math.sqrt(one.precision) for one in ones if one is not None]
        if len(positions) == 1:
            return np.full(estimate.shape, errors[0] ** 2)
        first, second = (self.within[position] for position in positions)
        return pair_variance(own, estimate, np.multiply.outer(first, second), errors[0], errors[1])


NO_VARIANCES = Variances()
"""Of a model of which nothing is known."""


def pair_variance(
    own: Components, estimate: FloatArray, within: FloatArray, first: float, second: float
) -> FloatArray:
    """Variances (rows^2) of the cells of a pair.

    Args:
        own: of the pair.
        estimate: rows (l1, l2), none below 0.
        within: the share of each code pair in its cell over bins, same shape.
        first: standard error (rows) of the codes of the first attribute.
        second: of the second.
    """
    total = max(float(estimate.sum()), np.finfo(np.float64).tiny)
    within = np.maximum(within, SMALLEST_SHARE)
    rows, columns = estimate.sum(axis=1, keepdims=True), estimate.sum(axis=0, keepdims=True)
    given_row = (estimate + first * columns / total) / (rows + first)
    given_column = (estimate + second * rows / total) / (columns + second)
    margins = (first * given_row) ** 2 + (second * given_column) ** 2
    expected = estimate + _hidden(rows, first) * given_row + _hidden(columns, second) * given_column
    free = (1 - rows / total) * (1 - columns / total)
    unseen = (free + own.dispersion) * expected
    seen = unseen * within**2 / (within + unseen * own.precision)
    # Never below 0: rounding can make free so.
    beyond = (free + own.dispersion * within) * expected * (1 - within)
    return np.asarray(np.maximum(beyond + seen + margins, 0))


def _hidden(rows: FloatArray, error: float) -> FloatArray:
    return np.asarray((np.sqrt(rows**2 + (HIDDEN * error) ** 2) - rows) / 2)


def one_way_components(domain: Domain, answers: Sequence[NoisyMarginal]) -> dict[Scope, Components]:
    """Of every attribute whose codes some noisy table tells apart."""
    counts = one_way_counts(domain, answers)
    return {
        (domain.index(name),): Components(0.0, float(np.max(one.sigma)) ** -2)
        for name, one in counts.items()
        if float(np.max(one.sigma)) > 0
    }
