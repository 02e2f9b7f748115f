"""All questions of adaptive marginals at the door, and what their answers tell of errors.

One-way tables are asked for as the total and residuals: the total once, and of each attribute what it says
beyond the total. A whole one-way table of k codes would measure the total again at 1/k of its cost. Pure
budgets ask for whole tables, because Laplace noise gains nothing by residuals; so do tables of so many cells
that residuals of many units would not fit into a number.

Each round has noisy distances of all pairs to the model: they tell the dispersion around it
(``fit/variances.py``), of pairs that are measured then, too.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from dpsyn_sql.accounting.budget import MEAN_ABSOLUTE, Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.common.progress import phase
from dpsyn_sql.fit.arrays import IntArray, snapped
from dpsyn_sql.fit.belief import marginals
from dpsyn_sql.fit.elimination import joints_of
from dpsyn_sql.fit.estimate import Observation, pooled, with_seen
from dpsyn_sql.fit.graph import Scope, cells_of
from dpsyn_sql.fit.pairs import all_pairs
from dpsyn_sql.fit.reconstruct import cost_factor, deviation, filled, interaction, noise
from dpsyn_sql.fit.variances import (
    Components,
    Dispersions,
    Distance,
    dispersions,
    sampling_distances,
    within_twin,
)
from dpsyn_sql.methods.adaptive.budget import Settings, rows_given, tables_above
from dpsyn_sql.methods.adaptive.model import State, Task
from dpsyn_sql.methods.adaptive.select import Scores
from dpsyn_sql.methods.independent import (
    SIZE_POWER,
    groups_of_equal_size,
    in_words,
    one_way_steps,
    size_weights,
)
from dpsyn_sql.planning.asking import Asked, Handle
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.queries import (
    Choice,
    Distances,
    MarginalQuery,
    Marginals,
    NoisyMarginal,
    NoisyResidual,
    Residuals,
    holds_residuals,
)
from dpsyn_sql.planning.workload import Workload
from dpsyn_sql.source.relation import WEIGHT

TOTAL = MarginalQuery(())
"""The marginal over no attribute: one number, the rows."""


def first_steps(
    domain: Domain,
    budget: Budget,
    workload: Workload,
    settings: Settings,
    among: Sequence[str] = (),
    *,
    settled: bool = False,
    weighted: bool = False,
) -> list[Asked]:
    """The total, then residuals; attributes of one size and one weight are asked for together. The total is
    not asked for where it is ``settled``. ``weighted``: rows of a unit stay together.

    With m the mean weight of an attribute of k codes and f = 1 - 1/k, its share of the residuals is, as that
    of whole tables (``one_way_steps``), half even and half by (m k)^(2/3), times f^(1/3): a residual costs f
    times a table of the same noise. The error of the total is in every table, so it counts like a table of d
    cells for d attributes. ``among``: as in ``one_way_steps``.
    """
    sizes = {a.name: a.size for a in domain.attributes if a.size > 1}
    most = WEIGHT if weighted else 1
    all_hold = all(holds_residuals((size,), most) for size in sizes.values())
    if not budget.gaussian or not sizes or not all_hold:
        return one_way_steps(domain, budget, workload, among)
    means = workload.means(among or domain.names)
    weights, powers = size_weights(sizes, means)
    factors = {name: cost_factor((size,)) for name, size in sizes.items()}
    weights = {name: weight * factors[name] ** settings.residual_power for name, weight in weights.items()}
    everywhere = float(sum(means[name] for name in sizes)) ** SIZE_POWER
    powers_of_all = sum(power * factors[name] ** SIZE_POWER for name, power in powers.items())
    share = 0.0 if settled else settings.total_share * everywhere / (everywhere + powers_of_all)
    bands = groups_of_equal_size(sizes, means)
    shares = [
        (1 - share) * sum(weights[query.attrs[0]] for query in band) / sum(weights.values())
        for band in bands.values()
    ]
    for_total, *budgets = budget.split([share, *shares])
    steps = [] if settled else [Asked(Marginals((TOTAL,)), for_total, "rows in all")]
    for ((size, mean), queries), part in zip(bands.items(), budgets, strict=True):
        name = f"one-way beyond the rows in all, {size} codes{in_words(mean)}"
        steps.append(Asked(Residuals(queries), part, name))
    return steps


Answers = Sequence[Handle[list[NoisyMarginal]] | Handle[list[NoisyResidual]]]
"""Of questions about one-way tables: whole, or as the total and residuals."""


def one_ways(domain: Domain, answers: Answers, terms: Terms) -> list[Observation]:
    """All one-way tables in domain order: those that discovery knows, those of rows above the table, and
    those that the answers tell, with what discovery saw of their labels."""
    evidence = terms.evidence.read()
    tables = {
        table.attrs[0]: Observation(
            table.values.astype(np.float64), np.asarray(table.sigma, np.float64), settled=True
        )
        for table in evidence.tables
        if table.attrs
    }
    tables |= tables_above(domain, terms)
    unknown_attributes = unknown(domain, tables)
    measured = first_tables(unknown_attributes, answers, rows_given(terms))
    tables |= dict(zip(unknown_attributes.names, measured, strict=True))
    for table in evidence.seen:
        (name,) = table.attrs
        tables[name] = with_seen(tables[name], table.values.astype(np.float64), table.sigma)
    return [tables[name] for name in domain.names]


def unknown(domain: Domain, settled: Container[str]) -> Domain:
    """The attributes whose one-way tables discovery does not know."""
    return Domain(tuple(attribute for attribute in domain.attributes if attribute.name not in settled))


def first_tables(domain: Domain, answers: Answers, rows: Observation | None = None) -> list[Observation]:
    """The one-way tables that answers tell, in domain order; ``rows``: the total, if nobody asks for it."""
    tables = [table for handle in answers for table in handle.read()]
    residuals = {table.attrs[0]: table for table in tables if isinstance(table, NoisyResidual)}
    whole = {
        table.attrs: Observation(table.values.astype(np.float64), np.asarray(table.sigma, np.float64))
        for table in tables
        if isinstance(table, NoisyMarginal)
    }
    if not residuals:
        return [whole[name,] for name in domain.names]
    total = whole.get((), rows or Observation(np.zeros(()), np.zeros(())))
    return [_table(total, attribute.size, residuals.get(attribute.name)) for attribute in domain.attributes]


def _table(total: Observation, size: int, residual: NoisyResidual | None) -> Observation:
    """Rows (size,); the noise is that of the residual alone, since all tables share that of the total."""
    if residual is None:
        return Observation(total.values.reshape(1), total.sigma)
    return Observation(total.values / size + interaction(residual), np.asarray(deviation(residual)))


_NO_TABLE = np.zeros(0, dtype=np.int64)

_LARGEST_TOTAL = 2.0**56
# References of distances must sum to less than 2^57.


def tables_measured(
    task: Task, state: State, weights: Mapping[Scope, float], budget: Budget
) -> dict[Scope, Observation]:
    """All known tables, after measuring each of ``weights`` with its share; repeated ones are pooled."""
    together = _asked_together(weights, task.working.sizes)
    shares = budget.split([math.fsum(weights[scope] for scope in scopes) for scopes in together])
    parted: tuple[list[_Share], list[_Share]] = [], []
    for scopes, share in zip(together, shares, strict=True):
        shape = [task.working.sizes[variable] for variable in scopes[0]]
        as_residuals = budget.gaussian and holds_residuals(shape, task.unit.sensitivity)
        parted[as_residuals].append((scopes, share))
    measured = {**_whole(task, state, parted[0]), **_residuals(task, state, parted[1])}
    tables = {**state.tables, **state.beside}
    for scope in weights:
        tables[scope] = pooled(tables[scope], measured[scope]) if scope in tables else measured[scope]
    return tables


def _asked_together(weights: Mapping[Scope, float], sizes: Sequence[int]) -> list[list[Scope]]:
    """Tables of the same sizes and weight: one question for all gives each the noise that one of its own
    would, and the ledger keeps a few answers in place of thousands."""
    groups: dict[tuple[int, tuple[int, ...], float], list[Scope]] = {}
    cells_so_far: dict[tuple[tuple[int, ...], float], int] = {}
    for scope, weight in weights.items():
        kind = tuple(sorted(sizes[variable] for variable in scope)), weight
        cells_so_far[kind] = cells_so_far.get(kind, 0) + cells_of([scope], sizes)
        groups.setdefault((cells_so_far[kind] // _CELLS_TOGETHER, *kind), []).append(scope)
    return list(groups.values())


_CELLS_TOGETHER = 2**20
# About the most cells of tables that are asked for at once: counts and noise of one question are in memory.


def with_whole(task: Task, state: State, scope: Scope, budget: Budget) -> dict[Scope, Observation]:
    """All known tables and one more, with all its margins."""
    return {**state.tables, **state.beside, **_whole(task, state, [([scope], budget)])}


_Share = tuple[Sequence[Scope], Budget]
# Tables that a question asks for, and its part of the budget.
Shares = Sequence[_Share]


def _whole(task: Task, state: State, shares: Shares) -> dict[Scope, Observation]:
    handles = [task.door.ask(Marginals(task.working.queries(scopes)), share) for scopes, share in shares]
    return {
        scope: Observation(task.working.turned(scope, table.values), np.asarray(table.sigma))
        for (scopes, _), handle in zip(shares, handles, strict=True)
        for scope, table in zip(scopes, handle.read(), strict=True)
    }


def _residuals(task: Task, state: State, shares: Shares) -> dict[Scope, Observation]:
    """Measured residuals on the margins of the present model, which are made of the one-way tables."""
    handles = [task.door.ask(Residuals(task.working.queries(scopes)), share) for scopes, share in shares]
    with phase("model"):
        model = joints_of(state.beliefs, [scope for scopes, _ in shares for scope in scopes])
    return {
        scope: Observation(
            filled(state.total * model[scope], task.working.turned(scope, interaction(table))),
            np.asarray(noise(table)),
            filled=True,
        )
        for (scopes, _), handle in zip(shares, handles, strict=True)
        for scope, table in zip(scopes, handle.read(), strict=True)
    }


def noisy_scores(
    task: Task, state: State, candidates: Sequence[Scope], twins: Mapping[Scope, Scope], budget: Budget
) -> Scores:
    """Noisy distances to the model, less what sampling explains (whole rows).

    If there are many candidates, a private choice selects some first (``Settings.preselected``).
    """
    number, share = task.preselection
    if len(candidates[0]) == 2 and 0 < number < len(candidates) - len(twins):
        for_choice, budget = budget.split((share, 1 - share))
        candidates = _preselected(task, state, candidates, twins, number, for_choice)
    queries, references, sampling = _compared(task, state, candidates)
    noisy = task.door.ask(Distances(queries, references), budget).read()
    rows = snapped(np.array(noisy) - np.array(_sampling_errors(task, state, candidates)), 1.0)
    values = dict(zip(candidates, rows.tolist(), strict=True))
    own_noise = [task.working.sum_of_sigma(variable) for variable in range(len(task.working.sizes))]
    distances: dict[Scope, Distance] = {
        scope: Distance(
            float(distance), sampling_error, MEAN_ABSOLUTE * math.hypot(*(own_noise[v] for v in scope))
        )
        for scope, distance, sampling_error in zip(candidates, noisy, sampling, strict=True)
        if len(scope) == 2
    }
    return Scores(
        values,
        budget.law(task.unit.sensitivity).shared(len(candidates)),
        budget.kind,
        distances,
    )


def _preselected(
    task: Task,
    state: State,
    candidates: Sequence[Scope],
    twins: Mapping[Scope, Scope],
    number: int,
    budget: Budget,
) -> list[Scope]:
    """A private choice of ``number`` pairs, judged by their coarse twins if they have one; with the twins."""
    coarser = set(twins.values())
    pairs = [pair for pair in candidates if pair not in coarser]
    coarse = [twins.get(pair, pair) for pair in pairs]
    allowances = [round(rows) for rows in _sampling_errors(task, state, coarse)]
    queries, references, _ = _compared(task, state, coarse)
    chosen = task.door.ask(Choice(queries, references, number, allowances), budget).read()
    selected = [pairs[index] for index in sorted(chosen)]
    return [*selected, *(twins[pair] for pair in selected if pair in twins)]


def _compared(
    task: Task, state: State, candidates: Sequence[Scope]
) -> tuple[list[MarginalQuery], list[IntArray], list[float]]:
    """The tables of candidates, all pairs or all inside cliques, the model's expected counts (rows), and how
    far sampling alone takes the counts from them (rows)."""
    total = min(state.total, _LARGEST_TOTAL)
    with phase("model"):
        of = all_pairs if len(candidates[0]) == 2 else marginals
        expected = of(state.beliefs, candidates)
        alike: dict[tuple[int, ...], list[int]] = {}
        tables = [task.working.turned(scope, expected.pop(scope)) for scope in candidates]
        for index, table in enumerate(tables):
            alike.setdefault(table.shape, []).append(index)
        references, sampling = [_NO_TABLE] * len(tables), np.zeros(len(tables))
        grains = np.array([task.grain(scope) for scope in candidates])
        for shape, indices in alike.items():
            counts = total * np.concatenate([tables[index].ravel() for index in indices]).reshape(-1, *shape)
            for index, reference in zip(indices, np.rint(counts).astype(np.int64), strict=True):
                references[index] = reference
            grain = grains[indices]
            counts /= grain.reshape(-1, *[1] * len(shape))
            sampling[indices] = grain * sampling_distances(counts)
    return task.working.queries(candidates), references, sampling.tolist()


def _sampling_errors(task: Task, state: State, scopes: Sequence[Scope]) -> list[float]:
    """The part of the L1 sampling error of each table that is not dependence (rows).

    The expectation of |count - mean| is about sqrt(2 mean / pi) per cell, a product of one factor for
    each variable. It uses independence in place of the model: the choice must not depend on the last bits
    of a fit, which differ between machines.
    """
    working, total = task.working, min(state.total, _LARGEST_TOTAL)
    one_way = {scope[0]: np.exp(table) for scope, table in working.base.items()}
    one_way |= {
        twin: (one_way[fine][:, None] * np.exp(link)).sum(axis=0)
        for (fine, twin), link in working.links.items()
    }
    scale = task.constants.sampling * MEAN_ABSOLUTE * math.sqrt(total)
    chance = {variable: float(np.sqrt(table).sum()) for variable, table in one_way.items()}
    return [
        scale * math.sqrt(task.grain(scope)) * math.prod(chance[variable] for variable in scope)
        for scope in scopes
    ]


def with_dispersions(task: Task, state: State, scores: Scores) -> State:
    """The same with what the scores of a round tell: of a pair and its coarse twin the larger dispersion, and
    what the twin does not tell."""
    if not scores.distances:
        return state
    round_dispersions = dispersions(scores.distances, scores.deviation)
    of_pairs = dict[Scope, float]()
    for pair, dispersion in round_dispersions.pairs.items():
        attributes = task.working.attributes(pair)
        of_pairs[attributes] = max(dispersion, of_pairs.get(attributes, 0.0))
    within = dict[Scope, float]()
    for twin, dispersion in round_dispersions.pairs.items():
        pair = task.working.attributes(twin)
        if twin != pair and pair in round_dispersions.pairs:
            fine, coarse = scores.distances[pair], scores.distances[twin]
            within[pair] = within_twin(
                round_dispersions.pairs[pair], dispersion, fine.sampling, coarse.sampling
            )
    clear = dict[Scope, float]()
    for pair, rows in scores.clear().items():
        attributes = task.working.attributes(pair)
        clear[attributes] = max(rows, clear.get(attributes, 0.0))
    return replace(
        state,
        dispersions=(*state.dispersions, Dispersions(of_pairs, round_dispersions.typical, within, clear)),
    )


def with_measured_dispersions(task: Task, state: State, tables: Mapping[Scope, Observation]) -> State:
    """The same with what measured pairs tell that no scores came before: how far their noisy counts are from
    the model, beyond their noise and sampling."""
    with phase("model"):
        expected = all_pairs(state.beliefs, list(tables))
    of_pairs = dict[Scope, float]()
    for pair, table in tables.items():
        variance = _cell_deviation(table) ** 2
        squares = float(((table.values - state.total * expected[pair]) ** 2).sum())
        excess = (squares - variance * table.values.size) / (state.total * task.grain(pair)) - 1
        attributes = task.working.attributes(pair)
        of_pairs[attributes] = max(0.0, excess, of_pairs.get(attributes, 0.0))
    return replace(state, dispersions=(*state.dispersions, Dispersions(of_pairs, 0.0)))


def components(task: Task, state: State) -> dict[Scope, Components]:
    """Of the pairs that could be scored, by positions of attributes; none if there was no score.

    A measured pair has the largest dispersion of all rounds, which is that before it was fitted. Any other
    pair has that of the last round. A table with a coarse twin sees sums of working bins: it adds no
    precision, and leaves the dispersion that it does not tell.
    """
    domain, rounds = task.domain, state.dispersions
    if not rounds:
        return {}
    precisions, noises = dict[Scope, float](), dict[Scope, float]()
    for scope, table in (*state.tables.items(), *state.beside.items()):
        if len(scope) == 2:
            attributes, sigma = task.working.attributes(scope), max(_cell_deviation(table), 1e-6)
            precision = sigma**-2 if scope == attributes else 0.0
            precisions[attributes] = max(precision, precisions.get(attributes, 0.0))
            if scope != attributes:
                noises[attributes] = _twin_noise(task, state, scope, sigma)
    announced = {tuple(domain.index(name) for name in query.attrs) for query in task.pairs}
    of_pairs, sizes, last = dict[Scope, Components](), domain.shape(), rounds[-1]
    for pair in combinations(range(len(domain.names)), 2):
        if sizes[pair[0]] == 1 or sizes[pair[1]] == 1:  # a copy of the other's table
            of_pairs[pair] = Components(0.0, 0.0)
        elif pair in announced and pair not in precisions:
            of_pairs[pair] = Components(last.pairs.get(pair, last.typical), 0.0)
        elif pair in announced:
            of_rounds = [round_.pairs.get(pair, round_.typical) for round_ in rounds]
            dispersion = max(of_rounds)
            if pair in noises and precisions[pair] == 0:
                dispersion = noises[pair] + max(round_.within.get(pair, dispersion) for round_ in rounds)
            of_pairs[pair] = Components(dispersion, precisions[pair] * task.unit.weight**2)
    return of_pairs


def _cell_deviation(table: Observation) -> float:
    """Standard deviation (rows) of the noise in a cell: of a residual only what it has beyond its margins."""
    part = cost_factor(table.values.shape) if table.filled else 1.0
    return float(np.max(table.sigma)) * math.sqrt(part)


def _twin_noise(task: Task, state: State, twin: Scope, sigma: float) -> float:
    """The noise of a coarse table as a dispersion of working bins: a cell of m of the M rows of its coarse
    cell has m^2 / M^2 of the variance, which is m (sigma^2 / M) (m / M); with those of a typical cell."""
    coarse = cells_of([twin], task.working.sizes)
    fine = cells_of([task.working.attributes(twin)], task.working.sizes)
    return sigma**2 * coarse**2 / (state.total * fine)
