"""Which sets of attributes are measured together."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import MEAN_ABSOLUTE, NoiseLaw

# -- planes ------------------------------------------------------------------------------------------

# Coverings of all pairs made of finite planes: any two points lie on exactly one line.
#
# A projective plane of order q has q^2 + q + 1 points and as many lines, of q + 1 points each; without one
# line and its points it is an affine plane of q^2 points and q^2 + q lines. Attributes are placed on the
# points, several on one or none, and a view is all attributes of a line: two on different points share one
# view, two on one point share several. So 32 binary attributes, two on each of 16 points, are covered by 20
# views of 8.
#
# The lines are the shifts of a perfect difference set (Singer 1938, A theorem in finite projective geometry):
# of q + 1 numbers modulo q^2 + q + 1 whose differences are every number but 0 exactly once.

Scope = tuple[int, ...]

DIFFERENCE_SETS = {
    2: (0, 1, 3),
    3: (0, 1, 3, 9),
    4: (0, 1, 4, 14, 16),
    5: (0, 1, 3, 8, 12, 18),
    7: (0, 1, 3, 13, 32, 36, 43, 52),
    8: (0, 1, 3, 7, 15, 31, 36, 54, 63),
    9: (0, 1, 3, 9, 27, 49, 56, 61, 77, 81),
    11: (0, 1, 3, 12, 20, 34, 38, 81, 88, 94, 104, 109),
}
"""By order of the plane; larger lines are no views."""


def plane_views(costs: Sequence[int], sizes: Sequence[int], most: int, together: int) -> tuple[Scope, ...]:
    """The fewest views of a plane that hold every pair of attributes; none if no plane fits.

    Args:
        costs: of the attributes, by which they are spread evenly over the points.
        sizes: of the attributes.
        most: cells of a view.
        together: most attributes of a view.
    """
    fitting = (
        views
        for order in DIFFERENCE_SETS
        for affine in (True, False)
        for views in [_of_plane(costs, _lines(order, affine=affine))]
        if all(len(view) <= together and math.prod(sizes[i] for i in view) <= most for view in views)
    )
    return min(fitting, key=len, default=())


def _of_plane(costs: Sequence[int], lines: Sequence[Scope]) -> tuple[Scope, ...]:
    """The views of a plane: those that no other view holds. The costliest attributes are placed first."""
    points = [list[int]() for _ in range(1 + max(map(max, lines)))]
    loads = [0] * len(points)
    for index in sorted(range(len(costs)), key=lambda index: -costs[index]):
        point = loads.index(min(loads))
        points[point].append(index)
        loads[point] += costs[index]
    views = {tuple(sorted(i for point in line for i in points[point])) for line in lines}
    return tuple(sorted(_outermost(views)))


def _outermost(views: set[Scope]) -> Iterator[Scope]:
    outer = list[set[int]]()
    for view in sorted(views, key=lambda view: (-len(view), view)):
        if len(view) > 1 and not any(set(view) <= larger for larger in outer):
            outer.append(set(view))
            yield view


@cache
def _lines(order: int, *, affine: bool) -> tuple[Scope, ...]:
    """Points of each line, numbered from 0."""
    number, first = order**2 + order + 1, DIFFERENCE_SETS[order]
    lines = [[(point + shift) % number for point in first] for shift in range(number)]
    if not affine:
        return tuple(map(tuple, lines))
    left = {point: index for index, point in enumerate(set(range(number)) - set(first))}
    return tuple(tuple(left[point] for point in line if point in left) for line in lines[1:])


# -- views -------------------------------------------------------------------------------------------

# Which views to measure: sets of attributes, from public facts and the noisy total alone.
#
# A view is a table over a few attributes (PriView: Qardaji, Yang and Li 2014; DPSyn, section 3). Few large
# views hold many pairs each, and get much budget each; but a pair that is summed from a large view has the
# noise of all its cells. ``best_views`` weighs the two before anything but one-way tables has been asked for.
#
# **Noise.** View v has C_v cells and the share w_v of the budget. Its noise has the standard deviation u
# w_v^-a a cell: a = 1/2 for Gaussian noise, a = 1 for Laplace noise (pure epsilon); u is the deviation that
# the whole budget buys. A cell of a marginal over p, of |p| cells, is the sum of C_v/|p| cells of v, so the
# expected L1 error of the marginal is
#
#     sqrt(2/pi) |p| sqrt(C_v/|p|) u w_v^-a = sqrt(2/pi) u w_v^-a sqrt(C_v |p|).
#
# The error of a pair is the mean over the views that hold it. With A_v = sqrt(C_v) * sum over the pairs of v
# of sqrt(|p|) / (views that hold p), the sum over all pairs is sqrt(2/pi) u * sum A_v w_v^-a. Under sum w_v =
# 1 it is least (Lagrange: A_v w_v^(-a-1) is the same for all v) at
#
#     Gaussian: w_v ~ A_v^(2/3), the sum becomes (sum A_v^(2/3))^(3/2)
#     Laplace:  w_v ~ A_v^(1/2), the sum becomes (sum A_v^(1/2))^2.
#
# With weights of pairs, sqrt(|p|) is multiplied by that of p. Averaging the views that hold a pair does
# better than their mean, so this is an upper bound. For the sum of many Laplace variables sqrt(2/pi) is
# right, for a single one it is 13 % too much.
#
# **Coverage.** A pair in no view is taken as independent, and three attributes in no view as what their pairs
# say. What that costs depends on the data, which no question may depend on: it is a constant (``PAIR_APART``,
# ``TRIPLE_APART``). A triple in a view costs at most this much: where its noise is larger, its pairs serve.


FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
PairWeights = Mapping[tuple[int, int], float]
"""Of pairs (ascending) whose weight is not 1."""

_ALIKE: PairWeights = {}

MOST_TOGETHER = 12
"""The most attributes of a view: all its subsets, 4,096, are looked at."""

MOST_VIEW_CELLS = 2**16
"""The most cells of a view: a larger one is hardly anything but noise."""

PAIR_APART, TRIPLE_APART = 0.07, 0.03
"""Total variation distance of a pair from independence, and of a triple from what its pairs say: about the
means of Adult."""

_HOPELESS = 1.5
# Errors that many times the best end the search for smaller views: these get worse from there on.

_FINE = 2**20
# Costs are whole multiples of 1/_FINE: logarithms of two machines can differ in the last bit, and a tie of
# two attributes (1 pair for 3 codes, 2 pairs for 9) must be the same tie everywhere.

_DIGITS = 9
# Of an expected error, for the same reason.

_MANY = 40
# Above this number of attributes limits go down by a factor of 4, not 2: a covering takes a second.


@dataclass(frozen=True, slots=True)
class Covering:
    """``views``, and the pairs or triples of too many cells for any view (``apart``)."""

    views: tuple[Scope, ...]
    apart: tuple[Scope, ...] = ()


@dataclass(frozen=True, slots=True)
class Design:
    """Views with their shares of the budget (sum 1) and the expected error, a mean total variation distance.

    ``most_cells``: of a view.
    """

    views: tuple[Scope, ...]
    shares: tuple[float, ...]
    error: float
    most_cells: int
    apart: tuple[Scope, ...] = ()


def covering_views(sizes: Sequence[int], cover: int, most_cells: int) -> Covering:
    """Views such that every ``cover`` (2 or 3) attributes lie in one.

    Greedy: a view starts where most is missing, and takes the attribute that brings most for its size (on a
    logarithmic scale) while one fits. Ties go to the first attribute.

    Args:
        sizes: of the attributes; those of size 1 carry nothing and are in no view.
        cover: if there are fewer attributes, all of them lie in one view.
        most_cells: of a view.
    """
    used = [index for index, size in enumerate(sizes) if size > 1]
    cover = min(cover, len(used))
    used_sizes = np.array([sizes[index] for index in used], np.float64)
    if cover < 2:
        return Covering(())
    numbers = np.array(list(combinations(range(len(used)), cover)), np.int64)
    fits = used_sizes[numbers].prod(axis=1) <= most_cells
    apart = tuple(tuple(used[position] for position in row) for row in numbers[~fits].tolist())
    smallest = np.sort(used_sizes)[: cover + 1].prod()
    if len(used) == cover or smallest > most_cells:  # nothing larger fits
        views = [tuple(row) for row in numbers[fits].tolist()]
    else:
        views = list(_covered(used_sizes, numbers[fits], most_cells))
    return Covering(tuple(sorted(tuple(used[position] for position in view) for view in views)), apart)


def _covered(sizes: FloatArray, wanted: IntArray, most: int) -> Iterator[Scope]:
    """Views that hold all wanted sets, each set a row."""
    cover = wanted.shape[1]
    missing = np.zeros((len(sizes),) * cover, np.int16)
    for axes in permutations(range(cover)):
        missing[tuple(wanted[:, axis] for axis in axes)] = 1
    of_each = missing.sum(axis=-1, dtype=np.int64)
    cost = np.rint(_FINE * np.log2(sizes))
    while of_each.flat[start := int(np.argmax(of_each))]:
        view = [int(attribute) for attribute in np.unravel_index(start, of_each.shape)]
        gain, cells = missing[tuple(view)].astype(np.int64), sizes[view].prod()
        while len(view) < MOST_TOGETHER:
            worth = np.where(cells * sizes <= most, gain / cost, 0)
            worth[view] = 0
            best = int(np.argmax(worth))
            if worth[best] <= 0:
                break
            newly_missing = missing[np.ix_(*[view] * (cover - 2), [best])]
            gain += newly_missing.reshape(-1, len(sizes)).sum(axis=0, dtype=np.int64)
            view.append(best)
            cells *= sizes[best]
        view.sort()
        of_each[np.ix_(*[view] * (cover - 1))] -= missing[np.ix_(*[view] * cover)].sum(
            axis=-1, dtype=np.int64
        )
        missing[np.ix_(*[view] * cover)] = 0
        yield tuple(view)


def plane_covering(sizes: Sequence[int], most_cells: int) -> tuple[Scope, ...]:
    """The fewest views of a finite plane that hold all pairs of attributes of several codes; none if no
    plane fits."""
    used = [index for index, size in enumerate(sizes) if size > 1]
    used_sizes = [sizes[index] for index in used]
    costs = np.rint(_FINE * np.log2(np.array(used_sizes, np.float64))).astype(np.int64).tolist()
    views = plane_views(costs, used_sizes, most_cells, MOST_TOGETHER)
    return tuple(tuple(used[position] for position in view) for view in views)


def random_views(sizes: Sequence[int], most_cells: int, seed: str, draws: range) -> dict[Scope, None]:
    """Different views of several attributes in random order, each with as many as fit: a set in order.

    Args:
        sizes: those of size 1 are in no view.
        most_cells: of a view.
        seed: public. The same seed gives the same views on every machine.
        draws: numbers of the views that are drawn.
    """
    drawn = (_random_view(sizes, most_cells, f"{draw} {seed}") for draw in draws)
    return dict.fromkeys(view for view in drawn if len(view) > 1)


def _random_view(sizes: Sequence[int], most: int, seed: str) -> Scope:
    used = [index for index, size in enumerate(sizes) if size > 1]
    view, cells = list[int](), 1
    for index in sorted(used, key=lambda index: _digest(f"{index} {seed}")):
        if cells * sizes[index] <= most and len(view) < MOST_TOGETHER:
            view.append(index)
            cells *= sizes[index]
    return tuple(sorted(view))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def best_views(
    sizes: Sequence[int],
    total: float,
    noise: NoiseLaw,
    cover: int,
    room: int,
    seed: str | None = None,
    weights: PairWeights = _ALIKE,
) -> Design | None:
    """The covering of least expected error, or None if none keeps to ``room``.

    Args:
        sizes: of the attributes.
        total: rows, noisy.
        noise: of the whole budget of all views.
        cover: 2 or 3; with a ``seed`` it plays no part.
        room: the most cells of all views together.
        seed: for randomly chosen views, whose number is chosen by the same error.
        weights: of pairs whose weight is not 1.
    """
    designs = list[Design]()
    for most in _limits(sizes, cover if seed is None else 2):
        here = list[Design]()
        for covering in _coverings(sizes, cover, most, seed):
            if sum(math.prod(sizes[index] for index in view) for view in covering.views) > room:
                break
            shares, error = expected_error(sizes, covering.views, total, noise, weights)
            here.append(Design(covering.views, shares, round(error, _DIGITS), most, covering.apart))
            if error > _HOPELESS * min(map(_error, here)):
                break
        best = min(here, key=_error, default=None)
        if best is not None:
            designs.append(best)
            if best.error > _HOPELESS * min(map(_error, designs)):
                break
    return min(designs, key=_error, default=None)


def _error(design: Design) -> float:
    return design.error


def _limits(sizes: Sequence[int], together: int) -> Iterator[int]:
    """Limits for a view, the largest first, down to the one under which so many of the largest fit."""
    used = sorted(size for size in sizes if size > 1)
    step = 2 if len(used) <= _MANY else 4
    least, most = math.prod(used[-together:]), min(MOST_VIEW_CELLS, math.prod(used))
    while most >= least:
        yield most
        most //= step
    if least < most * step and least <= MOST_VIEW_CELLS:
        yield least


def _coverings(sizes: Sequence[int], cover: int, most: int, seed: str | None) -> Iterator[Covering]:
    """The greedy covering under a limit, and that of a plane if it has fewer views; or more and more random
    views."""
    if seed is None:
        greedy = covering_views(sizes, cover, most)
        yield greedy
        if cover == 2 and not greedy.apart:
            plane = plane_covering(sizes, most)
            if 0 < len(plane) < len(greedy.views):
                yield Covering(plane)
        return
    number, drawn = 0, dict[Scope, None]()
    while number < 2 * math.comb(sum(size > 1 for size in sizes), 2):
        more = max(number + 1, number * 4 // 3)
        drawn |= random_views(sizes, most, seed, range(number, more))
        number = more
        yield Covering(tuple(drawn))


def expected_error(
    sizes: Sequence[int],
    views: Sequence[Scope],
    total: float,
    noise: NoiseLaw,
    pair_weights: PairWeights = _ALIKE,
) -> tuple[tuple[float, ...], float]:
    """The best shares of views, and the expected total variation distance: its weighted mean over pairs and
    its mean over triples, added up."""
    weights, covered = noise_weights(sizes, views, pair_weights)
    shares = weights ** (1 / (1 + noise.power))
    shares /= max(float(shares.sum()), np.finfo(float).tiny)
    rows = 2 * max(total, 1.0)
    there = sum(size > 1 for size in sizes)
    pairs: float = math.comb(there, 2)
    pairs += sum(w - 1 for (i, j), w in pair_weights.items() if sizes[i] > 1 and sizes[j] > 1)
    triples = math.comb(there, 3)
    deviations = noise.deviation * shares**-noise.power
    error = MEAN_ABSOLUTE * float(deviations @ weights) / rows + PAIR_APART * (pairs - covered)
    mean_error = error / (pairs or 1)
    if triples:
        mean_error += (
            TRIPLE_APART - _triples_gained(sizes, views, MEAN_ABSOLUTE * deviations / rows) / triples
        )
    return tuple(shares.tolist()), mean_error


def noise_weights(
    sizes: Sequence[int], views: Sequence[Scope], weights: PairWeights = _ALIKE
) -> tuple[FloatArray, float]:
    """A_v of each view: what a deviation of one row a cell costs the pairs that it holds (L1, rows, by
    weight). And the weight of all pairs that some view holds."""
    pairs, owners = _held(views, 2)
    float_sizes = np.asarray(sizes, np.float64)
    keys, pair_number, holding = np.unique(
        pairs @ np.array([len(sizes), 1]), return_inverse=True, return_counts=True
    )
    heavy = np.array([weights.get(divmod(key, len(sizes)), 1.0) for key in keys.tolist()])
    each = np.sqrt(float_sizes[pairs].prod(axis=1)) / holding[pair_number]
    if weights:
        each *= heavy[pair_number]
    return np.sqrt(_cells(float_sizes, views)) * np.bincount(owners, each, len(views)), float(heavy.sum())


def _triples_gained(sizes: Sequence[int], views: Sequence[Scope], deviations: FloatArray) -> float:
    """By how much the triples that lie in a view are better than ``TRIPLE_APART``, summed."""
    triples, owners = _held(views, 3)
    float_sizes = np.asarray(sizes, np.float64)
    errors = (deviations * np.sqrt(_cells(float_sizes, views)))[owners] * np.sqrt(
        float_sizes[triples].prod(axis=1)
    )
    key = triples @ np.array([len(sizes) ** 2, len(sizes), 1])
    order = np.lexsort((errors, key))  # the best view of each triple first
    first = np.ones(key.size, bool)
    first[1:] = key[order][1:] != key[order][:-1]
    return float(np.maximum(TRIPLE_APART - errors[order][first], 0.0).sum())


def _held(views: Sequence[Scope], together: int) -> tuple[IntArray, IntArray]:
    """All sets of so many attributes that lie in a view, a row each, and the number of the view."""
    sets, owners = [np.zeros((0, together), np.int64)], [np.zeros(0, np.int64)]
    by_length: dict[int, list[int]] = {}
    for number, view in enumerate(views):
        by_length.setdefault(len(view), []).append(number)
    for length, numbers in by_length.items():
        if length >= together:
            positions = np.array(list(combinations(range(length), together)))
            sets.append(np.array([views[number] for number in numbers])[:, positions].reshape(-1, together))
            owners.append(np.repeat(np.array(numbers), len(positions)))
    return np.concatenate(sets), np.concatenate(owners)


def _cells(sizes: FloatArray, views: Sequence[Scope]) -> FloatArray:
    return np.array([sizes[list(view)].prod() for view in views], np.float64)
