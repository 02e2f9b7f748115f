"""Views that agree: overlapping noisy tables become consistent, non-negative and less noisy.

A view is a table over some attributes (PriView: Qardaji, Yang and Li 2014; DPSyn, section 3). Views that
share attributes estimate the same marginal several times. ``consistent`` makes them agree:

- The marginal over a shared set A is the mean of what its views say, weighted by 1/(C_i sigma_i^2): cell v of
  it is the sum of C_i cells of view i (DPSyn, section 3.2).
- Each view then moves to it: T_i(v') += (T_A(v) - T_i(v)) / C_i.
- Sets come in topological order, smaller before larger, from the empty set (the total). A later step keeps
  what earlier ones reached: it moves the marginal over a smaller set by nothing, because there views agree.

All steps together are one mean for each interaction (``fit/interactions.py``), and so they are made: tens of
thousands of views take as many array operations as they have shapes. For the step for A moves the interaction
of every set S of which A is the closure, the intersection of the views that hold S, and no other step does. A
and S have the same views, and C_i(S) / C_i(A) is the same for all of them: so are the weights.

It is the exact weighted least squares solution: interactions are orthogonal, so each is estimated by itself,
from the views that hold its set S, with weights 1/(C_i(S) sigma_i^2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.interactions import Layout, Stack
from dpsyn_sql.fit.projections import shrink_contrasts, simplex_projections, without_negative_cells

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


def summed_to(table: FloatArray, scope: Scope, kept: Scope) -> FloatArray:
    """The marginal over ``kept``, in ascending order like ``scope``."""
    return np.asarray(table.sum(axis=tuple(a for a, v in enumerate(scope) if v not in kept)))


def spread(table: FloatArray, kept: Scope, scope: Scope) -> FloatArray:
    """A table over ``kept`` as one that can be added to a table over ``scope``."""
    shape = iter(table.shape)
    return table.reshape([next(shape) if v in kept else 1 for v in scope])


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
    found = layout.tables(_agreed(layout, layout.stacked(views), precisions))
    return {scope: found[scope] for scope in views}


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
    (``fit/projections.py``), that of more attributes by the factor 1 - (freedom) sigma^2 / |table|^2 of James
    and Stein (1961), 0 if that is negative.
    """
    layout = layout_of(views) if layout is None else layout
    coefficients, margins = layout.coefficients(layout.stacked(views)), margins_of(views)
    independent = layout.coefficients([_independent(stack, margins, total) for stack in layout.stacks])
    precisions = layout.summed(_precisions(layout, layout.of_each(sigmas)))
    for stack, own, apart, sums in zip(
        layout.stacks,
        layout.by_stack(coefficients),
        layout.by_stack(independent),
        precisions,
        strict=True,
    ):
        for mask, places in stack.places.items():
            axes = [axis for axis in range(len(stack.sizes)) if mask >> axis & 1]
            if len(axes) > 1:
                shape = [stack.sizes[axis] for axis in axes]
                sigma = (sums[mask] * np.prod(shape)) ** -0.5  # of a cell of the marginal
                beyond = (own[places] - apart[places]).T
                if len(axes) == 2:
                    free = beyond.reshape(-1, *(size - 1 for size in shape))
                    change = shrink_contrasts(free, sigma).reshape(beyond.shape) - beyond
                else:
                    energy = np.maximum((beyond**2).sum(axis=1), np.finfo(float).tiny)
                    change = -beyond * np.minimum(1.0, sigma**2 * len(places) / energy)[:, None]
                own[places] += change.T
    found = layout.tables(layout.arrays(coefficients))
    return {scope: found[scope] for scope in views}


def _independent(stack: Stack, margins: Mapping[int, FloatArray], total: float) -> FloatArray:
    """The tables of a stack if all attributes were independent."""
    found = np.full(len(stack.scopes), total)
    for column in stack.variables.T.tolist():
        own = np.array([margins[variable] for variable in column])
        found = found[..., None] * own.reshape(len(own), *[1] * (found.ndim - 1), -1)
    return found


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
    own = layout.of_each(sigmas)
    agreed = _agreed(layout, layout.stacked(views), _precisions(layout, own))
    found, firm = _with_margins(layout, [_of_total(array, total) for array in agreed], own, total)
    precisions, deviations = _precisions(layout, firm), layout.parts(firm)
    found = _agreed(layout, found, precisions)
    for number in range(ROUNDS):
        if _needed(found, total) <= _SETTLED:
            break
        found = [
            simplex_projections(array, total)
            if theta is None or number >= RIPPLE_ROUNDS
            else without_negative_cells(array, theta * deviation)
            for array, deviation in zip(found, deviations, strict=True)
        ]
        found = _agreed(layout, found, precisions)
    part = _needed(found, total)
    tables = layout.tables(
        [np.maximum((1 - part) * a + part * total * len(a) / max(a.size, 1), 0.0) for a in found]
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
    found = [simplex_projections(array, total) if array.ndim == 2 else array for array in arrays]
    lengths = np.array([len(stack.sizes) for stack in layout.stacks for _ in stack.scopes])
    return found, np.where(lengths == 1, sigmas * _FIRM, sigmas)


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
                own = np.maximum(summed_to(table, scope, (variable,)), 0.0)
                margins[variable] = own + 1e-6 * max(float(own.sum()), 1.0) / own.size
                margins[variable] /= margins[variable].sum()
    return margins


def product_of(scope: Scope, margins: Mapping[int, FloatArray], total: float) -> FloatArray:
    """The table over ``scope`` of independent attributes."""
    own = (margins[variable] for variable in scope)
    return np.asarray(total * reduce(np.multiply.outer, own, np.ones(())))
