"""The queries that make the output's columns from staged codes: values, fresh keys, computed columns.

Post-processing: everything is deterministic in the staged codes and the seed.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute, Domain, Valued
from dpsyn_sql.attributes.bins import value_of_tick
from dpsyn_sql.attributes.keys import ROW, Tied, Ties, tied_rows
from dpsyn_sql.attributes.shape import Constant, Derived, Key, PartOfKey, Shape, UnitId
from dpsyn_sql.attributes.types import SqlType, tick_literal
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment, by_cuts, ident, literal, string_literal, text_bytes
from dpsyn_sql.sqltext.render import render

_DIGITS = 6  # the fewest digits of numbers in text
_EXACT = {"FLOAT": 2**24, "DOUBLE": 2**53}  # whole numbers up to here are exact
_YEAR_2000 = 10_957  # days since 1970-01-01
_GOLDEN = (math.sqrt(5) - 1) / 2
_FIRST = Fragment("0")
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
    ties: Ties | None = None,
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
        numbered: the first column is ``keys.ROW``, the number of the row.
        ids: of the unit of a row, from columns of staged rows; None: fresh ones.
        kept: columns of staged rows whose values are those of some columns where ``stays`` is true.
        in_place: rows lie in their order, and are read as they lie (``write.staging.rows_in_place``).
    """
    bits = _bits(shape, seed)
    valued = values_of(shape.domain, bits, shape.ticks)
    measured = valued.values
    tied = Tied(staged, {}) if ties is None else tied_rows(shape, staged, ties, measured, seed)
    roles = {role.name: role for role in shape.roles}
    columns = [Fragment(f'"row" AS {ROW}')] if numbered else []
    shuffles: list[_Shuffle] = []
    numbers: list[Fragment] = []
    gaps = bool(shape.never) and not shape.numbered
    place = Fragment(f'row_number() OVER (ORDER BY "row") - 1 + {first}' if gaps else '"row"')
    for name in shape.order:
        role = roles.get(name)
        if isinstance(role, Derived):
            continue
        if isinstance(role, UnitId) and ids is not None:
            value = ids
        elif isinstance(role, UnitId) and units.persons:
            value = surrogate(role.type, Fragment("parent"), units.persons, f"unit|{name}", seed)
        elif isinstance(role, Key | UnitId):
            number = Fragment(f"n{len(numbers)}")
            numbers.append(Fragment(f"{place} AS {number}"))
            shuffles.append(_Shuffle(number, role.name, rows, seed))
            value = _fresh(role, number, rows, units, seed)
        elif isinstance(role, PartOfKey):
            most = 1 if ties is None else ties.most
            value = surrogate(role.type, Fragment("rank"), most, f"part|{name}", seed)
        elif isinstance(role, Constant):
            value = constant_expression(role)
        elif role is not None:
            value = Fragment(f"CAST({tied.values[name]} AS {written_type(role.type)})")
        else:
            value = _in_place(name, measured[name], kept)
        columns.append(Fragment(f"{value} AS {ident(name)}"))
    derived = [role for role in shape.roles if isinstance(role, Derived)]
    computed = {role.name: _derived_column(role) for role in derived}
    written = [computed.get(name, ident(name)) for name in shape.order] if derived else []
    values = any(name not in roles for name in shape.order)
    rows_sql = rows_with_places(tied.rows, valued) if values else tied.rows
    return render(
        "write/decode",
        staged=rows_sql,
        in_place=int(in_place and rows_sql == staged),  # joins lose the order
        numbers=numbers,
        rounds=[[one.moved(turn) for one in shuffles] for turn in range(_ROUNDS if shuffles else 0)],
        last=_ROUNDS if shuffles else 0,
        columns=columns,
        written=written,
    )


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
    constants = [role for role in shape.roles if isinstance(role, Constant)]
    columns += [Fragment(f"{constant_expression(role)} AS {ident(role.name)}") for role in constants]
    derived = [_derived_column(role) for role in shape.roles if isinstance(role, Derived)]

    number = _unused("dpsyn_row", shape.order)
    query = render(
        "write/impossible",
        placed=rows_with_places(staged, valued),
        looked=looked,
        first=first,
        number=ident(number),
        columns=columns,
        derived=derived,
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


def constant_expression(role: Constant) -> Fragment:
    """The value as a SQL expression of exactly its type."""
    value = role.value
    if value is not None and not isinstance(value, str | int | Decimal | date):
        raise InternalError(f"column {role.name!r} has a constant that is not a single value")
    return Fragment(f"CAST({literal(value)} AS {written_type(role.type)})")


def derived_value(role: Derived) -> Fragment:
    """The expression of a computed column in its exact type; a failure to compute it gives NULL."""
    return Fragment(f"TRY_CAST(TRY({_checked(role.expression)}) AS {written_type(role.type)})")


def _derived_column(role: Derived) -> Fragment:
    return Fragment(f"{derived_value(role)} AS {ident(role.name)}")


def conditions(shape: Shape) -> list[Fragment]:
    """The conditions of ``shape.never``; one that cannot be computed excludes nothing."""
    return [Fragment(f"TRY({_checked(text)})") for text in shape.never]


def _checked(text: str) -> Fragment:
    """Only text that ``write.expressions`` printed from a checked tree may enter a statement."""
    if not isinstance(text, Fragment):
        raise InternalError("an owner's expression was not checked before it was used")
    return text


def written_type(kind: SqlType | None) -> Fragment:
    """The type of a column that is written."""
    if kind is None:
        raise InternalError("a column of an unsupported type is written")
    return kind.sql


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


def _fresh(role: Key | UnitId, number: Fragment, rows: int, units: Units, seed: int) -> Fragment:
    if isinstance(role, Key):
        return surrogate(role.type, number, rows, f"key|{role.name}", seed)
    unit = _unit_number(units, number)
    return surrogate(role.type, unit, units.count, f"unit|{role.name}", seed)


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


def capacity(kind: SqlType | None) -> int | None:
    """The number of different values of the type; None for more than any table has rows.

    ``kind`` is that of a key or unit id: None for a unit's BLOB.
    """
    if kind is None or kind.family in ("text", "uuid"):
        return None
    if kind.family == "enum":
        return len(_labels(kind))
    if kind.family == "boolean":
        return 2
    return _EXACT[kind.text] if kind.family == "float" else kind.high - kind.low + 1


def surrogate(kind: SqlType | None, number: Fragment, count: int, prefix: str, seed: int) -> Fragment:
    """The value of a number as a SQL expression of exactly the type; each number has its own value.

    Args:
        kind: the column's type, None for BLOB; it holds ``count`` values (see ``capacity``).
        number: a BIGINT expression, 0..count-1; plain, because it is repeated.
        count: how many values are made.
        prefix: of text values, such as ``"key"``; also tells the columns of one table apart.
        seed: of the bits in a UUID.
    """
    if kind is None or kind.family == "text":
        width = max(_DIGITS, len(str(count)))
        stem = string_literal(prefix.split("|", maxsplit=1)[0] + "-")
        text = f"{stem} || lpad(CAST({number} + 1 AS VARCHAR), {width}, '0')"
        return text_bytes(text) if kind is None else Fragment(f"({text})")
    if kind.family == "uuid":
        return _uuid(number, prefix, seed)
    if kind.family in ("enum", "boolean"):
        values = _labels(kind) if kind.family == "enum" else ("FALSE", "TRUE")
        listed = ", ".join(string_literal(value) for value in values)
        return Fragment(f"CAST(([{listed}])[{number} + 1] AS {kind.sql})")
    if kind.family == "float":
        return Fragment(f"CAST({number} + 1 AS {kind.sql})")
    start, step = _spacing(kind, count)
    return _value(kind, start, step, number)


def _spacing(kind: SqlType, count: int) -> tuple[int, int]:
    """First tick and step: plain ones (1, 2, 3; whole days from 2000 on) if the type has room."""
    second = 1_000_000 // kind.unit
    plain = {
        "integer": (1, 1),
        "decimal": (10**kind.scale, 10**kind.scale),
        "date": (_YEAR_2000, 1),
        "time": (0, second),
        "timestamp": (_YEAR_2000 * kind.day, second),
    }[kind.family]
    return plain if plain[0] + plain[1] * (count - 1) <= kind.high else (kind.low, 1)


def _value(kind: SqlType, start: int, step: int, number: Fragment) -> Fragment:
    tick = f"{number} * {step} + {start}" if step > 1 else f"{number} + {start}"
    if kind.family == "integer":
        wide = "HUGEINT" if kind.low < 0 else "UHUGEINT"
        first = f"CAST('{start}' AS {wide})"
        return Fragment(f"CAST({first} + CAST({number} AS {wide}) AS {kind.sql})")
    if kind.family == "decimal":
        if step > 1 or kind.scale == 0:
            return Fragment(f"CAST({number} + {1 if kind.low < start else start} AS {kind.sql})")
        first = tick_literal(kind, start)
        unit = tick_literal(kind, 1)
        return Fragment(f"CAST({first} + CAST({number} AS DECIMAL(38,0)) * {unit} AS {kind.sql})")
    if kind.family == "date":
        return Fragment(f"CAST(DATE '1970-01-01' + CAST({tick} AS INTEGER) AS DATE)")
    made = "make_timestamptz" if kind.zoned else "make_timestamp"
    return Fragment(f"CAST({made}(({tick}) * {kind.unit}) AS {kind.sql})")


def _uuid(number: Fragment, prefix: str, seed: int) -> Fragment:
    """122 random bits in the form of version 4 (RFC 9562): 4 bits say the version, 2 the variant."""
    halves = []
    for half, kept, fixed in (("high", 2**64 - 1 - 0xF000, 0x4000), ("low", 2**62 - 1, 2**63)):
        purpose = string_literal(f"{prefix}|{half}|{seed}")
        bits = f"hash(xor(CAST({number} AS UBIGINT), hash({purpose})))"
        whole = f"(({bits}) & CAST('{kept}' AS UBIGINT)) | CAST('{fixed}' AS UBIGINT)"
        halves.append(f"lpad(to_hex({whole}), 16, '0')")
    return Fragment(f"CAST({' || '.join(halves)} AS UUID)")


def _labels(kind: SqlType) -> tuple[str, ...]:
    found = re.findall(r"'((?:[^']|'')*)'", kind.text)
    return tuple(label.replace("''", "'") for label in found)
