"""Pairs of attributes within limits on cells: what every method that chooses among pairs begins with."""

from __future__ import annotations

from itertools import combinations

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.planning.limits import MAX_PAIR_CELLS
from dpsyn_sql.planning.queries import MarginalQuery

MAX_CANDIDATE_CELLS = 2**25
"""The most cells of all candidates: 256 MB, counted at once for the distances. Smaller pairs first."""


def candidate_queries(domain: Domain, most: int) -> tuple[MarginalQuery, ...]:
    """Pairs of attributes within the limits, at most ``most`` cells in total, in domain order; public."""
    pairs = [
        pair
        for pair in combinations((a.name for a in domain.attributes if a.size > 1), 2)
        if domain.cells(pair) <= MAX_PAIR_CELLS
    ]
    cells = {pair: domain.cells(pair) for pair in pairs}
    kept, held = set(), 0
    for pair in sorted(pairs, key=cells.__getitem__):
        held += cells[pair]
        if held > most:
            break
        kept.add(pair)
    return tuple(MarginalQuery(pair) for pair in pairs if pair in kept)
