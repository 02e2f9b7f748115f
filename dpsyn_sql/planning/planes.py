"""Coverings of all pairs made of finite planes: any two points lie on exactly one line.

A projective plane of order q has q^2 + q + 1 points and as many lines, of q + 1 points each; without one line
and its points it is an affine plane of q^2 points and q^2 + q lines. Attributes are placed on the points,
several on one or none, and a view is all attributes of a line: two on different points share one view, two
on one point share several. So 32 binary attributes, two on each of 16 points, are covered by 20 views of 8.

The lines are the shifts of a perfect difference set (Singer 1938, A theorem in finite projective geometry):
of q + 1 numbers modulo q^2 + q + 1 whose differences are every number but 0 exactly once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache

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
    kept = list[set[int]]()
    for view in sorted(views, key=lambda view: (-len(view), view)):
        if len(view) > 1 and not any(set(view) <= other for other in kept):
            kept.append(set(view))
            yield view


@cache
def _lines(order: int, *, affine: bool) -> tuple[Scope, ...]:
    """Points of each line, numbered from 0."""
    number, first = order**2 + order + 1, DIFFERENCE_SETS[order]
    lines = [[(point + shift) % number for point in first] for shift in range(number)]
    if not affine:
        return tuple(map(tuple, lines))
    left = {point: place for place, point in enumerate(set(range(number)) - set(first))}
    return tuple(tuple(left[point] for point in line if point in left) for line in lines[1:])
