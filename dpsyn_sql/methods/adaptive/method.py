"""Adaptive marginals: one-way tables, then the pairs where the model is most wrong, then triples.

    with a target: the first round measures its pairs, unscored
    delta 0: the number of rows; if pairs cannot be told from noise, one-way tables get everything
    one-way tables -> denoise -> working bins, coarse twins          measure.py, model.py
    twice:  noisy distances of all pairs to the model -> score       measure.py, through the door
            greedy choice under a cap on the junction tree           select.py
            are the first pairs worth their budget?                  select.py
            measure them, fit a graphical model                      measure.py, model.py
            pairs that the cap keeps out of the tree: for the sample model.py
            where columns are in no pair: sets of three to six of them orders.py
    once:   the same for three attributes within a clique, from epsilon 0.8 on
    with a target: its tables with every two others, unscored        target.py
    if no pair was: one-way tables again, with the rest of the budget

The first model is independence. AIM (McKenna, Mullins, Sheldon, Miklau 2022) chooses one marginal at a time
and refits after each; two rounds of many marginals need two fits, and spend less on choosing. How the budget
is divided, and every constant, is in budget.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import ClassVar

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.common.progress import phase
from dpsyn_sql.discovery.designs import ROWS_SHARE
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.estimate import pooled, total_of
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.network import Model
from dpsyn_sql.fit.variances import Variances
from dpsyn_sql.methods.adaptive import measure, model, select, target
from dpsyn_sql.methods.adaptive.budget import (
    Settings,
    one_way_share,
    reserve_of,
    rows_given,
    triple_share,
    triples_asked,
)
from dpsyn_sql.methods.adaptive.model import State, Task
from dpsyn_sql.methods.adaptive.orders import full_table, hidden_groups, screened
from dpsyn_sql.methods.adaptive.select import Scores
from dpsyn_sql.methods.independent import (
    LEAST_UNITS,
    MAX_CANDIDATE_CELLS,
    candidate_queries,
)
from dpsyn_sql.methods.models.networks import GraphicalModel, TargetModel
from dpsyn_sql.methods.recipe import Recipe
from dpsyn_sql.planning.asking import Asked, Door, Reserve
from dpsyn_sql.planning.limits import NO_TERMS, Limits, Terms
from dpsyn_sql.planning.plan import Plan, equivalent_rho
from dpsyn_sql.planning.queries import MarginalQuery, Marginals, NoisyMarginal

ONE_WAY_PART = Fraction(3, 5)
"""Part of the budget that one-way tables are worth where discovery measures them: they show the range too."""

LEAST_STRENGTH, LEAST_STRENGTH_PURE = 20.0, 12.0
"""Rows times mu over the root of the number of pairs, and rows times epsilon over the number of pairs, below
which scores of all pairs find nothing but noise (docs/decisions/0046)."""


TYPICAL_CODES, TYPICAL_DEPENDENCE = 16, 0.3
"""Working bins of a column, and part of the rows that a pair which goes together moves: for what is said
before anything is measured."""

TARGET_ALONE = 2.0
"""With a target other pairs are asked about from so many times the rows on that they need: below, what they
take from the target's pairs is worth more there (docs/decisions/0047)."""


def rows_needed(attributes: int, budget: Budget, pairs: int = 0) -> float:
    """Rows below which scores of all pairs (or so many) would find nothing but noise. A unit has one row."""
    strength = LEAST_STRENGTH if budget.gaussian else LEAST_STRENGTH_PURE / math.sqrt(2)
    return strength * budget.law().shared(max(1, pairs or attributes * (attributes - 1) // 2))


@dataclass(frozen=True, slots=True)
class Adaptive(Recipe):
    """One-way marginals, then the pairs where the model is most wrong, then triples.

    After AIM (McKenna, Mullins, Sheldon, Miklau 2022), in two rounds of many pairs; the model is
    graphical. It has no settings: its constants (``constants``, with their reasons) were chosen together.
    """

    name = "adaptive"
    model = GraphicalModel
    attributes = 1_000  # it scores every pair of attributes; more were not measured
    takes_workload = takes_target = takes_families = keeps_pairs = True
    constants: ClassVar[Settings] = Settings()

    def one_way_part(self, rows: float, attributes: int, budget: Budget, terms: Terms = NO_TERMS) -> Fraction:
        """All of it if no pair (with the target, if there is one) can be told from noise; else as much as its
        one-way tables are worth."""
        pairs = attributes - 1 if terms.workload.target else 0
        return Fraction(1) if rows < rows_needed(attributes, budget, pairs) else ONE_WAY_PART

    def pairs_needed(self, rows: float, attributes: int, budget: Budget, terms: Terms = NO_TERMS) -> float:
        """So many that they gain more than one-way tables would (``select.pairs_worth_their_budget``), of
        columns of ``TYPICAL_CODES`` codes. A target's pairs are measured in any case."""
        if terms.workload.target:
            return 0.0
        part = float(self.one_way_part(rows, attributes, budget, terms))
        if part >= 1:
            return math.inf
        law, partners = budget.law(), attributes * (attributes - 1)
        noise = partners * law.absolute_part * TYPICAL_CODES * law.shared(attributes / part)
        saved = 1 - math.pow(part, law.power)
        return self.constants.charge * saved * noise / (TYPICAL_DEPENDENCE * rows)

    def run(
        self, door: Door, domain: Domain, budget: Budget, terms: Terms = NO_TERMS
    ) -> GraphicalModel | TargetModel:
        """Measure the one-way tables, then as many rounds as there are candidates for; fit."""
        one_ways, reserve = self._first_answers(door, domain, budget, terms)
        observed = measure.one_ways(domain, one_ways, terms)
        if terms.workload.target and reserve is not None:
            reserve = _narrowed(reserve, domain, budget, total_of(observed), terms)
        cap = self.caps(terms.limits)["model cells"]
        task = Task.of(door, domain, budget, reserve, terms, self.constants, cap, observed)
        state, about_target = model.independence(task), None
        if reserve is not None and total_of(observed) > 0:
            about_target, step = target.asked(task, reserve)
            state, left = all_rounds(task, state, step)
            unknown = measure.unknown(domain, terms.unasked)
            if left is not None and left.amount >= LEAST_UNITS and unknown.attributes:
                # No pair stands out: one-way tables get everything.
                handles = [door.ask(*asked) for asked in self._first_steps(domain, left, terms)]
                tables = measure.first_tables(unknown, handles, rows_given(terms))
                again = dict(zip(unknown.names, tables, strict=True))
                observed = [
                    pooled(first, again[name]) if name in again else first
                    for name, first in zip(domain.names, observed, strict=True)
                ]
                task = Task.of(door, domain, budget, reserve, terms, self.constants, cap, observed)
                state = replace(model.independence(task), dispersions=state.dispersions)
        fitted = _model(task, state, state.total if state.tables else total_of(observed))
        return target.refined(task, fitted, about_target, grouped=state.grouped)

    def _first_answers(
        self, door: Door, domain: Domain, budget: Budget, terms: Terms
    ) -> tuple[measure.Answers, Reserve | None]:
        """One-way tables by bands of size; the rest is reserved for the rounds of pairs.

        Of a pure budget the number of rows decides whether pairs are asked about at all: that noisy answer,
        or the rows above where they tell it, is the first look, and all other questions are reserved.

        Raises:
            InternalError: nobody knows the rows above a table that is below others.
        """
        most = self.caps(terms.limits)["candidate cells"]
        pairs = () if terms.alone else candidate_queries(domain, most, terms.above)
        for_rows, first, for_pairs = self._shares(domain, budget, terms, bool(pairs))
        by_rows, total = bool(pairs) and not budget.gaussian and not terms.known, None
        if pairs and _rows_first(budget, terms):
            total = door.ask(Marginals((measure.TOTAL,)), for_rows, "rows in all")
        asks = self._first_steps(domain, first, terms)
        for asked in asks if by_rows else ():
            door.reserve(Reserve(asked.name, asked.budget, asked.queries))
        handles = [] if by_rows else [door.ask(*asked) for asked in asks]
        reserve = self._reserve(domain, budget, for_pairs, pairs, terms) if pairs else None
        if reserve is not None:
            door.reserve(reserve)
        if terms.above and terms.evidence.read().given is None:
            raise InternalError("a table below others is modelled given the rows of its parent")
        if not by_rows:
            return handles, reserve
        rows = float(total.read()[0].values) if total is not None else _rows_above(terms)
        scored = _pairs_scored(len(domain.attributes), pairs, terms)
        if rows < terms.unit.sensitivity * rows_needed(len(domain.attributes), budget, scored) and asks:
            reserve, left = None, first.amount + for_pairs.amount
            asks = self._first_steps(domain, Budget(budget.kind, left), terms)
        return [door.ask(*asked) for asked in asks], reserve

    def _shares(
        self, domain: Domain, budget: Budget, terms: Terms, pairs: bool
    ) -> tuple[Budget, Budget, Budget]:
        """What pays for the number of rows, for one-way tables, and for the rounds of ``pairs``, if any."""
        rho = equivalent_rho(terms.unit, domain, budget, of_units=terms.of_tree)
        share = Fraction(one_way_share(rho, self.constants), 100)
        if terms.unasked:  # the shares of the others are spent, or cost nothing
            unasked = measure.unknown(domain, terms.unasked)
            share_of_unasked = share * Fraction(len(unasked.attributes), len(domain.attributes))
            share = share_of_unasked / (1 - share + share_of_unasked)
        if not pairs:
            share = Fraction(1)
        counted = ROWS_SHARE if pairs and _rows_first(budget, terms) else Fraction(0)
        rows, first, rest = budget.split((counted, (1 - counted) * share, (1 - counted) * (1 - share)))
        return rows, first, rest

    def _reserve(
        self,
        domain: Domain,
        budget: Budget,
        for_pairs: Budget,
        pairs: tuple[MarginalQuery, ...],
        terms: Terms,
    ) -> Reserve:
        """What the rounds may ask, with its name in the plan."""
        most, unit = self.caps(terms.limits)["candidate cells"], terms.unit
        rho = equivalent_rho(unit, domain, budget, of_units=terms.of_tree)
        reserve = reserve_of(for_pairs, domain, pairs, most)
        first_of = ", the target's pairs first" if terms.workload.target else ""
        name = f"two-way, in two rounds{first_of}"
        name += ", then three-way" if triples_asked(domain, rho, self.constants) else ""
        if terms.workload.target and budget.gaussian and reserve.further:
            name += ", then the target with every two other columns where there are rows enough"
        if _rows_first(budget, terms):
            few = _pairs_scored(len(domain.attributes), pairs, terms)
            needed = unit.sensitivity // unit.weight * rows_needed(len(domain.attributes), budget, few)
            name += f", if there are about {needed:,.0f} {'units' if unit.together else 'rows'} or more"
        return replace(reserve, name=name)

    def _first_steps(self, domain: Domain, budget: Budget, terms: Terms) -> list[Asked]:
        """The one-way tables that are to be asked for."""
        unasked, settled = measure.unknown(domain, terms.unasked), bool(terms.above)
        if not unasked.attributes:
            return []
        return measure.first_steps(
            unasked,
            budget,
            terms.workload,
            self.constants,
            domain.names,
            settled=settled,
            weighted=terms.families is not None,
        )

    def variances(self, model: Model, answers: Sequence[NoisyMarginal]) -> Variances:
        """Of all one-way tables, and of the pairs that were scored."""
        one_way = Recipe.variances(self, model, answers)
        model = model.graphical if isinstance(model, TargetModel) else model
        if not isinstance(model, GraphicalModel):
            return one_way
        return Variances(model.within, {**one_way.components, **model.components})

    def visible(self, plan: Plan) -> float | None:
        """Three deviations of the distances of all pairs, by the least that is spent on them; half a distance
        is what moves. Where a private choice or a target comes before them, not all are looked at."""
        step = next((reserve for reserve in plan.reserves if reserve.queries), None)
        if step is None or not plan.budget.gaussian or plan.details.public.get("target"):
            return None
        if len(plan.domain.attributes) >= self.constants.preselect_between[0]:
            return None
        share = Fraction(self.constants.score_share).limit_denominator(1000)
        scores = step.budget.split((share, 1 - share))[0]
        twice = 2 * len(step.queries)  # with coarse twins
        unit = plan.source.unit
        return 1.5 * scores.law(unit.sensitivity).shared(twice) / unit.weight

    def clear(self, model: Model) -> Mapping[tuple[str, str], float]:
        """By the distances to the model before the last pairs were measured."""
        if not isinstance(model, GraphicalModel):
            return {}  # a target's pairs come first
        names = model.domain.names
        return {(names[first], names[second]): rows for (first, second), rows in model.clear.items()}

    def caps(self, limits: Limits) -> dict[str, int]:
        """Most cells of all candidates and of the junction tree."""
        candidates = limits.candidate_cells(MAX_CANDIDATE_CELLS)
        return {
            "candidate cells": candidates,
            "model cells": limits.tree_cells(round(self.constants.cap_most)),
        }


def _rows_first(budget: Budget, terms: Terms) -> bool:
    """Whether the number of rows is asked for first. Discovery knows it where it asks about columns once, and
    rows above tell it; Gaussian scores are cheap beside their noise, and find what there is."""
    return not budget.gaussian and not terms.unasked


def _pairs_scored(attributes: int, pairs: Sequence[MarginalQuery], terms: Terms) -> int:
    """How many pairs the scores tell apart: with a target first of all its own; 0: all of the attributes."""
    if terms.workload.target:
        return attributes - 1
    return len(pairs) if terms.above else 0


def _rows_above(terms: Terms) -> float:
    """The number of rows, where those above tell it."""
    rows = rows_given(terms)
    if rows is None:
        raise InternalError("nobody knows the number of rows")
    return float(rows.values)


def _narrowed(reserve: Reserve, domain: Domain, budget: Budget, rows: float, terms: Terms) -> Reserve:
    """The same; if so few rows (noisy) show no other pairs, with the pairs of the target alone."""
    needed = terms.unit.sensitivity * rows_needed(len(domain.attributes), budget) * TARGET_ALONE
    if rows >= needed:
        return reserve
    target = terms.workload.target
    of_target = tuple(query for query in reserve.queries if target in query.attrs)
    return Reserve(reserve.name, reserve.budget, of_target)


def _model(task: Task, state: State, total: float) -> GraphicalModel:
    attributes = task.working.variables[: len(task.domain.attributes)]
    bins = tuple(variable.bins for variable in attributes)
    outside_tree = model.targets(task, state)
    components = measure.components(task, state)
    clear = state.dispersions[-1].clear if state.dispersions and not state.grouped else {}
    weight = task.unit.weight
    return GraphicalModel(
        task.domain,
        total / weight,
        state.beliefs,
        bins,
        task.working.within,
        outside_tree,
        components,
        state.sets,
        balance=not state.grouped,
        families=task.terms.families,
        clear={pair: rows / weight for pair, rows in clear.items()},
    )


@dataclass(frozen=True, slots=True)
class Pairs:
    """Candidates, the coarse twins of fine ones, and the ``budget`` of all rounds."""

    scopes: Sequence[Scope]
    twins: Mapping[Scope, Scope]
    budget: Budget


@dataclass(frozen=True, slots=True)
class Progress:
    """The state after some rounds of pairs.

    ``scores``: of the pairs, against the present model. ``weights``: the pairs measured last, with their
    parts of the budget. ``carried``: units of the budget that a round passes on.
    """

    state: State
    scores: Scores | None = None
    weights: Mapping[Scope, float] = field(default_factory=dict)
    carried: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """Pairs worth measuring, with their parts of ``budget``; none if nothing stands out. Those of ``outside``
    are not for the tree."""

    scores: Scores
    pairs: Mapping[Scope, float]
    budget: Budget
    outside: frozenset[Scope] = frozenset()


def all_rounds(task: Task, state: State, step: Reserve) -> tuple[State, Budget | None]:
    """All rounds; also what is left if no pair was worth measuring.

    With a target the first of two rounds measures its pairs, whatever they score: what classifiers learn is
    in them, and the noise of the scores of all others would hide it (docs/decisions/0047).

    A round that finds nothing passes its budget on. If the last round for pairs finds nothing, its budget
    measures the pairs of earlier rounds again.
    """
    pairs = Pairs(*select.candidate_pairs(task.working, step.queries), step.budget)
    if not pairs.scopes or step.budget.amount < LEAST_UNITS:
        return state, step.budget
    (*earlier, last), for_more = _divided(task, step)
    after = Progress(state)
    if earlier and task.terms.workload.target:
        after = _around_target(task, state, pairs, earlier.pop(0))
    for share in earlier:
        choice = _choice(task, after, pairs, share, last=False)
        after = _with_pairs(task, after, choice, choice.pairs, last=False)
    choice = _choice(task, after, pairs, last, last=True)
    full, triples = full_table(task, for_more), list[Scope]()
    sets = dict[Scope, float]()
    if not full:
        inside = [*after.state.tables, *sorted(choice.pairs.keys() - choice.outside)]
        scores = {pair: choice.scores.rows[pair] for pair in choice.pairs}
        sets, left = screened(task, after.state, scores, inside, choice.budget)
        choice = replace(choice, budget=left)
        after = replace(after, state=replace(after.state, sets=tuple(sets)))
        triples = _triples(task, [*inside, *sets], step)
        if not triples:
            choice = replace(choice, budget=_larger(choice.budget, for_more.amount))
    weights = {**choice.pairs, **sets} or after.weights
    after = _with_pairs(task, after, choice, weights, last=not triples and not full)
    if full:
        return _with_full(task, after, full, for_more), None
    if triples:
        grouped, spent = hidden_groups(task, after.state, for_more)
        if spent:
            return grouped or _last_fit(task, after.state), None
        return _with_triples(task, after.state, triples, after.weights, for_more), None
    return after.state, Budget(step.budget.kind, after.carried) if after.carried else None


def _with_full(task: Task, before: Progress, full: Scope, budget: Budget) -> State:
    """The table over all attributes, with what the rounds of pairs have left over."""
    state = replace(before.state, sets=(full,))
    tables = measure.with_whole(task, state, full, _larger(budget, before.carried))
    return model.fitted(task, state, tables, frozenset(), last=True)


def _around_target(task: Task, state: State, pairs: Pairs, budget: Budget) -> Progress:
    """Measure the pairs with the target, or their coarse twins, as many as fit into the tree; fit."""
    target, coarse = task.domain.index(task.terms.workload.target), set(pairs.twins.values())
    fine_pairs = [pair for pair in pairs.scopes if target in pair and pair not in coarse]
    scores = {pairs.twins.get(pair, pair): math.inf for pair in fine_pairs}
    weights = _selected(task, state, scores, {}, budget, last=False)
    if not weights:
        return Progress(state, carried=budget.amount)
    tables = measure.tables_measured(task, state, weights, budget)
    state = measure.with_measured_dispersions(task, state, tables)
    return Progress(model.fitted(task, state, tables, frozenset(), last=False), None, weights)


def _divided(task: Task, step: Reserve) -> tuple[list[Budget], Budget]:
    """The budgets of the rounds of pairs, and that for tables of more attributes, out of the last round."""
    rounds = task.constants.many_rounds if task.many else task.constants.rounds
    shares = [round(100 * share) for share in rounds]
    share = triple_share(task.rho, task.constants)
    *pairs, more = step.budget.split([*shares[:-1], shares[-1] - share, share])
    triples = step.further and triples_asked(task.domain, task.rho, task.constants)
    if triples or full_table(task, more) is not None:
        return pairs, more
    return list(step.budget.split(shares)), replace(more, amount=0)


def _larger(budget: Budget, amount: int) -> Budget:
    return replace(budget, amount=budget.amount + amount)


def _choice(task: Task, before: Progress, pairs: Pairs, share: Budget, *, last: bool) -> Choice:
    """Score all pairs and choose; while the model is still the first one, scores are pooled."""
    state = before.state
    for_scores, for_tables = task.parts(share)
    for_tables = _larger(for_tables, before.carried)
    scores = measure.noisy_scores(task, state, pairs.scopes, pairs.twins, for_scores)
    if before.scores is not None and not state.tables:
        scores = before.scores.pooled(scores)
    stand_out = scores.beyond_luck(task.constants.luck)
    kept_out = set[Scope]()
    selected = _selected(task, state, stand_out, pairs.twins, for_tables, last=last, kept_out=kept_out)
    left = for_tables if task.many else pairs.budget  # much of it is spent on the scores of many
    if not state.tables and not select.pairs_worth_their_budget(task, scores, pairs.twins, selected, left):
        selected = {}
    outside = model.beside_the_tree(task, [*state.tables, *selected], kept_out & selected.keys())
    return Choice(scores, selected, for_tables, outside)


def _selected(
    task: Task,
    state: State,
    scores: Mapping[Scope, float],
    twins: Mapping[Scope, Scope],
    budget: Budget,
    *,
    last: bool,
    kept_out: set[Scope] | None = None,
) -> dict[Scope, float]:
    """The greedy choice; before the last round under a smaller cap, and all in the tree."""
    working, constants = task.working, task.constants
    attributes = working.sizes[: len(working.domain.attributes)]
    weights = select.table_weights(working, task.terms.workload, scores)
    small = constants.cap_first * sum(float(size) ** 2 for size in attributes)
    cap = task.cap if last else min(small, task.cap)
    in_every_tree = [*working.held, *state.tables]
    with phase("select"):
        law = budget.law(task.unit.sensitivity)
        outside = (
            kept_out if last and not working.levels else None
        )  # no exchange of rows meets them in families
        return select.selected(
            scores, twins, weights, working.sizes, in_every_tree, cap, law, constants, outside, working.levels
        )


def _with_pairs(
    task: Task, before: Progress, choice: Choice, weights: Mapping[Scope, float], *, last: bool
) -> Progress:
    """Measure ``weights`` with the budget of a choice, and fit; without weights the budget is passed on."""
    state = measure.with_dispersions(task, before.state, choice.scores)
    if not weights:
        return replace(before, state=state, scores=choice.scores, carried=choice.budget.amount)
    tables = measure.tables_measured(task, state, weights, choice.budget)
    after = model.fitted(task, state, tables, choice.outside, last=last)
    return Progress(after, choice.scores, weights)


def _triples(task: Task, pairs: Sequence[Scope], step: Reserve) -> list[Scope]:
    """Candidates inside the cliques that the model will have with these pairs; none without pairs."""
    if not step.further or not pairs or not triples_asked(task.domain, task.rho, task.constants):
        return []
    tree = task.working.tree(pairs)
    return select.candidate_triples(task.working, tree, step, task.constants)


def _with_triples(
    task: Task, state: State, triples: Sequence[Scope], pairs: Mapping[Scope, float], budget: Budget
) -> State:
    """The triples where the model of the pairs is most wrong; otherwise ``pairs`` again, with their weights.

    Expected scores choose them: the noise of hundreds of distances alone would look like many triples. If
    no fit meets all of them (``hopeless``), the last fit is that of the pairs.
    """
    for_scores, for_tables = task.parts(budget)
    expected = measure.noisy_scores(task, state, triples, {}, for_scores).expected(triples)
    selected = _selected(task, state, expected, {}, for_tables, last=True)
    promised = {triple: expected[triple] for triple in selected}
    if not select.triples_worth_more(task, {**state.tables, **state.beside}, promised, pairs, for_tables):
        selected = {}
    tables = measure.tables_measured(task, state, selected or pairs, for_tables)
    outside_tree = state.beside.keys()
    after = model.fitted(task, state, tables, outside_tree, last=True)
    hopeless = selected and after.misfit > task.constants.hopeless
    return _last_fit(task, state) if hopeless else after


def _last_fit(task: Task, state: State) -> State:
    """The last fit of the tables that there are."""
    return model.fitted(task, state, {**state.tables, **state.beside}, state.beside.keys(), last=True)
