"""PRIVATE: what is asked of the rows to count them, and the passes over them.

What is asked of the rows to count them: every encoding and tally; pure, runs nothing.

PRIVATE: the counts of one question, by as few passes over the rows of codes as memory allows.

PRIVATE: exact tables of pairs of rows of one family, over the encoded source.

A family is the rows of one unit, or in a tree of tables those of one row of the parent. Its rows are counted
by bin first, so that a family of many rows costs as much as its bins. One database hands on codes, family by
family; where rows lie in parts, generated SQL counts them there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.common.progress import phase
from dpsyn_sql.planning.queries import Map, MarginalQuery
from dpsyn_sql.planning.row_labels import NearestLabel
from dpsyn_sql.private.count.planner import SCAN_ATTRIBUTES, CountingPlan, Group, cells_of
from dpsyn_sql.private.count.sums import (
    Axes,
    Pack,
    PairSums,
    SiblingSums,
    add_rows,
    add_to,
    marginals,
    narrow,
    scatter,
    whole_codes,
)
from dpsyn_sql.private.rows.codes import (
    digit,
    mixed_radix,
    pack_column,
)
from dpsyn_sql.source.engine import Encoding, SourceEngine, Tally
from dpsyn_sql.source.relation import WEIGHT
from dpsyn_sql.sqltext.fragments import Fragment, code_type, value_at
from dpsyn_sql.sqltext.render import render

# -- encodings and tallies -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ScanColumn:
    """One attribute of a scan, as its template wants it."""

    attribute: int
    code: Fragment
    expression: Fragment


@dataclass(frozen=True, slots=True)
class BinnedMarginals:
    """Marginals over bins, which are public, as marginals of a domain of their own: they are counted like all
    others.

    ``domain`` has an attribute for each attribute and map that the queries use.

    ``columns[i]``: position in the first domain, and the map, of attribute i. ``queries``: the same
    marginals, in order, over ``domain``.
    """

    domain: Domain
    columns: tuple[tuple[int, Map | None], ...]
    queries: tuple[MarginalQuery, ...]

    @classmethod
    def of(cls, queries: Sequence[MarginalQuery], domain: Domain) -> BinnedMarginals:
        """The marginals ``queries`` of ``domain``, whose maps were checked."""
        names: dict[tuple[str, Map | None], str] = {}
        for query in queries:
            for key in _columns(query):
                names.setdefault(key, f"{len(names)} {key[0]}")  # one attribute may have several maps
        attributes = (
            Attribute(name, "INTEGER", "categorical", labels=tuple(range(_size(domain, *key))))
            for key, name in names.items()
        )
        return cls(
            Domain(tuple(attributes)),
            tuple((domain.index(name), bins) for name, bins in names),
            tuple(MarginalQuery(tuple(names[key] for key in _columns(query))) for query in queries),
        )


def marginal(table: Fragment, packs: Sequence[int], *, weighted: bool = False) -> Tally:
    """Count the cells of one GROUP BY over ``packs`` of the encoded table; rows by their weight ``w`` if they
    have one."""
    columns = [pack_column(pack) for pack in packs]
    query = render("count/marginal", table=table, columns=columns, weighted=weighted)
    return Tally(query, tuple(columns))


def repack(
    repacked: Fragment,
    encoding: Encoding,
    domain: Domain,
    stored: Sequence[tuple[int, ...]],
    binned: BinnedMarginals,
    packs: Sequence[tuple[int, ...]],
    labels: Sequence[NearestLabel] = (),
    carried: Sequence[Fragment] = (),
) -> Encoding:
    """The same rows with bins of their codes and with labels, in other packs.

    Args:
        repacked: quoted name under which statements read the bins.
        encoding: with the columns p0, p1, ... of ``stored``.
        domain: the public domain.
        stored: packs of the encoding, each with its attributes from the most significant digit down.
        binned: the wanted attributes; each is one of ``stored`` or a label, over its codes or bins.
        packs: the wanted packs of ``binned.domain``, in the same form.
        labels: the attributes that follow those of ``domain``.
        carried: further columns of the encoding that stay.
    """
    digits = {
        attribute: digit(domain, index, pack, attribute)
        for index, pack in enumerate(stored)
        for attribute in pack
    }
    named = {domain.names[attribute]: Fragment(f"d{attribute}") for attribute in digits}
    codes, used = dict[int, Fragment](), set[str]()
    for column, (attribute, bins) in enumerate(binned.columns):
        if attribute < len(domain.attributes):
            name = domain.names[attribute]
            used.add(name)
            code = named[name]
        else:
            label = labels[attribute - len(domain.attributes)]
            used.update(label.attributes)
            code = label.code(named)
        codes[column] = code if bins is None else value_at(bins, str(code))
    columns = [Fragment(f"{mixed_radix(binned.domain, pack, codes)} AS p{i}") for i, pack in enumerate(packs)]
    read = [Fragment(f"CAST({digits[i]} AS BIGINT) AS d{i}") for i in sorted(map(domain.index, used))]
    query = render("count/repack", table=encoding.table, digits=read, carried=list(carried), columns=columns)
    return Encoding(repacked, query, of=encoding, width=encoding.width)


def scans(
    relation_sql: Fragment,
    domain: Domain,
    attributes: Sequence[int],
    *,
    decimal: str,
) -> Iterator[tuple[Sequence[int], Tally]]:
    """One-way counts directly from the source: attributes, at most ``SCAN_ATTRIBUTES``, and their tally."""
    for start in range(0, len(attributes), SCAN_ATTRIBUTES):
        part = attributes[start : start + SCAN_ATTRIBUTES]
        coded = [domain.attributes[index].code(f"c{index}", decimal) for index in part]
        query = render(
            "count/scan",
            relation=relation_sql,
            named=[named for attribute in coded for named in attribute.named],
            keys=[key for attribute in coded for key in attribute.keys],
            columns=[
                _scan_column(domain, index, attribute.code)
                for index, attribute in zip(part, coded, strict=True)
            ],
        )
        yield part, Tally(query, ("attribute", "code"))


def _scan_column(domain: Domain, index: int, code: Fragment) -> _ScanColumn:
    """The code is cast to the smallest type, which lets DuckDB count in a plain array."""
    return _ScanColumn(
        attribute=index,
        code=Fragment(f"k{index}"),
        expression=Fragment(f"CAST({code} AS {code_type(domain.attributes[index].size)})"),
    )


def _columns(query: MarginalQuery) -> list[tuple[str, Map | None]]:
    return list(zip(query.attrs, query.maps or (None,) * len(query.attrs), strict=True))


def _size(domain: Domain, name: str, bins: Map | None) -> int:
    return domain[name].size if bins is None else max(bins) + 1


# -- marginals -----------------------------------------------------------------------------------------


Tables = dict[MarginalQuery, NDArray[np.int64]]
_WEIGHT = Fragment("w")

_HELD_CELLS = 2**25
# Counts that a pass over the rows adds up: 256 MiB.


def counted(
    engine: SourceEngine,
    encoding: Encoding,
    plan: CountingPlan,
    queries: Sequence[MarginalQuery],
    *,
    keep: bool = False,
) -> Tables:
    """Marginals of a plan's domain: int64 arrays of full shape, axes in the order of the queries.

    Args:
        engine: holds the rows.
        encoding: with the columns p0, p1, ... of the plan's packs, kept or to be made in passing.
        plan: of these marginals; ``weighted``: rows count by their column w.
        queries: those of the plan's groups; of at most two attributes if products count them.
        keep: the codes are kept as well.

    Raises:
        EngineFailure: a statement failed.
        InternalError: a code is wrong.
        SourceError: the source changed meanwhile, or there is no room for the codes.
    """
    if plan.strategy == "products":
        return _multiplied(engine, encoding, plan, queries, keep=keep)
    found = Tables()
    with phase("count", len(plan.groups) * engine.parts(encoding)) as advance:
        for number, groups in enumerate(_passes(plan.groups)):
            first = keep and number == 0
            summed = _read if plan.strategy == "read" else _grouped
            sums = summed(engine, encoding, plan, groups, advance, keep=first)
            for group, counts in zip(groups, sums, strict=True):
                found.update(_from_group(counts, plan.domain, plan.packs, group))
    return found


def _multiplied(
    engine: SourceEngine,
    encoding: Encoding,
    plan: CountingPlan,
    queries: Sequence[MarginalQuery],
    *,
    keep: bool,
) -> Tables:
    """The same by products of the codes; arguments and errors as ``counted``."""
    sums = PairSums(plan.domain, plan.packs, weighted=plan.weighted)
    with phase("count", engine.parts(encoding)) as advance:
        for codes, weights in _rows(engine, encoding, plan, range(len(plan.packs)), advance, keep=keep):
            sums.add(codes, weights)
        return sums.tables(queries, plan.domain)


def _rows(
    engine: SourceEngine,
    encoding: Encoding,
    plan: CountingPlan,
    packs: Iterable[int],
    advance: Callable[[int], None],
    *,
    keep: bool,
) -> Iterator[tuple[list[NDArray[Any]], NDArray[Any] | None]]:
    """Some rows after the other: the codes of these packs, and weights if they have some; unchecked."""
    columns, done = [pack_column(pack) for pack in packs], 0
    read = [*columns, _WEIGHT] if plan.weighted else columns
    for part, codes in engine.chunks(read, over=encoding, step="reading codes", keep=keep):
        advance(part - done)
        done = part
        yield [codes[column] for column in columns], codes[_WEIGHT] if plan.weighted else None


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


def _grouped(
    engine: SourceEngine,
    encoding: Encoding,
    plan: CountingPlan,
    groups: Sequence[Group],
    advance: Callable[[int], None],
    *,
    keep: bool,
) -> list[NDArray[np.int64]]:
    """The counts of each group over its packs, by one pass of GROUP BYs over the rows."""
    tallies = [marginal(encoding.table, group.packs, weighted=plan.weighted) for group in groups]
    sums = _no_counts(plan, groups)
    step = "counting marginals on the codes"
    for number, result in engine.part_sums(tallies, over=encoding, step=step, keep=keep):
        codes = [result[pack_column(pack)] for pack in groups[number].packs]
        add_to(sums[number], codes, result["n"])
        advance(1)
    return sums


def _read(
    engine: SourceEngine,
    encoding: Encoding,
    plan: CountingPlan,
    groups: Sequence[Group],
    advance: Callable[[int], None],
    *,
    keep: bool,
) -> list[NDArray[np.int64]]:
    """The same, by reading the codes: every row is added to the counts of every group."""
    sums = _no_counts(plan, groups)
    packs = sorted({pack for group in groups for pack in group.packs})
    sizes = [cells_of(plan.domain, plan.packs[pack]) for pack in packs]
    homes = [[packs.index(pack) for pack in group.packs] for group in groups]

    def advanced(parts: int) -> None:
        advance(parts * len(groups))

    for codes, weights in _rows(engine, encoding, plan, packs, advanced, keep=keep):
        checked = [narrow(column, size) for column, size in zip(codes, sizes, strict=True)]
        each = 1 if weights is None else whole_codes(weights, WEIGHT + 1)
        for home, counts in zip(homes, sums, strict=True):
            add_rows(counts, [checked[place] for place in home], each)
    return sums


def _no_counts(plan: CountingPlan, groups: Sequence[Group]) -> list[NDArray[np.int64]]:
    shapes = ([cells_of(plan.domain, plan.packs[pack]) for pack in group.packs] for group in groups)
    return [np.zeros(shape, np.int64) for shape in shapes]


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


# -- pairs of rows -------------------------------------------------------------------------------------


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
        return _siblings(engine, encoding, SiblingSums(domain, packs, queries))
    tallies = [sibling_tally(encoding, domain, packs, query) for query in queries]
    found = []
    with phase("count", len(queries)) as advance:
        sums = engine.sums(tallies, step="counting pairs of rows", over=encoding)
        for query, result in zip(queries, sums, strict=True):
            found.append(scatter([result[key] for key in _KEYS], result["n"], query.shape(domain)))
            advance(1)
    return found


def _siblings(engine: SourceEngine, encoding: Encoding, sums: SiblingSums) -> list[NDArray[np.int64]]:
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
) -> Tally:
    """The statement of one table; arguments as for ``sibling_tables``."""
    maps = query.maps or (None, None)
    first, second = (_code(domain, packs, name, bins) for name, bins in zip(query.attrs, maps, strict=True))
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


def _code(domain: Domain, packs: Sequence[tuple[int, ...]], name: str, bins: Map | None) -> Fragment:
    attribute = domain.index(name)
    (held,) = (pack for pack in range(len(packs)) if attribute in packs[pack])
    code = f"CAST({digit(domain, held, packs[held], attribute)} AS BIGINT)"
    return Fragment(code if bins is None else f"CAST({value_at(bins, code)} AS BIGINT)")
