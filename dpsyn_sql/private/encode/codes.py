"""From a column to codes 0..size-1: SQL that is a total function of one row.

This runs on the private side of the door. NULL and NaN are decided first; values are compared
and clipped before anything is computed from them (``x - lower`` overflows at the ends of
BIGINT); a value that no label and no bin covers gets the attribute's fixed fallback code. With ``prefixes``,
labels that stand for a beginning come between, the longest first.

Text is looked up in a constant map of its labels; many labels are joined in ``encode_query``.
(Casting to an ENUM is fast only while every cast succeeds, and a tree of comparisons costs one
pass per label.) Bins of one value are found by clipping, short ranges and integer labels by a constant
list, everything else by a balanced tree of comparisons.

A code of leaves is an interval of keys, because its leaves are neighbours and ascend. Few codes are found by
comparisons with where each begins; many by a join that keeps every row exactly once. Text is compared as
bytes: no collation changes the order.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpsyn_sql.attributes.attributes import ANY_REST, Attribute, Domain, Label, edge_ticks
from dpsyn_sql.attributes.hierarchies.base import Hierarchy, Leaves, absent
from dpsyn_sql.attributes.hierarchies.leaves import code_starts
from dpsyn_sql.attributes.types import SqlType, tick_literal
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.row_labels import NearestLabel, Node, RowLabel, TreeLabel
from dpsyn_sql.sqltext.expressions import code_of_label, code_type, last_start, text_as, text_bytes, value_at
from dpsyn_sql.sqltext.fragments import Fragment, by_cuts, ident, literal
from dpsyn_sql.sqltext.render import render

_LOOKUP = 4_096  # longest lookup list
_MAPPED = 256  # longest map of labels; its cost grows with its length, that of a join does not
_FEW_CUTS = 3  # a tree of so few comparisons is as fast as a list
_COMPARED = 256  # codes of leaves; a tree of comparisons is slower than a join from here on


def encode_expression(attribute: Attribute, column: Fragment, *, decimal: str = "") -> Fragment:
    """The code of one value as a SQL expression of an integer type.

    ``column`` should be a plain column reference, because it is repeated. With a ``decimal`` mark
    it is text, which is first read as the attribute's type (``read_as``). With leaves it is a name of
    ``key_columns`` and ``named_columns``.
    """
    if attribute.leaves is not None:
        return leaf_code(attribute, column)
    kind, column = attribute.type, read_as(attribute.type, column, decimal)
    if _is_one_of_two(attribute):
        return _one_of_two(attribute, column)
    return _or_missing(attribute, column, _present(attribute, kind, column))


def _is_one_of_two(attribute: Attribute) -> bool:
    """Whether an integer or boolean column has two codes in all, one of them for every other value too."""
    plain = attribute.kind == "categorical" and attribute.type.family in ("integer", "boolean")
    return plain and attribute.size == 2 and attribute.null_code is None


def _one_of_two(attribute: Attribute, column: Fragment) -> Fragment:
    """One comparison, which NULL fails like every other value; a third of the time of ``_or_missing``."""
    told = 1 - attribute.fallback_code
    label = attribute.labels[told]
    text = literal(label) if isinstance(label, bool) else tick_literal(attribute.type, int(label))
    return Fragment(f"CASE WHEN {column} = {text} THEN {told} ELSE {attribute.fallback_code} END")


def _or_missing(attribute: Attribute, column: Fragment, code: str) -> Fragment:
    """NULL and NaN are decided before anything is compared."""
    missing = attribute.fallback_code if attribute.null_code is None else attribute.null_code
    absent = f"{column} IS NULL"
    if attribute.type.family == "float":
        absent += f" OR isnan({column})"
    return Fragment(f"CASE WHEN {absent} THEN {missing} ELSE {code} END")


def _present(attribute: Attribute, kind: SqlType, column: Fragment) -> str:
    if attribute.kind == "categorical":
        if kind.family in ("text", "enum"):
            return _text_codes(attribute, kind, column)
        return _label_tree(attribute, kind, column)
    if kind.family == "float":
        cuts = [_float_literal(kind, edge) for edge in attribute.edges[1:-1] if isinstance(edge, float)]
        return by_cuts(column, cuts, [str(code) for code in range(attribute.regular)])
    ticks = edge_ticks(attribute)
    if kind.family in ("integer", "date"):
        clipped = _clipped(kind, column, ticks)
        if ticks[-1] - ticks[0] == attribute.regular:
            return clipped
        if len(ticks) - 2 > _FEW_CUTS and ticks[-1] - ticks[0] <= _LOOKUP:
            codes = [bisect_right(ticks, tick) - 1 for tick in range(ticks[0], ticks[-1])]
            return value_at(codes, clipped)
    cuts = [tick_literal(kind, tick) for tick in ticks[1:-1]]
    return by_cuts(column, cuts, [str(code) for code in range(attribute.regular)])


def _clipped(kind: SqlType, column: Fragment, ticks: Sequence[int]) -> str:
    """Steps above the lowest bin's start, after clipping to the bins: never overflows a BIGINT,
    whose range the bins' own span fits because there are so few bins."""
    low, high = tick_literal(kind, ticks[0]), tick_literal(kind, ticks[-1] - 1)
    # By comparisons: LEAST and GREATEST of DuckDB take ten times as long.
    inside = f"CASE WHEN {column} < {low} THEN {low} WHEN {column} > {high} THEN {high} ELSE {column} END"
    if kind.family == "date":
        return f"({inside} - {low})"
    wide = "BIGINT" if ticks[0] > -(2**62) and ticks[-1] < 2**62 else kind.text
    return f"CAST(CAST({inside} AS {wide}) - CAST({low} AS {wide}) AS BIGINT)"


def _text_codes(attribute: Attribute, kind: SqlType, column: Fragment) -> str:
    pairs = [(label, code) for code, label in enumerate(_distinct(attribute))]
    found = [code_of_label(pairs, _as_text(kind, column))]
    found += [code_of_label(attribute.stems(n), _stem(column, n)) for n in attribute.prefixes]
    return f"COALESCE({', '.join(found)}, {attribute.fallback_code})"


def _stem(text: str, length: int) -> str:
    """The label that stands for all text with this beginning; a function of one value."""
    return f"substr({text}, 1, {length}) || '{ANY_REST}'"


def _as_text(kind: SqlType, column: Fragment) -> str:
    return f"CAST({column} AS VARCHAR)" if kind.family == "enum" else column


def _distinct(attribute: Attribute) -> tuple[Label, ...]:
    """The labels; a repeated one would let a join double rows, and with them the sensitivity."""
    if len(set(attribute.labels)) < len(attribute.labels):
        raise InternalError(f"attribute {attribute.name!r} has a label twice")
    return attribute.labels


def _label_tree(attribute: Attribute, kind: SqlType, column: Fragment) -> str:
    """Integers that count up by subtraction, close together by a constant list; others by balanced search
    over sorted labels, equality at the leaves."""
    pairs = sorted((label, code) for code, label in enumerate(attribute.labels))
    if kind.family == "integer" and len(pairs) > _FEW_CUTS:
        low, high = int(pairs[0][0]), int(pairs[-1][0])
        counts_up = pairs == [(low + code, code) for code in range(len(pairs))]
        if counts_up or high - low < _LOOKUP:
            return _label_list(attribute, kind, column, (low, high))
    texts = [
        literal(label) if isinstance(label, bool) else tick_literal(kind, int(label)) for label, _ in pairs
    ]
    leaves = [
        f"CASE WHEN {column} = {text} THEN {code} ELSE {attribute.fallback_code} END"
        for text, (_, code) in zip(texts, pairs, strict=True)
    ]
    return by_cuts(column, texts[1:], leaves)


def _label_list(attribute: Attribute, kind: SqlType, column: Fragment, ends: tuple[int, int]) -> str:
    """A list of the codes of all integers from the lowest to the highest label; none if it counts up."""
    low, high = ends
    codes = {int(label): code for code, label in enumerate(attribute.labels)}
    listed = [codes.get(value, attribute.fallback_code) for value in range(low, high + 1)]
    place = _clipped(kind, column, (low, high + 1))
    inside = place if listed == list(range(len(listed))) else value_at(listed, place)
    bounds = f"{column} >= {tick_literal(kind, low)} AND {column} <= {tick_literal(kind, high)}"
    return f"CASE WHEN {bounds} THEN {inside} ELSE {attribute.fallback_code} END"


def _float_literal(kind: SqlType, value: float) -> Fragment:
    return Fragment(f"CAST('{value!r}' AS {kind.sql})")


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
    named = [one for i in used for one in named_columns(domain.attributes[i], f"c{i}", decimal=decimal)]
    keys = [one for i in used for one in key_columns(domain.attributes[i], f"c{i}")]
    coded = [Fragment(f"{_coded(domain.attributes[i], i)} AS k{i}") for i in used]
    lookups = [
        join
        for i in used
        if _is_joined(domain.attributes[i])
        for join in _label_joins(domain.attributes[i], i)
    ]
    codes = {position: Fragment(f"k{position}") for position in used}
    packed = [Fragment(f"{mixed_radix(domain, pack, codes)} AS p{i}") for i, pack in enumerate(packs)]
    if order is not None:
        coded.append(Fragment(f"{order} AS o"))
        packed.append(Fragment("o"))
    return render(
        "encode/encode",
        relation=relation_sql,
        named=named,
        keys=keys,
        coded=coded,
        lookups=lookups,
        packed=packed,
        carried=carried,
    )


def _is_joined(attribute: Attribute) -> bool:
    if attribute.leaves is not None:
        return has_join(attribute)
    return attribute.type.family in ("text", "enum") and len(attribute.labels) > _MAPPED


def _coded(attribute: Attribute, position: int) -> str:
    """As ``encode_expression``, but text of many labels gets its code from a join with them."""
    column = Fragment(f"c{position}")
    if not _is_joined(attribute):
        return encode_expression(attribute, column)
    if attribute.leaves is not None:
        return joined_code(attribute, column, f"l{position}")
    found = [f"l{position}.code", *(f"l{position}_{n}.code" for n in attribute.prefixes)]
    return _or_missing(attribute, column, f"COALESCE({', '.join(found)}, {attribute.fallback_code})")


def _label_joins(attribute: Attribute, position: int) -> Iterator[Fragment]:
    """Hash joins with the distinct labels as bytes, and with those that are prefixes: no collation can make
    two of them match one value, so every row stays exactly one row."""
    if attribute.leaves is not None:
        yield leaf_join(attribute, f"c{position}", f"l{position}")
        return
    text = _as_text(attribute.type, Fragment(f"c{position}"))
    pairs = [(label, code) for code, label in enumerate(_distinct(attribute))]
    yield _join(pairs, f"l{position}", text)
    for length in attribute.prefixes:
        yield _join(attribute.stems(length), f"l{position}_{length}", _stem(text, length))


def _join(pairs: Sequence[tuple[Label, int]], name: str, text: str) -> Fragment:
    rows = ", ".join(f"({text_bytes(literal(label))}, {code})" for label, code in pairs)
    return Fragment(f"LEFT JOIN (VALUES {rows}) AS {name}(label, code) ON {name}.label = {text_bytes(text)}")


def named_columns(attribute: Attribute, name: str, *, decimal: str) -> list[Fragment]:
    """The raw value under a neutral name, text already read as its type; several for a hierarchy."""
    if attribute.leaves is not None:
        return value_columns(attribute, name, decimal=decimal)
    return [Fragment(f"{read_as(attribute.type, attribute.value, decimal)} AS {name}")]


def read_as(kind: SqlType, value: Fragment, decimal: str) -> Fragment:
    """A value of its type. With a ``decimal`` mark it is text of a file, and NULL if it cannot be read so."""
    return text_as(value, kind.sql, decimal) if decimal and kind.family != "text" else value


def key_columns(attribute: Attribute, name: str) -> list[Fragment]:
    """The key under the neutral name, if the attribute has leaves."""
    return [] if attribute.leaves is None else [key_column(attribute, name)]


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


# -- leaves of a hierarchy ------------------------------------------------------------------------------


def has_join(attribute: Attribute) -> bool:
    """Whether its codes come from a join, which only a statement can make."""
    return attribute.leaves is not None and attribute.regular > _COMPARED


def value_columns(attribute: Attribute, column: str, *, decimal: str) -> list[Fragment]:
    """The values of a row that its key is made of, under the names ``<column>_0``, ``<column>_1``, ...;
    text of CSV files is read as their types."""
    made = []
    for place, one in enumerate(attribute.columns):
        value = read_as(one.type, one.value, decimal)
        made.append(Fragment(f"{value} AS {column}_{place}"))
    return made


def key_column(attribute: Attribute, column: str) -> Fragment:
    """The key of a row under the name ``column``, from ``value_columns``: a whole number, or text as bytes;
    NULL outside the hierarchy and without a value."""
    hierarchy = _hierarchy(_leaves(attribute))
    key = hierarchy.key(_values(attribute, column))
    return Fragment(f"{text_bytes(key) if hierarchy.text else key} AS {column}")


def leaf_code(attribute: Attribute, column: str) -> Fragment:
    """The code of a row by comparisons of ``key_column``."""
    starts = _starts(attribute)
    found = by_cuts(column, starts[1:], [str(code) for code in range(len(starts))])
    return _or_elsewhere(attribute, column, found)


def joined_code(attribute: Attribute, column: str, name: str) -> Fragment:
    """The code of a row by the join ``leaf_join`` of this name."""
    return _or_elsewhere(attribute, column, f"COALESCE({name}.code, {attribute.fallback_code})")


def leaf_join(attribute: Attribute, column: str, name: str) -> Fragment:
    """A join that gives the code ``<name>.code``; it neither drops nor doubles a row."""
    starts = _starts(attribute)
    return last_start(list(zip(starts, range(len(starts)), strict=True)), name, column)


def _or_elsewhere(attribute: Attribute, column: str, found: str) -> Fragment:
    """Rows without a value and rows outside are decided before keys are compared."""
    outside = f"WHEN {column} IS NULL THEN {attribute.fallback_code}"
    if attribute.null_code is None:
        return Fragment(f"CASE {outside} ELSE {found} END")
    missing = absent(_hierarchy(_leaves(attribute)), _values(attribute, column))
    return Fragment(f"CASE WHEN {missing} THEN {attribute.null_code} {outside} ELSE {found} END")


def _values(attribute: Attribute, column: str) -> list[Fragment]:
    return [Fragment(f"{column}_{place}") for place in range(len(attribute.columns))]


def _starts(attribute: Attribute) -> list[str]:
    """The least key of each code, as ``key_column`` spells keys."""
    leaves = _leaves(attribute)
    starts = code_starts(_hierarchy(leaves), leaves)
    if len(starts) != attribute.regular:
        raise InternalError(f"attribute {attribute.name!r} has another number of codes than its leaves")
    texts = _hierarchy(leaves).text
    return [str(text_bytes(literal(start))) if texts else str(start) for start in starts]


def _leaves(attribute: Attribute) -> Leaves:
    if attribute.leaves is None:
        raise InternalError(f"attribute {attribute.name!r} has no leaves")
    return attribute.leaves


def _hierarchy(leaves: Leaves) -> Hierarchy:
    """The only hierarchy; codes of several have no interval of keys."""
    if len(leaves.hierarchies) != 1:
        raise InternalError("leaves of several hierarchies have no codes that rows are counted by")
    return leaves.hierarchies[0]


# -- labels of rows -------------------------------------------------------------------------------------


def label_expression(label: RowLabel, codes: Mapping[str, Fragment]) -> Fragment:
    """The code of a label that ``check_labels`` has accepted.

    ``codes``: of each of its attributes a plain reference to a BIGINT column, because it is repeated.
    """
    if isinstance(label, TreeLabel):
        return Fragment(_leaf(label, 0, codes))
    return Fragment(_nearest(label, codes))


def _nearest(label: NearestLabel, codes: Mapping[str, Fragment]) -> str:
    """No two ranks are equal: they differ modulo the size, which gives the class of the least."""
    offsets, scores = label.ranked()
    ranks = [
        " + ".join(
            [
                f"CAST({offset} AS BIGINT)",
                *(value_at(table[j], codes[name]) for name, table in scores),
            ]
        )
        for j, offset in enumerate(offsets)
    ]
    return f"(LEAST({', '.join(ranks)}) % {label.size})"


def _leaf(label: TreeLabel, place: int, codes: Mapping[str, Fragment]) -> str:
    if place < 0:
        return str(-1 - place)
    node = label.nodes[place]
    below = _leaf(label, node.below, codes)
    above = _leaf(label, node.above, codes)
    return f"CASE WHEN {_goes_right(node, codes[node.attribute])} THEN {above} ELSE {below} END"


def _goes_right(node: Node, code: Fragment) -> str:
    """A comparison if the codes from one on go right, else a list of the codes."""
    first = node.right.index(True) if True in node.right else len(node.right)
    if all(node.right[first:]):
        return f"{code} >= {first}"
    return f"{value_at([int(side) for side in node.right], code)} = 1"
