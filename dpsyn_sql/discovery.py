"""Private discovery: every column without a public domain gets one through the door.

    values of text            keys above a threshold                  -> categories, the rest is __other__
    numbers and times         noisy counts on a fixed grid -> bounds  -> PrivTree -> bins

The questions and their budgets are planned before anything is charged; the answers are public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.grids import grid_attribute
from dpsyn_sql.domain.shape import Shape, Undiscovered
from dpsyn_sql.fit.discovered import (
    attribute_from_keys,
    attribute_from_tree,
    bounds_from_grid,
    tree_query,
)
from dpsyn_sql.interfaces import Curator
from dpsyn_sql.planning.discovery import Ask, DiscoveryStep
from dpsyn_sql.planning.queries import ContributionQuery, GridQuery, KeyQuery, NoisyContributions
from dpsyn_sql.progress import phase


def discovered(
    shape: Shape, steps: Sequence[DiscoveryStep], door: Curator, rows_per_unit: int
) -> tuple[Shape, NoisyContributions | None, tuple[DiscoveryStep, ...]]:
    """Ask the planned questions.

    Returns:
        The completed shape; how many units have how many rows, if that was planned; the steps that were
        asked, in order (a column needs no tree if the grid tells its values apart).
    """
    planned = {(step.ask, step.attr): step for step in steps}
    found: dict[str, Attribute] = {}
    asked: list[DiscoveryStep] = []
    with phase("discover", len(shape.undiscovered)) as advance:
        for column in shape.undiscovered:
            ask = _keys if column.kind == "categorical" else _bins
            found[column.name] = ask(column, planned, door, asked)
            advance(1)
    contributions = None
    rows = planned.get(("contributions", None))
    if rows is not None:
        asked.append(rows)
        contributions = door.ask(ContributionQuery(rows_per_unit), rows.budget)
    return shape.completed(found), contributions, tuple(asked)


_Steps = Mapping[tuple[Ask, str | None], DiscoveryStep]


def _keys(column: Undiscovered, planned: _Steps, door: Curator, asked: list[DiscoveryStep]) -> Attribute:
    step = planned["keys", column.name]
    asked.append(step)
    query = KeyQuery(column.name, column.sql_type, source=column.source)
    return attribute_from_keys(column, door.ask(query, step.budget))


def _bins(column: Undiscovered, planned: _Steps, door: Curator, asked: list[DiscoveryStep]) -> Attribute:
    grid = planned["grid", column.name]
    asked.append(grid)
    cells = grid_attribute(column.name, column.sql_type, nullable=column.nullable)
    noisy = door.ask(GridQuery(replace(cells, source=column.source)), grid.budget)
    bounds = bounds_from_grid(column, noisy.values, noisy.sigma)
    question = tree_query(column, bounds)
    if question is None:
        return attribute_from_tree(column, bounds, None)
    tree = planned["tree", column.name]
    asked.append(tree)
    return attribute_from_tree(column, bounds, door.ask(question, tree.budget))
