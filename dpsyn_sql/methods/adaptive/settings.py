"""The constants of adaptive marginals, each with its reason.

Chosen on four public tables of 10 to 40 attributes by the mean distance of two-way marginals; where no other
source is given, the optimum is flat around the value.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Constants of the recipe; rows and sigmas refer to noisy counts."""

    one_way_share: float = 0.40
    """Of the budget for one-way marginals: their error enters every pair (flat from 0.35 to 0.5)."""

    one_way_most: float = 0.60
    one_way_slope: float = 0.1
    one_way_rho: float = 0.015
    """Below this rho (epsilon 1) the share grows by 0.1 for each power of ten: few pairs can be seen then.
    0.6 for 0.4 at epsilon 0.1 is 3 % better on Adult, 7 % on a table of 1,000 rows at 0.3."""

    rounds: tuple[float, ...] = (0.4, 0.6)
    """Shares of the rest: a small tree first, then what its fit leaves over. One round is 5 % worse."""

    score_share: float = 0.05
    score_slope: float = 0.015
    """Of a round for the distances that choose its tables: 0.3 to 1 % better than 0.08 from epsilon 1 on, on
    tables of 14 to 45 attributes. Below ``one_way_rho`` it grows for each power of ten: at epsilon 0.05 to
    0.3 0.08 is 0.2 to 3 % better than 0.05 on four tables, and 0.4 % worse on one."""

    preselect_between: tuple[int, int] = (50, 110)
    preselected: int = 4
    preselect_share: float = 0.3
    """With so many attributes d a private choice of 4 d pairs comes before their distances, for 0.3 of what
    the scores cost. Mean two-way distance at epsilon 1 against scores for all pairs: 2 % lower with 56
    attributes, 8 % with 83, 9 % with 98; but 11 % higher with 133 and 19 % with 196 (the tables of
    benchmarks/README.md): the largest distances are then those of a few groups of attributes that all go
    together, and the others get nothing."""

    triple_share: float = 0.15
    triple_slope: float = 0.055
    triple_most: float = 0.3
    """Of the rest, out of the last round, for three-way tables inside cliques of the fitted model. With 0.15
    the three-way distance at epsilon 10 is a quarter lower on mushroom (8,124 rows), 8 % on flights
    (336,776), 4 % on weather (26,115), at 1 1 % on Adult, where 0.25 is 1 % worse. At 10 0.25 is another 6 %
    lower on mushroom, 5 % on flights, 1 to 3 % on Adult and income; at 3 0.2 is 2 % lower on mushroom:
    hence more for each power of ten above ``one_way_rho``."""

    triple_worth: float = 3.0
    """Triples have to promise so many times what the pairs would gain from their budget, because a pair is a
    part of many triples: income at epsilon 1 mostly promises 2 and less and lost by them, Adult at 1
    promises 4 and gains 0.7 %."""

    triple_rho: float = 0.01
    """From this rho (epsilon 0.8) on: at epsilon 0.3 income loses 5 %, at 0.1 nothing gains."""

    triple_attributes: int = 30
    """Up to so many: above, there are thousands of candidates, whose noise grows with their number, and more
    potentials than a fit can bear (not tried on real tables above 27)."""

    triple_cells: int = 2**14
    """Of a three-way table in working bins: noise would fill a larger one, and the fit would take long."""

    fewest_triples: int = 10
    """Fewer candidates are not asked about: the budget is better spent on the pairs (weather at epsilon 1 has
    four, and was 1 to 2 % worse with them)."""

    hopeless: float = 5.0
    """Misfit of the last fit above which its three-way tables are left out: a model that meets its tables so
    badly is worse than that of the pairs. With 24 binary columns that go together, at epsilon 10, it was 14
    to 120 before fits had their present coordinates; since then 0.2 there, at most 1 on other tables."""

    size_power: float = 2 / 3
    """Half of the one-way budget is divided by codes^(2/3): the optimum for the L1 norm of raw noise."""

    merge_sigmas: float = 3.0
    """Codes below this many sigmas do not stand alone: their pairs would be noise. Of k codes at least
    sqrt(2 ln k) sigmas, the largest noise expected among them, so that noise makes no bins."""

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
    """Cells of the junction tree: in the first round 10 times the sum of squared sizes, then a million (a
    calibration takes 7 ms) at epsilon 1 on Adult, where 4 million gain nothing. Where more stands out of
    the noise, more is worth modelling: the cap grows with the power 1/4 of rho, or of rho N^2 if that is more
    above Adult's. Not for more rows than ``cap_rows``: they are drawn one by one, and look-ups in twice the
    cells, out of the processor's cache, took 402 s for 197 (100 million)."""

    sampling: float = 0.5
    """Share of the expected L1 sampling error that comes off a score: it is no dependence."""

    luck: float = 2.5
    """Standard deviations of luck among all candidates that are tolerated; the expected rest of the
    winner's curse comes off every score."""

    charge: float = 0.5
    """Of a table's L1 noise is charged in the selection: a fitted table keeps about half of it."""

    greed: float = 0.3
    """Pairs are taken in the order of score / cells^0.3."""

    allocation: float = 0.6
    """Budget of a pair grows with cells^0.6 (2/3 is the optimum for raw L1 noise)."""

    iterations: int = 200
    tolerance: float = 0.5
    tolerance_last: float = 0.3
    """Steps of a fit at most, and the misfit that ends it: of fits that only form questions, and of the last.
    Half of the tolerances change distances by 0.5 % at most on Adult, at epsilon 0.1 to 10, and not beyond
    noise on income. Few fits need all of the steps (flights at 10)."""
