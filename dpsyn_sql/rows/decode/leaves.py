"""From codes of leaves to values, as SQL: a leaf of the code, then a value inside the leaf.

Leaves of a code are drawn in proportion to their rows: a code followed by 32 random bits is a place on a line
that the leaves cut up, so one join finds the leaf and what is to be known of it. Points are uniform in the
box of their leaf, in the steps of the columns' types; text is its leaf as labels have it (``car``, ``car*``);
of a taxonomy each id below a node is equally likely. ``__other__`` is a leaf of its own: text says so, other
values are NULL, or anywhere in the hierarchy where NULL cannot occur.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attributes import OTHER, Attribute, Domain
from dpsyn_sql.attributes.hierarchies.base import Hierarchy, HierarchyColumn, Leaves
from dpsyn_sql.attributes.hierarchies.leaves import by_level, node_array
from dpsyn_sql.attributes.hierarchies.points import Axis, Points
from dpsyn_sql.attributes.hierarchies.taxonomy import Taxonomy
from dpsyn_sql.attributes.hierarchies.text import Texts
from dpsyn_sql.errors import InternalError
from dpsyn_sql.rows.decode.values import decode_expression, from_ticks, ticked_expression, written_code
from dpsyn_sql.sqltext.fragments import Fragment, literal
from dpsyn_sql.sqltext.render import render

Bits = Callable[[Attribute], Fragment]

_PLACES = 2**32  # on the line of one code
_FEW = 64  # leaves of a code that are compared one by one
_NARROW = 2**24  # numbers up to here are drawn from 40 bits without leaving UBIGINT
_BETWEEN, _NO_TEXT = "\x01", "\x02"  # between texts of a list, and in place of NULL
_LEAF, _VALUE = 1, 2  # purposes of bits; the values of further columns have the numbers after it


@dataclass(frozen=True, slots=True)
class _Fact:
    """What every leaf says of a column: a list by leaf, None for ``__other__`` and NULL as values."""

    name: str
    sql_type: str
    values: Sequence[Any]

    @property
    def unnested(self) -> str:
        """The list as a column. It is one text, which the database reads much faster, and in a tenth of the
        memory, than a literal for each value."""
        if self.sql_type == "VARCHAR":
            return f"{self._texts} AS {self.name}"
        listed = "'[" + ", ".join("NULL" if one is None else repr(one) for one in self.values) + "]'"
        return f"unnest(CAST({listed} AS {self.sql_type}[])) AS {self.name}"

    @property
    def _texts(self) -> str:
        listed = _BETWEEN.join(_NO_TEXT if text is None else text for text in self.values)
        marks = listed.count(_BETWEEN), listed.count(_NO_TEXT)
        if marks != (len(self.values) - 1, sum(text is None for text in self.values)) or "\x00" in listed:
            return f"unnest(CAST([{', '.join(map(literal, self.values))}] AS VARCHAR[]))"  # texts hold marks
        split = f"unnest(string_split({literal(listed)}, chr({ord(_BETWEEN)})))"
        return f"nullif({split}, chr({ord(_NO_TEXT)}))" if marks[1] else split


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the output: what leaves say of it, and how its value is drawn from that.

    ``ids``: for a column of ids, all of them in order; the leaf says where its own are.
    """

    facts: tuple[_Fact, ...]
    value: Callable[[str, Fragment], Fragment]  # of the prefix of its facts, and 64 random bits
    ids: Sequence[str] = ()


def measured_columns(domain: Domain, bits: Bits, ticks: str = "") -> dict[str, Fragment]:
    """The value of every measured column of the output by name, over the rows of ``with_leaves``.

    Args:
        domain: attribute i has the code ``a<i>``.
        bits: 64 random bits of a row for an attribute, as UBIGINT.
        ticks: name of the attribute whose values are in the column ``t``; none if empty.
    """
    found: dict[str, Fragment] = {}
    for place, attribute in enumerate(domain.attributes):
        own = bits(attribute)
        if attribute.name == ticks:
            found[ticks] = ticked_expression(attribute, Fragment(f"a{place}"), Fragment("t"))
        elif attribute.leaves is None:
            found[attribute.name] = decode_expression(attribute, Fragment(f"a{place}"), own)
        else:
            for number, (name, made) in enumerate(
                zip((one.name for one in attribute.columns), _columns(attribute), strict=True)
            ):
                found[name] = made.value(f"v{place}_", _drawn(own, _VALUE + number))
    return found


def with_leaves(staged: Fragment, domain: Domain, bits: Bits) -> Fragment:
    """Staged rows with the leaf of each row beside its codes, to put after FROM; ``staged`` as it is if no
    attribute has leaves. Arguments as of ``measured_columns``; ``staged`` stands after FROM."""
    written, joins, shown = list[Fragment](), list[Fragment](), list[Fragment]()
    for place, attribute in enumerate(domain.attributes):
        if attribute.leaves is None:
            continue
        own = bits(attribute)
        code = written_code(attribute.recoding, Fragment(f"a{place}"), own)
        drawn = f"CAST({_drawn(own, _LEAF)} >> 32 AS BIGINT)"
        # Before the join: DuckDB takes no parameter of a macro in the condition of an ASOF join.
        written.append(Fragment(f"CAST({code} AS BIGINT) * {_PLACES} + {drawn} AS w{place}"))
        columns = _columns(attribute)
        joins += _joins(attribute.leaves, attribute, place, columns, own)
        for number, column in enumerate(columns):
            names = [fact.name for fact in column.facts] if not column.ids else []
            shown += [Fragment(f"l{place}.{name} AS v{place}_{name}") for name in names]
            if column.ids:
                shown.append(Fragment(f"i{place}_{number}.id AS v{place}_id{number}"))
    if not written:
        return staged
    return render("write/leaves", staged=staged, written=written, joins=joins, columns=shown)


def _joins(
    leaves: Leaves, attribute: Attribute, place: int, columns: Sequence[_Column], bits: Fragment
) -> Iterator[Fragment]:
    """The leaf of a row, and the ids that are drawn below it."""
    starts, kept = _starts(leaves, attribute)
    facts = [_Fact("start", "BIGINT", starts.tolist())]
    facts += [_Fact(f.name, f.sql_type, _picked(f.values, kept)) for c in columns for f in c.facts]
    own = starts // _PLACES
    if _most_of_a_code(own) <= _FEW:  # a join by code reads rows once; ASOF sorts them all in memory
        facts += [_Fact("code", "BIGINT", own.tolist())]
        facts += [_Fact("stop", "BIGINT", [*starts[1:].tolist(), (int(own[-1]) + 1) * _PLACES])]
        how, among = "LEFT", f"placed.w{place} >> 32 = l{place}.code AND placed.w{place} < l{place}.stop AND "
    else:
        how, among = "ASOF LEFT", ""
    listed = ", ".join(fact.unnested for fact in facts)
    yield Fragment(f"{how} JOIN (SELECT {listed}) AS l{place} ON {among}placed.w{place} >= l{place}.start")
    for number, column in enumerate(columns):
        if column.ids:
            ids = _Fact("id", "VARCHAR", column.ids).unnested
            low, high = (fact for fact in column.facts)
            drawn = _uniform(f"l{place}.", low, high, _drawn(bits, _VALUE + number))
            yield Fragment(
                f"LEFT JOIN (SELECT {ids}, unnest(range({len(column.ids)})) AS number) AS i{place}_{number} "
                f"ON i{place}_{number}.number = {drawn}"
            )


def _most_of_a_code(codes: NDArray[np.int64]) -> int:
    return int(np.bincount(codes).max())


def _picked(values: Sequence[Any], kept: NDArray[np.int64]) -> list[Any]:
    return [values[place] for place in kept.tolist()]


def _starts(leaves: Leaves, attribute: Attribute) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each leaf begins on the line of all codes, ascending, and its place among the values of facts.

    After the leaves come ``__other__`` and NULL, which are one place each, whatever has their code.
    """
    codes = np.array(leaves.codes, dtype=np.int64)
    rows = np.array(leaves.rows, dtype=np.float64)
    size = attribute.regular
    if len(codes) == 0 or len(rows) != len(codes) or not (np.isfinite(rows) & (rows >= 0)).all():
        raise InternalError(f"the leaves of attribute {attribute.name!r} have no numbers of rows")
    empty = np.bincount(codes, rows, size)[codes] == 0
    weights = np.where(empty, 1.0, rows)
    kept = np.flatnonzero(weights > 0)
    codes, weights = codes[kept], weights[kept]
    before = np.cumsum(weights) - weights
    firsts = np.searchsorted(codes, codes)
    within = (before - before[firsts]) / np.bincount(codes, weights, size)[codes]
    starts = codes * _PLACES + np.minimum((within * _PLACES).astype(np.int64), _PLACES - 1)
    extra = [code for code in (attribute.other_code, attribute.null_code) if code is not None]
    last = len(leaves.codes)
    places = [last if code == attribute.other_code else last + 1 for code in extra]
    starts = np.append(starts, np.array(extra, dtype=np.int64) * _PLACES)
    kept = np.append(kept, np.array(places, dtype=np.int64))
    wide = np.append(np.diff(starts) > 0, True)
    return starts[wide], kept[wide]


# -- what a leaf says of each column ----------------------------------------------------------------


def _columns(attribute: Attribute) -> list[_Column]:
    """One for each of ``attribute.columns``; the values of facts are those of the leaves, then of
    ``__other__``, then of NULL."""
    leaves, numbers = attribute.leaves, count()
    if leaves is None:
        raise InternalError(f"attribute {attribute.name!r} has no leaves")
    found: list[_Column] = []
    for hierarchy, levels, nodes in zip(leaves.hierarchies, leaves.levels, leaves.nodes, strict=True):
        found += _columns_of(hierarchy, _Nodes(hierarchy, levels, nodes), attribute.nullable, numbers)
    return found


@dataclass(frozen=True, slots=True)
class _Nodes:
    """The nodes that leaves are, of one hierarchy."""

    hierarchy: Hierarchy
    levels: tuple[int, ...]
    nodes: tuple[int | str, ...]

    def facts(self, of_level: Callable[[NDArray[Any], int], Sequence[Sequence[Any]]]) -> list[list[Any]]:
        """Lists by leaf, from a function of the nodes of one level that gives as many lists."""
        ids, found = node_array(self.hierarchy, self.nodes), list[list[Any]]()
        for level, places in by_level(self.levels).items():
            parts = of_level(ids[places], level)
            found = found or [[None] * len(ids) for _ in parts]
            for whole, part in zip(found, parts, strict=True):
                for place, value in zip(places.tolist(), part, strict=True):
                    whole[place] = value
        return found


def _columns_of(
    hierarchy: Hierarchy, nodes: _Nodes, nullable: bool, numbers: Iterator[int]
) -> Iterator[_Column]:
    root = hierarchy.root()
    if isinstance(hierarchy, Points):
        boxes = nodes.facts(
            lambda ids, level: [e.tolist() for pair in hierarchy.boxes(ids, level) for e in pair]
        )
        whole = [end.tolist()[0] for pair in hierarchy.boxes(root, 0) for end in pair]
        for place, (axis, column) in enumerate(zip(hierarchy.axes, hierarchy.columns, strict=True)):
            ends = [
                [*boxes[side], None if nullable else whole[side], None] for side in (2 * place, 2 * place + 1)
            ]
            yield _number_column(axis, column, ends, next(numbers))
    elif isinstance(hierarchy, Texts):
        (texts,) = nodes.facts(lambda ids, level: [hierarchy.labels(ids, level)])
        fact = _Fact(f"text{next(numbers)}", "VARCHAR", [*texts, OTHER, None])
        yield _Column((fact,), lambda prefix, _: Fragment(f"{prefix}{fact.name}"))
    elif isinstance(hierarchy, Taxonomy):
        yield _id_column(hierarchy, nodes, nullable, next(numbers))
    else:
        raise InternalError(f"nothing draws values of a {type(hierarchy).__name__}")


def _number_column(
    axis: Axis, column: HierarchyColumn, ends: Sequence[Sequence[Any]], number: int
) -> _Column:
    """A value from the least to the greatest one of the leaf."""
    kind = column.type
    if kind.discrete:
        low, high = (
            _Fact(f"{name}{number}", "BIGINT", e) for name, e in zip(("low", "high"), ends, strict=True)
        )
        return _Column((low, high), lambda prefix, bits: from_ticks(kind, _uniform(prefix, low, high, bits)))
    if kind.text == "FLOAT":
        ends = [_singles(values, inwards) for values, inwards in zip(ends, (np.inf, -np.inf), strict=True)]
    low, high = (_Fact(f"{name}{number}", "DOUBLE", e) for name, e in zip(("low", "high"), ends, strict=True))

    def value(prefix: str, bits: Fragment) -> Fragment:
        u = f"(CAST({bits} >> 11 AS DOUBLE) * CAST('{2.0**-53!r}' AS DOUBLE))"
        first, last = f"{prefix}{low.name}", f"{prefix}{high.name}"
        drawn = f"GREATEST({first}, LEAST({first} * (1 - {u}) + {last} * {u}, {last}))"
        return Fragment(f"CAST({drawn} AS {kind.sql})")

    return _Column((low, high), value)


def _singles(values: Sequence[float | None], inwards: float) -> list[float | None]:
    """The nearest numbers of type FLOAT, inwards."""
    found: list[float | None] = []
    for value in values:
        single = None if value is None else np.float32(value)
        if value is not None and single is not None and (float(single) - value) * inwards < 0:
            single = np.nextafter(single, np.float32(inwards))
        found.append(None if single is None else float(single))
    return found


def _id_column(hierarchy: Taxonomy, nodes: _Nodes, nullable: bool, number: int) -> _Column:
    """An id below the node of the leaf, each equally likely."""
    firsts, lasts = nodes.facts(
        lambda ids, level: [ids.tolist(), (ids + hierarchy.members(ids, level) - 1).tolist()]
    )
    low = _Fact(f"low{number}", "BIGINT", [*firsts, None if nullable else 0, None])
    high = _Fact(f"high{number}", "BIGINT", [*lasts, None if nullable else len(hierarchy.ids) - 1, None])
    kind = hierarchy.columns[0].type
    return _Column(
        (low, high), lambda prefix, _: Fragment(f"CAST({prefix}id{number} AS {kind.sql})"), hierarchy.ids
    )


def _uniform(prefix: str, low: _Fact, high: _Fact, bits: Fragment) -> str:
    """A whole number from low to high: low + floor(bits * count / 2**64)."""
    first = f"{prefix}{low.name}"
    widths = [b - a + 1 for a, b in zip(low.values, high.values, strict=True) if a is not None]
    width = f"({prefix}{high.name} - {first} + 1)"
    if max(widths, default=1) == 1:
        return first
    if max(widths) <= _NARROW:
        return f"({first} + CAST((({bits} >> 24) * CAST({width} AS UBIGINT)) >> 40 AS BIGINT))"
    return f"({first} + CAST((CAST({bits} AS UHUGEINT) * CAST({width} AS UHUGEINT)) >> 64 AS BIGINT))"


def _drawn(bits: Fragment, purpose: int) -> Fragment:
    """Other bits for each purpose, so that leaf and values do not depend on each other."""
    return Fragment(f"hash(xor({bits}, CAST({purpose} AS UBIGINT)))")
