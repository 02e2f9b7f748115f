"""Keys of tables that are tied together, as SQL over staged codes: which row each key names, and its key.

A row's own key is made from its number (``output``). What names another row takes the key of that row's
number from a table of keys, so no key is without its row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from dpsyn_sql.attributes.shape import ForeignKey, PublicKey, RandomKey, Shape
from dpsyn_sql.attributes.types import SqlType
from dpsyn_sql.sqltext.fragments import Fragment, ident, string_literal
from dpsyn_sql.sqltext.render import render

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
