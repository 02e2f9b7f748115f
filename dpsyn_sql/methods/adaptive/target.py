"""The target beside every pair of other columns, and its law given all of them.

A junction tree holds few tables with the target. What it cannot hold, such as the sign of a product of two
columns, is asked for here: tables of the target with every two other columns, over a few bins each, in one
question. The number of rows, the number of tables and the budget decide whether this pays: no score does, so
that nothing is spent on choosing. The answers correct the law of the
target (``fit/conditional.py``). The tables that a replay asks for follow from one-way tables alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.common.progress import phase
from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray, snapped
from dpsyn_sql.fit.conditional import Cells, Conditional, Evidence, Twin, corrected
from dpsyn_sql.fit.denoise import merged_neighbours, merged_rare
from dpsyn_sql.methods.adaptive.budget import room_of_each
from dpsyn_sql.methods.adaptive.model import Task
from dpsyn_sql.methods.adaptive.orders import full_table
from dpsyn_sql.methods.independent import over_bins
from dpsyn_sql.methods.models.networks import GraphicalModel, TargetModel
from dpsyn_sql.planning.asking import Reserve
from dpsyn_sql.planning.queries import Marginals
from dpsyn_sql.rows.sample.graphical import columns_of

MOST_BINS = 64
"""Working bins of the target above which its law is left as it is."""

TARGET_BINS = 4
"""Bins of the target in these tables."""

MOST_TABLES = 3_000
"""Tables of one question: they take some seconds to count."""

ROWS, SEED = 2**15, 0
"""Public rows over which the law is fitted, at most, and their seed."""

_FIT_SHARE = 0.7
# Share of the time after the last question, with the last fit of the graphical model.


BINS = (4, 3, 2)
"""Bins of each other column: the most with which the question pays."""

LEAST_SHARE, MOST_SHARE = 3, 15
"""Whole percentages of the budget of all rounds. Above the latter the pairs would lose too much."""

CLEAR = 4.0
"""Rows of a cell per standard deviation of its noise from which on the question pays. Chosen, as the shares,
on the dense table of ``benchmarks/high_order.py`` and on Adult (docs/decisions/0049)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that pays, and its budget."""

    tables: tuple[Cells, ...]
    budget: Budget


def asked(task: Task, step: Reserve) -> tuple[Asked | None, Reserve]:
    """The question about the target, if one pays, and the step with what it leaves of its budget."""
    if not step.further or not _can_pay(task, step):
        return None, step
    for bins in BINS:
        tables = _tables(task, bins)
        if not tables or not _announced(tables, step):
            continue
        cells = max(math.prod(table.shape) for table in tables)
        for share in range(LEAST_SHARE, MOST_SHARE + 1):
            own, left = step.budget.split((share, 100 - share))
            deviation = own.law(task.unit.sensitivity).shared(len(tables)) if own.amount else math.inf
            if task.total >= CLEAR * deviation * cells:
                return Asked(tuple(tables), own), replace(step, budget=left)
    return None, step


def _can_pay(task: Task, step: Reserve) -> bool:
    """Whether there is a target of a few working bins, Gaussian noise, and no table over all columns."""
    target = task.terms.workload.target
    if not target or not task.budget.gaussian or task.many or full_table(task, step.budget):
        return False
    if task.working.levels:  # rows of a family are not redrawn one by one
        return False
    place = task.domain.index(target)
    return place in task.paired and task.working.sizes[place] <= MOST_BINS


def _announced(tables: Sequence[Cells], allowed: Reserve) -> bool:
    """Whether all are among the tables that the plan announces."""
    cells = [math.prod(table.shape) for table in tables]
    return max(cells) <= allowed.most_cells and sum(cells) <= room_of_each(allowed)


def _tables(task: Task, bins: int) -> list[Cells]:
    """The target with every two other columns of two working bins or more; none if they are too many."""
    target = task.domain.index(task.terms.workload.target)
    others = [place for place in task.paired if place != target]
    if not 0 < math.comb(len(others), 2) <= MOST_TABLES:
        return []
    maps = {place: _coarse(task, place, bins) for place in others}
    goal = _coarse(task, target, TARGET_BINS)
    return [Cells(pair, (maps[pair[0]], maps[pair[1]]), goal) for pair in combinations(others, 2)]


def _coarse(task: Task, place: int, most: int) -> IntArray:
    """At most about ``most`` bins of the working bins of an attribute, by its noisy one-way table: neighbours
    of an ordered one; of another one the commonest, and the rest in one."""
    size = task.working.sizes[place]
    counts = np.maximum(snapped(task.working.observed[place,].values, 1.0), 0.0)
    if size <= most:
        return np.arange(size, dtype=np.int64)
    if task.domain.attributes[place].ordered:
        bins = merged_neighbours(counts, 0.0, float(most))
    else:
        bins = merged_rare(counts, float(np.sort(counts)[-most + 1]))
    return bins if bins.max() > 0 else (np.arange(size) >= size // 2).astype(np.int64)


def refined(
    task: Task, model: GraphicalModel, question: Asked | None, *, grouped: bool
) -> GraphicalModel | TargetModel:
    """The model with the law of the target that the answers tell; the model as it is if they tell none."""
    if question is None or model.total <= 0 or grouped:
        return model
    tried = _answered(task, question)
    target = task.domain.index(task.terms.workload.target)
    start = Conditional(model.beliefs, _twins(task), target)
    number = min(ROWS, max(2**12, 2**19 // task.working.sizes[target]))
    codes = np.concatenate([*model.sampler().batches(number, SEED)])
    columns: dict[int, Codes] = dict(columns_of(codes, model.bins))

    def stop() -> bool:
        return task.terms.deadline.over(_FIT_SHARE, "the fit of the target stopped early")

    with phase("fit target"), task.terms.deadline.running():
        law = corrected(start, columns, model.total, _pairs(task, model, target), tried, stop)
    if not law.corrections:
        return model
    rows = tuple(column.astype(np.uint16) for column in columns.values())
    return TargetModel(model.domain, model.total, model, law, rows, law.given(columns))


def _answered(task: Task, question: Asked) -> list[Evidence]:
    target = task.domain.index(task.terms.workload.target)
    queries, turned = [], list[list[int]]()
    for table in question.tables:
        places = [*table.scope, target]
        maps = dict(zip(places, (*table.maps, table.target), strict=True))
        order = sorted(places)
        bins = ((place, maps[place][task.working.variables[place].bins]) for place in order)
        queries.append(over_bins(task.domain, bins))
        turned.append([order.index(place) for place in places])
    answers = task.door.ask(Marginals(tuple(queries)), question.budget).read()
    return [
        Evidence(
            table, np.asarray(answer.values.transpose(axes), np.float64).reshape(table.shape), answer.sigma
        )
        for table, answer, axes in zip(question.tables, answers, turned, strict=True)
    ]


def _twins(task: Task) -> dict[int, Twin]:
    """The coarse variables of the model, by their number."""
    working, attributes = task.working, len(task.domain.names)
    found = dict[int, Twin]()
    for number, variable in enumerate(working.variables[attributes:], attributes):
        own = working.variables[variable.attribute].bins
        found[number] = Twin(variable.attribute, variable.bins[np.unique(own, return_index=True)[1]])
    return found


def _pairs(task: Task, model: GraphicalModel, target: int) -> list[Evidence]:
    """The pairs of the target, as the model has them, over working bins; with the noise of their tables."""
    sizes, found = task.working.sizes, list[Evidence]()
    noise: Mapping[int, float] = {
        other: component.precision**-0.5
        for pair, component in model.components.items()
        if target in pair and component.precision > 0
        for other in pair
        if other != target
    }
    usual = float(np.median([*noise.values()])) if noise else math.sqrt(model.total)
    goal = np.arange(sizes[target])
    for other in range(len(task.domain.names)):
        if other != target and sizes[other] > 1:
            counts: FloatArray = model.total * model.joint((other, target))
            cells = Cells((other,), (np.arange(sizes[other]),), goal)
            found.append(Evidence(cells, counts, noise.get(other, usual)))
    return found
