"""Hidden groups of rows: a mixture in place of the tree where it explains all pairs.

A tree of cliques follows dependence among few attributes. Where rows come from some groups, all attributes
depend on each other, and no tree holds that. A mixture of a few components then tells all pairs of the fitted
model; this is tried, at no cost. If it does, the label of the component that a row is nearest to is asked for
with every attribute, in place of triples. If the mixture foretells these tables better than the tree does, it
is the model: a star around a hidden variable. Exchanges
between rows, which bring pairs closer, would mix the groups up: there are none.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.fit.arrays import FloatArray, IntArray, snapped
from dpsyn_sql.fit.belief import Beliefs, calibrate, marginals
from dpsyn_sql.fit.denoise import Binned
from dpsyn_sql.fit.graph import Scope, junction_tree
from dpsyn_sql.fit.latent import PartTable
from dpsyn_sql.fit.mixture import Components, drawn_rows, latent_classes, softened
from dpsyn_sql.fit.pairs import all_pairs
from dpsyn_sql.methods.adaptive.budget import Settings
from dpsyn_sql.methods.adaptive.model import Known, Task, targets
from dpsyn_sql.methods.mixture.rounds import Task as Rounds
from dpsyn_sql.methods.mixture.rounds import labels_of
from dpsyn_sql.rows.sample.graphical import drawn_bins

_SEED = 0
# Of starts and rows after noisy answers: a replay repeats them.

_GRID = 2.0**-14
_LEAST_SHARE = 1e-9
# Of a logarithm.


def hidden_groups(task: Task, known: Known, budget: Budget) -> tuple[Known | None, bool]:
    """The model with a hidden variable, or None; and whether the budget was spent."""
    places = task.paired
    few = len(places) < task.constants.group_attributes or budget.amount == 0
    if few or known.sets or task.terms.workload.target or task.terms.families:
        return None, False
    pairs = _pairs(task, known, places)
    mixture = _explaining(task, known, pairs)
    if mixture is None:
        return None, False
    rounds = _rounds(task, known, mixture.number, places, budget)
    label = rounds.label(mixture, 1)
    tables = rounds.by_label(label, budget)
    of_rows = partial(labels_of, label, rounds.found)
    tree = _label_tables(_drawn(task, known), of_rows, tables)
    foretold = _label_tables(drawn_rows(mixture, np.random.default_rng(_SEED))[0], of_rows, tables)
    if _apart(foretold, tables, known.total) > task.constants.group_worth * _apart(tree, tables, known.total):
        return None, True
    _, shares, counted = rounds.counted(rounds.found.observed, tables)
    mixture = softened(mixture, counted, of_rows, shares, _SEED)
    return replace(known, beliefs=_star(mixture), beside={}, grouped=True), True


def _pairs(task: Task, known: Known, places: Sequence[int]) -> dict[Scope, FloatArray]:
    """Joint probabilities of all pairs of attributes, those beside the tree as their tables say."""
    return all_pairs(known.beliefs, list(combinations(places, 2))) | targets(task, known)


def _explaining(task: Task, known: Known, pairs: Mapping[Scope, FloatArray]) -> Components | None:
    """The mixture of fewest components whose pairs are those of the model, but for less than sampling alone
    would change. If a short fit of the most components is far from them, none is looked for."""
    settings, shares = task.constants, _shares(task, known)
    numbers = _numbers(shares, pairs, settings)
    if not numbers:
        return None
    chance = np.mean([np.sqrt(table * (1 - table)).sum() for table in pairs.values()])
    chance *= 1 / math.sqrt(2 * math.pi * known.total)
    products: dict[Scope, FloatArray] = {(a, b): np.multiply.outer(shares[a], shares[b]) for a, b in pairs}
    depends = settings.group_depends * _mean_variation(pairs, products)
    most = min(settings.group_apart, settings.group_chance * chance, depends)

    def apart(mixture: Components) -> float:
        own: dict[Scope, FloatArray] = {
            (a, b): (mixture.profiles[a].T * mixture.weights) @ mixture.profiles[b] for a, b in pairs
        }
        return float(snapped(np.array([_mean_variation(pairs, own)]), _GRID)[0])

    short = latent_classes(shares, pairs, numbers[-1], _SEED, settings.group_starts, settings.group_steps)
    if apart(short) > 2 * most:
        return None
    fits = (latent_classes(shares, pairs, number, _SEED) for number in numbers)
    return next((mixture for mixture in fits if apart(mixture) <= most), None)


def _numbers(shares: Sequence[FloatArray], pairs: Collection[Scope], settings: Settings) -> list[int]:
    """Numbers of components with few parameters beside what the pairs tell: more would tell any pairs."""
    free = [own.size - 1 for own in shares]
    told = sum(free) + sum(free[a] * free[b] for a, b in pairs)
    return [number for number in settings.groups if number * (1 + sum(free)) <= settings.group_free * told]


def _shares(task: Task, known: Known) -> list[FloatArray]:
    """One-way probabilities of all attributes over working bins."""
    return [marginals(known.beliefs, [(place,)])[place,] for place in range(len(task.plan.domain.names))]


def _mean_variation(ones: Mapping[Scope, FloatArray], others: Mapping[Scope, FloatArray]) -> float:
    """The mean total variation distance of tables."""
    return float(np.mean([np.abs(table - others[scope]).sum() / 2 for scope, table in ones.items()]))


def _rounds(task: Task, known: Known, number: int, places: Sequence[int], budget: Budget) -> Rounds:
    """What asks for labelled tables over working bins."""
    working, domain = task.working, task.plan.domain
    attributes = range(len(domain.names))
    found = Binned(
        domain,
        tuple(working.variables[place].bins for place in attributes),
        working.within,
        tuple(working.observed[place,] for place in attributes),
        tuple(_shares(task, known)),
    )
    rows = task.plan.source.unit.sensitivity
    return Rounds(task.curator, found, known.total, rows, budget, "em", None, tuple(places), (number,), 1)


def _drawn(task: Task, known: Known) -> list[IntArray]:
    """Rows of the tree in working bins, by attribute."""
    columns = drawn_bins(known.beliefs, task.constants.group_rows, np.random.default_rng(_SEED))
    return [np.asarray(columns[place]) for place in range(len(task.plan.domain.names))]


def _label_tables(
    rows: Sequence[IntArray], of_rows: partial[IntArray], like: Mapping[int, PartTable]
) -> dict[int, FloatArray]:
    """Probabilities of (label, attribute) among drawn rows."""
    codes, found = of_rows(rows), dict[int, FloatArray]()
    for place, table in like.items():
        cells = codes * table.values.shape[1] + rows[place]
        found[place] = (
            np.bincount(cells, minlength=table.values.size).reshape(table.values.shape) / codes.size
        )
    return found


def _apart(foretold: Mapping[int, FloatArray], tables: Mapping[int, PartTable], total: float) -> float:
    """Rows by which noisy tables differ from what is foretold, on a grid."""
    rows = sum(float(np.abs(table.values - total * foretold[place]).sum()) for place, table in tables.items())
    return float(snapped(np.array([rows]), 1.0)[0])


def _star(mixture: Components) -> Beliefs:
    """The component is the variable after the attributes; each attribute depends on it alone."""
    hidden, sizes = len(mixture.profiles), [own.shape[1] for own in mixture.profiles]
    potentials: dict[Scope, FloatArray] = {(hidden,): np.log(np.maximum(mixture.weights, _LEAST_SHARE))}
    for place, profiles in enumerate(mixture.profiles):
        potentials[place, hidden] = np.log(np.maximum(profiles, _LEAST_SHARE)).T
    return calibrate(junction_tree((*sizes, mixture.number), potentials), potentials)
