"""The queries that make the output's columns from staged codes: values, fresh keys, computed columns.

Post-processing: everything is deterministic in the staged codes and the seed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute, Domain, Valued
from dpsyn_sql.attributes.bins import value_of_tick
from dpsyn_sql.attributes.roles import (
    ROW,
    Constant,
    Derived,
    Fresh,
    Stated,
    Ties,
    tried,
    written_type,
)
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment, by_cuts, ident, string_literal
from dpsyn_sql.sqltext.render import render

_GOLDEN = (math.sqrt(5) - 1) / 2
_FIRST = Fragment("0")
_ALONE = Ties({}, {})
_ROUNDS = 20  # of a shuffle: two rows side by side stay so with probability 2^-20


@dataclass(frozen=True, slots=True)
class Units:
    """``sizes[i]`` units have i+1 rows; together ``rows`` rows of ``count`` units. ``persons``: so many units
    are drawn, and their rows lie below them; 0 if rows are divided among units as ``sizes`` says."""

    sizes: tuple[int, ...]
    persons: int = 0

    @property
    def rows(self) -> int:
        """Rows of all units."""
        return sum((index + 1) * size for index, size in enumerate(self.sizes))

    @property
    def count(self) -> int:
        """Number of units."""
        return self.persons or sum(self.sizes)


@dataclass(frozen=True, slots=True)
class Kept:
    """Values that some rows have in place of those of their codes. ``rows``: staged rows, to put after FROM,
    with the column ``stays``, which says where; ``columns``: the value of each such column of the output."""

    rows: Fragment
    columns: Mapping[str, Fragment]


def _in_place(name: str, value: Fragment, kept: Mapping[str, Fragment]) -> Fragment:
    """The value of a column, where ``stays`` is true the one that is kept."""
    return Fragment(f"CASE WHEN stays THEN {kept[name]} ELSE {value} END") if name in kept else value


def units_of(sizes: NDArray[np.int64] | None, rows: int, persons: int = 0) -> Units:
    """The wanted numbers of units; by default every row is its own unit, or lies below one of ``persons``.

    Raises:
        InternalError: they do not sum to ``rows`` rows.
    """
    units = Units((rows,) if sizes is None else tuple(int(size) for size in sizes), persons)
    if units.rows != rows or min(units.sizes, default=0) < 0:
        raise InternalError("the units' rows do not sum to the rows that are written")
    return units


def values_of(domain: Domain, bits: Callable[[Attribute], Fragment], ticks: str = "") -> Valued:
    """The values of every measured column of the output, over the rows of ``rows_with_places``.

    Args:
        domain: attribute i has the code ``a<i>``.
        bits: 64 random bits of a row for an attribute, as UBIGINT.
        ticks: name of the attribute whose values are in the column ``t``; none if empty.
    """
    parts = list[Valued]()
    for place, attribute in enumerate(domain.attributes):
        code = Fragment(f"a{place}")
        if attribute.name == ticks:
            parts.append(Valued({ticks: value_of_tick(attribute, code, Fragment("t"))}))
        else:
            parts.append(attribute.value(code, bits(attribute), str(place)))
    return Valued(
        {name: value for part in parts for name, value in part.values.items()},
        tuple(place for part in parts for place in part.places),
        tuple(join for part in parts for join in part.joins),
        tuple(fact for part in parts for fact in part.facts),
    )


def rows_with_places(staged: Fragment, valued: Valued) -> Fragment:
    """Staged rows with what values come from beside their codes, to put after FROM as ``staged`` is;
    ``staged`` itself if values come from codes alone."""
    if not valued.places:
        return staged
    return render(
        "write/leaves", staged=staged, written=valued.places, joins=valued.joins, columns=valued.facts
    )


def output_statement(
    shape: Shape,
    staged: Fragment,
    rows: int,
    units: Units,
    seed: int,
    first: Fragment = _FIRST,
    ties: Ties = _ALONE,
    *,
    numbered: bool = False,
    ids: Fragment | None = None,
    kept: Mapping[str, Fragment] = MappingProxyType({}),
    in_place: bool = False,
) -> Fragment:
    """The query of all written columns, in source order and exact types, one row per staged row.

    Each row is decoded by itself, so that parts of the rows are decoded apart as they are together.

    Args:
        shape: complete and with checked expressions.
        staged: table of codes with the columns row, a0, a1, ... in the order of ``shape.domain``, and
            ``beside_codes``; of the output's rows all, or a part that follows the parts before it. Without
            conditions (``shape.never``), and where the shape is ``numbered``, rows are numbered from 0 over
            all parts.
        rows: number of rows of the output.
        units: how the rows are divided among privacy units.
        seed: of positions inside bins, of keys and of the division.
        first: how many rows the parts before have; read only if there are conditions, which leave gaps.
        ties: what keys of other rows come from; of a table that is tied to others.
        numbered: the first column is ``roles.ROW``, the number of the row.
        ids: of the unit of a row, from columns of staged rows; None: fresh ones.
        kept: columns of staged rows whose values are those of some columns where ``stays`` is true.
        in_place: rows lie in their order, and are read as they lie (``write.staging.rows_in_place``).
    """
    valued = values_of(shape.domain, _bits(shape, seed), shape.ticks)
    tied = tied_rows(shape, staged, ties, valued.values, seed)
    gaps = bool(shape.never) and not shape.numbered
    place = Fragment(f'row_number() OVER (ORDER BY "row") - 1 + {first}' if gaps else '"row"')
    numbering = _Numbering(place, rows, units, seed, ties.most, ids)
    fresh = {role.name: numbering.value(role) for role in shape.fresh}
    measured = {name: _in_place(name, value, kept) for name, value in valued.values.items()}
    columns, written = written_columns(shape, {**measured, **tied.values, **fresh})
    coded = set(shape.order) - {role.name for role in shape.roles}
    rows_sql = rows_with_places(tied.rows, valued) if coded else tied.rows
    shuffles = numbering.shuffles
    return render(
        "write/decode",
        staged=rows_sql,
        in_place=int(in_place and rows_sql == staged),  # joins lose the order
        numbers=[Fragment(f"{place} AS {shuffle.number}") for shuffle in shuffles],
        rounds=[[shuffle.moved(turn) for shuffle in shuffles] for turn in range(_ROUNDS if shuffles else 0)],
        last=_ROUNDS if shuffles else 0,
        columns=[*([Fragment(f'"row" AS {ROW}')] if numbered else []), *columns],
        written=written if shape.roles_of(Derived) else [],
    )


def written_columns(shape: Shape, values: Mapping[str, Fragment]) -> tuple[list[Fragment], list[Fragment]]:
    """The columns that are written of a row, in order: those that come from its codes and numbers, and over
    these all, computed ones as their expressions. ``values``: of all columns that the owner does not state.
    """
    values = {**values, **{role.name: role.sql for role in shape.roles_of(Constant)}}
    computed = {role.name: _column(role) for role in shape.roles_of(Derived)}
    names = shape.order or tuple(shape.types)
    columns = [Fragment(f"{values[name]} AS {ident(name)}") for name in names if name not in computed]
    return columns, [computed.get(name, ident(name)) for name in names]


def _column(role: Stated) -> Fragment:
    return Fragment(f"{role.sql} AS {ident(role.name)}")


@dataclass(frozen=True, slots=True)
class Tied:
    """Staged rows with keys of other rows beside them: what stands after FROM, and the columns that are
    written, by name."""

    rows: Fragment
    values: Mapping[str, Fragment]


def tied_rows(
    shape: Shape, staged: Fragment, ties: Ties, measured: Mapping[str, Fragment], seed: int
) -> Tied:
    """The staged rows with the keys of the rows that they name.

    Args:
        shape: of the table; complete.
        staged: table of codes with the columns row (0, 1, ... without gaps) and parent.
        ties: what the keys come from.
        measured: the value of each measured attribute, over ``staged``.
        seed: of the rows that are named at random.
    """
    references = shape.references
    itself = {role.attribute for role in references if role.name in shape.not_null}
    places = {name: f"m{place}" for place, name in enumerate(dict.fromkeys(r.attribute for r in references))}
    numbers, joins = dict[str, Fragment](), dict[tuple[Fragment, str], str]()
    shown, values = list[Fragment](), dict[str, Fragment]()
    for role in references:
        name, place = role.attribute, places[role.attribute]
        purpose = string_literal(f"{name}|named|{seed}")
        bits = f'(hash(xor(CAST("row" AS UBIGINT), hash({purpose}))) >> 32)'
        number = role.number(ties, measured, bits, itself=name in itself)
        numbers[name] = Fragment(f"{number} AS {place}")
        join = joins.setdefault((role.keys(ties), place), f"k{len(joins)}")
        values[role.name] = Fragment(f"CAST(f{len(shown)} AS {written_type(role.type)})")
        shown.append(Fragment(f"{join}.{ident(role.key)} AS f{len(shown)}"))
    if not values:
        return Tied(staged, values)
    sources = [
        Fragment(f"LEFT JOIN {table} AS {name} ON {name}.{ROW} = named.{number}")
        for (table, number), name in joins.items()
    ]
    numbered = list(numbers.values())
    return Tied(render("write/tied", staged=staged, numbers=numbered, joins=sources, columns=shown), values)


def impossible_rows(
    shape: Shape, staged: Fragment, first: int | Fragment, seed: int, kept: Kept | None = None
) -> tuple[str, Fragment]:
    """The query of the numbers of staged rows that meet one of ``shape.never``, and the name of its column.

    ``first``: only rows from this number on are looked at; of a shape whose rows go together, from this draw.
    ``kept``: values that are written in place of those of the codes; of the same staged rows.
    """
    looked, bits = number_column(shape), _bits(shape, seed)
    if kept is None:
        return impossible_query(shape, staged, looked, first, bits)
    return impossible_query(shape, kept.rows, looked, first, bits, kept.columns)


def impossible_query(
    shape: Shape,
    staged: Fragment,
    looked: Fragment,
    first: int | Fragment,
    bits: Callable[[Attribute], Fragment],
    kept: Mapping[str, Fragment] = MappingProxyType({}),
) -> tuple[str, Fragment]:
    """As ``impossible_rows``: only rows are looked at whose column ``looked`` is ``first`` or more; ``bits``
    are the random bits of a row, ``kept`` as of ``output_statement``."""
    valued = values_of(shape.domain, bits, shape.ticks)
    columns = [
        Fragment(f"{_in_place(name, value, kept)} AS {ident(name)}") for name, value in valued.values.items()
    ]
    columns += map(_column, shape.roles_of(Constant))
    number = _unused("dpsyn_row", shape.order)
    query = render(
        "write/impossible",
        placed=rows_with_places(staged, valued),
        looked=looked,
        first=first,
        number=ident(number),
        columns=columns,
        derived=list(map(_column, shape.roles_of(Derived))),
        conditions=conditions(shape),
    )
    return number, query


def beside_codes(shape: Shape) -> tuple[str, ...]:
    """The BIGINT columns of staged rows after the codes. Of rows below others the number ``parent`` of the
    row above (or of the person, from which bits of what all its rows share come), and ``rank``, the place in
    the family, from 0. The value ``t`` of what orders rows. Where numbered rows may have been drawn again the
    number ``drawn`` of the draw, from which other bits come."""
    again = shape.numbered and bool(shape.never)
    return ("parent", "rank") * shape.together + ("t",) * bool(shape.ticks) + ("drawn",) * again


def number_column(shape: Shape) -> Fragment:
    """What random bits of a row come from."""
    return Fragment("drawn") if "drawn" in beside_codes(shape) else ident("row")


def conditions(shape: Shape) -> list[Fragment]:
    """The conditions of ``shape.never``; one that cannot be computed excludes nothing."""
    return list(map(tried, shape.never))


def position_bits(attribute: Attribute, row: Fragment, seed: int) -> Fragment:
    """64 random bits of a row for the position inside a bin; one purpose string per use, because
    hash() of several arguments leaves them dependent."""
    purpose = string_literal(f"{attribute.name}|position|{seed}")
    return Fragment(f"hash(xor(CAST({row} AS UBIGINT), hash({purpose})))")


def _bits(shape: Shape, seed: int) -> Callable[[Attribute], Fragment]:
    def bits(attribute: Attribute) -> Fragment:
        shared = shape.together and attribute.name in shape.per_unit
        return position_bits(attribute, Fragment("parent") if shared else number_column(shape), seed)

    return bits


@dataclass(frozen=True, slots=True)
class _Shuffle:
    """A random order of the rows: the swap-or-not shuffle (Hoang, Morris and Rogaway 2012). In each round
    places are paired, x with (k - x) mod rows, and a random bit of a pair says whether its rows swap. So a
    row's place needs no other row, and rows are shuffled in parts.

    ``number`` is the column that holds the place, 0..rows-1.
    """

    number: Fragment
    name: str
    rows: int
    seed: int

    def moved(self, turn: int) -> Fragment:
        """The column after a round."""
        purpose = f"{self.name}|order|{turn}|{self.seed}"
        key = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big") % max(self.rows, 1)
        own = self.number
        other = f"({key} - {own} + CASE WHEN {own} > {key} THEN {self.rows} ELSE 0 END)"
        bits = f"hash(xor(CAST(greatest({own}, {other}) AS UBIGINT), hash({string_literal(purpose)})))"
        return Fragment(f"CASE WHEN ({bits} & 1) = 1 THEN {other} ELSE {own} END AS {own}")


@dataclass(frozen=True, slots=True)
class _Numbering:
    """The numbers of rows and units that fresh values come from: ``place`` is that of a row, before its order
    is drawn, ``most`` are the rows of a family, ``ids`` of units have their values; other terms as of
    ``output_statement``. It collects the ``shuffles`` that its values need."""

    place: Fragment
    rows: int
    units: Units
    seed: int
    most: int
    ids: Fragment | None
    shuffles: list[_Shuffle] = field(default_factory=list)

    def value(self, role: Fresh) -> Fragment:
        """The value of a row."""
        if role.numbered == "rank":
            return role.of(Fragment("rank"), self.most, self.seed)
        if role.numbered == "parent" and self.ids is not None:
            return self.ids
        if role.numbered == "parent" and self.units.persons:
            return role.of(Fragment("parent"), self.units.persons, self.seed)
        number = Fragment(f"n{len(self.shuffles)}")
        self.shuffles.append(_Shuffle(number, role.name, self.rows, self.seed))
        if role.numbered == "row":
            return role.of(number, self.rows, self.seed)
        return role.of(_unit_number(self.units, number), self.units.count, self.seed)


def _unit_number(units: Units, place: Fragment) -> Fragment:
    """The unit at a place: units of one row first, then those of two, ...; then numbered across
    sizes, so that an id does not show how many rows its unit has."""
    starts: list[int] = []
    leaves: list[str] = []
    before = passed = 0
    for index, size in enumerate(units.sizes):
        if size:
            starts.append(passed)
            leaves.append(f"({place} - {passed}) // {index + 1} + {before}")
            before, passed = before + size, passed + size * (index + 1)
    if not leaves:
        return place
    factor = _coprime(units.count)
    return Fragment(f"((({by_cuts(place, starts[1:], leaves)}) * {factor}) % {units.count})")


def _coprime(count: int) -> int:
    """A factor near the golden section: multiplying by it permutes 0..count-1."""
    factor = max(1, int(count * _GOLDEN))
    while math.gcd(factor, count) > 1:
        factor += 1
    return factor


def _unused(name: str, taken: Collection[str]) -> str:
    folded = {other.lower() for other in taken}
    while name in folded:
        name += "_"
    return name
