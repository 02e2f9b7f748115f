"""Views that agree: overlapping noisy tables become consistent, non-negative and less noisy.

A view is a table over some attributes (PriView: Qardaji, Yang and Li 2014; DPSyn, section 3). Views that
share attributes estimate the same marginal several times. ``consistent`` makes them agree:

- The marginal over a shared set A is the mean of what its views say, weighted by 1/(C_i sigma_i^2): cell v of
  it is the sum of C_i cells of view i (DPSyn, section 3.2).
- Each view then moves to it: T_i(v') += (T_A(v) - T_i(v)) / C_i.
- Sets come in topological order, smaller before larger, from the empty set (the total). A later step keeps
  what earlier ones reached: it moves the marginal over a smaller set by nothing, because there views agree.

One pass is the exact weighted least squares solution. Split each table into its interactions (the
components of the analysis of variance). They are orthogonal, so each is estimated by itself, from the
views that hold its set S, with weights 1/(C_i(S) sigma_i^2). The closure A of S, the intersection of these
views, has the same views, and C_i(S) / C_i(A) is the same for all of them: the step for A averages the
component of S with the right weights, and no other step changes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.consistency import simplex_projection
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.ripple import ripple
from dpsyn_sql.fit.shrinkage import shrink_singular_values

FloatArray = NDArray[np.float64]
Views = dict[Scope, FloatArray]

ROUNDS = 100
"""Rounds of non-negativity and consistency, at most: what is negative falls by half in one to five rounds."""

_FIRM = 1e-4
# The part of its noise that a one-way view counts with once it is settled.

_SETTLED = 1e-5
# The part of uniform tables that is mixed in at the end, if no more is needed.


@dataclass(frozen=True, slots=True)
class Shared:
    """A set of attributes that several views hold (``owners``), and nothing more is in all of them."""

    scope: Scope
    owners: tuple[Scope, ...]


def shared_sets(scopes: Sequence[Scope]) -> list[Shared]:
    """Every intersection of two or more views, smaller sets first."""
    holding: dict[Scope, list[Scope]] = {}
    for scope in scopes:
        for subset in subsets(scope):
            holding.setdefault(subset, []).append(scope)
    closures: dict[tuple[Scope, ...], Scope] = {}
    for subset, owners in holding.items():
        if len(owners) > 1:
            key = tuple(owners)
            closures[key] = max(closures.get(key, ()), subset, key=len)
    found = (Shared(scope, owners) for owners, scope in closures.items())
    return sorted(found, key=lambda shared: (len(shared.scope), shared.scope))


def subsets(scope: Scope, least: int = 0) -> Iterator[Scope]:
    """All subsets of at least ``least`` attributes, smaller first."""
    return chain.from_iterable(combinations(scope, size) for size in range(least, len(scope) + 1))


def summed_to(table: FloatArray, scope: Scope, kept: Scope) -> FloatArray:
    """The marginal over ``kept``, in ascending order like ``scope``."""
    return np.asarray(table.sum(axis=tuple(a for a, v in enumerate(scope) if v not in kept)))


def spread(table: FloatArray, kept: Scope, scope: Scope) -> FloatArray:
    """A table over ``kept`` as one that can be added to a table over ``scope``."""
    shape = iter(table.shape)
    return table.reshape([next(shape) if v in kept else 1 for v in scope])


def consistent(
    views: Mapping[Scope, FloatArray],
    sigmas: Mapping[Scope, float],
    sets: Sequence[Shared] | None = None,
) -> Views:
    """Views that agree on every marginal they share, by weighted least squares.

    Args:
        views: tables (rows) by ascending scope, at most ``planning.views.MOST_TOGETHER`` attributes each.
        sigmas: standard deviation of the noise of each cell of a view, above 0.
        sets: ``shared_sets`` of the views, if they have been found before.
    """
    found = {scope: np.array(table, np.float64) for scope, table in views.items()}
    for shared in shared_sets(list(found)) if sets is None else sets:
        sums = [summed_to(found[owner], owner, shared.scope) for owner in shared.owners]
        cells = [
            found[owner].size / max(part.size, 1) for owner, part in zip(shared.owners, sums, strict=True)
        ]
        weights = np.array([1 / (c * sigmas[o] ** 2) for c, o in zip(cells, shared.owners, strict=True)])
        mean = sum(w * part for w, part in zip(weights / weights.sum(), sums, strict=True))
        for owner, part, count in zip(shared.owners, sums, cells, strict=True):
            found[owner] += spread(np.asarray(mean - part) / count, shared.scope, owner)
    return found


def interactions(
    views: Mapping[Scope, FloatArray], sigmas: Mapping[Scope, float], least: int
) -> Iterator[tuple[Scope, FloatArray, float, list[Scope]]]:
    """Of consistent views each interaction of at least ``least`` attributes: its set, its table (sums to zero
    along every axis), the standard deviation of a cell of the marginal that it is part of, and its views."""
    holding: dict[Scope, list[Scope]] = {}
    for scope in views:
        for subset in subsets(scope, least):
            holding.setdefault(subset, []).append(scope)
    for subset, owners in holding.items():
        table = centred(summed_to(views[owners[0]], owners[0], subset))
        precision = sum(table.size / (views[owner].size * sigmas[owner] ** 2) for owner in owners)
        yield subset, table, precision**-0.5, owners


def centred(table: FloatArray) -> FloatArray:
    """The interaction of all axes: means removed along each."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def shrunk(views: Mapping[Scope, FloatArray], sigmas: Mapping[Scope, float], total: float) -> Views:
    """Consistent views with less noise in their interactions; they stay consistent.

    What an interaction of two attributes has beyond independence is shrunk by its singular values
    (``fit/shrinkage.py``), that of more attributes by the factor 1 - (freedom) sigma^2 / |table|^2 of James
    and Stein (1961), 0 if that is negative.
    """
    found = {scope: np.array(table, np.float64) for scope, table in views.items()}
    margins = margins_of(views)
    for subset, table, sigma, owners in list(interactions(views, sigmas, 2)):
        table = table - centred(product_of(subset, margins, total))
        if len(subset) == 2:
            change = shrink_singular_values(table, sigma) - table
        else:
            noise = sigma**2 * math.prod(size - 1 for size in table.shape)
            change = -table * min(1.0, noise / max(float((table**2).sum()), np.finfo(float).tiny))
        for owner in owners:
            found[owner] += spread(change, subset, owner) * (change.size / found[owner].size)
    return found


def settled(
    views: Mapping[Scope, FloatArray],
    sigmas: Mapping[Scope, float],
    total: float,
    theta: float | None = None,
    rounds: int = ROUNDS,
) -> Views:
    """Views without negative cells that agree and sum to ``total``.

    Non-negativity (projection to the simplex, or Ripple with the threshold ``theta``) and consistency take
    turns until what is negative is small. It is then mixed away: uniform views agree too, so every mean of
    the two families does.

    Args:
        views: tables (rows) by ascending scope.
        sigmas: as for ``consistent``.
        total: rows, above 0.
        theta: in standard deviations of a view's noise; None for the projection.
        rounds: the most rounds.
    """
    sets = shared_sets(list(views))
    agreed = {
        scope: table + (total - table.sum()) / table.size
        for scope, table in consistent(views, sigmas, sets).items()
    }
    found, sigmas = _with_margins(agreed, sigmas, total)
    found = consistent(found, sigmas, sets)
    for _ in range(rounds):
        if _needed(found, total) <= _SETTLED:
            break
        found = consistent(
            {
                scope: simplex_projection(
                    table if theta is None else ripple(table, theta * sigmas[scope]), total
                )
                for scope, table in found.items()
            },
            sigmas,
            sets,
        )
    part = _needed(found, total)
    return {
        scope: np.maximum((1 - part) * table + part * total / table.size, 0.0)
        for scope, table in found.items()
    }


def _with_margins(
    views: Mapping[Scope, FloatArray], sigmas: Mapping[Scope, float], total: float
) -> tuple[Views, dict[Scope, float]]:
    """The views with one-way views that are not negative, and the deviations with which they stay so.

    Non-negativity lifts the many cells of a large view that are nothing but noise, and so flattens its
    margins: one-way views are settled first, and the others follow them.
    """
    found, firm = dict(views), dict(sigmas)
    for scope, table in views.items():
        if len(scope) == 1:
            found[scope] = simplex_projection(table, total)
            firm[scope] = sigmas[scope] * _FIRM
    return found, firm


def _needed(views: Mapping[Scope, FloatArray], total: float) -> float:
    """The part of uniform tables that lifts the lowest cell of all to 0."""
    lowest = [max(0.0, -float(table.min())) * table.size / total for table in views.values()]
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


def as_views(observed: Mapping[Scope, Observation]) -> tuple[Views, dict[Scope, float]]:
    """Measured tables as views and the standard deviations of their cells."""
    return (
        {scope: np.asarray(table.values, np.float64) for scope, table in observed.items()},
        {scope: float(table.sigma) for scope, table in observed.items()},
    )
