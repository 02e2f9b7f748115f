"""Which pairs or triples to measure next: candidates, scores from noisy distances, the greedy choice, its
worth.

Post-processing of noisy answers only.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from dpsyn_sql.accounting.budget import Budget, Kind, NoiseLaw
from dpsyn_sql.fit.arrays import FloatArray, IntArray, posterior_means, snapped
from dpsyn_sql.fit.estimate import Observation, pooled
from dpsyn_sql.fit.graph import JunctionTree, Scope, Triangulation, cells_of
from dpsyn_sql.fit.variances import Distance
from dpsyn_sql.methods.adaptive.budget import Settings, relative_cost, room_of_each
from dpsyn_sql.methods.adaptive.model import Task, Working
from dpsyn_sql.planning.asking import Reserve
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.planning.workload import Workload

_SURE = 2.0
"""Standard errors that mean and spread are lowered by, so that pairs of pure luck are not measured
(docs/results_details.md)."""

_LUCK = 1e-3
"""Among pairs without any dependence noise alone makes one clear with this probability."""

_STEP = 0.25
_GRID = np.arange(-6.0, 12.0 + _STEP, _STEP)
_EM_STEPS = 200
# Standard deviations of noise around the median score. A larger score stands for itself.


@dataclass(frozen=True, slots=True)
class Scores:
    """Rows by which the model is off for each table, less what sampling explains.

    ``rows`` may be negative. The noise of all has the same ``deviation`` (rows), Laplace
    under pure differential privacy, else Gaussian. ``distances``: those of pairs, of which the scores are
    made.
    """

    rows: Mapping[Scope, float]
    deviation: float
    kind: Kind
    distances: Mapping[Scope, Distance] = field(default_factory=dict)

    def beyond_luck(self, tolerated: float) -> dict[Scope, float]:
        """Scores less the expected luck of the largest of so many noises beyond ``tolerated`` deviations."""
        number = math.log(len(self.rows))
        highest = number / math.sqrt(2) if self.kind == "pure" else math.sqrt(2 * number)
        curse = self.deviation * max(0.0, highest - tolerated)
        return _whole({pair: score - curse for pair, score in self.rows.items()})

    def expected(self, pairs: Collection[Scope]) -> dict[Scope, float]:
        """A low estimate of what the chosen tables hold (rows, none negative).

        The largest of many noisy scores are too large on average. The James-Stein estimate (Efron and Morris
        1973) draws each score to the mean of all; it draws more if they differ little beyond their noise.
        Mean and spread are lowered by two standard errors: doubtful dependence does not count.
        """
        number = len(self.rows)
        mean = math.fsum(self.rows.values()) / number
        squares = math.fsum((score - mean) ** 2 for score in self.rows.values())
        noise = max(0, number - 3) * self.deviation**2 * (1 + _SURE * math.sqrt(2 / number))
        trust = 1.0 - noise / max(squares, noise) if noise else 1.0
        sure = mean - _SURE * self.deviation / math.sqrt(number)
        return {pair: max(0.0, sure + trust * (self.rows[pair] - mean)) for pair in pairs}

    def likely(self) -> dict[Scope, float]:
        """Of very many tables what each is likely to hold (whole rows; may be negative).

        Of 100,000 pairs perhaps one in a hundred depends, which the mean and the spread of all scores hide.
        The distribution of true distances is learnt from all scores without a form (Kiefer and Wolfowitz
        1956), and each score has its posterior mean. Few scores tell too little of the distribution.
        """
        rows = np.array(list(self.rows.values()))
        middle, unit = float(np.median(rows)), max(self.deviation, 1e-6)
        apart = (rows - middle) / unit
        cells = np.rint((np.clip(apart, _GRID[0], _GRID[-1]) - _GRID[0]) / _STEP).astype(np.int64)
        means = _posterior_means(np.bincount(cells, minlength=len(_GRID)), self.kind)
        likely = np.where(apart < _GRID[-1], middle + unit * means[cells], rows)
        return _whole(dict(zip(self.rows, likely.tolist(), strict=True)))

    def clear(self) -> dict[Scope, float]:
        """Of pairs whose distance is clear of noise the rows that their dependence moves: half of what the
        distance has beyond sampling and the noise of the margins."""
        part = _LUCK / max(1, len(self.distances))
        highest = -math.log(2 * part) / math.sqrt(2) if self.kind == "pure" else -NormalDist().inv_cdf(part)
        beyond = {
            pair: distance.rows - math.hypot(distance.sampling, distance.margins)
            for pair, distance in self.distances.items()
        }
        return {pair: rows / 2 for pair, rows in beyond.items() if rows > highest * self.deviation}

    def pooled(self, later: Scores) -> Scores:
        """Inverse-variance means of two measurements of the same pairs; for other pairs the later one."""
        if self.rows.keys() != later.rows.keys():
            return later
        first, second = self.deviation**-2, later.deviation**-2
        weight = first / (first + second)
        rows = {pair: weight * self.rows[pair] + (1 - weight) * score for pair, score in later.rows.items()}
        distances = {
            pair: replace(distance, rows=weight * self.distances[pair].rows + (1 - weight) * distance.rows)
            for pair, distance in later.distances.items()
        }
        return Scores(_whole(rows), (first + second) ** -0.5, later.kind, distances)


def _posterior_means(counts: IntArray, kind: Kind) -> FloatArray:
    """Posterior means (g,) at the points of the grid, where ``counts`` (g,) noisy values lie."""
    apart = np.abs(_GRID[:, None] - _GRID)
    likelihood = np.exp(-math.sqrt(2) * apart if kind == "pure" else -0.5 * apart**2)
    even = np.full(len(_GRID), 1 / len(_GRID))
    return posterior_means(
        likelihood, _GRID, even, _EM_STEPS, lambda posterior: np.asarray(counts @ posterior / counts.sum())
    )


def _whole(rows: Mapping[Scope, float]) -> dict[Scope, float]:
    """Whole rows, as the order of the scores is the order of the next questions (``fit/arrays.py``)."""
    return dict(zip(rows, snapped(np.array(list(rows.values())), 1.0).tolist(), strict=True))


def candidate_pairs(
    working: Working, allowed: Sequence[MarginalQuery]
) -> tuple[list[Scope], dict[Scope, Scope]]:
    """Pairs of variables that may be measured, and the coarse twins of fine pairs.

    ``allowed`` are the pairs of attributes that the plan announces. A variable of one bin carries nothing.
    """
    announced = {query.attrs for query in allowed}
    names, sizes = working.domain.names, working.sizes
    coarse = {attribute: attribute for attribute in range(len(names))}
    coarse |= {working.variables[v].attribute: v for v in range(len(names), len(sizes))}
    pairs: list[Scope] = [
        pair
        for pair in combinations(range(len(names)), 2)
        if (names[pair[0]], names[pair[1]]) in announced and min(sizes[v] for v in pair) > 1
    ]
    twins: dict[Scope, Scope] = {}
    for first, second in pairs:
        twin = tuple(sorted((coarse[first], coarse[second])))
        if twin != (first, second):
            twins[first, second] = twin
    return [*pairs, *twins.values()], twins


def candidate_triples(
    working: Working, tree: JunctionTree, allowed: Reserve, settings: Settings
) -> list[Scope]:
    """Three attributes within a clique: measuring them does not let the model grow. Small tables of original
    codes come first, up to the limit; none if there are too few."""
    attributes = {v for v in range(len(working.domain.attributes)) if working.sizes[v] > 1}
    triples = {
        triple
        for clique in tree.cliques
        for triple in combinations([v for v in clique if v in attributes], 3)
        if not working.given.issuperset(triple) and cells_of([triple], working.sizes) <= settings.triple_cells
    }
    codes = {triple: cells_of([triple], working.domain.shape()) for triple in sorted(triples)}
    affordable, cells = list[Scope](), 0
    for triple in sorted(codes, key=codes.__getitem__):
        cells += codes[triple]
        if codes[triple] <= allowed.most_cells and cells <= room_of_each(allowed):
            affordable.append(triple)
    return sorted(affordable) if len(affordable) >= settings.fewest_triples else []


def table_weights(working: Working, workload: Workload, scopes: Iterable[Scope]) -> dict[Scope, float]:
    """Weights other than 1 of tables: those of pairs, and of larger ones the mean of their pairs."""
    pairs = pair_weights(working, workload)
    return {
        scope: statistics.fmean(pairs.get(pair, 1.0) for pair in combinations(scope, 2))
        for scope in (scopes if pairs else ())
    }


def pair_weights(working: Working, workload: Workload) -> dict[Scope, float]:
    """Weights other than 1 of pairs of variables; a twin has the weight of its attribute."""
    names = working.domain.names
    variables: dict[str, list[int]] = {}
    for number, variable in enumerate(working.variables):
        variables.setdefault(names[variable.attribute], []).append(number)
    return {
        (min(first, second), max(first, second)): float(weight)
        for (left, right), weight in workload.pairs(names).items()
        for first in variables[left]
        for second in variables[right]
    }


@dataclass
class _Basket:
    """Pairs taken so far, and the noise they would carry at the best division of the budget.

    A table of weight v_c counts as one of v_c cells_c cells. With w_c = (v_c cells_c)^allocation f_c^(1/3)
    and W their sum it gets the share w_c / W, and noise that weighs v_c cells_c u (f_c W / w_c)^power.
    """

    sizes: Sequence[int]
    weights: Mapping[Scope, float]
    law: NoiseLaw
    settings: Settings
    taken: dict[Scope, float] = field(default_factory=dict)
    weight: float = 0.0
    spread: float = 0.0

    def price(self, pair: Scope) -> float:
        """The growth of the weighted L1 noise of all tables."""
        weight, spread = self._shares(pair)
        power = self.law.power
        now = self.weight**power * self.spread
        grown = (self.weight + weight) ** power * (self.spread + spread)
        return float(self.law.mean_absolute * (grown - now))

    def take(self, pair: Scope) -> None:
        weight, spread = self._shares(pair)
        self.taken[pair] = weight
        self.weight += weight
        self.spread += spread

    def _shares(self, pair: Scope) -> tuple[float, float]:
        cells = self.weights.get(pair, 1.0) * cells_of([pair], self.sizes)
        factor = relative_cost(self.law, pair, self.sizes)
        weight = cells**self.settings.allocation * factor**self.settings.residual_power
        return weight, cells * (factor / weight) ** self.law.power


def selected(
    scores: Mapping[Scope, float],
    twins: Mapping[Scope, Scope],
    weights: Mapping[Scope, float],
    sizes: Sequence[int],
    required: Sequence[Scope],
    cap: float,
    law: NoiseLaw,
    settings: Settings,
    kept_out: set[Scope] | None = None,
    levels: Sequence[int] = (),
) -> dict[Scope, float]:
    """Pairs to measure, with their weights in the budget.

    Greedy by weighted score / cells^greed. A pair is taken if its weighted score is more than the weighted
    noise (at ``charge`` of its full L1 norm) that it adds to all tables, and while the triangulated graph
    stays under the cap.

    Args:
        scores: rows by which the model is off, less what chance explains; may be negative.
        twins: of a fine pair its coarse twin; a twin is dispensable once the fine pair is taken, and the
            gain of a fine pair is then what its twin does not already give.
        weights: of the workload, of pairs for which it is not 1.
        sizes: of the variables.
        required: scopes the graph has already.
        cap: the most cells of the junction tree.
        law: the noise that this round's budget buys.
        settings: of the recipe.
        kept_out: filled with pairs that only the cap keeps out of the tree, if they are worth it nevertheless
            (``Settings.beside``): they are among the pairs to measure. None: there are no such pairs.
        levels: of the variables of families (``fit/graph.py``).
    """
    fine_of = {twin: fine for fine, twin in twins.items()}
    scores = {pair: weights.get(pair, 1.0) * score for pair, score in scores.items()}
    basket, graph, misses = _Basket(sizes, weights, law, settings), Triangulation(sizes, required, levels), 0
    patience = 4 * len(sizes) + 40
    # A table with a variable of one code says nothing that the others do not.
    wanted = [pair for pair, score in scores.items() if score > 0 and relative_cost(law, pair, sizes) > 0]
    for pair in sorted(wanted, key=lambda p: -scores[p] / cells_of([p], sizes) ** settings.greed):
        if fine_of.get(pair) in basket.taken:
            continue
        twin = twins.get(pair)
        gain = scores[pair] - (scores[twin] if twin is not None and twin in basket.taken else 0.0)
        if gain <= settings.charge * basket.price(pair):
            continue
        full = misses > patience and not graph.holds(pair)  # then only pairs that the tree holds already
        larger = None if full else graph.grown(pair, cap)
        if larger is None:
            misses += 1
            if kept_out is not None and settings.beside * gain > settings.charge * basket.price(pair):
                kept_out.add(pair)
                basket.take(pair)
            continue
        graph = larger
        basket.take(pair)
    return basket.taken


def pairs_worth_their_budget(
    task: Task,
    scores: Scores,
    twins: Mapping[Scope, Scope],
    worth_measuring: Mapping[Scope, float],
    for_pairs: Budget,
) -> bool:
    """Whether the first pairs gain more than the one-way tables would with the budget ``for_pairs``.

    The noise of a one-way table is in every pair of its attribute. As in the choice of pairs, the part
    ``charge`` of its L1 norm counts. A coarse twin gains nothing in addition to its fine pair.
    """
    domain, working, workload = task.domain, task.working, task.terms.workload
    weights = pair_weights(working, workload)
    chosen = worth_measuring.keys() - {twins[pair] for pair in worth_measuring if pair in twins}
    rows_of = scores.likely() if task.many else scores.expected(chosen)
    gain = math.fsum(weights.get(pair, 1.0) * rows_of[pair] for pair in chosen)
    means, law = workload.means(domain.names), for_pairs.law(task.unit.sensitivity)
    partners = sum(size > 1 for size in domain.shape()) - 1
    noise = math.fsum(
        float(means[name]) * partners * law.absolute_part * working.observed[index,].sum_of_sigma
        for index, name in enumerate(domain.names)
    )
    measured = task.budget.amount - (0 if task.reserve is None else task.reserve.budget.amount)
    saved = 1 - (measured / (measured + for_pairs.amount)) ** law.power
    return bool(gain > task.constants.charge * saved * noise)


def triples_worth_more(
    task: Task,
    tables: Mapping[Scope, Observation],
    expected: Mapping[Scope, float],
    pairs: Mapping[Scope, float],
    budget: Budget,
) -> bool:
    """Whether triples promise ``triple_worth`` times what measuring ``pairs`` again would gain: the noise
    that pooling removes from their ``tables``, of which ``charge`` counts."""
    weights = table_weights(task.working, task.terms.workload, [*expected, *pairs])
    gain = math.fsum(weights.get(triple, 1.0) * rows for triple, rows in expected.items())
    law, weight_of_all = budget.law(task.unit.sensitivity), math.fsum(pairs.values())
    saved = 0.0
    for pair, share in pairs.items():
        table = tables[pair]
        factor = relative_cost(law, pair, task.working.sizes)
        deviation = law.shared(factor * weight_of_all / share)
        again = pooled(table, Observation(table.values, np.asarray(deviation)))
        taken_off = law.absolute_part * (table.sum_of_sigma - again.sum_of_sigma)
        saved += weights.get(pair, 1.0) * taken_off
    return bool(gain > task.constants.triple_worth * task.constants.charge * saved)
