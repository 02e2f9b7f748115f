"""What is asked of the rows to count them: every encoding and tally; pure, runs nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.planning.queries import Map, MarginalQuery
from dpsyn_sql.planning.row_labels import RowLabel
from dpsyn_sql.private.count.planner import SCAN_ATTRIBUTES
from dpsyn_sql.private.encode.codes import (
    encode_expression,
    key_columns,
    label_expression,
    mixed_radix,
    named_columns,
)
from dpsyn_sql.source.parts import Encoding, Tally
from dpsyn_sql.sqltext.dialect import DUCKDB, Dialect
from dpsyn_sql.sqltext.fragments import Fragment
from dpsyn_sql.sqltext.render import render


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


def pack_column(pack: int) -> Fragment:
    """The column of the encoded table that holds pack number ``pack``."""
    return Fragment(f"p{pack}")


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
    dialect: Dialect = DUCKDB,
    labels: Sequence[RowLabel] = (),
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
        dialect: of the engine that runs the statement.
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
            code = label_expression(label, named, dialect)
        codes[column] = code if bins is None else dialect.of_places(bins, str(code))
    columns = [
        Fragment(f"{mixed_radix(binned.domain, pack, codes, dialect)} AS p{i}")
        for i, pack in enumerate(packs)
    ]
    read = [Fragment(f"CAST({digits[i]} AS BIGINT) AS d{i}") for i in sorted(map(domain.index, used))]
    query = render("count/repack", table=encoding.table, digits=read, carried=list(carried), columns=columns)
    return Encoding(repacked, query, of=encoding, width=encoding.width)


def digit(domain: Domain, index: int, pack: tuple[int, ...], attribute: int) -> Fragment:
    """One attribute's code, from column ``index`` of an encoded table, which holds ``pack``."""
    place = pack.index(attribute)
    below = math.prod(domain.attributes[other].size for other in pack[place + 1 :])
    code = str(pack_column(index))
    if below > 1:
        code = f"({code} // {below})"
    if place > 0:
        code = f"({code} % {domain.attributes[attribute].size})"
    return Fragment(code)


def scans(
    relation_sql: Fragment,
    domain: Domain,
    attributes: Sequence[int],
    *,
    csv: bool,
    dialect: Dialect = DUCKDB,
) -> Iterator[tuple[Sequence[int], Tally]]:
    """One-way counts directly from the source: attributes, at most ``SCAN_ATTRIBUTES``, and their tally."""
    for start in range(0, len(attributes), SCAN_ATTRIBUTES):
        part = attributes[start : start + SCAN_ATTRIBUTES]
        query = render(
            "count/scan",
            relation=relation_sql,
            named=[one for index in part for one in _named(domain, index, dialect, csv=csv)],
            keys=[
                one for index in part for one in key_columns(domain.attributes[index], f"c{index}", dialect)
            ],
            columns=[_scan_column(domain, index, dialect, csv=csv) for index in part],
        )
        yield part, Tally(query, ("attribute", "code"))


def _named(domain: Domain, index: int, dialect: Dialect, *, csv: bool) -> list[Fragment]:
    """Raw values; only those of a hierarchy are read as their types before they are encoded."""
    attribute = domain.attributes[index]
    return named_columns(attribute, f"c{index}", dialect, csv=csv and attribute.leaves is not None)


def _scan_column(domain: Domain, index: int, dialect: Dialect, *, csv: bool) -> _ScanColumn:
    """The code is cast to the smallest type, which lets DuckDB count in a plain array."""
    attribute = domain.attributes[index]
    code = encode_expression(attribute, Fragment(f"c{index}"), from_text=csv, dialect=dialect)
    return _ScanColumn(
        attribute=index,
        code=Fragment(f"k{index}"),
        expression=Fragment(f"CAST({code} AS {dialect.code_type(attribute.size)})"),
    )


def _columns(query: MarginalQuery) -> list[tuple[str, Map | None]]:
    return list(zip(query.attrs, query.maps or (None,) * len(query.attrs), strict=True))


def _size(domain: Domain, name: str, bins: Map | None) -> int:
    return domain[name].size if bins is None else max(bins) + 1
