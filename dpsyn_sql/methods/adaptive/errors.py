"""What the rounds tell of the errors of the estimates of pairs (``fit/variances.py``).

Each round has noisy distances of all pairs to the model: they tell the dispersion around it, of pairs that
are measured then, too. Post-processing of noisy answers only.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np

from dpsyn_sql.fit.dispersion import Dispersions, dispersions, within_twin
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.graph import Scope, cells_of
from dpsyn_sql.fit.residuals import cost_factor
from dpsyn_sql.fit.variances import Components
from dpsyn_sql.methods.adaptive.known import Known
from dpsyn_sql.methods.adaptive.scores import Scores
from dpsyn_sql.methods.adaptive.task import Task


def with_dispersions(task: Task, known: Known, scores: Scores) -> Known:
    """The same with what the scores of a round tell: of a pair and its coarse twin the larger dispersion, and
    what the twin does not tell."""
    if not scores.distances:
        return known
    told = dispersions(scores.distances, scores.deviation)
    found = dict[Scope, float]()
    for pair, dispersion in told.pairs.items():
        attributes = _attributes(task, pair)
        found[attributes] = max(dispersion, found.get(attributes, 0.0))
    within = dict[Scope, float]()
    for twin, dispersion in told.pairs.items():
        pair = _attributes(task, twin)
        if twin != pair and pair in told.pairs:
            one, other = scores.distances[pair], scores.distances[twin]
            within[pair] = within_twin(told.pairs[pair], dispersion, one.sampling, other.sampling)
    return replace(known, dispersions=(*known.dispersions, Dispersions(found, told.other, within)))


def components(task: Task, known: Known) -> dict[Scope, Components]:
    """Of the pairs that could be scored, by positions of attributes; none if there was no score.

    A measured pair has the largest dispersion of all rounds, which is that before it was measured. Any other
    pair has that of the last round. A table with a coarse twin sees sums of working bins: it adds no
    precision, and leaves the dispersion that it does not tell.
    """
    domain, rounds = task.plan.domain, known.dispersions
    if not rounds:
        return {}
    precisions, noises = dict[Scope, float](), dict[Scope, float]()
    for scope, table in (*known.tables.items(), *known.beside.items()):
        if len(scope) == 2:
            attributes, sigma = _attributes(task, scope), max(_deviation(table), 1e-6)
            precision = sigma**-2 if scope == attributes else 0.0
            precisions[attributes] = max(precision, precisions.get(attributes, 0.0))
            if scope != attributes:
                noises[attributes] = _twin_noise(task, known, scope, sigma)
    announced = {
        tuple(domain.index(name) for name in query.attrs)
        for step in task.plan.reserved
        for query in step.queries
    }
    found = dict[Scope, Components]()
    for pair in combinations(range(len(domain.names)), 2):
        if min(domain.attributes[place].size for place in pair) == 1:  # a copy of the other's table
            found[pair] = Components(0.0, 0.0)
        elif pair in announced:
            told = [one.pairs.get(pair, one.other) for one in rounds]
            dispersion = max(told) if pair in precisions else told[-1]
            if pair in noises and precisions[pair] == 0:
                dispersion = noises[pair] + max(one.within.get(pair, dispersion) for one in rounds)
            found[pair] = Components(dispersion, precisions.get(pair, 0.0))
    return found


def _deviation(table: Observation) -> float:
    """Standard deviation (rows) of the noise in a cell: of a residual only what it has beyond its margins."""
    part = cost_factor(table.values.shape) if table.filled else 1.0
    return float(np.max(table.sigma)) * math.sqrt(part)


def _twin_noise(task: Task, known: Known, twin: Scope, sigma: float) -> float:
    """The noise of a coarse table as a dispersion of working bins: a cell of m of the M rows of its coarse
    cell has m^2 / M^2 of the variance, which is m (sigma^2 / M) (m / M); with those of a typical cell."""
    coarse = cells_of([twin], task.working.sizes)
    fine = cells_of([_attributes(task, twin)], task.working.sizes)
    return sigma**2 * coarse**2 / (known.total * fine)


def _attributes(task: Task, pair: Scope) -> Scope:
    return tuple(sorted(task.working.variables[variable].attribute for variable in pair))
