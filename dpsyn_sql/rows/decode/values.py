"""From codes to values: of columns, and of keys."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate

import numpy as np

from dpsyn_sql.attributes.attributes import FILL_PIECES, OTHER, Attribute, Recoding
from dpsyn_sql.attributes.positions import (
    Pieces,
    Positions,
    float_pieces,
    float_positions,
    month_positions,
    tick_pieces,
    tick_positions,
)
from dpsyn_sql.attributes.shape import ForeignKey, PublicKey, RandomKey, Shape
from dpsyn_sql.attributes.types import SqlType, supported_type, tick_literal
from dpsyn_sql.sqltext.expressions import epoch
from dpsyn_sql.sqltext.fragments import Fragment, ident, literal, string_literal
from dpsyn_sql.sqltext.render import render

# The value of a column that cannot be NULL if no label is known.
_ANY_VALUE = {"integer": "0", "boolean": "FALSE", "enum": "NULL"}
_AGAIN = 0x9E3779B97F4A7C15  # of the golden ratio: any number that no other text hashes with
_NARROW = 2**24  # widths up to here are drawn from 40 bits without leaving UBIGINT


def decode_expression(attribute: Attribute, code: Fragment, bits: Fragment) -> Fragment:
    """The value of a code as a SQL expression of exactly ``attribute.sql_type``.

    Args:
        attribute: the attribute of the code.
        code: an expression of any integer type; plain, because it is repeated.
        bits: a UBIGINT expression of 64 random bits; used for bins of several values only.
    """
    kind = attribute.type
    code = written_code(attribute.recoding, code, bits)
    if attribute.kind == "categorical":
        return _label(attribute, kind, code, bits)
    if kind.family == "float":
        return _float_value(attribute, kind, code, bits)
    pieces = tick_pieces(attribute)
    number = _number(pieces, code, bits)
    if attribute.granularity == "month":
        return from_ticks(kind, _month(kind, pieces, number, bits))
    step = attribute.granularity if isinstance(attribute.granularity, int) else 1
    positions = tick_positions(pieces.pieces, step)
    if max(positions.counts) == 1:
        return _lookup([tick_literal(kind, tick) for tick in positions.lows], kind.sql, number)
    return from_ticks(kind, _position(positions, number, bits))


def tick_expression(attribute: Attribute, code: Fragment, bits: Fragment) -> Fragment:
    """The tick (BIGINT) of a code that is a bin of whole ticks, other than months; arguments as of
    ``decode_expression``."""
    pieces = tick_pieces(attribute)
    step = attribute.granularity if isinstance(attribute.granularity, int) else 1
    position = _position(tick_positions(pieces.pieces, step), _number(pieces, code, bits), bits)
    return Fragment(f"CAST({position} AS BIGINT)")


def ticked_expression(attribute: Attribute, code: Fragment, tick: Fragment) -> Fragment:
    """The value of a tick (BIGINT) in the exact type of a binned attribute of a discrete type; NULL for the
    code of NULL."""
    value = from_ticks(attribute.type, tick)
    return Fragment(f"CASE WHEN {code} < {attribute.regular} THEN {value} END")


def _number(pieces: Pieces[int] | Pieces[float], code: Fragment, bits: Fragment) -> Fragment:
    """The number of the piece that a row of a code falls into; NULL or past the last one for other codes."""
    if pieces.single == len(pieces.starts):
        return code
    chosen = f"CAST({bits} & {FILL_PIECES - 1} AS BIGINT)"
    if pieces.single == 0:
        return Fragment(f"(CAST({code} AS BIGINT) * {FILL_PIECES} + {chosen})")
    start = _numbers(pieces.starts, "BIGINT", code)
    return Fragment(f"({start} + CASE WHEN {start} < {pieces.single} THEN 0 ELSE {chosen} END)")


def written_code(recoding: Recoding | None, code: Fragment, bits: Fragment) -> Fragment:
    """The code that is written. The bits are hashed again, so that positions in bins do not depend on it."""
    if recoding is None:
        return code
    codes = ", ".join(map(str, recoding.codes))
    chosen = Fragment(f"((hash(xor({bits}, {_AGAIN})) >> 32) * {len(recoding.instead)}) >> 32")
    instead = _numbers(recoding.instead, "BIGINT", chosen)
    return Fragment(f"(CASE WHEN {code} IN ({codes}) THEN {instead} ELSE CAST({code} AS BIGINT) END)")


def _label(attribute: Attribute, kind: SqlType, code: Fragment, bits: Fragment) -> Fragment:
    labels = [
        literal(label) if kind.family != "integer" else tick_literal(kind, int(label))
        for label in attribute.labels
    ]
    if not attribute.other:
        return _plain_label(attribute, labels, code)
    if kind.family == "text" or attribute.nullable:
        return _lookup([*labels, literal(OTHER if kind.family == "text" else None)], kind.sql, code)
    if not labels:
        return Fragment(f"CAST({_ANY_VALUE[kind.family]} AS {kind.sql})")
    drawn = f"CAST((({bits} >> 32) * {len(labels)}) >> 32 AS BIGINT)"
    chosen = Fragment(f"CASE WHEN {code} < {len(labels)} THEN CAST({code} AS BIGINT) ELSE {drawn} END")
    return _lookup(labels, kind.sql, chosen)


def _plain_label(attribute: Attribute, labels: Sequence[str], code: Fragment) -> Fragment:
    """The label of a code, NULL for the code of NULL."""
    kind = attribute.type
    if attribute.nullable:
        return _lookup(labels, kind.sql, code)
    if kind.family == "integer" and attribute.labels == tuple(range(len(labels))):
        return Fragment(f"CAST({code} AS {kind.sql})")
    if len(labels) == 2:
        return Fragment(f"CAST(CASE WHEN {code} < 1 THEN {labels[0]} ELSE {labels[1]} END AS {kind.sql})")
    return _lookup(labels, kind.sql, code)


def _lookup(values: Sequence[str], kind: Fragment, code: Fragment) -> Fragment:
    """Element of a constant list; NULL for every code past its end, such as the code of NULL."""
    if len(set(values)) > 1:
        index = f"CAST({code} AS BIGINT) + 1"
        if kind.startswith("ENUM("):
            # DuckDB 1.5 cannot store a macro with a list of an ENUM in a database file.
            return Fragment(f"CAST(([{', '.join(values)}])[{index}] AS {kind})")
        return Fragment(f"(CAST([{', '.join(values)}] AS {kind}[]))[{index}]")
    return Fragment(f"CAST(CASE WHEN {code} < {len(values)} THEN {values[0]} END AS {kind})")


def _float_value(attribute: Attribute, kind: SqlType, code: Fragment, bits: Fragment) -> Fragment:
    """low * (1 - u) + high * u: it cannot overflow as high - low can, and stays below high."""
    pieces = float_pieces(attribute)
    number = _number(pieces, code, bits)
    # The list is cast as a whole where it is long; each number is read from its text either way.
    spelled = "'{}'" if attribute.fill else "CAST('{}' AS DOUBLE)"
    low, high, top = (
        _lookup([spelled.format(repr(value)) for value in values], Fragment("DOUBLE"), number)
        for values in (
            [piece.low for piece in pieces.pieces],
            [piece.high for piece in pieces.pieces],
            [_previous(kind, piece.high) for piece in pieces.pieces],
        )
    )
    u = f"(CAST({bits} >> 11 AS DOUBLE) * CAST('{2.0**-53!r}' AS DOUBLE))"
    drawn = f"GREATEST({low}, LEAST({low} * (1 - {u}) + {high} * {u}, {top}))"
    if isinstance(attribute.granularity, Decimal):
        last = max(piece.bin[1] for piece in pieces.pieces)
        positions = float_positions(kind, pieces.pieces, last, attribute.granularity)
        drawn = _granular(positions, drawn, low, number, bits)
    # GREATEST and LEAST skip NULL, so NULL is decided by the code.
    return Fragment(f"CAST(CASE WHEN {code} < {attribute.regular} THEN {drawn} END AS {kind.sql})")


def _granular(positions: Positions, drawn: str, low: str, number: Fragment, bits: Fragment) -> str:
    """A whole multiple if the piece has one, otherwise its lower edge; any position if the multiples are
    too close to differ."""
    if not any(positions.counts):
        return drawn
    offset = _position(Positions(positions.lows, [max(1, n) for n in positions.counts], 1), number, bits)
    value = f"CAST({offset} * {positions.step} AS DOUBLE) / CAST('{10.0**positions.scale!r}' AS DOUBLE)"
    edges = [place for place, n in enumerate(positions.counts) if n == 0]
    finer = [place for place, n in enumerate(positions.counts) if n < 0]
    return _cases(number, [(edges, low), (finer, drawn)], value)


def _cases(number: Fragment, cases: Sequence[tuple[Sequence[int], str]], otherwise: str) -> str:
    """A text for each list of pieces, and one for all other pieces."""
    written = [
        f"WHEN {number} IN ({', '.join(map(str, places))}) THEN {text}" for places, text in cases if places
    ]
    return f"CASE {' '.join(written)} ELSE {otherwise} END" if written else otherwise


def _previous(kind: SqlType, edge: float) -> float:
    if kind.text == "FLOAT":
        return float(np.nextafter(np.float32(edge), np.float32(-np.inf)))
    return math.nextafter(edge, -math.inf)


def _month(kind: SqlType, pieces: Pieces[int], number: Fragment, bits: Fragment) -> str:
    """The tick of a first day of a month in the piece; the piece's first tick if it has no such day."""
    months = month_positions(kind, pieces.pieces)
    month = _position(Positions(months.lows, [max(1, n) for n in months.counts], 1), number, bits)
    day = f"(DATE '1970-01-01' + to_months(CAST({month} AS INTEGER)))"
    if kind.family == "date":
        tick = f"CAST(CAST({day} AS DATE) - DATE '1970-01-01' AS BIGINT)"
    else:
        tick = f"{epoch(day)} // {kind.unit}"
    firsts = [place for place, n in enumerate(months.counts) if n == 0]
    return _cases(number, [(firsts, _numbers([one.low for one in pieces.pieces], "BIGINT", number))], tick)


def _position(positions: Positions, code: Fragment, bits: Fragment) -> str:
    """low + step * floor(bits * count / 2**64) in integers that hold every intermediate result."""
    lows, counts, step = positions.lows, positions.counts, positions.step
    highest = max(low + count * step for low, count in zip(lows, counts, strict=True))
    widest = max(counts) * step
    if max(counts) <= _NARROW and min(lows) > -(2**62) and highest < 2**62:
        count = _numbers(counts, "UBIGINT", code)
        offset = f"CAST((({bits} >> 24) * {count}) >> 40 AS BIGINT)"
        return f"({_numbers(lows, 'BIGINT', code)} + {offset}{f' * {step}' if step > 1 else ''})"
    offset = _wide_offset(counts, code, bits)
    if step > 1:
        offset = f"({offset} * CAST('{step}' AS UHUGEINT))"
    if min(lows) >= 0:
        return f"({_numbers(lows, 'UHUGEINT', code)} + {offset})"
    low = _numbers(lows, "HUGEINT", code)
    if widest < 2**127:
        return f"({low} + CAST({offset} AS HUGEINT))"
    # The offset may exceed HUGEINT. Its halves do not, and no partial sum exceeds the value.
    return f"({low} + CAST({offset} >> 1 AS HUGEINT) + CAST({offset} - ({offset} >> 1) AS HUGEINT))"


def _wide_offset(widths: Sequence[int], code: Fragment, bits: Fragment) -> str:
    """bits * width / 2**64 with width = quotient * 2**64 + rest, each product below 2**128."""
    wide = f"CAST({bits} AS UHUGEINT)"
    rest = _numbers([width % 2**64 for width in widths], "UHUGEINT", code)
    offset = f"(({wide} * {rest}) >> 64)"
    if max(widths) >= 2**64:
        quotient = _numbers([width // 2**64 for width in widths], "UHUGEINT", code)
        offset = f"({wide} * {quotient} + {offset})"
    return offset


def _numbers(values: Sequence[int], kind: str, code: Fragment) -> Fragment:
    parsed = supported_type(kind, "of numbers")
    return _lookup([tick_literal(parsed, value) for value in values], parsed.sql, code)


def from_ticks(kind: SqlType, tick: str) -> Fragment:
    """The value of a tick of a discrete type."""
    if kind.family == "integer":
        value = tick
    elif kind.family == "decimal":
        step = format(Decimal((0, (1,), -kind.scale)), "f")
        unit = f"CAST('{step}' AS DECIMAL(38,{kind.scale}))"
        value = f"CAST({tick} AS DECIMAL(38,0)) * {unit}"
    elif kind.family == "date":
        value = f"DATE '1970-01-01' + CAST({tick} AS INTEGER)"
    elif kind.family == "time":
        value = f"make_timestamp(CAST({tick} AS BIGINT))"
    else:
        microseconds = f"CAST({tick} AS BIGINT)" + (f" * {kind.unit}" if kind.unit > 1 else "")
        value = f"{'make_timestamptz' if kind.zoned else 'make_timestamp'}({microseconds})"
    return Fragment(f"CAST({value} AS {kind.sql})")


def position_bits(attribute: Attribute, row: Fragment, seed: int) -> Fragment:
    """64 random bits of a row for the position inside a bin; one purpose string per use, because
    hash() of several arguments leaves them dependent."""
    purpose = string_literal(f"{attribute.name}|position|{seed}")
    return Fragment(f"hash(xor(CAST({row} AS UBIGINT), hash({purpose})))")


# -- keys --------------------------------------------------------------------------------------------

# Keys of tables that are tied together, as SQL over staged codes: which row each key names, and its key.
#
# A row's own key is made from its number (``output``). What names another row takes the key of that row's
# number from a table of keys, so no key is without its row.

ROW = Fragment("dpsyn_row")
"""The column of a table of keys that has the number of the row."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The rows of a public table, ordered by their group.

    ``table``: quoted name of a table with the column ``ROW`` (BIGINT, from 0) and the columns of the key.
    ``sizes``: how many rows each group 0, 1, ... has.
    """

    table: Fragment
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ties:
    """What the keys of a table's rows come from.

    Args:
        keys: by table of the tree, its table of keys: the column ``ROW`` and the columns of its key.
        rows: by table of the tree, how many rows it has.
        most: of a family of this table's rows.
        lookups: by measured attribute of this table, the public rows that it stands for.
    """

    keys: Mapping[str, Fragment]
    rows: Mapping[str, int]
    most: int = 1
    lookups: Mapping[str, Lookup] | None = None


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
    numbers, joins = dict[str, Fragment](), dict[tuple[Fragment, Fragment], Fragment]()
    shown, values = list[Fragment](), dict[str, Fragment]()
    for role in shape.roles:
        if not isinstance(role, ForeignKey | RandomKey | PublicKey):
            continue
        if isinstance(role, ForeignKey):
            number = Fragment("parent")
        else:
            if role.attribute not in numbers:
                numbers[role.attribute] = Fragment(f"m{len(numbers)}")
            number = numbers[role.attribute]
        table = (
            ties.keys[role.table] if not isinstance(role, PublicKey) else _lookup_of_keys(ties, role).table
        )
        join = joins.setdefault((table, number), Fragment(f"k{len(joins)}"))
        shown.append(Fragment(f"{join}.{ident(role.key)} AS f{len(shown)}"))
        values[role.name] = Fragment(f"f{len(shown) - 1}")
    if not values:
        return Tied(staged, values)
    drawn = [
        Fragment(f"{_drawn(shape, name, ties, measured, seed)} AS {number}")
        for name, number in numbers.items()
    ]
    sources = [
        Fragment(f"LEFT JOIN {table} AS {name} ON {name}.{ROW} = named.{number}")
        for (table, number), name in joins.items()
    ]
    return Tied(render("write/tied", staged=staged, numbers=drawn, joins=sources, columns=shown), values)


def _lookup_of_keys(ties: Ties, role: PublicKey) -> Lookup:
    return (ties.lookups or {})[role.attribute]


def _drawn(shape: Shape, name: str, ties: Ties, measured: Mapping[str, Fragment], seed: int) -> Fragment:
    """The number of the row that a reference names; NULL for none."""
    roles = (role for role in shape.roles if isinstance(role, RandomKey | PublicKey))
    role = next(role for role in roles if role.attribute == name)
    purpose = string_literal(f"{name}|named|{seed}")
    bits = f'(hash(xor(CAST("row" AS UBIGINT), hash({purpose}))) >> 32)'
    value = measured[name]
    if isinstance(role, PublicKey):
        sizes = _lookup_of_keys(ties, role).sizes
        starts = [0, *accumulate(sizes[:-1])]
        size, start = _of_group(sizes, value), _of_group(starts, value)
        return Fragment(f"CASE WHEN {size} > 0 THEN {start} + {_below(bits, size)} END")
    if not role.earlier:
        rows = ties.rows[role.table]
        return Fragment(f"CASE WHEN {rows} > 0 AND {value} IS NOT NULL THEN {_below(bits, str(rows))} END")
    found = f'CASE WHEN "row" > 0 AND {value} IS NOT NULL THEN {_below(bits, ident("row"))}'
    itself = any(one.attribute == name and one.name in shape.not_null for one in _random(shape))
    return Fragment(f'{found} ELSE "row" END' if itself else f"{found} END")


def _random(shape: Shape) -> list[RandomKey]:
    return [role for role in shape.roles if isinstance(role, RandomKey)]


def _below(bits: str, count: str) -> str:
    """A number below ``count``, which is less than 2^32, from 32 random bits."""
    return f"CAST(({bits} * CAST({count} AS UBIGINT)) >> 32 AS BIGINT)"


def _of_group(numbers: Sequence[int], value: Fragment) -> str:
    return f"(CAST([{', '.join(map(str, numbers))}] AS BIGINT[]))[CAST({value} AS BIGINT) + 1]"


def fits(kind: SqlType | None, key: SqlType | None, rows: int) -> bool:
    """Whether a column of type ``kind`` can hold the keys of ``rows`` rows that are of type ``key``."""
    if kind is None or key is None:
        return kind is key
    if kind.text == key.text or kind.family == "text":
        return True
    if key.family != "integer" or kind.family not in ("integer", "decimal"):
        return False
    return max(rows, 1) * 10**kind.scale <= kind.high and rows <= key.high
