"""All questions at the door, and the references of distances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.fit.belief import all_pairs, marginals
from dpsyn_sql.fit.dispersion import Distance, sampling_distance
from dpsyn_sql.fit.estimate import Observation, pooled
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.reproducible import snapped
from dpsyn_sql.fit.residuals import filled, interaction, noise
from dpsyn_sql.methods.adaptive.known import Known
from dpsyn_sql.methods.adaptive.one_ways import by_residuals
from dpsyn_sql.methods.adaptive.scores import Scores
from dpsyn_sql.methods.adaptive.selection import MEAN_ABSOLUTE
from dpsyn_sql.methods.adaptive.task import Task
from dpsyn_sql.planning.plan import Plan
from dpsyn_sql.planning.queries import Choice, Distances, MarginalQuery, Marginals, Residuals
from dpsyn_sql.progress import phase

_LARGEST_TOTAL = 2.0**56
# References of distances must sum to less than 2^57.


def tables_measured(
    task: Task, known: Known, weights: Mapping[Scope, float], budget: Budget
) -> dict[Scope, Observation]:
    """All known tables, after measuring each of ``weights`` with its share; repeated ones are pooled."""
    tables = {**known.tables, **known.beside}
    shares = budget.split(list(weights.values()))
    ask = _residual if by_residuals(budget) else _whole
    for scope, share in zip(weights, shares, strict=True):
        found = ask(task, known, scope, share)
        tables[scope] = pooled(tables[scope], found) if scope in tables else found
    return tables


def _whole(task: Task, known: Known, scope: Scope, share: Budget) -> Observation:
    (table,) = task.curator.ask(Marginals((task.working.query(scope),)), share)
    return Observation(task.working.turned(scope, table.values), np.asarray(table.sigma))


def _residual(task: Task, known: Known, scope: Scope, share: Budget) -> Observation:
    """A measured residual on the margins of the present model, which are made of the one-way tables."""
    (table,) = task.curator.ask(Residuals((task.working.query(scope),)), share)
    of = all_pairs if len(scope) == 2 else marginals
    expected = known.total * of(known.beliefs, [scope])[scope]
    values = filled(expected, task.working.turned(scope, interaction(table)))
    return Observation(values, np.asarray(noise(table)), filled=True)


def noisy_scores(
    task: Task, known: Known, candidates: Sequence[Scope], twins: Mapping[Scope, Scope], budget: Budget
) -> Scores:
    """Noisy distances to the model, less what sampling explains (whole rows).

    If there are many candidates, a private choice selects some first (``Settings.preselected``).
    """
    constants, attributes = task.constants, len(task.working.domain.attributes)
    number, (fewest, most) = constants.preselected * attributes, constants.preselect_between
    if fewest <= attributes <= most and len(candidates) - len(twins) > number:
        for_choice, budget = budget.split((constants.preselect_share, 1 - constants.preselect_share))
        candidates = _preselected(task, known, candidates, twins, number, for_choice)
    queries, references, sampling = _compared(task, known, candidates)
    noisy = task.curator.ask(Distances(queries, references), budget)
    rows = snapped(np.array(noisy) - np.array(_sampling_errors(task, known, candidates)), 1.0)
    values = dict(zip(candidates, rows.tolist(), strict=True))
    own_noise = [task.working.sum_of_sigma(variable) for variable in range(len(task.working.sizes))]
    distances: dict[Scope, Distance] = {
        scope: Distance(float(distance), own, MEAN_ABSOLUTE * math.hypot(*(own_noise[v] for v in scope)))
        for scope, distance, own in zip(candidates, noisy, sampling, strict=True)
        if len(scope) == 2
    }
    return Scores(values, _deviation(task.plan, len(candidates), budget), budget.kind, distances)


def _preselected(
    task: Task,
    known: Known,
    candidates: Sequence[Scope],
    twins: Mapping[Scope, Scope],
    number: int,
    budget: Budget,
) -> list[Scope]:
    """A private choice of ``number`` pairs, judged by their coarse twins if they have one; with the twins."""
    coarser = set(twins.values())
    pairs = [pair for pair in candidates if pair not in coarser]
    coarse = [twins.get(pair, pair) for pair in pairs]
    allowances = [round(rows) for rows in _sampling_errors(task, known, coarse)]
    queries, references, _ = _compared(task, known, coarse)
    chosen = task.curator.ask(Choice(queries, references, number, allowances), budget)
    kept = [pairs[index] for index in sorted(chosen)]
    return [*kept, *(twins[pair] for pair in kept if pair in twins)]


def _compared(
    task: Task, known: Known, candidates: Sequence[Scope]
) -> tuple[list[MarginalQuery], list[NDArray[np.int64]], list[float]]:
    """The tables of candidates, all pairs or all inside cliques, the model's expected counts (rows), and how
    far sampling alone takes the counts from them (rows)."""
    total = min(known.total, _LARGEST_TOTAL)
    with phase("model"):
        of = all_pairs if len(candidates[0]) == 2 else marginals
        expected = of(known.beliefs, candidates)
    references, sampling = list[NDArray[np.int64]](), list[float]()
    for scope in candidates:  # each expectation is dropped when its reference is made
        counts = task.working.turned(scope, total * expected.pop(scope))
        references.append(np.rint(counts).astype(np.int64))
        sampling.append(sampling_distance(counts))
    return [task.working.query(scope) for scope in candidates], references, sampling


def _sampling_errors(task: Task, known: Known, scopes: Sequence[Scope]) -> list[float]:
    """The part of the L1 sampling error of each table that is not dependence (rows).

    The expectation of |count - mean| is about sqrt(2 mean / pi) per cell, a product of one factor for
    each variable. It uses independence in place of the model: the choice must not depend on the last bits
    of a fit, which differ between machines.
    """
    working, total = task.working, min(known.total, _LARGEST_TOTAL)
    one_way = {scope[0]: np.exp(table) for scope, table in working.base.items()}
    one_way |= {
        twin: (one_way[fine][:, None] * np.exp(link)).sum(axis=0)
        for (fine, twin), link in working.links.items()
    }
    scale = task.constants.sampling * MEAN_ABSOLUTE * math.sqrt(total)
    chance = {variable: float(np.sqrt(table).sum()) for variable, table in one_way.items()}
    return [scale * math.prod(chance[variable] for variable in scope) for scope in scopes]


def _deviation(plan: Plan, number: int, budget: Budget) -> float:
    """Standard deviation of the noise of so many distances asked together (rows)."""
    rows = plan.source.unit.max_rows
    if budget.kind == "pure":
        return math.sqrt(2) * number * rows / float(budget.fraction)
    return rows * math.sqrt(number / (2 * float(budget.rho)))
