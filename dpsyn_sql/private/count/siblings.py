"""PRIVATE: exact tables of pairs of rows of one family, over the encoded source.

A family is the rows of one unit, or in a tree of tables those of one row of the parent. Its rows are counted
by bin first, so that a family of many rows costs as much as its bins. One database hands on codes, family by
family; where rows lie in parts, generated SQL counts them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.common.progress import phase
from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.planning.queries import Map, MarginalQuery
from dpsyn_sql.private.count.marginalise import scatter
from dpsyn_sql.private.count.sibling_sums import SiblingSums
from dpsyn_sql.private.count.statements import digit
from dpsyn_sql.source.engine import SourceEngine
from dpsyn_sql.source.parts import Encoding, Tally
from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render

_KEYS = ("a", "b")


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of the result: pairs of its rows are a product of two columns."""

    a: int
    b: int
    product: Fragment


def sibling_tables(
    engine: SourceEngine,
    encoding: Encoding,
    domain: Domain,
    packs: Sequence[tuple[int, ...]],
    queries: Sequence[MarginalQuery],
) -> list[NDArray[np.int64]]:
    """Full int64 tables of ordered pairs of distinct rows of one family, at most ``WEIGHT`` for each unit.

    Args:
        engine: holds the codes.
        encoding: with the columns p0, p1, ... of ``packs``, u, n and w, of the kept rows. It was kept, in the
            order of u; where rows lie in parts, all rows of a unit are in one.
        domain: the public domain.
        packs: positions of attributes, each pack from the most significant digit down.
        queries: two attributes each, which may be the same, of few bins; they were checked.

    Raises:
        EngineFailure: a statement failed.
        InternalError: a code is wrong, or kept rows have another order.
    """
    if not engine.in_parts:
        return _multiplied(engine, encoding, SiblingSums(domain, packs, queries))
    tallies = [sibling_tally(encoding, domain, packs, query, engine.dialect) for query in queries]
    found = []
    with phase("count", len(queries)) as advance:
        sums = engine.sums(tallies, step="counting pairs of rows", over=encoding)
        for query, result in zip(queries, sums, strict=True):
            found.append(scatter([result[key] for key in _KEYS], result["n"], query.shape(domain)))
            advance(1)
    return found


def _multiplied(engine: SourceEngine, encoding: Encoding, sums: SiblingSums) -> list[NDArray[np.int64]]:
    """The tables of codes that were kept."""
    with phase("count", engine.parts(encoding)) as advance:
        done = 0
        for place, codes in engine.chunks(sums.columns, over=encoding, step="reading codes"):
            advance(place - done)
            done = place
            sums.add(codes)
        return sums.tables()


def sibling_tally(
    encoding: Encoding,
    domain: Domain,
    packs: Sequence[tuple[int, ...]],
    query: MarginalQuery,
    dialect: Dialect,
) -> Tally:
    """The statement of one table; arguments as for ``sibling_tables``."""
    maps = query.maps or (None, None)
    first, second = (
        _code(domain, packs, name, bins, dialect) for name, bins in zip(query.attrs, maps, strict=True)
    )
    firsts, seconds = query.shape(domain)
    own = first == second  # half of the products are the others again
    counted = [_counted("a", code) for code in range(firsts)]
    counted += [_counted("b", code) for code in range(0 if own else seconds)]
    cells = [_Cell(a, b, _product(a, b, own=own)) for a in range(firsts) for b in range(seconds)]
    text = render(
        "count/siblings",
        table=encoding.table,
        first=first,
        second=second,
        counted=counted,
        cells=cells,
    )
    return Tally(text, _KEYS)


def _counted(column: str, code: int) -> Fragment:
    return Fragment(f"count(*) FILTER (WHERE {column} = {code}) AS {column}{code}")


def _product(a: int, b: int, *, own: bool) -> Fragment:
    return Fragment(f"a{min(a, b)} * a{max(a, b)}" if own else f"a{a} * b{b}")


def _code(
    domain: Domain, packs: Sequence[tuple[int, ...]], name: str, bins: Map | None, dialect: Dialect
) -> Fragment:
    attribute = domain.index(name)
    (held,) = (pack for pack in range(len(packs)) if attribute in packs[pack])
    code = f"CAST({digit(domain, held, packs[held], attribute)} AS BIGINT)"
    return Fragment(code if bins is None else f"CAST({dialect.of_places(bins, code)} AS BIGINT)")
