"""Adaptive marginals: one-way tables, then the pairs in which the model is most wrong, then triples.

    one-way tables -> denoise -> working bins, coarse twins          fit/denoise.py, fit/working.py
    twice:  noisy distances of all pairs to the model -> score       through the door
            greedy choice under a cap on the junction tree           fit/selection.py
            are the first ones worth their budget?                   fit/scores.py
            measure them, fit a graphical model                      fit/estimate.py
    once:   the same for three attributes within a clique, from epsilon 0.8 on
    if no pair was: one-way tables again, with all that is left

The first model is independence. AIM (McKenna, Mullins, Sheldon, Miklau 2022) chooses one marginal at a
time and refits after each; two rounds of many marginals need two fits, and spend less on choosing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.belief import Beliefs, all_pairs, calibrate, marginals
from dpsyn_sql.fit.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.fit.estimate import Likelihood, Observation, Potentials, fit_potentials, pooled
from dpsyn_sql.fit.graph import Scope, junction_tree
from dpsyn_sql.fit.reproducible import snapped
from dpsyn_sql.fit.scores import Scores
from dpsyn_sql.fit.selection import MEAN_ABSOLUTE, NoiseLaw, selected
from dpsyn_sql.fit.settings import Settings
from dpsyn_sql.fit.shares import (
    MAX_CANDIDATE_CELLS,
    candidate_queries,
    equivalent_rho,
    further_queries,
    one_way_share,
    one_way_steps,
    score_share,
    tree_cap,
    triple_share,
)
from dpsyn_sql.fit.working import (
    Working,
    as_observation,
    candidate_pairs,
    candidate_triples,
    pair_weights,
    table_weights,
    total_of,
    working_domain,
)
from dpsyn_sql.interfaces import Curator
from dpsyn_sql.models.graphical import GraphicalModel
from dpsyn_sql.plan.limits import NO_LIMITS, Limits
from dpsyn_sql.plan.plan import MeasureStep, Plan, ReservedStep
from dpsyn_sql.plan.queries import MarginalQuery
from dpsyn_sql.plan.workload import UNWEIGHTED, Workload
from dpsyn_sql.progress import phase
from dpsyn_sql.source.relation import Source

SETTINGS = Settings()

_FIT_SHARE = 0.5
# Of the time after the last question; the rest is for the sample.

_LEAST_UNITS = 10**8
# Of a budget for pairs (1e-7, noise of thousands of rows a cell): parts of less can round to nothing.

_LARGEST_TOTAL = 2.0**60
# References of distances have to stay below 2^62.


@dataclass(frozen=True, slots=True)
class Adaptive:
    """One-way marginals, then the pairs that matter most, in two rounds, and the triples that do.

    ``limits`` bound the candidates and the junction tree; ``deadline`` the last fit alone, whose result no
    question depends on.
    """

    limits: Limits = NO_LIMITS
    deadline: Deadline = field(default=NO_DEADLINE, compare=False)
    workload: Workload = UNWEIGHTED
    name: ClassVar[str] = "adaptive"

    def model(self, domain: Domain) -> type[GraphicalModel]:
        """The class of model that ``run`` fits."""
        return GraphicalModel

    def plan(self, source: Source, domain: Domain, budget: Budget) -> Plan:
        """One-way marginals by bands of size; the rest is reserved for the rounds."""
        pairs = candidate_queries(domain, self._caps()[0])
        first, rest = budget, None
        rho = equivalent_rho(source, domain, budget)
        if pairs:
            share = one_way_share(rho, SETTINGS)
            first, rest = budget.split((share, 100 - share))
        steps: list[MeasureStep | ReservedStep] = [*one_way_steps(domain, first, self.workload, SETTINGS)]
        if rest is not None:
            triples = further_queries(domain, rho, self._caps()[0], SETTINGS)
            name = "two-way, in two rounds" + (", then three-way" if triples else "")
            steps.append(ReservedStep(name, pairs, rest, triples))
        caps = self._caps(lowered=True)
        return Plan(source, domain, self.name, tuple(steps), budget, caps=caps, workload=self.workload)

    def _caps(self, *, lowered: bool = False) -> tuple[int, ...]:
        """Most cells of all candidates and of the junction tree; none if only lowered ones are asked for."""
        most = (MAX_CANDIDATE_CELLS, round(SETTINGS.cap_most))
        caps = (self.limits.candidate_cells(most[0]), self.limits.tree_cells(most[1]))
        return () if lowered and caps == most else caps

    def run(self, plan: Plan, curator: Curator) -> GraphicalModel:
        """Measure the one-ways, then as many rounds as there are candidates for; fit."""
        observed = _one_ways(plan.domain, curator, plan.known)
        cap = self._caps()[1]
        state = _State(plan, curator, _prepared(plan, observed), cap, self.deadline)
        reserved = [step for step in plan.steps if isinstance(step, ReservedStep)]
        if reserved and total_of(observed) > 0:
            left = _rounds(state, reserved[0])
            if left is not None and left.amount >= _LEAST_UNITS:  # no pair stands out: all for the one-ways
                again = _one_ways(
                    plan.domain, curator, one_way_steps(plan.domain, left, plan.workload, SETTINGS)
                )
                observed = [pooled(first, second) for first, second in zip(observed, again, strict=True)]
                state = _State(plan, curator, _prepared(plan, observed), cap, self.deadline)
        working = state.working
        return GraphicalModel(
            plan.domain,
            total_of(observed) if not state.tables else state.total,
            state.beliefs,
            tuple(variable.bins for variable in working.variables[: len(plan.domain.attributes)]),
            working.within,
        )


def _one_ways(domain: Domain, curator: Curator, steps: Iterable[MeasureStep]) -> list[Observation]:
    """The one-way tables that the steps ask for, in domain order."""
    measured = {
        table.attrs: as_observation(table)
        for step in steps
        for table in curator.measure(step.queries, step.budget)
    }
    return [measured[name,] for name in domain.names]


@dataclass
class _State:
    """What is known after each round."""

    plan: Plan
    curator: Curator
    working: Working
    cap: int
    deadline: Deadline
    tables: dict[Scope, Observation] = field(default_factory=dict)
    potentials: Potentials = field(default_factory=dict)

    def __post_init__(self) -> None:
        fixed = {**self.working.base, **self.working.links}
        self.total = max(total_of(list(self.working.observed.values())), 1.0)
        self.cap = min(self.cap, tree_cap(_rho_of(self.plan), self.total, SETTINGS))
        self.beliefs: Beliefs = calibrate(junction_tree(self.working.sizes, fixed), fixed)


def _rho_of(plan: Plan) -> float:
    return equivalent_rho(plan.source, plan.domain, plan.budget)


def _prepared(plan: Plan, one_ways: Sequence[Observation]) -> Working:
    total = max(total_of(one_ways), 1.0)
    rho = _rho_of(plan)
    return working_domain(plan.domain, one_ways, total * math.sqrt(rho), SETTINGS)


def _rounds(state: _State, step: ReservedStep) -> Budget | None:
    """All rounds; returns what is left when no pair was worth measuring, else None.

    A round that finds nothing passes its budget on. If the last one for pairs finds nothing, the pairs of
    earlier rounds are measured again with it.
    """
    candidates, twins = candidate_pairs(state.working, step.queries)
    if not candidates or step.budget.amount < _LEAST_UNITS:
        return step.budget
    shares, for_triples = _divided(step, _rho_of(state.plan))
    carried, weights, triples = 0, dict[Scope, float](), list[Scope]()
    scores: Scores | None = None
    for number, share in enumerate(shares):
        last = number == len(shares) - 1
        for_scores, for_tables = _for_scores_and_tables(state, share)
        for_tables = replace(for_tables, amount=for_tables.amount + carried)
        seen = _scores(state, candidates, twins, for_scores)
        scores = scores.pooled(seen) if scores and not state.tables else seen  # of one and the same model
        found = _selected(state, scores.beyond_luck(SETTINGS.luck), twins, for_tables, last)
        if not state.tables and not _worth_their_budget(state, scores, twins, found, step.budget):
            found = {}
        weights = found or (weights if last else {})
        if last:
            triples = _triples(state, step, found)
            if not triples:
                for_tables = replace(for_tables, amount=for_tables.amount + for_triples)
        if weights:
            carried = 0
            _measure(state, weights, for_tables)
            _fit(state, last and not triples)
        else:
            carried = for_tables.amount
        weights = found or weights
    if triples:
        _round_of_triples(state, triples, weights, replace(step.budget, amount=for_triples))
    return Budget(step.budget.kind, carried) if carried else None


def _divided(step: ReservedStep, rho: float) -> tuple[list[Budget], int]:
    """The budgets of the rounds of pairs, and the amount for triples, which the last of them gives."""
    shares = [round(100 * share) for share in SETTINGS.rounds]
    if step.further is None:
        return list(step.budget.split(shares)), 0
    share = triple_share(rho, SETTINGS)
    shares[-1] -= share
    *pairs, triples = step.budget.split([*shares, share])
    return pairs, triples.amount


def _for_scores_and_tables(state: _State, budget: Budget) -> tuple[Budget, Budget]:
    plan = state.plan
    share = score_share(_rho_of(plan), SETTINGS)
    scores, tables = budget.split((share, 100 - share))
    return scores, tables


def _triples(state: _State, step: ReservedStep, found: Iterable[Scope]) -> list[Scope]:
    """Candidates inside the cliques that the model will have with the pairs found; none without pairs."""
    pairs = [*state.tables, *found]
    if step.further is None or not pairs:
        return []
    tree = junction_tree(state.working.sizes, [*pairs, *state.working.links])
    return candidate_triples(state.working, tree, step.further, SETTINGS)


def _round_of_triples(
    state: _State, triples: Sequence[Scope], pairs: Mapping[Scope, float], budget: Budget
) -> None:
    """The triples in which the model of the pairs is most wrong; else ``pairs`` again, with their weights.

    Chosen by what their scores let expect: the noise of hundreds of distances alone would look like many
    triples. If no fit meets all of them (``hopeless``), the model of the pairs stays.
    """
    for_scores, for_tables = _for_scores_and_tables(state, budget)
    expected = _scores(state, triples, {}, for_scores).expected(triples)
    found = _selected(state, expected, {}, for_tables, last=True)
    if not _worth_more_than_pairs(state, {triple: expected[triple] for triple in found}, pairs, for_tables):
        found = {}
    _measure(state, found or pairs, for_tables)
    before = state.potentials, state.beliefs, state.total
    if _fit(state, last=True) > SETTINGS.hopeless and found:
        state.potentials, state.beliefs, state.total = before


def _scores(
    state: _State, candidates: Sequence[Scope], twins: Mapping[Scope, Scope], budget: Budget
) -> Scores:
    """Noisy distances to the model, less what sampling explains (whole rows).

    Of many candidates only those that a private choice leaves over (``Settings.preselected``).
    """
    attributes = len(state.working.domain.attributes)
    number, (fewest, most) = SETTINGS.preselected * attributes, SETTINGS.preselect_between
    if fewest <= attributes <= most and len(candidates) - len(twins) > number:
        for_choice, budget = budget.split((SETTINGS.preselect_share, 1 - SETTINGS.preselect_share))
        candidates = _preselected(state, candidates, twins, number, for_choice)
    noisy = state.curator.distance(*_questions(state, candidates), budget)
    rows = snapped(np.array(noisy) - np.array(_sampling_errors(state, candidates)), 1.0)
    values = dict(zip(candidates, rows.tolist(), strict=True))
    return Scores(values, _deviation(state.plan, len(candidates), budget), budget.kind)


def _preselected(
    state: _State, candidates: Sequence[Scope], twins: Mapping[Scope, Scope], number: int, budget: Budget
) -> list[Scope]:
    """A private choice of ``number`` pairs, by their coarse twins where they have one; with the twins."""
    coarser = set(twins.values())
    pairs = [pair for pair in candidates if pair not in coarser]
    coarse = [twins.get(pair, pair) for pair in pairs]
    allowances = [round(rows) for rows in _sampling_errors(state, coarse)]
    chosen = state.curator.select(*_questions(state, coarse), budget, number, allowances)
    kept = [pairs[index] for index in sorted(chosen)]
    return [*kept, *(twins[pair] for pair in kept if pair in twins)]


def _questions(
    state: _State, candidates: Sequence[Scope]
) -> tuple[list[MarginalQuery], list[NDArray[np.int64]]]:
    """The tables of candidates, all pairs or all inside cliques, and what the model says they hold (rows)."""
    total = min(state.total, _LARGEST_TOTAL)
    with phase("model"):
        of = all_pairs if len(candidates[0]) == 2 else marginals
        expected = of(state.beliefs, candidates)
    references = [  # each expectation goes as its reference comes
        np.rint(state.working.turned(scope, total * expected.pop(scope))).astype(np.int64)
        for scope in candidates
    ]
    return [state.working.query(scope) for scope in candidates], references


def _sampling_errors(state: _State, scopes: Sequence[Scope]) -> list[float]:
    """The part of the L1 sampling error of each table that is no dependence (rows).

    The expectation of |count - mean| is about sqrt(2 mean / pi) a cell, a product of one factor for
    each variable. Independence stands in for the model: the choice must not depend on the last bits of
    a fit, which differ between machines.
    """
    working, total = state.working, min(state.total, _LARGEST_TOTAL)
    one_way = {scope[0]: np.exp(table) for scope, table in working.base.items()}
    one_way |= {
        twin: (one_way[fine][:, None] * np.exp(link)).sum(axis=0)
        for (fine, twin), link in working.links.items()
    }
    scale = SETTINGS.sampling * MEAN_ABSOLUTE * math.sqrt(total)
    chance = {variable: float(np.sqrt(table).sum()) for variable, table in one_way.items()}
    return [scale * math.prod(chance[variable] for variable in scope) for scope in scopes]


def _deviation(plan: Plan, number: int, budget: Budget) -> float:
    """Standard deviation of the noise of so many distances asked together (rows)."""
    rows = plan.source.unit.max_rows
    if budget.kind == "pure":
        return math.sqrt(2) * number * rows / float(budget.fraction)
    return rows * math.sqrt(number / (2 * float(budget.rho)))


def _selected(
    state: _State,
    scores: Mapping[Scope, float],
    twins: Mapping[Scope, Scope],
    budget: Budget,
    last: bool,
) -> dict[Scope, float]:
    """The greedy choice; before the last round under a smaller cap."""
    working = state.working
    attributes = working.sizes[: len(working.domain.attributes)]
    weights = table_weights(working, state.plan.workload, scores)
    small = SETTINGS.cap_first * sum(float(size) ** 2 for size in attributes)
    cap = state.cap if last else min(small, state.cap)
    law = _noise_law(state.plan, budget)
    held = [*working.links, *state.tables]
    with phase("select"):
        return selected(scores, twins, weights, working.sizes, held, cap, law, SETTINGS)


def _noise_law(plan: Plan, budget: Budget) -> NoiseLaw:
    rows = plan.source.unit.max_rows
    if budget.kind == "pure":
        return NoiseLaw(rows / float(budget.fraction), 1.0)
    return NoiseLaw(MEAN_ABSOLUTE * rows / math.sqrt(2 * float(budget.rho)), 0.5)


def _worth_their_budget(
    state: _State,
    scores: Scores,
    twins: Mapping[Scope, Scope],
    found: Mapping[Scope, float],
    for_pairs: Budget,
) -> bool:
    """Whether the first pairs gain more than the one-way tables would, had they all of the budget.

    The noise of a one-way table is in every pair of its attribute; as in the choice of pairs, ``charge``
    of its L1 norm counts. A coarse twin gains nothing beside its fine pair.
    """
    plan, working = state.plan, state.working
    weights = pair_weights(working, plan.workload)
    within = {twins[pair] for pair in found if pair in twins}
    expected = scores.expected(found.keys() - within)
    gain = math.fsum(weights.get(pair, 1.0) * rows for pair, rows in expected.items())
    means, law = plan.workload.means(plan.domain.names), _noise_law(plan, for_pairs)
    partners = sum(size > 1 for size in plan.domain.shape()) - 1
    noise = math.fsum(
        float(means[name]) * partners * law.mean_absolute * working.observed[index,].sum_of_sigma
        for index, name in enumerate(plan.domain.names)
    )
    saved = 1 - (1 - for_pairs.amount / plan.budget.amount) ** law.power
    return bool(gain > SETTINGS.charge * saved * noise)


def _worth_more_than_pairs(
    state: _State, expected: Mapping[Scope, float], pairs: Mapping[Scope, float], budget: Budget
) -> bool:
    """Whether triples promise ``triple_worth`` times what measuring ``pairs`` again would gain: the noise
    that pooling takes off them, of which ``charge`` counts."""
    weights = table_weights(state.working, state.plan.workload, [*expected, *pairs])
    gain = math.fsum(weights.get(triple, 1.0) * rows for triple, rows in expected.items())
    law, whole = _noise_law(state.plan, budget), math.fsum(pairs.values())
    saved = 0.0
    for pair, share in pairs.items():
        table = state.tables[pair]
        deviation = law.unit / law.mean_absolute * (whole / share) ** law.power
        again = pooled(table, Observation(table.values, np.asarray(deviation)))
        taken_off = law.mean_absolute * (table.sum_of_sigma - again.sum_of_sigma)
        saved += weights.get(pair, 1.0) * taken_off
    return bool(gain > SETTINGS.triple_worth * SETTINGS.charge * saved)


def _measure(state: _State, weights: Mapping[Scope, float], budget: Budget) -> None:
    """Measure each table with its share; repeated ones are pooled."""
    shares = budget.split(list(weights.values()))
    for scope, share in zip(weights, shares, strict=True):
        (table,) = state.curator.measure([state.working.query(scope)], share)
        found = Observation(state.working.turned(scope, table.values), np.asarray(table.sigma))
        state.tables[scope] = pooled(state.tables[scope], found) if scope in state.tables else found


def _fit(state: _State, last: bool) -> float:
    """Fit the graphical model to everything measured, from where the last fit ended; returns the misfit.

    After the last question there may be less time than the fit would take; earlier fits form questions.
    """
    working = state.working
    observed = {**working.observed, **state.tables}
    state.total = max(total_of(list(observed.values())), 1.0)
    tree = junction_tree(working.sizes, [*observed, *working.links])
    likelihood = Likelihood(tree, observed, state.total, {**working.base, **working.links})

    def stop() -> bool:
        return last and state.deadline.over(_FIT_SHARE, "the last fit stopped early")

    tolerance = SETTINGS.tolerance_last if last else SETTINGS.tolerance
    clock = state.deadline.running() if last else nullcontext()
    with clock, phase("fit", SETTINGS.iterations) as advance:
        fit = fit_potentials(likelihood, state.potentials, SETTINGS.iterations, tolerance, stop, advance)
    state.potentials, state.beliefs = fit.potentials, fit.beliefs
    return fit.misfit
