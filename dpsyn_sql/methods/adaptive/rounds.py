"""The rounds: score the pairs that are not modelled yet, choose, measure, fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.fit.graph import Scope, junction_tree
from dpsyn_sql.methods.adaptive.beside import beside_the_tree, fitted_with_beside
from dpsyn_sql.methods.adaptive.errors import with_dispersions
from dpsyn_sql.methods.adaptive.known import Known
from dpsyn_sql.methods.adaptive.questions import noisy_scores, tables_measured
from dpsyn_sql.methods.adaptive.scores import Scores
from dpsyn_sql.methods.adaptive.selection import selected
from dpsyn_sql.methods.adaptive.shares import triple_share
from dpsyn_sql.methods.adaptive.task import Task
from dpsyn_sql.methods.adaptive.working import candidate_pairs, candidate_triples, table_weights
from dpsyn_sql.methods.adaptive.worth import pairs_worth_their_budget, triples_worth_more
from dpsyn_sql.methods.one_way import LEAST_UNITS
from dpsyn_sql.planning.plan import ReservedStep
from dpsyn_sql.progress import phase


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

    known: Known
    scores: Scores | None = None
    weights: Mapping[Scope, float] = field(default_factory=dict)
    carried: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """Pairs worth measuring, with their parts of ``budget``; none if nothing stands out. Those of ``beside``
    are not for the tree."""

    scores: Scores
    found: Mapping[Scope, float]
    budget: Budget
    beside: frozenset[Scope] = frozenset()


def all_rounds(task: Task, known: Known, step: ReservedStep) -> tuple[Known, Budget | None]:
    """All rounds; also what is left if no pair was worth measuring.

    A round that finds nothing passes its budget on. If the last round for pairs finds nothing, its budget
    measures the pairs of earlier rounds again.
    """
    pairs = Pairs(*candidate_pairs(task.working, step.queries), step.budget)
    if not pairs.scopes or step.budget.amount < LEAST_UNITS:
        return known, step.budget
    (*earlier, last), for_triples = _divided(task, step)
    after = Progress(known)
    for share in earlier:
        choice = _choice(task, after, pairs, share, last=False)
        after = _with_pairs(task, after, choice, choice.found, last=False)
    choice = _choice(task, after, pairs, last, last=True)
    triples = _triples(task, after.known, step, choice.found.keys() - choice.beside)
    if not triples:
        choice = replace(choice, budget=_larger(choice.budget, for_triples))
    after = _with_pairs(task, after, choice, choice.found or after.weights, last=not triples)
    if triples:
        budget = replace(step.budget, amount=for_triples)
        return _with_triples(task, after.known, triples, after.weights, budget), None
    return after.known, Budget(step.budget.kind, after.carried) if after.carried else None


def _divided(task: Task, step: ReservedStep) -> tuple[list[Budget], int]:
    """The budgets of the rounds of pairs, and the amount for triples, which comes from the last round."""
    rounds = task.constants.many_rounds if task.many else task.constants.rounds
    shares = [round(100 * share) for share in rounds]
    if step.further is None:
        return list(step.budget.split(shares)), 0
    share = triple_share(task.rho, task.constants)
    shares[-1] -= share
    *pairs, triples = step.budget.split([*shares, share])
    return pairs, triples.amount


def _larger(budget: Budget, amount: int) -> Budget:
    return replace(budget, amount=budget.amount + amount)


def _choice(task: Task, before: Progress, pairs: Pairs, share: Budget, *, last: bool) -> Choice:
    """Score all pairs and choose; while the model is still the first one, scores are pooled."""
    known = before.known
    for_scores, for_tables = task.parts(share)
    for_tables = _larger(for_tables, before.carried)
    scores = noisy_scores(task, known, pairs.scopes, pairs.twins, for_scores)
    if before.scores is not None and not known.tables:
        scores = before.scores.pooled(scores)
    stand_out = scores.beyond_luck(task.constants.luck)
    beside = set[Scope]()
    found = _selected(task, known, stand_out, pairs.twins, for_tables, last=last, beside=beside)
    left = for_tables if task.many else pairs.budget  # much of it is spent on the scores of many
    if not known.tables and not pairs_worth_their_budget(task, scores, pairs.twins, found, left):
        found = {}
    outside = beside_the_tree(task, [*known.tables, *found], beside & found.keys())
    return Choice(scores, found, for_tables, outside)


def _selected(
    task: Task,
    known: Known,
    scores: Mapping[Scope, float],
    twins: Mapping[Scope, Scope],
    budget: Budget,
    *,
    last: bool,
    beside: set[Scope] | None = None,
) -> dict[Scope, float]:
    """The greedy choice; before the last round under a smaller cap, and all in the tree."""
    working, constants = task.working, task.constants
    attributes = working.sizes[: len(working.domain.attributes)]
    weights = table_weights(working, task.terms.workload, scores)
    small = constants.cap_first * sum(float(size) ** 2 for size in attributes)
    cap = task.cap if last else min(small, task.cap)
    held = [*working.links, *known.tables]
    with phase("select"):
        law, outside = task.noise_law(budget), beside if last else None
        return selected(scores, twins, weights, working.sizes, held, cap, law, constants, outside)


def _with_pairs(
    task: Task, before: Progress, choice: Choice, weights: Mapping[Scope, float], *, last: bool
) -> Progress:
    """Measure ``weights`` with the budget of a choice, and fit; without weights the budget is passed on."""
    known = with_dispersions(task, before.known, choice.scores)
    if not weights:
        return replace(before, known=known, scores=choice.scores, carried=choice.budget.amount)
    tables = tables_measured(task, known, weights, choice.budget)
    after = fitted_with_beside(task, known, tables, choice.beside, last=last)
    return Progress(after, choice.scores, weights)


def _triples(task: Task, known: Known, step: ReservedStep, found: Iterable[Scope]) -> list[Scope]:
    """Candidates inside the cliques that the model will have with the chosen pairs; none without pairs."""
    pairs = [*known.tables, *sorted(found)]
    if step.further is None or not pairs:
        return []
    tree = junction_tree(task.working.sizes, [*pairs, *task.working.links])
    return candidate_triples(task.working, tree, step.further, task.constants)


def _with_triples(
    task: Task, known: Known, triples: Sequence[Scope], pairs: Mapping[Scope, float], budget: Budget
) -> Known:
    """The triples where the model of the pairs is most wrong; otherwise ``pairs`` again, with their weights.

    Expected scores choose them: the noise of hundreds of distances alone would look like many triples. If
    no fit meets all of them (``hopeless``), the last fit is that of the pairs.
    """
    for_scores, for_tables = task.parts(budget)
    expected = noisy_scores(task, known, triples, {}, for_scores).expected(triples)
    found = _selected(task, known, expected, {}, for_tables, last=True)
    promised = {triple: expected[triple] for triple in found}
    if not triples_worth_more(task, {**known.tables, **known.beside}, promised, pairs, for_tables):
        found = {}
    tables = tables_measured(task, known, found or pairs, for_tables)
    beside = known.beside.keys()
    after = fitted_with_beside(task, known, tables, beside, last=True)
    if found and after.misfit > task.constants.hopeless:
        return fitted_with_beside(task, known, {**known.tables, **known.beside}, beside, last=True)
    return after
