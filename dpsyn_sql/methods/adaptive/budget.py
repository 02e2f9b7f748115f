"""How adaptive divides its budget, and what evidence it goes by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsyn_sql.accounting.budget import Budget, NoiseLaw
from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.fit.arrays import FloatArray, IntArray, snapped
from dpsyn_sql.fit.estimate import Observation
from dpsyn_sql.fit.given import Given
from dpsyn_sql.fit.graph import JunctionTree, Scope
from dpsyn_sql.fit.reconstruct import cost_factor
from dpsyn_sql.planning.asking import Reserve
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.queries import MarginalQuery

# -- evidence ----------------------------------------------------------------------------------------

# Evidence of rows above a table of a tree: what is not asked for, because the rows that carry it are drawn.
#
# Post-processing of synthetic rows only.


def tables_above(domain: Domain, terms: Terms) -> dict[str, Observation]:
    """The one-way tables of the attributes above, without noise: the rows that carry them are drawn."""
    given = terms.evidence.read().given
    if given is None:
        return {}
    observed = dict[str, Observation]()
    for name in sorted(terms.above):
        table = given.table([name], [np.arange(domain[name].size)])
        observed[name] = Observation(terms.unit.weight * table, np.zeros(()), settled=True)
    return observed


def rows_given(terms: Terms) -> Observation | None:
    """What all rows of the table count, where the rows above it say so: to one step of the weights, since a
    table of one cell without any noise could not be weighed against another."""
    given = terms.evidence.read().given
    if given is None:
        return None
    return Observation(np.asarray(terms.unit.weight * given.total), np.ones(()))


def distributions(
    given: Given | None, tree: JunctionTree, variables: Sequence[tuple[str, IntArray]]
) -> dict[int, FloatArray]:
    """Of each clique of given variables of a tree their distribution in the rows above, above 0.

    ``variables``: of each variable of the tree its attribute and the bins of its codes.
    """
    if given is None:
        return {}
    shares = dict[int, FloatArray]()
    for index in tree.given_cliques:
        names, bins = zip(*(variables[v] for v in tree.cliques[index]), strict=True)
        shares[index] = given.shares(names, bins)
    return shares


_MOST_TIED = 2**14
# Cells of a pair of given variables that the tree holds.

_GRID = 2.0**-20
# Of information: the tree decides on questions.


def tied(given: Given, domain: Domain, above: Sequence[int], bins: Sequence[IntArray]) -> tuple[Scope, ...]:
    """The pairs of a forest of the most mutual information (Chow and Liu 1968) among given variables."""
    sizes = [int(bin_map.max()) + 1 for bin_map in bins]
    information_of = dict[tuple[int, int], float]()
    for pair in combinations([attribute for attribute in above if sizes[attribute] > 1], 2):
        if math.prod(sizes[attribute] for attribute in pair) <= _MOST_TIED:
            joint = given.shares(
                [domain.names[attribute] for attribute in pair], [bins[attribute] for attribute in pair]
            )
            product = np.multiply.outer(joint.sum(axis=1), joint.sum(axis=0))
            information = (joint * np.log(joint / product)).sum()
            information_of[pair] = float(snapped(np.asarray(information), _GRID))
    tree, group = list[Scope](), {attribute: attribute for attribute in above}
    for pair in sorted(information_of, key=lambda pair: (-information_of[pair], pair)):
        first, second = (group[attribute] for attribute in pair)
        if first != second:
            tree.append(pair)
            group = {attribute: first if leader == second else leader for attribute, leader in group.items()}
    return tuple(tree)


# -- budget ------------------------------------------------------------------------------------------

# How adaptive marginals divide their budget: constants with their reasons, shares, and the noise that they
# buy.
#
# The constants were chosen on public tables by the mean distance of two-way marginals
# (docs/results_details.md, "How constants were chosen"). If no other reason is given, the optimum is flat
# around the value. Shares follow from public facts alone.


@dataclass(frozen=True, slots=True)
class Settings:
    """Constants of the recipe; rows and sigmas refer to noisy counts."""

    one_way_share: float = 0.40
    """Share of the budget for one-way marginals: their error enters every pair (flat from 0.35 to 0.5)."""

    one_way_most: float = 0.60
    one_way_slope: float = 0.1
    one_way_rho: float = 0.015
    """Below this rho (epsilon 1) the share grows by 0.1 for each power of ten, because few pairs stand out of
    the noise."""

    total_share: float = 0.5
    """The total's share of the one-way budget is this part of what a table of d cells would get for d
    attributes (2 % on Adult, 12 % for 32 binary attributes). A flat 1 % is too little for many binary
    attributes, whose rare codes have half of its error each."""

    residual_power: float = 1 / 3
    """A residual costs the part f of a whole table of the same noise. All noise is least if the share
    of a table grows with f^(1/3)."""

    rounds: tuple[float, ...] = (0.4, 0.6)
    """Shares of the rest: a small tree first, then what its fit leaves over."""

    score_share: float = 0.05
    score_slope: float = 0.015
    """Share of a round for the distances that choose its tables. Below ``one_way_rho`` it grows for each
    power of ten."""

    preselect_between: tuple[int, int] = (50, 110)
    preselected: int = 4
    preselect_share: float = 0.3
    """With so many attributes d, a private choice of 4 d pairs comes before their distances and takes 0.3 of
    the budget of the scores. With more attributes the largest distances belong to a few groups of dependent
    attributes, and the others would get nothing."""

    pure_scores: int = 3
    pure_preselected: int = 1
    pure_preselect_share: float = 0.8
    """Laplace noise grows with the number of distances, not with its root. So a pure budget spends 3 times as
    much of a round on scores, and 0.8 of that on a private choice of d pairs, whatever the number d of
    attributes; only these have distances (docs/decisions/0041)."""

    many_tables: float = 2.0
    many_rounds: tuple[float, ...] = (1.0,)
    """With more attributes than ``preselect_between`` says, noise hides dependence from the scores before it
    hides it from the tables. The scores' share is then that for which the noise of a score and that of
    the tables of 2 pairs for each attribute cost least together, and is not divided among rounds."""

    triple_share: float = 0.15
    triple_slope: float = 0.055
    triple_most: float = 0.3
    """Share of the rest, out of the last round, for three-way tables inside cliques of the fitted model. It
    grows for each power of ten above ``one_way_rho``: larger budgets can measure more of them."""

    triple_worth: float = 3.0
    """Triples must promise this many times what the pairs would gain from their budget, because a pair is a
    part of many triples."""

    triple_rho: float = 0.01
    """Triples are measured from this rho (epsilon 0.8) on; smaller budgets lose by them."""

    triple_attributes: int = 30
    """Triples are measured up to so many attributes. Above there are thousands of candidates, whose noise
    grows with their number, and more potentials than a fit can handle (not tried on real tables above 27)."""

    triple_cells: int = 2**14
    """The most cells of a three-way table in working bins: noise would fill a larger table, and fits would be
    slow."""

    fewest_triples: int = 10
    """Fewer candidates are not asked about: the budget is better spent on the pairs."""

    full_noise: float = 0.1
    """The table over all attributes is measured, in place of triples, if the part ``charge`` of its L1 noise
    is at most this part of the rows."""

    tied: float = 0.03
    """A pair that moves fewer of the rows does not tie its attributes: sets of them are asked about."""

    most_sets: int = 2**14
    """Sets that are asked about: all of three and four attributes, then of five and six."""

    visible: float = 0.35
    screen_least: float = 0.01
    screen_most: float = 0.15
    """Part of the last round's budget for the distances of the sets: that with which a dependence that moves
    ``visible`` of the rows stands out, between these; if it takes more, nothing is asked."""

    screen_clear: float = 1.0
    least_set: float = 0.1
    """A set stands out by so many standard deviations more than the largest of all noises is expected to, and
    by this part of the rows: pairs that move few of them are not in what the model expects of a set."""

    groups: tuple[int, ...] = (4, 6, 8)
    group_apart: float = 0.008
    group_chance: float = 1.5
    group_depends: float = 0.2
    """Components of a mixture that are tried in place of the tree. It has to tell all pairs up to a mean
    distance of ``group_apart``, of ``group_chance`` times what a sample of as many rows has, and of this part
    of their distance from independence."""

    group_free: float = 0.5
    """A mixture has at most this part of the free numbers that the pairs have."""

    group_attributes: int = 6
    group_worth: float = 0.7
    """From so many attributes on groups are tried. The mixture is taken if the tables of its label are nearer
    to what it foretells: this part of their distance from what the tree foretells."""

    group_starts: int = 2
    group_steps: int = 100
    """Starts and steps of the short fit after which tables without groups are left alone: 0.03 s on Adult."""

    group_rows: int = 2**15
    """Rows that are drawn from the tree to learn what it says of labels."""

    hopeless: float = 5.0
    """Misfit of the last fit above which its three-way tables are left out: a model that misses its tables by
    so much is worse than that of the pairs. Usual misfits are at most 1 (docs/results_details.md)."""

    merge_sigmas: float = 3.0
    """Codes below this many sigmas share a bin: their pairs would be noise. The limit is at least
    sqrt(2 ln k) sigmas for k codes, the largest expected noise among them, so that noise makes no bins."""

    bins: float = 32.0
    bins_strength: float = 6000.0
    bins_power: float = 0.4
    bins_range: tuple[float, float] = (12.0, 100.0)
    """Working bins of an ordered attribute: ``bins`` at the strength N sqrt(rho) = 6000 (Adult at
    epsilon 1), growing with its power 0.4."""

    twin_bins: float = 10.0
    twin_from: float = 1.5
    twin_strength: float = 2e4
    """An ordered attribute of more than 1.5 x 10 working bins also gets a coarse twin of 10 for weak or
    far pairs, so that more of them fit under the cap. Above this strength fine pairs are always better."""

    cap_first: float = 10.0
    cap: float = 1e6
    cap_power: float = 1 / 4
    cap_most: float = 4e6
    cap_rows: float = 2e7
    """Cells of the junction tree: in the first round 10 times the sum of squared sizes, then a million at
    epsilon 1 on Adult. If more stands out of the noise, more is worth modelling: the cap grows with the power
    1/4 of rho, or of rho N^2 if that is more above Adult's. It does not grow for more than ``cap_rows`` rows:
    SQL draws them one by one, and larger tables leave the processor's cache (docs/results_details.md)."""

    sampling: float = 0.5
    """Share of the expected L1 sampling error that is subtracted from a score, because it is not
    dependence."""

    luck: float = 2.5
    """The luck among all candidates that is tolerated, in standard deviations; the rest of the expected
    winner's curse is subtracted from every score."""

    charge: float = 0.5
    """The part of a table's L1 noise that the selection charges: a fitted table keeps about half of its
    noise."""

    beside: float = 0.7
    """The part of its gain that counts for a pair beside the tree: exchanges meet it less well than a fit."""

    greed: float = 0.3
    """Pairs are taken in the order of score / cells^0.3."""

    allocation: float = 0.6
    """Budget of a pair grows with cells^0.6 (2/3 is the optimum for raw L1 noise)."""

    iterations: int = 200
    tolerance: float = 1.0
    """The most steps of a fit that forms questions, and the misfit that ends it. Few need all of them."""

    tolerance_first: float = 4.0
    tolerance_last: float = 0.5
    """The last fit is done twice. The first says only which cells cannot be, and need not be exact: it has
    half of the steps."""

    iterations_last: int = 300
    """The most steps of the second. A hundred triples of little noise beside the pairs take up to 240; cut
    off earlier, the model misses its one-way tables by many times their noise (docs/results_details.md)."""


MAX_FURTHER_CELLS = 2**20
"""The most cells of a table of three attributes or more: 8 MB to count."""

OTHER_CELLS = 2 * MAX_FURTHER_CELLS
"""The most cells of tables that are neither triples nor tables of a target: of sets over halves and in
working bins, or of all attributes, and of labels."""

MOST_TOGETHER, MOST_COLUMNS = 6, 12
"""Attributes of a set that no pair shows, and of the table over all attributes."""

_MOST_FOR_SCORES = 97
# Percent: something is left for the tables.

_FOR_PAIRS = 4
# Cells of candidate pairs per cell of candidate triples, which are all kept too.


def one_way_share(rho: float, settings: Settings) -> int:
    """A whole percentage of the budget, so that every machine plans the same."""
    share = settings.one_way_share + settings.one_way_slope * _powers_below(rho, settings)
    return round(100 * min(share, settings.one_way_most))


def score_share(rho: float, settings: Settings, *, gaussian: bool = True) -> int:
    """A whole percentage of a round."""
    times = 1 if gaussian else settings.pure_scores
    return round(100 * times * (settings.score_share + settings.score_slope * _powers_below(rho, settings)))


def score_share_of_many(sizes: Sequence[int], power: float, settings: Settings) -> int:
    """A whole percentage of the budget of all rounds, for many attributes.

    With the share s the noise of each of m scores is (m / s)^p, and the L1 noise of M tables of c cells, as
    far as the choice charges it, is charge c (f M / (1 - s))^p. The sum is least at
    s / (1 - s) = (m^p / (charge c (f M)^p))^(1 / (1 + p)).

    Args:
        sizes: working bins of each attribute.
        power: p, of the law of noise.
        settings: of the recipe.
    """
    informative = [size for size in sizes if size > 1]
    number, size = len(informative), sum(informative) / len(informative)
    scores = math.pow(number * (number - 1) / 2, power)
    factor = (1 - 1 / size) ** 2
    tables = settings.charge * size**2 * math.pow(factor * settings.many_tables * number, power)
    ratio = math.pow(scores / tables, 1 / (1 + power))
    return min(round(100 * ratio / (1 + ratio)), _MOST_FOR_SCORES)


def triple_share(rho: float, settings: Settings) -> int:
    """A whole percentage of the budget of all rounds."""
    powers = math.log10(max(rho / settings.one_way_rho, 1.0))
    return round(100 * min(settings.triple_share + settings.triple_slope * powers, settings.triple_most))


def tree_cap(rho: float, total: float, settings: Settings) -> int:
    """Cells of the junction tree in the last round.

    Args:
        rho: of the release, for units of one row.
        total: rows.
        settings: of the recipe.
    """
    counted = total if total <= settings.cap_rows else 0.0
    stands_out = max(rho / settings.one_way_rho, rho * (counted / settings.bins_strength) ** 2, 1.0)
    return round(min(settings.cap * math.pow(stands_out, settings.cap_power), settings.cap_most))


def _powers_below(rho: float, settings: Settings) -> float:
    """Powers of ten by which a budget is smaller than epsilon 1; the smallest count as ten."""
    return min(10.0, max(0.0, math.log10(settings.one_way_rho / max(rho, 1e-30))))


def triples_asked(domain: Domain, rho: float, settings: Settings) -> bool:
    """Whether the budget is large enough for three-way tables, and their number neither too small nor too
    large.

    Args:
        domain: the public domain.
        rho: of the release, for units of one row.
        settings: of the recipe.
    """
    sizes = [attribute.size for attribute in domain.attributes if attribute.size > 1]
    if rho < settings.triple_rho or len(sizes) > settings.triple_attributes:
        return False
    there = sum(math.prod(triple) <= MAX_FURTHER_CELLS for triple in combinations(sizes, 3))
    return there >= settings.fewest_triples


def reserve_of(budget: Budget, domain: Domain, pairs: tuple[MarginalQuery, ...], most: int) -> Reserve:
    """The pairs, and tables of three attributes or more, if the public domain has so many.

    ``most``: cells of candidate pairs.
    """
    used = sum(attribute.size > 1 for attribute in domain.attributes)
    if used < 3:
        return Reserve("pairs", budget, pairs)
    together = 2 * (most // _FOR_PAIRS) + OTHER_CELLS
    return Reserve("pairs", budget, pairs, min(used, MOST_COLUMNS), MAX_FURTHER_CELLS, together)


def room_of_each(reserve: Reserve) -> int:
    """The most cells of all triples, and of all tables of a target."""
    return (reserve.together - OTHER_CELLS) // 2


def relative_cost(law: NoiseLaw, scope: Scope, sizes: Sequence[int]) -> float:
    """The cost f of a table relative to that of the whole one of the same noise.

    Under Gaussian noise tables are measured as residuals, with noise of sqrt(f) times that of a count;
    Laplace noise would be larger so.
    """
    return cost_factor([sizes[variable] for variable in scope]) if law.power == 0.5 else 1.0
