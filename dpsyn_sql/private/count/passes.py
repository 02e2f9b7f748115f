"""PRIVATE: the counts of one question, by as few passes over the rows of codes as memory allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.common.progress import phase
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.private.count import statements
from dpsyn_sql.private.count.marginalise import Axes, add_to, marginals
from dpsyn_sql.private.count.planner import CountingPlan, Group, cells_of
from dpsyn_sql.private.count.products import PairSums
from dpsyn_sql.source.engine import SourceEngine
from dpsyn_sql.source.parts import Encoding
from dpsyn_sql.sqltext.fragments import Fragment

Tables = dict[MarginalQuery, NDArray[np.int64]]
Pack = tuple[int, ...]

_WEIGHT = Fragment("w")

_HELD_CELLS = 2**25
# Counts that a pass over the rows adds up: 256 MiB.


def multiplied(
    engine: SourceEngine,
    encoding: Encoding,
    plan: CountingPlan,
    queries: Sequence[MarginalQuery],
    *,
    weighted: bool,
    keep: bool = False,
) -> Tables:
    """Marginals of a plan's domain from products of its codes; arguments and errors as ``grouped``."""
    sums = PairSums(plan.domain, plan.packs, weighted=weighted)
    packs = [statements.pack_column(pack) for pack in range(len(plan.packs))]
    columns = [*packs, _WEIGHT] if weighted else packs
    with phase("count", engine.parts(encoding)) as advance:
        done = 0
        for place, codes in engine.chunks(columns, over=encoding, step="reading codes", keep=keep):
            advance(place - done)
            done = place
            sums.add([codes[pack] for pack in packs], codes[_WEIGHT] if weighted else None)
        return sums.tables(queries, plan.domain)


def grouped(
    engine: SourceEngine, encoding: Encoding, plan: CountingPlan, *, weighted: bool, keep: bool = False
) -> Tables:
    """All marginals of a plan's groups: int64 arrays of full shape, axes in the order of the queries.

    Args:
        engine: holds the rows.
        encoding: with the columns p0, p1, ... of the plan's packs, kept or to be made in passing.
        plan: its domain, packs and groups.
        weighted: rows count by their column w.
        keep: the codes are kept as well.

    Raises:
        EngineFailure: a statement failed.
        InternalError: a code is wrong.
        SourceError: the source changed meanwhile, or there is no room for the codes.
    """
    found = Tables()
    with phase("count", len(plan.groups) * engine.parts(encoding)) as advance:
        for number, groups in enumerate(_passes(plan.groups)):
            first = keep and number == 0
            sums = _summed(engine, encoding, plan, groups, advance, weighted=weighted, keep=first)
            for group, counts in zip(groups, sums, strict=True):
                found.update(_from_group(counts, plan.domain, plan.packs, group))
    return found


def is_one_pass(groups: Sequence[Group]) -> bool:
    """Whether memory holds the counts of all groups together."""
    return sum(group.cells for group in groups) <= _HELD_CELLS


def _passes(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Groups whose counts are in memory together."""
    held, cells = list[Group](), 0
    for group in groups:
        if held and cells + group.cells > _HELD_CELLS:
            yield held
            held, cells = [], 0
        held.append(group)
        cells += group.cells
    if held:
        yield held


def _summed(
    engine: SourceEngine,
    encoding: Encoding,
    plan: CountingPlan,
    groups: Sequence[Group],
    advance: Callable[[int], None],
    *,
    weighted: bool,
    keep: bool,
) -> list[NDArray[np.int64]]:
    """The counts of each group over its packs, by one pass over the rows."""
    tallies = [statements.marginal(encoding.table, group.packs, weighted=weighted) for group in groups]
    sums = [
        np.zeros([cells_of(plan.domain, plan.packs[pack]) for pack in group.packs], np.int64)
        for group in groups
    ]
    step = "counting marginals on the codes"
    for number, result in engine.part_sums(tallies, over=encoding, step=step, keep=keep):
        codes = [result[statements.pack_column(pack)] for pack in groups[number].packs]
        add_to(sums[number], codes, result["n"])
        advance(1)
    return sums


def _from_group(counts: NDArray[np.int64], domain: Domain, columns: Sequence[Pack], group: Group) -> Tables:
    """All marginals of one GROUP BY, from its counts over its packs."""
    packs = [columns[pack] for pack in group.packs]
    sizes = [[domain.attributes[attribute].size for attribute in pack] for pack in packs]
    asked = _asked(group.queries, domain, packs)
    return {
        query: array.transpose(axes).copy()
        for kept, array in marginals(counts, sizes, asked)
        for query, axes in asked[kept]
    }


def _asked(
    queries: Sequence[MarginalQuery], domain: Domain, packs: Sequence[Pack]
) -> dict[Axes, list[tuple[MarginalQuery, tuple[int, ...]]]]:
    """Queries by the places they keep in each pack, with the permutation from pack order to their own."""
    home = {
        domain.attributes[attribute].name: (pack, place)
        for pack, held in enumerate(packs)
        for place, attribute in enumerate(held)
    }
    asked: dict[Axes, list[tuple[MarginalQuery, tuple[int, ...]]]] = defaultdict(list)
    for query in queries:
        homes = [home[name] for name in query.attrs]
        in_order = sorted(homes)
        kept = tuple(tuple(place for owner, place in in_order if owner == pack) for pack in range(len(packs)))
        asked[kept].append((query, tuple(in_order.index(place) for place in homes)))
    return asked
