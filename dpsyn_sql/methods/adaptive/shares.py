"""What adaptive marginals may ask, and how their budget is divided, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.methods.adaptive.settings import Settings
from dpsyn_sql.planning.plan import Further

MAX_TRIPLE_CELLS = 2**20
"""The most cells of a candidate triple of original codes: 8 MB to count."""

_MOST_FOR_SCORES = 97
# Percent: something is left for the tables.

_FOR_PAIRS = 4
# Cells of candidate pairs per cell of candidate triples, which are all kept too.


def one_way_share(rho: float, settings: Settings) -> int:
    """A whole percentage of the budget, so that every machine plans the same."""
    share = settings.one_way_share + settings.one_way_slope * _powers_below(rho, settings)
    return round(100 * min(share, settings.one_way_most))


def score_share(rho: float, settings: Settings) -> int:
    """A whole percentage of a round."""
    return round(100 * (settings.score_share + settings.score_slope * _powers_below(rho, settings)))


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
    own = [size for size in sizes if size > 1]
    number, size = len(own), sum(own) / len(own)
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


def further_queries(domain: Domain, rho: float, pairs: int, settings: Settings) -> Further | None:
    """Three-way tables, if the budget is large enough and their number neither too small nor too large.

    Args:
        domain: the public domain.
        rho: of the release, for units of one row.
        pairs: the most cells of candidate pairs.
        settings: of the recipe.
    """
    sizes = [attribute.size for attribute in domain.attributes if attribute.size > 1]
    if rho < settings.triple_rho or len(sizes) > settings.triple_attributes:
        return None
    there = sum(math.prod(triple) <= MAX_TRIPLE_CELLS for triple in combinations(sizes, 3))
    return Further(3, MAX_TRIPLE_CELLS, pairs // _FOR_PAIRS) if there >= settings.fewest_triples else None
