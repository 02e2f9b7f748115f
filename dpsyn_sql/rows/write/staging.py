"""Sampled codes in a temporary table, loaded with bounded memory (public side of the door): rows that meet no
condition; and rows of public tables as text, on their way from the database that has them to the one that is
written.

Rows that meet a condition of ``shape.never`` are changed no more than they must be. Whole other rows in their
place would have more of what never meets a condition, such as NULL. So such a row first gets other values
within the same codes. If its codes allow none, one of its columns that the conditions name gets the code of a
possible row, NULL where it has NULL: of one that has the same codes in all other columns, else in the others
that the conditions name. Then all of these columns do, of any row. A row that is impossible even then is
removed, and another one is drawn. Random bits of a row come from its number. So other values are another
number: ``STEP`` is added each time.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.attributes.output import Kept, impossible_rows, number_column
from dpsyn_sql.attributes.roles import ROW, Derived, Lookup
from dpsyn_sql.attributes.shape import Shape
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.tree import PublicTable
from dpsyn_sql.rows.sample.rounds import APART, parts, rows_left
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.sqltext.fragments import Fragment, code_type, ident
from dpsyn_sql.sqltext.render import render

Batches = Iterator[NDArray[np.integer[Any]]]
Draw = Callable[[int, int, int], int]

ROW_GROUP = 122_880
"""Rows that are loaded together, or a multiple of it. DuckDB takes a full row group as it is and copies the
rows of a part of one: of 1,000 columns a fifth of the processor time. And row groups of a file that is
written of the rows as they lie do not depend on batches."""

_DTYPES = {"UTINYINT": np.uint8, "USMALLINT": np.uint16, "UINTEGER": np.uint32, "UBIGINT": np.uint64}


def make_room(engine: Engine, domain: Domain, table: Fragment, beside: Sequence[str] = ()) -> None:
    """Create a temporary table of codes with the columns row (from 0), a0, a1, ..., then BIGINT ones of the
    names ``beside``."""
    engine.execute(room_statement(domain, table, beside), step="making room for sampled rows")


def room_statement(domain: Domain, table: Fragment, beside: Sequence[str] = ()) -> Fragment:
    """The statement that creates the temporary table."""
    types = [code_type(attribute.size) for attribute in domain.attributes]
    columns = [Fragment(f"a{position} {name}") for position, name in enumerate(types)]
    columns += [Fragment(f"{name} BIGINT") for name in beside]
    return render("sample/room", table=table, columns=[Fragment('"row" BIGINT'), *columns])


def load_table(
    engine: Engine,
    table: Fragment,
    columns: Mapping[str, NDArray[Any]],
    *,
    step: str,
    kinds: Mapping[str, str] | None = None,
) -> None:
    """Make a temporary table of columns (n,); of BIGINT, but for the ``kinds`` of some."""
    typed = {name: (kinds or {}).get(name, "BIGINT") for name in columns}
    described = [Fragment(f"{ident(name)} {kind}") for name, kind in typed.items()]
    engine.execute(render("sample/room", table=table, columns=described), step=step)
    if len(next(iter(columns.values()))):
        engine.load(table, columns, step=step)


def append(engine: Engine, domain: Domain, batches: Batches, table: Fragment, first: int) -> int:
    """Load codes, numbered from ``first`` on; how many.

    Args:
        engine: the session that writes; it cannot reach the source.
        domain: attributes in the order of the batches' columns.
        batches: arrays of shape (n, attributes) of codes; a row group of them is held in memory.
        table: quoted name of the table.
        first: the number of the first row.

    Raises:
        InternalError: a batch has another number of columns, or a code outside the domain.
        EngineFailure: the database failed.
    """
    rows = 0
    for group in _row_groups(batches, [attribute.size for attribute in domain.attributes]):
        start, count = first + rows, sum(map(len, group))
        load_codes(engine, domain, group, table, np.arange(start, start + count, dtype=np.int64))
        rows += count
    return rows


def load_codes(
    engine: Engine,
    domain: Domain,
    batches: Sequence[NDArray[np.integer[Any]]],
    table: Fragment,
    numbers: NDArray[np.int64],
    beside: Mapping[str, NDArray[np.int64]] | None = None,
) -> None:
    """Load checked batches of codes as the rows of these numbers (n,); ``beside``: their further columns."""
    loaded: dict[str, NDArray[Any]] = {"row": numbers}
    for position, attribute in enumerate(domain.attributes):
        column = np.concatenate([batch[:, position] for batch in batches])
        loaded[f"a{position}"] = column.astype(_DTYPES[code_type(attribute.size)], copy=False)
    engine.load(table, {**loaded, **(beside or {})}, step="loading sampled rows")


def _row_groups(batches: Batches, sizes: list[int]) -> Iterator[list[NDArray[np.integer[Any]]]]:
    """Checked batches, cut so that together they are whole row groups; only the last ones are other rows."""
    group, rows = list[NDArray[np.integer[Any]]](), 0
    for batch in batches:
        check_codes(batch, sizes)
        rows += len(batch)
        beyond = rows % ROW_GROUP
        if rows < ROW_GROUP:
            group.append(batch)
            continue
        cut = len(batch) - beyond
        yield [*group, batch[:cut]]
        group, rows = [batch[cut:]], beyond
    if rows:
        yield group


def stage_rows(
    engine: Engine,
    shape: Shape,
    draw: Draw,
    rows: int,
    table: Fragment,
    seed: int,
    *,
    in_parts: bool = False,
) -> int:
    """Load ``rows`` sampled rows of which none meets a condition of ``shape.never``.

    Rows that do are changed as little as possible (``write.staging``). Those that are impossible all the
    same are deleted, and others are sampled in their place, until enough are left (``sample.rounds``). If too
    few are left, a warning says so.

    Args:
        engine: the session that writes.
        shape: complete, with checked expressions.
        draw: ``draw(rows, seed, first)`` adds rows to the table, numbered from ``first`` on, and says how
            many (``append``, or ``sample.sql_rows.append_network``).
        rows: wanted.
        table: quoted name of the table to create, as ``make_room``.
        seed: of the first sample and, together with the round, of the others; of positions in bins.
        in_parts: conditions are met part by part; for rows that are independent of each other.

    Returns:
        The number of rows staged.
    """
    make_room(engine, shape.domain, table)
    if not shape.never:
        return draw(rows, seed, 0)
    total = 0
    for first, wanted in parts(rows, gaps=True) if in_parts else [(0, rows)]:
        total += _stage_possible(engine, shape, draw, wanted, table, seed, first)
    warn_of_few_rows(total, rows)
    return total


def _stage_possible(
    engine: Engine, shape: Shape, draw: Draw, rows: int, table: Fragment, seed: int, first: int
) -> int:
    def reject(number: int) -> int:
        for statement, moved in possible_statements(shape, table, number, seed):
            if moved and not staged_rows(engine, table, number + moved):
                break
            engine.execute(statement, step="changing rows that cannot be")
        return staged_rows(engine, table, first)

    def trim(most: int) -> None:
        statement = render("write/trim", staged=table, first=first, rows=most)
        engine.execute(statement, step="trimming sampled rows")

    return rows_left(rows, seed, first, draw, reject, trim)


def warn_of_few_rows(written: int, rows: int) -> None:
    """Warn if conditions leave fewer rows than are wanted."""
    if written < rows:
        warnings.warn(
            f"The conditions of never: and CHECK exclude too many rows: only {written} of {rows} rows were "
            "written.",
            stacklevel=2,
        )


def staged_rows(engine: Engine, table: Fragment, first: int = 0) -> int:
    """How many rows are staged, from row number ``first`` on."""
    sql = render("write/count_staged", staged=table, first=first)
    return int(engine.fetch(sql, step="counting sampled rows")["staged_rows"][0])


def rows_in_place(engine: Engine, table: Fragment) -> tuple[int, bool]:
    """How many rows are staged, and whether a query gives them in the order of their numbers without sorting.

    That is measured, and not concluded from how rows were staged: each lies where its number says.
    """
    counted = engine.fetch(render("write/in_place", staged=table), step="counting sampled rows")
    rows = int(counted["staged_rows"][0])
    return rows, bool(counted["kept"][0]) and int(counted["in_place"][0]) == rows


def check_codes(batch: NDArray[np.integer[Any]], sizes: list[int]) -> None:
    """A narrowing cast would wrap a wrong code silently into another valid one."""
    if batch.ndim != 2 or batch.shape[1] != len(sizes):
        raise InternalError(f"a batch of codes has shape {batch.shape}, expected (rows, {len(sizes)})")
    if batch.size and not (batch.min() >= 0 and np.all(batch.max(axis=0) < np.array(sizes))):
        raise InternalError("a sampled code lies outside its attribute's domain")


STEP = 2**34
"""Larger than the numbers of rows that are drawn for a part."""

WITHIN = 12
"""Times that values are drawn within the same codes: a row of which one in three is possible is found with
probability .992."""

AFTER = 3
"""The same for codes of another row, whose own values are possible."""

_WORD = re.compile(r"""'(?:[^']|'')*'|"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^\W\d][\w$]*)""")
# A text, which names nothing, or an identifier.

_MOST_ALONE = 4
# Columns that are changed alone: ``STEP`` is added fewer than 64 times, and parts stay apart.


def again_statement(
    shape: Shape, staged: Fragment, first: int | Fragment, seed: int, kept: Kept | None = None
) -> Fragment:
    """Give the staged rows that meet a condition other values within their codes; ``first`` and ``kept`` as
    of ``impossible_rows``."""
    _, impossible = impossible_rows(shape, staged, first, seed, kept)
    number = number_column(shape)
    return render("write/again", staged=staged, number=number, step=STEP, impossible=impossible)


def possible_statements(
    shape: Shape, staged: Fragment, first: int | Fragment, seed: int
) -> Iterator[tuple[Fragment, int]]:
    """Change, then remove, the staged rows, from row number ``first`` on, that meet a condition; of rows that
    are each by themselves.

    One statement after the other, each with what is added to ``first`` in the numbers of the rows that
    met a condition before it: without such rows the others change nothing.
    """
    turn = 0

    def looked() -> Fragment:
        return Fragment(f"{first} + {turn * STEP}")

    for turn in range(WITHIN):
        yield again_statement(shape, staged, looked(), seed), turn * STEP
    turn = WITHIN
    for alike, positions in _donors(shape):
        number, impossible = impossible_rows(shape, staged, looked(), seed)
        statement = render(
            "write/instead",
            staged=staged,
            first=first,
            number=ident(number),
            impossible=impossible,
            alike=Fragment(f"hash({', '.join(['0', *alike])})"),
            codes=[Fragment(f"a{position}") for position in positions],
            step=STEP,
        )
        yield statement, turn * STEP
        turn += 1
        for _ in range(AFTER):
            yield again_statement(shape, staged, looked(), seed), turn * STEP
            turn += 1
    _, impossible = impossible_rows(shape, staged, looked(), seed)
    yield render("write/reject", staged=staged, impossible=impossible), turn * STEP


def _donors(shape: Shape) -> Iterator[tuple[list[str], list[int]]]:
    """What rows have to agree in, as expressions, and the attributes whose codes one takes over from another:
    one column of the conditions alone, the last ones first, and only where no row is found for that, all."""
    attributes = shape.domain.attributes
    positions = [position for position, attribute in enumerate(attributes) if _named(shape, attribute)]
    other_codes = [f"a{position}" for position in range(len(attributes)) if position not in positions]
    nulls = [
        f"a{position} = {attributes[position].size - 1}"
        for position in positions
        if attributes[position].nullable
    ]
    for rest in (other_codes, []):
        for position in reversed(positions[:_MOST_ALONE]):
            yield [*rest, *nulls, *(f"a{other}" for other in positions if other != position)], [position]
    if len(positions) > 1:
        yield nulls, positions


def _named(shape: Shape, attribute: Attribute) -> bool:
    """Whether a condition names a column of an attribute, or a computed column that is made of one."""
    texts = list[str](shape.never)
    for role in shape.roles_of(Derived):
        if any(_names(text, role.name) for text in texts):
            texts.append(role.expression)
    return any(_names(text, column.name) for text in texts for column in attribute.columns)


def _names(text: str, column: str) -> bool:
    """Whether an identifier of the text, as it was printed, is that of a column; a function or a type that is
    called so is no harm."""
    return any(
        (match["plain"] or (match["quoted"] or "").replace('""', '"')).lower() == column.lower()
        for match in _WORD.finditer(text)
    )


def replaced_rows(engine: Engine, staged: Fragment, rows: int, part: int) -> int:
    """How many staged rows conditions gave other codes; ``rows`` were drawn first, a ``part`` at a time."""
    sql = render(
        "write/replaced",
        staged=staged,
        apart=APART,
        step=STEP,
        within=WITHIN,
        drawn=min(rows, part),
    )
    return int(engine.fetch(sql, step="counting sampled rows")["replaced"][0])


# -- rows of public tables ----------------------------------------------------------------------------

Texts = Mapping[str, NDArray[Any]]
"""By column, object (rows,): text, or None for NULL."""


@dataclass(frozen=True, slots=True, eq=False)
class PublicRows:
    """All rows of a public table."""

    table: PublicTable
    values: Texts


@dataclass(frozen=True, slots=True, eq=False)
class GroupedRows:
    """Keys of public rows by group.

    Args:
        groups: int64 (rows,), the group 0, 1, ... of each row: the value of the attribute that is measured.
        keys: by column of the public table's key, the values; no NULL, and each castable to the type of the
            column that names it.
    """

    groups: NDArray[np.int64]
    keys: Texts


def public_rows(engine: Engine, table: PublicTable) -> PublicRows:
    """Read a public table, in the session that can.

    Raises:
        EngineFailure: the database failed.
    """
    names = [column.name for column in table.relation.columns]
    sql = render("write/public_text", rows=table.relation.sql, columns=list(map(ident, names)))
    fetched = engine.fetch(sql, step="reading a public table")
    return PublicRows(table, {name: _texts(fetched[f"c{position}"]) for position, name in enumerate(names)})


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    """Text with None for NULL, of a column that may be masked."""
    texts = np.array(np.ma.getdata(values), dtype=object)
    texts[np.ma.getmaskarray(values)] = None
    return texts


def load_lookup(engine: Engine, rows: GroupedRows, table: Fragment) -> Lookup:
    """Rows in the order of their groups, as a temporary table of the session that writes.

    Raises:
        InternalError: columns of another length than the groups, or a key without a value.
    """
    if any(len(column) != len(rows.groups) or None in set(column) for column in rows.keys.values()):
        raise InternalError("a lookup of public rows has a key without a value")
    order = np.argsort(rows.groups, kind="stable")
    load_texts(engine, {name: column[order] for name, column in rows.keys.items()}, table)
    return Lookup(table, tuple(np.bincount(rows.groups).tolist()))


def load_texts(engine: Engine, columns: Texts, table: Fragment) -> None:
    """Rows of text as a temporary table with the column ``ROW``, numbered from 0."""
    numbers = np.arange(len(next(iter(columns.values()))), dtype=np.int64)
    kinds, step = dict.fromkeys(columns, "VARCHAR"), "loading rows of a public table"
    load_table(engine, table, {ROW: numbers, **columns}, step=step, kinds=kinds)


def copied_rows(table: Fragment, public: PublicTable) -> Fragment:
    """The query of a public table's rows, of a table of text with them."""
    columns: Sequence[Fragment] = [
        Fragment(f"CAST({ident(column.name)} AS {_kind(column.sql_type)}) AS {ident(column.name)}")
        for column in public.relation.columns
    ]
    return render("write/public_rows", table=table, row=ROW, columns=columns)


def _kind(sql_type: str) -> Fragment:
    """A type as the catalog spells it, which quotes what it must."""
    return Fragment(sql_type)
