"""Codes of rows as SQL: several attributes in one mixed-radix code, and keys as bytes.

This runs on the private side of the door. The code of each attribute is a total function of one row
(``Attribute.code``): every row has one, and no join drops or doubles a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.sqltext.fragments import Fragment, code_type, ident, text_bytes
from dpsyn_sql.sqltext.render import render


def encode_query(
    relation_sql: Fragment,
    domain: Domain,
    packs: Sequence[Sequence[int]],
    decimal: str = "",
    *,
    order: Fragment | None = None,
    carried: Sequence[Carried] = (),
) -> Fragment:
    """The query that gives the codes of all rows.

    Column ``p<i>`` holds the mixed-radix code of the attributes in ``packs[i]``, first
    attribute most significant: (c0 * size1 + c1) * size2 + c2, in the smallest unsigned type.

    Args:
        relation_sql: the text after FROM.
        domain: attributes; each is read from the column of its name or from its source expression.
        packs: positions of attributes in the domain; ``((0,), (1,), ...)`` for plain codes.
        decimal: the decimal mark of a source whose columns are text that is cast; empty: they have types.
        order: the moment of a row in neutral names: one more column ``o``.
        carried: further columns of each row.
    """
    used = sorted({position for pack in packs for position in pack})
    parts = {i: domain.attributes[i].code(f"c{i}", decimal, joined=True) for i in used}
    coded = [Fragment(f"{part.code} AS k{i}") for i, part in parts.items()]
    codes = {position: Fragment(f"k{position}") for position in used}
    packed = [Fragment(f"{mixed_radix(domain, pack, codes)} AS p{i}") for i, pack in enumerate(packs)]
    if order is not None:
        coded.append(Fragment(f"{order} AS o"))
        packed.append(Fragment("o"))
    return render(
        "encode/encode",
        relation=relation_sql,
        named=[named for part in parts.values() for named in part.named],
        keys=[key for part in parts.values() for key in part.keys],
        coded=coded,
        lookups=[join for part in parts.values() for join in part.joins],
        packed=packed,
        carried=carried,
    )


def mixed_radix(domain: Domain, pack: Sequence[int], codes: Mapping[int, Fragment]) -> Fragment:
    """One code of several attributes, the first the most significant digit, in the smallest unsigned type.

    ``codes`` are expressions of the attributes' own codes, by position in the domain.
    """
    sizes = [domain.attributes[position].size for position in pack]
    # Arithmetic in a type that holds the whole pack: small literals would give UTINYINT overflow.
    cells = math.prod(sizes)
    wide = "INTEGER" if cells < 2**31 else "BIGINT" if cells < 2**63 else "UBIGINT"
    code = f"CAST({codes[pack[0]]} AS {wide})" if len(pack) > 1 else str(codes[pack[0]])
    for position, size in zip(pack[1:], sizes[1:], strict=True):
        code = f"({code} * {size} + {codes[position]})"
    return Fragment(f"CAST({code} AS {code_type(cells)})")


def pack_column(pack: int) -> Fragment:
    """The column of the encoded table that holds pack number ``pack``."""
    return Fragment(f"p{pack}")


def digit(domain: Domain, index: int, pack: Sequence[int], attribute: int) -> Fragment:
    """One attribute's code, from column ``index`` of an encoded table, which holds ``pack``."""
    place = pack.index(attribute)
    below = math.prod(domain.attributes[other].size for other in pack[place + 1 :])
    code = str(pack_column(index))
    if below > 1:
        code = f"({code} // {below})"
    if place > 0:
        code = f"({code} % {domain.attributes[attribute].size})"
    return Fragment(code)


@dataclass(frozen=True, slots=True)
class Carried:
    """A column beside the codes: an expression of the source's columns, and its name."""

    expression: Fragment
    name: Fragment


def unit_bytes(column: str) -> Fragment:
    """The unit of a row as bytes; NULL if there is none.

    Bytes have no collation: under a default collation of NOCASE, 'ann' and 'Ann' as text would
    be one partition.
    """
    return text_bytes(f"CAST({ident(column)} AS VARCHAR)")


def key_bytes(columns: Sequence[str], of: str = "") -> Fragment:
    """A key as bytes; NULL if a part of it is. ``of``: the name of the relation that has the columns.

    Of several columns the length and the text of each in turn: other keys have other bytes.
    """
    parts = [f"CAST({of + '.' if of else ''}{ident(column)} AS VARCHAR)" for column in columns]
    if len(parts) == 1:
        return text_bytes(parts[0])
    return text_bytes(" || ".join(f"CAST(strlen({part}) AS VARCHAR) || ':' || {part}" for part in parts))
