"""Groups of attributes, and the order in which they are asked about."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np

from dpsyn_sql.accounting.budget import MEAN_ABSOLUTE, Budget
from dpsyn_sql.fit.arrays import FloatArray, IntArray, snapped
from dpsyn_sql.fit.belief import Beliefs, calibrate, marginals
from dpsyn_sql.fit.denoise import Binned
from dpsyn_sql.fit.elimination import products
from dpsyn_sql.fit.graph import Scope, Triangulation, cells_of, junction_tree
from dpsyn_sql.fit.latent import PartTable
from dpsyn_sql.fit.mixture import Components, drawn_rows, labels_of, latent_classes, softened
from dpsyn_sql.fit.pairs import all_pairs
from dpsyn_sql.methods.adaptive.budget import (
    MAX_FURTHER_CELLS,
    MOST_COLUMNS,
    MOST_TOGETHER,
    Settings,
    relative_cost,
)
from dpsyn_sql.methods.adaptive.model import State, Task, targets
from dpsyn_sql.methods.adaptive.select import Scores
from dpsyn_sql.methods.independent import over_bins
from dpsyn_sql.methods.papers.mixture import Task as Rounds
from dpsyn_sql.planning.queries import Distances
from dpsyn_sql.rows.sample.graphical import drawn_bins

# -- groups ------------------------------------------------------------------------------------------

# Hidden groups of rows: a mixture in place of the tree where it explains all pairs.
#
# A tree of cliques follows dependence among few attributes. Where rows come from some groups, all attributes
# depend on each other, and no tree holds that. A mixture of a few components then tells all pairs of the
# fitted model; this is tried, at no cost. If it does, the label of the component that a row is nearest to is
# asked for with every attribute, in place of triples. If the mixture foretells these tables better than the
# tree does, it is the model: a star around a hidden variable. Exchanges between rows, which bring pairs
# closer, would mix the groups up: there are none.

_SEED = 0
# Of starts and rows after noisy answers: a replay repeats them.

_GRID = 2.0**-14
_LEAST_SHARE = 1e-9
# Of a logarithm.


def hidden_groups(task: Task, state: State, budget: Budget) -> tuple[State | None, bool]:
    """The model with a hidden variable, or None; and whether the budget was spent."""
    paired = task.paired
    few = len(paired) < task.constants.group_attributes or budget.amount == 0
    if few or state.sets or task.terms.workload.target or task.terms.families:
        return None, False
    pairs = _pairs(task, state, paired)
    mixture = _explaining(task, state, pairs)
    if mixture is None:
        return None, False
    rounds = _rounds(task, state, mixture.number, paired, budget)
    label = rounds.label(mixture, 1)
    tables = rounds.by_label(label, budget)
    of_rows = partial(labels_of, label, rounds.working)
    tree = _label_tables(_drawn(task, state), of_rows, tables)
    foretold = _label_tables(drawn_rows(mixture, np.random.default_rng(_SEED))[0], of_rows, tables)
    if _apart(foretold, tables, state.total) > task.constants.group_worth * _apart(tree, tables, state.total):
        return None, True
    _, shares, counted = rounds.counted(rounds.working.observed, tables)
    mixture = softened(mixture, counted, of_rows, shares, _SEED)
    return replace(state, beliefs=_star(mixture), beside={}, grouped=True), True


def _pairs(task: Task, state: State, attributes: Sequence[int]) -> dict[Scope, FloatArray]:
    """Joint probabilities of all pairs of attributes, those beside the tree as their tables say."""
    return all_pairs(state.beliefs, list(combinations(attributes, 2))) | targets(task, state)


def _explaining(task: Task, state: State, pairs: Mapping[Scope, FloatArray]) -> Components | None:
    """The mixture of fewest components whose pairs are those of the model, but for less than sampling alone
    would change. If a short fit of the most components is far from them, none is looked for."""
    settings, shares = task.constants, _shares(task, state)
    numbers = _numbers(shares, pairs, settings)
    if not numbers:
        return None
    chance = np.mean([np.sqrt(table * (1 - table)).sum() for table in pairs.values()])
    chance *= 1 / math.sqrt(2 * math.pi * state.total)
    products: dict[Scope, FloatArray] = {(a, b): np.multiply.outer(shares[a], shares[b]) for a, b in pairs}
    depends = settings.group_depends * _mean_variation(pairs, products)
    most = min(settings.group_apart, settings.group_chance * chance, depends)

    def apart(mixture: Components) -> float:
        pairs_of_mixture: dict[Scope, FloatArray] = {
            (a, b): (mixture.profiles[a].T * mixture.weights) @ mixture.profiles[b] for a, b in pairs
        }
        return float(snapped(np.array([_mean_variation(pairs, pairs_of_mixture)]), _GRID)[0])

    short = latent_classes(shares, pairs, numbers[-1], _SEED, settings.group_starts, settings.group_steps)
    if apart(short) > 2 * most:
        return None
    fits = (latent_classes(shares, pairs, number, _SEED) for number in numbers)
    return next((mixture for mixture in fits if apart(mixture) <= most), None)


def _numbers(shares: Sequence[FloatArray], pairs: Collection[Scope], settings: Settings) -> list[int]:
    """Numbers of components with few parameters beside what the pairs tell: more would tell any pairs."""
    free = [share.size - 1 for share in shares]
    free_of_pairs = sum(free) + sum(free[a] * free[b] for a, b in pairs)
    return [
        number
        for number in settings.groups
        if number * (1 + sum(free)) <= settings.group_free * free_of_pairs
    ]


def _shares(task: Task, state: State) -> list[FloatArray]:
    """One-way probabilities of all attributes over working bins."""
    return [
        marginals(state.beliefs, [(attribute,)])[attribute,] for attribute in range(len(task.domain.names))
    ]


def _mean_variation(tables: Mapping[Scope, FloatArray], references: Mapping[Scope, FloatArray]) -> float:
    """The mean total variation distance of tables."""
    return float(np.mean([np.abs(table - references[scope]).sum() / 2 for scope, table in tables.items()]))


def _rounds(task: Task, state: State, number: int, paired: Sequence[int], budget: Budget) -> Rounds:
    """What asks for labelled tables over working bins."""
    working, domain = task.working, task.domain
    attributes = range(len(domain.names))
    binned_tables = Binned(
        domain,
        tuple(working.variables[attribute].bins for attribute in attributes),
        working.within,
        tuple(working.observed[attribute,] for attribute in attributes),
        tuple(_shares(task, state)),
    )
    rows = task.unit.sensitivity
    return Rounds(
        task.door, binned_tables, state.total, rows, budget, "em", None, tuple(paired), (number,), 1
    )


def _drawn(task: Task, state: State) -> list[IntArray]:
    """Rows of the tree in working bins, by attribute."""
    columns = drawn_bins(state.beliefs, task.constants.group_rows, np.random.default_rng(_SEED))
    return [np.asarray(columns[attribute]) for attribute in range(len(task.domain.names))]


def _label_tables(
    rows: Sequence[IntArray], of_rows: partial[IntArray], like: Mapping[int, PartTable]
) -> dict[int, FloatArray]:
    """Probabilities of (label, attribute) among drawn rows."""
    codes, shares = of_rows(rows), dict[int, FloatArray]()
    for attribute, table in like.items():
        cells = codes * table.values.shape[1] + rows[attribute]
        shares[attribute] = (
            np.bincount(cells, minlength=table.values.size).reshape(table.values.shape) / codes.size
        )
    return shares


def _apart(foretold: Mapping[int, FloatArray], tables: Mapping[int, PartTable], total: float) -> float:
    """Rows by which noisy tables differ from what is foretold, on a grid."""
    rows = sum(
        float(np.abs(table.values - total * foretold[attribute]).sum()) for attribute, table in tables.items()
    )
    return float(snapped(np.array([rows]), 1.0)[0])


def _star(mixture: Components) -> Beliefs:
    """The component is the variable after the attributes; each attribute depends on it alone."""
    hidden, sizes = len(mixture.profiles), [profile.shape[1] for profile in mixture.profiles]
    potentials: dict[Scope, FloatArray] = {(hidden,): np.log(np.maximum(mixture.weights, _LEAST_SHARE))}
    for attribute, profiles in enumerate(mixture.profiles):
        potentials[attribute, hidden] = np.log(np.maximum(profiles, _LEAST_SHARE)).T
    return calibrate(junction_tree((*sizes, mixture.number), potentials), potentials)


# -- orders ------------------------------------------------------------------------------------------

# Tables of more columns than two: all columns at once where that is cheap, and sets that no pair shows.
#
# *The full table.* Where a table has few columns of few bins, noise hides little of the table over all of
# them, and it holds every pattern.
#
# *Sets.* A target that is the parity of some columns is independent of each of them, so no pair shows it.
# Where columns are left without a pair, a part of the last round asks how far the tables of sets of three to
# six of them are from the model, over two bins a column. What stands out beyond the luck of so many noises is
# measured and joins the model.


def full_table(task: Task, budget: Budget) -> Scope | None:
    """All attributes that candidate pairs hold, if their table is cheap with this budget."""
    sizes = task.working.sizes
    used = tuple(task.paired)
    if not 3 <= len(used) <= MOST_COLUMNS or not task.further or budget.amount == 0:
        return None
    if task.working.given.issuperset(used):
        return None
    cells, law = cells_of([used], sizes), budget.law(task.unit.sensitivity)
    cheap = (
        cells <= MAX_FURTHER_CELLS
        and task.constants.charge * law.mean_absolute * cells < task.constants.full_noise * task.total
    )
    return used if cheap else None


def isolated(task: Task, state: State, scores: Mapping[Scope, float]) -> list[int]:
    """The attributes of candidate pairs whose pairs all move few of the rows, narrowest first.

    ``scores``: rows by which the model is off for pairs that it will have (rows).
    """
    variables, sizes = task.working.variables, task.working.sizes
    moved = dict(scores)
    for pair, joint in all_pairs(state.beliefs, [scope for scope in state.tables if len(scope) == 2]).items():
        product = np.multiply.outer(joint.sum(axis=1), joint.sum(axis=0))
        moved[pair] = float(snapped(np.asarray(state.total * np.abs(joint - product).sum()), 1.0))
    least = task.constants.tied * state.total
    dependent = {variables[v].attribute for pair, rows in moved.items() if rows > least for v in pair}
    alone = [attribute for attribute in task.paired if attribute not in dependent]
    return sorted(alone, key=lambda attribute: (sizes[attribute], attribute))


def candidate_sets(alone: Sequence[int], dependent: Sequence[int], most: int) -> list[Scope]:
    """Sets of three to six columns: of those ``alone``, and with at most two ``dependent``, whose pair the
    model knows.

    All of three and of four, if these are no more than ``most``; of five and six those of as many of the
    first columns alone as there is room for.
    """
    sets = list[Scope]()
    for number in (3, 4):
        tied = range(min(2, len(dependent), number - 1) + 1)
        more = sum(math.comb(len(dependent), n) * math.comb(len(alone), number - n) for n in tied)
        if len(sets) + more > most:
            return sets
        sets += [
            tuple(sorted((*first, *second)))
            for n in tied
            for second in combinations(dependent, n)
            for first in combinations(alone, number - n)
        ]
    larger = range(5, MOST_TOGETHER + 1)
    room = most - len(sets)
    first = max(n for n in range(len(alone) + 1) if sum(math.comb(n, k) for k in larger) <= room)
    return sets + [tuple(sorted(columns)) for k in larger for columns in combinations(alone[:first], k)]


def screened(
    task: Task, state: State, scores: Mapping[Scope, float], tied: Sequence[Scope], budget: Budget
) -> tuple[dict[Scope, float], Budget]:
    """The sets that stand out, with their weights in the budget, and what is left of it.

    ``scores`` as for ``isolated``. ``tied``: the tables that the model has or will have.

    Nothing is asked, and nothing spent, where no column is alone, or where noise would hide all but the
    strongest dependence.
    """
    settings = task.constants
    alone = isolated(task, state, scores)
    if task.working.levels or task.many or not alone or not task.further or budget.amount == 0:
        return {}, budget
    dependent = [attribute for attribute in task.paired if attribute not in alone]
    most, sets, share = settings.most_sets, list[Scope](), Fraction(1)
    while most and share > settings.screen_most:  # fewer sets have less noise each
        sets = candidate_sets(alone, dependent, most)
        share = _share(task, len(sets), budget) if sets else Fraction(1)
        most //= 4
    if share > settings.screen_most:
        return {}, budget
    for_scores, left = budget.split((share, 1 - share))
    distances = _distances(
        task, state, [(columns, _tied(columns, dependent)) for columns in sets], for_scores
    )
    return _chosen(task, tied, distances, left), left


def _tied(scope: Scope, dependent: Collection[int]) -> Scope:
    """The two columns of a set that are not alone, or none."""
    pair = tuple(attribute for attribute in scope if attribute in dependent)
    return pair if len(pair) == 2 else ()


def _share(task: Task, number: int, budget: Budget) -> Fraction:
    """The part of the budget with which ``Settings.visible`` stands out of so many distances, in thousandths;
    not less than ``screen_least``."""
    settings = task.constants
    deviation = budget.law(task.unit.sensitivity).shared(number)  # of distances with all of it
    visible = settings.visible * task.total / _luck(number, budget, settings)
    share = (deviation / visible) ** (1 / budget.law().power)
    return Fraction(min(1_000, math.ceil(1_000 * max(settings.screen_least, min(share, 1.0)))), 1_000)


def _luck(number: int, budget: Budget, settings: Settings) -> float:
    """Standard deviations from which one of so many noises is unlikely."""
    logarithm = math.log(max(number, 2))
    highest = math.sqrt(2 * logarithm) if budget.gaussian else logarithm / math.sqrt(2)
    return highest + settings.screen_clear


def _distances(task: Task, state: State, sets: Sequence[tuple[Scope, Scope]], budget: Budget) -> Scores:
    """How far the model is from the rows over two bins a column, less what sampling explains (rows).

    ``sets``: each with its pair that the model knows, or none.
    """
    domain, halves = task.domain, _halves(task)
    queries = [
        over_bins(domain, ((attribute, halves[attribute][0]) for attribute in scope)) for scope, _ in sets
    ]
    expected = products(state.beliefs, sets, {attribute: bins for attribute, (_, bins) in halves.items()})
    counts = [state.total * expected[scope] for scope, _ in sets]
    references = [np.rint(table).astype(np.int64) for table in counts]
    noisy = task.door.ask(Distances(queries, references), budget).read()
    sampling = [
        MEAN_ABSOLUTE * math.sqrt(task.grain(scope)) * float(np.sqrt(np.maximum(table, 0)).sum())
        for (scope, _), table in zip(sets, counts, strict=True)
    ]
    rows = snapped(np.array(noisy, dtype=np.float64) - np.array(sampling), 1.0)
    deviation = budget.law(task.unit.sensitivity).shared(len(sets))
    return Scores(dict(zip(expected, rows.tolist(), strict=True)), deviation, budget.kind)


def _halves(task: Task) -> dict[int, tuple[IntArray, IntArray]]:
    """Of each attribute two bins of about equally many rows: of its codes, and of its working bins.

    Bins of an ordered attribute are cut at the median; others are taken from the largest on, each to the
    smaller half. The one-way tables decide, on the coarse grid that replays repeat.
    """
    bins_of_halves = dict[int, tuple[IntArray, IntArray]]()
    for index, attribute in enumerate(task.domain.attributes):
        variable = task.working.variables[index]
        if variable.size < 2:
            continue
        counts = np.maximum(snapped(task.working.observed[index,].values, 1.0), 0.0)
        if attribute.ordered:
            below = np.cumsum(counts)[:-1]
            cut = int(np.argmin(np.abs(below - counts.sum() / 2))) + 1
            bins = (np.arange(variable.size) >= cut).astype(np.int64)
        else:
            bins, rows_of_side = np.zeros(variable.size, dtype=np.int64), [0.0, 0.0]
            for code in np.argsort(-counts, kind="stable").tolist():
                side = int(rows_of_side[1] < rows_of_side[0])
                bins[code], rows_of_side[side] = side, rows_of_side[side] + counts[code]
            if bins.max() == 0:
                bins[-1] = 1
        bins = bins ^ bins[0]  # the first bin is that of the first code, as in a table over codes
        bins_of_halves[index] = bins[variable.bins], bins
    return bins_of_halves


def _chosen(task: Task, tied: Sequence[Scope], scores: Scores, budget: Budget) -> dict[Scope, float]:
    """The sets to measure, smallest and clearest first.

    They stand out beyond what a smaller one in them explains, hold more than their noise, and fit into a
    model of no more than ``task.cap`` cells.
    """
    sizes, constants, law = task.working.sizes, task.constants, budget.law(task.unit.sensitivity)
    least = _luck(len(scores.rows), budget, constants) * scores.deviation
    least = max(least, constants.least_set * task.total)
    clear = sorted(
        (scope for scope, rows in scores.rows.items() if rows > least),
        key=lambda scope: (len(scope), -scores.rows[scope], scope),
    )
    graph = Triangulation(sizes, [*task.working.links, *tied])
    chosen, room = dict[Scope, float](), MAX_FURTHER_CELLS
    for scope in clear:
        inside = [scores.rows[smaller] for smaller in chosen if set(smaller) <= set(scope)]
        if scores.rows[scope] - max(inside, default=0.0) <= least:
            continue
        cells = cells_of([scope], sizes)
        noise = constants.charge * law.mean_absolute * cells * relative_cost(law, scope, sizes) ** law.power
        larger = graph.grown(scope, task.cap)
        if noise > scores.rows[scope] or larger is None or cells > room:
            continue
        graph, chosen[scope] = larger, float(cells) ** constants.allocation
        room -= cells
    return chosen
