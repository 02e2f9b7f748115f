"""Which pairs or triples to measure next, and their shares of the budget: greedy, from noisy distances.

Post-processing of noisy answers only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dpsyn_sql.fit.graph import Scope, Triangulation, cells_of
from dpsyn_sql.fit.residuals import cost_factor
from dpsyn_sql.methods.adaptive.settings import Settings

MEAN_ABSOLUTE = math.sqrt(2 / math.pi)
"""Mean absolute value of a standard normal variable."""


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """Noise of a table measured with the share s of a budget: ``unit`` / s^``power`` rows per cell.

    ``unit`` is the mean absolute noise with the whole budget; the power is 1/2 for Gaussian noise
    and 1 for Laplace noise under pure differential privacy. ``residuals``: tables are measured as residuals,
    with noise of sqrt(f) times that, f = ``factor``.
    """

    unit: float
    power: float
    residuals: bool = False

    @property
    def mean_absolute(self) -> float:
        """Mean absolute value in standard deviations."""
        return MEAN_ABSOLUTE if self.power == 0.5 else math.sqrt(0.5)

    def factor(self, scope: Scope, sizes: Sequence[int]) -> float:
        """The cost of a table relative to that of the whole one of the same noise."""
        return cost_factor([sizes[variable] for variable in scope]) if self.residuals else 1.0


@dataclass
class _Basket:
    """Pairs taken so far, and the noise they would carry at the best division of the budget.

    A table of weight v_c counts as one of v_c cells_c cells. With w_c = (v_c cells_c)^allocation f_c^(1/3)
    and W their sum it gets the share w_c / W, and noise that weighs v_c cells_c unit (f_c W / w_c)^power.
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
        return float(self.law.unit * (grown - now))

    def take(self, pair: Scope) -> None:
        weight, spread = self._shares(pair)
        self.taken[pair] = weight
        self.weight += weight
        self.spread += spread

    def _shares(self, pair: Scope) -> tuple[float, float]:
        cells = self.weights.get(pair, 1.0) * cells_of([pair], self.sizes)
        factor = self.law.factor(pair, self.sizes)
        weight = cells**self.settings.allocation * factor**self.settings.residual_power
        return weight, cells * (factor / weight) ** self.law.power


def selected(
    scores: Mapping[Scope, float],
    twins: Mapping[Scope, Scope],
    weights: Mapping[Scope, float],
    sizes: Sequence[int],
    held: Sequence[Scope],
    cap: float,
    law: NoiseLaw,
    settings: Settings,
    beside: set[Scope] | None = None,
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
        held: scopes the graph has already.
        cap: the most cells of the junction tree.
        law: the noise that this round's budget buys.
        settings: of the recipe.
        beside: filled with pairs that only the cap keeps out of the tree, if they are worth it nevertheless
            (``Settings.beside``): they are among the pairs to measure. None: there are no such pairs.
    """
    fine_of = {twin: fine for fine, twin in twins.items()}
    scores = {pair: weights.get(pair, 1.0) * score for pair, score in scores.items()}
    basket, graph, misses = _Basket(sizes, weights, law, settings), Triangulation(sizes, held), 0
    patience = 4 * len(sizes) + 40
    wanted = [pair for pair, score in scores.items() if score > 0]
    for pair in sorted(wanted, key=lambda p: -scores[p] / cells_of([p], sizes) ** settings.greed):
        if fine_of.get(pair) in basket.taken:
            continue
        twin = twins.get(pair)
        gain = scores[pair] - (scores[twin] if twin is not None and twin in basket.taken else 0.0)
        if gain <= settings.charge * basket.price(pair):
            continue
        full = misses > patience and not graph.holds(pair)  # then only pairs that the tree holds already
        larger = graph if full else graph.grown(pair)
        if full or larger.cells > cap:
            misses += 1
            if beside is not None and settings.beside * gain > settings.charge * basket.price(pair):
                beside.add(pair)
                basket.take(pair)
            continue
        graph = larger
        basket.take(pair)
    return basket.taken
