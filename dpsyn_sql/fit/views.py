"""Tables of several attributes that agree with each other (views)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import (
    FloatArray,
    IntArray,
    shrink_contrasts,
    simplex_projections,
    without_negative_cells,
)
from dpsyn_sql.fit.denoise import denoised, shares_of
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.pairs import Layout, Stack
from dpsyn_sql.planning.queries import NoisyMarginal

# -- consistency -------------------------------------------------------------------------------------

# From noisy tables that contradict each other to margins and pair tables that agree.
#
# Public side: everything here is post-processing of noisy answers. One rule throughout: an estimate of a
# marginal is the weighted least-squares average over ALL measured tables that contain it. A table of noise
# sigma per cell, summed to a marginal so that c of its cells fall into one, estimates each cell of that
# marginal with variance c sigma^2 (the total is the marginal over no attributes).

_MOST_ATTRIBUTES = 2**31
# Numbers a pair: one number for both attributes.

_SMALLEST_VARIANCE = 1e-6
# Exact tables (sigma 0, tests only) would otherwise get an infinite weight.


@dataclass(frozen=True, slots=True)
class Estimate:
    """An averaged marginal: ``values`` (rows, of the marginal's shape) and the variance of a cell."""

    values: FloatArray
    variance: float


@dataclass(frozen=True, slots=True)
class Margins:
    """The total (rows, may be negative) and per attribute the probabilities of its codes."""

    total: float
    probabilities: dict[str, FloatArray]


class Measurements:
    """Noisy tables indexed by the attributes they contain (subsets of at most two).

    Tables of one shape are summed together: with all pairs of a thousand attributes there are half a million.
    """

    def __init__(self, tables: Iterable[NoisyMarginal]) -> None:
        self._numbers: dict[str, int] = {}
        self._found: dict[tuple[int, ...], _Sums] = {}
        alike: dict[tuple[int, ...], list[NoisyMarginal]] = {}
        for table in tables:
            alike.setdefault(table.values.shape, []).append(table)
        for group in alike.values():
            values = np.array([table.values for table in group], dtype=np.float64)
            sigmas = np.array([table.sigma for table in group])
            attrs = [[self._number(name) for name in table.attrs] for table in group]
            numbers = np.array(attrs, dtype=np.int64).reshape(len(group), values.ndim - 1)
            for size in range(3):
                for axes in combinations(range(values.ndim - 1), size):
                    self._add(values, sigmas, numbers, axes)

    def _number(self, name: str) -> int:
        return self._numbers.setdefault(name, len(self._numbers))

    def _add(self, values: FloatArray, sigmas: FloatArray, numbers: IntArray, axes: tuple[int, ...]) -> None:
        """Take in the sums of tables (tables, cells ...) to the attributes at ``axes``."""
        other_axes = tuple(axis + 1 for axis in range(values.ndim - 1) if axis not in axes)
        sums = values.sum(axis=other_axes)
        cells = values[0].size / max(sums[0].size, 1)
        weights = 1.0 / np.maximum(cells * sigmas**2, _SMALLEST_VARIANCE)
        if len(axes) < 2:
            keys = numbers[:, axes[0]] if axes else np.zeros(len(values), dtype=np.int64)
            self._sums_of(sums.shape[1:]).add(keys, weights, sums)
            return
        first, second = (numbers[:, axis] for axis in axes)
        for ordered, part in ((first < second, sums), (first > second, sums.swapaxes(1, 2))):
            keys = (np.minimum(first, second) * _MOST_ATTRIBUTES + np.maximum(first, second))[ordered]
            if keys.size:
                self._sums_of(part.shape[1:]).add(keys, weights[ordered], part[ordered])

    def _sums_of(self, shape: tuple[int, ...]) -> _Sums:
        return self._found.setdefault(shape, _Sums(shape))

    def contain(self, attrs: Sequence[str]) -> bool:
        """Whether some table was measured that contains ``attrs`` (none or one)."""
        return self._place(attrs) is not None

    def estimate(self, attrs: Sequence[str]) -> Estimate:
        """Inverse-variance weighted average of the marginal over ``attrs`` (none or one).

        Raises:
            InternalError: no table contains them.
        """
        location = self._place(attrs)
        if location is None:
            raise InternalError("an estimate of attributes that no table contains")
        sums, row = location
        return Estimate(sums.values[row] / sums.weights[row], float(1.0 / sums.weights[row]))

    def pairs(
        self, attrs: IntArray, names: Sequence[str], shape: tuple[int, int]
    ) -> tuple[NDArray[np.bool_], FloatArray, FloatArray]:
        """Of many pairs of ``shape``, given as places in ``names`` (pairs, 2): which some table contains, and
        of these the estimates (found, l1, l2) and the variances of a cell (found,)."""
        numbers = np.array([self._numbers.get(name, -1) for name in names])[attrs]
        measured = np.zeros(len(attrs), dtype=np.bool_)
        values, variances = np.zeros((len(attrs), *shape)), np.zeros(len(attrs))
        turned = numbers[:, 0] > numbers[:, 1]
        for part, table_shape in ((~turned, shape), (turned, shape[::-1])):
            if table_shape not in self._found:
                continue
            sums, low, high = self._found[table_shape], numbers.min(axis=1), numbers.max(axis=1)
            rows = sums.rows(np.where(low >= 0, low * _MOST_ATTRIBUTES + high, -1))
            at = np.flatnonzero(part & (rows >= 0))
            weights = sums.weights[rows[at]]
            means = sums.values[rows[at]] / weights[:, None, None]
            measured[at], variances[at] = True, 1.0 / weights
            values[at] = means if table_shape is shape else means.swapaxes(1, 2)
        return measured, values[measured], variances[measured]

    def _place(self, attrs: Sequence[str]) -> tuple[_Sums, int] | None:
        key = np.array([self._numbers.get(attrs[0], -1) if attrs else 0])
        for shape, sums in self._found.items():
            if len(shape) == len(attrs) and (row := int(sums.rows(key)[0])) >= 0:
                return sums, row
        return None


class _Sums:
    """Weighted sums of tables of one shape by the attributes they are over, given as one number, the key.

    ``values`` (keys, cells ...) are sums of weight times table, ``weights`` (keys,) those of the weights.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._keys = np.zeros(0, dtype=np.int64)
        self.weights: FloatArray = np.zeros(0)
        self.values: FloatArray = np.zeros((0, *shape))

    def add(self, keys: IntArray, weights: FloatArray, tables: FloatArray) -> None:
        """Take in tables (tables, cells ...)."""
        weighted = tables * weights.reshape(-1, *[1] * (tables.ndim - 1))
        keys, weighted = np.concatenate([self._keys, keys]), np.concatenate([self.values, weighted])
        self._keys, row = np.unique(keys, return_inverse=True)
        all_weights = np.concatenate([self.weights, weights])
        self.weights = np.asarray(np.bincount(row, all_weights, len(self._keys)), dtype=np.float64)
        shape = weighted.shape[1:]
        cells = math.prod(shape)
        flat = (row[:, None] * cells + np.arange(cells)).ravel()
        sums = np.bincount(flat, weighted.ravel(), len(self._keys) * cells)
        self.values = np.asarray(sums, dtype=np.float64).reshape(len(self._keys), *shape)

    def rows(self, keys: IntArray) -> IntArray:
        """Where each key is; -1 where it is not."""
        if not len(self._keys):
            return np.full(len(keys), -1, dtype=np.int64)
        row = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[row] == keys, row, -1)


def fit_margins(
    domain: Domain, measurements: Measurements, settled: Collection[str] = frozenset()
) -> Margins:
    """The total and one-way probabilities from all tables; never the true number of rows.

    Each averaged one-way table is denoised (neighbours of ordered codes smoothed, ``fit/denoise.py``) and
    projected to the simplex.

    An attribute that no table contains, and every attribute when the total is not positive, gets
    uniform probabilities. The noise is already out of the tables of ``settled`` attributes.
    """
    total = float(measurements.estimate(()).values) if measurements.contain(()) else 0.0
    probabilities = {}
    for attribute in domain.attributes:
        if total > 0 and measurements.contain([attribute.name]):
            counts = measurements.estimate([attribute.name])
            smooth = counts.values
            if attribute.name not in settled:
                smooth = denoised(attribute, smooth, math.sqrt(counts.variance))
            probabilities[attribute.name] = shares_of(attribute, smooth, total)
        else:
            probabilities[attribute.name] = np.full(attribute.size, 1.0 / attribute.size)
    return Margins(total, probabilities)


# -- views -------------------------------------------------------------------------------------------

# Views that agree: overlapping noisy tables become consistent, non-negative and less noisy.
#
# A view is a table over some attributes (PriView: Qardaji, Yang and Li 2014; DPSyn, section 3). Views that
# share attributes estimate the same marginal several times. ``consistent`` makes them agree:
#
# - The marginal over a shared set A is the mean of what its views say, weighted by 1/(C_i sigma_i^2): cell v
# of it is the sum of C_i cells of view i (DPSyn, section 3.2). - Each view then moves to it: T_i(v') +=
# (T_A(v) - T_i(v)) / C_i. - Sets come in topological order, smaller before larger, from the empty set (the
# total). A later step keeps what earlier ones reached: it moves the marginal over a smaller set by nothing,
# because there views agree.
#
# All steps together are one mean for each interaction (``fit/pairs.py``), and so they are made: tens
# of thousands of views take as many array operations as they have shapes. For the step for A moves the
# interaction of every set S of which A is the closure, the intersection of the views that hold S, and no
# other step does. A and S have the same views, and C_i(S) / C_i(A) is the same for all of them: so are the
# weights.
#
# It is the exact weighted least squares solution: interactions are orthogonal, so each is estimated by
# itself, from the views that hold its set S, with weights 1/(C_i(S) sigma_i^2).

Views = dict[Scope, FloatArray]

ROUNDS = 100
"""Rounds of non-negativity and consistency, at most: what is negative falls by half in one to five rounds."""

RIPPLE_ROUNDS = 5
"""Rounds of Ripple. It leaves cells in [-theta, 0), so the projection has the rounds that follow."""

_FIRM = 1e-4
# The part of its noise that a one-way view counts with once it is settled.

_SETTLED = 1e-5
# The part of uniform tables that is mixed in at the end, if no more is needed.


def layout_of(views: Mapping[Scope, FloatArray]) -> Layout:
    """Where the views lie, and what they share: the same for all views of these scopes and sizes."""
    return Layout.of({scope: table.shape for scope, table in views.items()})


def summed_to(table: FloatArray, scope: Scope, wanted: Scope) -> FloatArray:
    """The marginal over ``wanted``, in ascending order like ``scope``."""
    return np.asarray(table.sum(axis=tuple(a for a, v in enumerate(scope) if v not in wanted)))


def consistent(
    views: Mapping[Scope, FloatArray], sigmas: Mapping[Scope, float], layout: Layout | None = None
) -> Views:
    """Views that agree on every marginal they share, by weighted least squares.

    Args:
        views: tables (rows) by ascending scope.
        sigmas: standard deviation of the noise of each cell of a view, above 0.
        layout: ``layout_of`` the views, if it has been found before.
    """
    layout = layout_of(views) if layout is None else layout
    precisions = _precisions(layout, layout.of_each(sigmas))
    tables = layout.tables(_agreed(layout, layout.stacked(views), precisions))
    return {scope: tables[scope] for scope in views}


def _agreed(layout: Layout, arrays: Sequence[FloatArray], precisions: FloatArray) -> list[FloatArray]:
    return layout.arrays(layout.averaged(layout.coefficients(arrays), precisions))


def _precisions(layout: Layout, sigmas: FloatArray) -> FloatArray:
    """Of the sum of all cells of each view."""
    sizes = [stack.cells for stack in layout.stacks for _ in stack.scopes]
    return np.asarray(1 / (np.maximum(sizes, 1) * sigmas**2))


def shrunk(
    views: Mapping[Scope, FloatArray],
    sigmas: Mapping[Scope, float],
    total: float,
    layout: Layout | None = None,
) -> Views:
    """Consistent views with less noise in their interactions; they stay consistent.

    What an interaction of two attributes has beyond independence is shrunk by its singular values
    (``fit/arrays.py``), that of more attributes by the factor 1 - (freedom) sigma^2 / |table|^2 of James
    and Stein (1961), 0 if that is negative.
    """
    layout = layout_of(views) if layout is None else layout
    coefficients, margins = layout.coefficients(layout.stacked(views)), margins_of(views)
    independent = layout.coefficients([_independent(stack, margins, total) for stack in layout.stacks])
    precisions = layout.summed(_precisions(layout, layout.of_each(sigmas)))
    for stack, observed, apart, sums in zip(
        layout.stacks,
        layout.by_stack(coefficients),
        layout.by_stack(independent),
        precisions,
        strict=True,
    ):
        for mask, cells in stack.cells_of_mask.items():
            axes = [axis for axis in range(len(stack.sizes)) if mask >> axis & 1]
            if len(axes) > 1:
                shape = [stack.sizes[axis] for axis in axes]
                sigma = (sums[mask] * np.prod(shape)) ** -0.5  # of a cell of the marginal
                beyond = (observed[cells] - apart[cells]).T
                if len(axes) == 2:
                    free = beyond.reshape(-1, *(size - 1 for size in shape))
                    change = shrink_contrasts(free, sigma).reshape(beyond.shape) - beyond
                else:
                    energy = np.maximum((beyond**2).sum(axis=1), np.finfo(float).tiny)
                    change = -beyond * np.minimum(1.0, sigma**2 * len(cells) / energy)[:, None]
                observed[cells] += change.T
    tables = layout.tables(layout.arrays(coefficients))
    return {scope: tables[scope] for scope in views}


def _independent(stack: Stack, margins: Mapping[int, FloatArray], total: float) -> FloatArray:
    """The tables of a stack if all attributes were independent."""
    tables = np.full(len(stack.scopes), total)
    for column in stack.variables.T.tolist():
        margin = np.array([margins[variable] for variable in column])
        tables = tables[..., None] * margin.reshape(len(margin), *[1] * (tables.ndim - 1), -1)
    return tables


def settled(
    views: Mapping[Scope, FloatArray],
    sigmas: Mapping[Scope, float],
    total: float,
    theta: float | None = None,
    layout: Layout | None = None,
) -> Views:
    """Views without negative cells that agree and sum to ``total``.

    Non-negativity and consistency take turns until what is negative is small. Non-negativity is projection
    to the simplex; with a threshold ``theta`` the first ``RIPPLE_ROUNDS`` are Ripple. What is left is mixed
    away: uniform views agree too, so every mean of the two families does.

    Args:
        views: tables (rows) by ascending scope.
        sigmas: as for ``consistent``.
        total: rows, above 0.
        theta: of Ripple, in standard deviations of a view's noise; None for the projection alone.
        layout: as for ``consistent``.
    """
    layout = layout_of(views) if layout is None else layout
    sigma_of_each = layout.of_each(sigmas)
    agreed = _agreed(layout, layout.stacked(views), _precisions(layout, sigma_of_each))
    arrays, firm = _with_margins(layout, [_of_total(array, total) for array in agreed], sigma_of_each, total)
    precisions, deviations = _precisions(layout, firm), layout.parts(firm)
    arrays = _agreed(layout, arrays, precisions)
    for number in range(ROUNDS):
        if _needed(arrays, total) <= _SETTLED:
            break
        arrays = [
            simplex_projections(array, total)
            if theta is None or number >= RIPPLE_ROUNDS
            else without_negative_cells(array, theta * deviation)
            for array, deviation in zip(arrays, deviations, strict=True)
        ]
        arrays = _agreed(layout, arrays, precisions)
    part = _needed(arrays, total)
    tables = layout.tables(
        [np.maximum((1 - part) * a + part * total * len(a) / max(a.size, 1), 0.0) for a in arrays]
    )
    return {scope: tables[scope] for scope in views}


def _of_total(array: FloatArray, total: float) -> FloatArray:
    """Tables that are lifted or lowered to one total."""
    axes = tuple(range(1, array.ndim))
    lacking = total - array.sum(axis=axes, keepdims=True)
    return np.asarray(array + lacking * len(array) / max(array.size, 1))


def _with_margins(
    layout: Layout, arrays: Sequence[FloatArray], sigmas: FloatArray, total: float
) -> tuple[list[FloatArray], FloatArray]:
    """The views with one-way views that are not negative, and the deviations with which they stay so.

    Non-negativity lifts the many cells of a large view that are nothing but noise, and so flattens its
    margins: one-way views are settled first, and the others follow them.
    """
    firm_arrays = [simplex_projections(array, total) if array.ndim == 2 else array for array in arrays]
    lengths = np.array([len(stack.sizes) for stack in layout.stacks for _ in stack.scopes])
    return firm_arrays, np.where(lengths == 1, sigmas * _FIRM, sigmas)


def _needed(arrays: Sequence[FloatArray], total: float) -> float:
    """The part of uniform tables that lifts the lowest cell of all to 0."""
    lowest = (max(0.0, -float(a.min())) * a.size / len(a) / total for a in arrays if a.size)
    return max((low / (1 + low) for low in lowest), default=0.0)


def margins_of(views: Mapping[Scope, FloatArray]) -> dict[int, FloatArray]:
    """Positive probabilities of each attribute of consistent views."""
    margins: dict[int, FloatArray] = {}
    for scope, table in views.items():
        for variable in scope:
            if variable not in margins:
                margin = np.maximum(summed_to(table, scope, (variable,)), 0.0)
                margins[variable] = margin + 1e-6 * max(float(margin.sum()), 1.0) / margin.size
                margins[variable] /= margins[variable].sum()
    return margins


def product_of(scope: Scope, margins: Mapping[int, FloatArray], total: float) -> FloatArray:
    """The table over ``scope`` of independent attributes."""
    shares = (margins[variable] for variable in scope)
    return np.asarray(total * reduce(np.multiply.outer, shares, np.ones(())))
