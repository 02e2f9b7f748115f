"""PRIVATE: the rows of all tables of a tree as codes, each row beside the rows above it.

Rows of one table may belong to units: then the units are a table above it without columns. A statement says
of each row its ``part``: 0 and 1 are the halves of the real units, drawn by a hash, 2 is synthetic. The
distance of the halves is the floor of a figure: two samples of one law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.evaluation.codes import Coded, Codes, encode
from dpsyn_sql.evaluation.session import ComparedColumn, Session
from dpsyn_sql.evaluation.tables import keys_of
from dpsyn_sql.planning.tree import PublicTable, Reference, Table, Tree
from dpsyn_sql.source.names import fold, name_hint, shorten
from dpsyn_sql.sqltext.fragments import Fragment, ident, string_literal, temporary_table
from dpsyn_sql.sqltext.render import render

STEP = "comparing units"

COMPARED = ("real", "synthetic")

PARTS = {"real": (0, 1), "synthetic": (2,), "first half": (0,), "second half": (1,)}
"""Of each side its parts."""

_COUNTED = ("rows", "missing", "broken")
_KEYS = (
    *("table", "key", "names", "owning"),
    *(f"{figure}_{side}" for figure in _COUNTED for side in COMPARED),
)


@dataclass(frozen=True, slots=True)
class LinkedRows:
    """The rows of a table that belong to a unit, in the temporary table ``rows``.

    ``rows`` has part, side, id, unit (the id of the unit), parent (the id of the row above), the columns of
    the key, perhaps moment (the order), the codes of the table and of those above it, and a hash h<index> of
    each value of the table. ``columns``: each compared column, and the name of its codes; none of units that
    no table holds (``in_table``). ``above``: the rows of the parent.
    """

    name: str
    engine: DuckDBEngine
    rows: Fragment
    key: tuple[Fragment, ...]
    columns: tuple[tuple[Coded, Fragment], ...] = ()
    above: LinkedRows | None = None
    ordered: bool = False
    in_table: bool = True

    @property
    def path(self) -> tuple[LinkedRows, ...]:
        """All rows above, those of the root first."""
        return () if self.above is None else (*self.above.path, self.above)

    @property
    def hashes(self) -> list[Fragment]:
        """The hashes of the values of each column."""
        return [Fragment(f"h{coded.index}") for coded, _ in self.columns]


# -- codes of tables ---------------------------------------------------------------------------------


def coded(table: Table, session: Session) -> Codes:
    """The codes of all rows of a table; where it has keys with what links its rows: id, keys r<i>, perhaps a
    moment, and hashes of values.

    Raises:
        EngineFailure: the database failed, such as for want of room.
    """
    if not session.keys:
        return encode(session)
    columns = session.columns
    more = {f"r{index}": Fragment(f"v{len(columns) + index}") for index in range(len(session.keys))}
    more |= {f"h{index}": Fragment(f"hash(v{index})") for index in range(len(columns))}
    if table.order:
        more["moment"] = Fragment(f"v{columns.index(order_column(session, table.order))}")
    return encode(session, id=Fragment("row_number() OVER ()"), **more)


def order_column(session: Session, order: str) -> ComparedColumn:
    """The column that orders the rows of a unit.

    Raises:
        InputError: it is no column of numbers, dates or times that is compared.
    """
    if not isinstance(order, str):
        raise InputError(f"order={said(order)}: give the name of one column")
    columns = {
        fold(column.name): column for column in session.columns if column.kind in ("numeric", "temporal")
    }
    if fold(order) not in columns:
        hint = name_hint(order, [column.name for column in columns.values()], "there are")
        raise InputError(
            f"order={shorten(order)!r} is no column of numbers, dates or times that is compared; {hint}"
        )
    return columns[fold(order)]


# -- rows beside the rows above them -----------------------------------------------------------------


def linked(tree: Tree, codes: Mapping[str, Codes], seed: int) -> tuple[list[LinkedRows], pd.DataFrame]:
    """The rows of all tables in the order of the tree, units that no table holds first; and one line per key:
    how many rows break it.

    Args:
        tree: the tables of the real side.
        codes: by table, as ``coded`` makes them; all have keys.
        seed: of the halves.

    Raises:
        InputError: a foreign key and the key that it names have different numbers of columns.
        EngineFailure: the database failed, such as for want of room.
    """
    lines, rows = list[dict[str, object]](), list[LinkedRows]()
    repeated = dict[str, bool]()
    root = tree.root
    if root.foreign_key:
        name, keys = ", ".join(root.foreign_key), _key_columns(root, root.foreign_key)
        units = LinkedRows(name, codes[root.name].engine, temporary_table("linked"), keys, in_table=False)
        _make_roots(units, codes[root.name], keys, seed, once=True)
        rows.append(units)
        sql = _dangling(root, codes, units, root.foreign_key)
        lines.append(_key_line(codes[root.name], root, root.foreign_key, name, sql))
    for table in tree:
        of_table = _key_lines(tree, table, codes)
        broken = (line["broken_real"] or line["broken_synthetic"] for line in of_table if not line["names"])
        repeated[table.name] = any(broken)
        rows.append(_linked(table, codes[table.name], rows, repeated, seed))
        lines += of_table
    return rows, pd.DataFrame(lines, columns=[*_KEYS])


def _linked(
    table: Table, codes: Codes, rows: Sequence[LinkedRows], repeated: Mapping[str, bool], seed: int
) -> LinkedRows:
    """The rows of a table; ``rows``: of the tables before it."""
    columns = tuple((column, Fragment(f"k{len(rows)}_{column.index}")) for column in codes.columns)
    key = _key_columns(table, table.key)
    parent = table.parent or (rows[0].name if rows and table.foreign_key else None)
    above = next((candidate for candidate in rows if candidate.name == parent), None)
    linked_rows = LinkedRows(
        table.name, codes.engine, temporary_table("linked"), key, columns, above, bool(table.order)
    )
    selected = [Fragment(f"{column.key} AS {name}") for column, name in columns]
    selected += [*linked_rows.hashes, *key, *([Fragment("moment")] if table.order else [])]
    if above is None:
        _make_roots(linked_rows, codes, selected, seed)
        return linked_rows
    sql = render(
        "evaluate/linked",
        table=linked_rows.rows,
        codes=codes.table,
        parents=above.rows,
        once=int(repeated.get(above.name, False)),
        keys=list(above.key),
        ties=_ties(table, table.foreign_key, above.key),
        above=[name for ancestor in linked_rows.path for _, name in ancestor.columns],
        columns=selected,
    )
    codes.engine.execute(sql, step=STEP)
    return linked_rows


def _make_roots(
    rows: LinkedRows, codes: Codes, columns: Sequence[Fragment], seed: int, *, once: bool = False
) -> None:
    """Rows without rows above; ``once``: the first of each key alone."""
    texts = Fragment("concat_ws(chr(31), " + ", ".join(rows.key) + ")")
    sql = render(
        "evaluate/roots",
        table=rows.rows,
        codes=codes.table,
        part=part_of(texts, seed),
        keys=list(rows.key),
        once=int(once),
        columns=list(columns),
    )
    rows.engine.execute(sql, step=STEP)


def part_of(unit: Fragment, seed: int) -> Fragment:
    """The part of a row of a ``side``, whose unit is text."""
    # One text: the last bit of a hash of two values is a sum of theirs, so all seeds would give these halves.
    half = f"CAST(hash(concat({unit}, {string_literal(f'|half|{seed}')})) % 2 AS UTINYINT)"
    return Fragment(f"CASE side WHEN 1 THEN CAST(2 AS UTINYINT) ELSE {half} END")


def _key_columns(table: Table, names: tuple[str, ...]) -> tuple[Fragment, ...]:
    """The columns of codes that hold these keys."""
    keys = [*map(fold, keys_of(table))]
    return tuple(Fragment(f"r{keys.index(fold(name))}") for name in names)


def _ties(table: Table, names: tuple[str, ...], keys: Sequence[Fragment]) -> list[dict[str, Fragment]]:
    columns = _key_columns(table, names)
    if len(columns) != len(keys):
        raise InputError(f"{table.name}: {said(names)} names {len(columns)} columns, the key has {len(keys)}")
    return [{"own": column, "key": key} for column, key in zip(columns, keys, strict=True)]


# -- keys --------------------------------------------------------------------------------------------


def _key_lines(tree: Tree, table: Table, codes: Mapping[str, Codes]) -> list[dict[str, object]]:
    """Of the key, the foreign key to the parent, and the references."""
    lines = list[dict[str, object]]()
    table_codes = codes[table.name]
    if table.key:
        keys = list(_key_columns(table, table.key))
        sql = render("evaluate/repeated", table=table_codes.table, keys=keys)
        lines.append(_key_line(table_codes, table, table.key, "", sql))
    foreign_keys = list[tuple[tuple[str, ...], Table | PublicTable]]()
    if table.parent is not None:
        foreign_keys.append((table.foreign_key, tree[table.parent]))
    foreign_keys += [(reference.columns, _target(tree, reference)) for reference in table.references]
    for names, target in foreign_keys:
        sql = _dangling(table, codes, target, names)
        lines.append(_key_line(table_codes, table, names, target.name, sql))
    return lines


def _target(tree: Tree, reference: Reference) -> Table | PublicTable:
    if reference.kind == "public":
        return tree.public_table(reference.table)
    return tree[reference.table]


def _dangling(
    table: Table,
    codes: Mapping[str, Codes],
    target: Table | PublicTable | LinkedRows,
    names: tuple[str, ...],
) -> Fragment:
    """Of how many rows a foreign key names nothing."""
    keys: Sequence[Fragment]
    sided = 1
    if isinstance(target, LinkedRows):
        keys, relation = target.key, target.rows
    elif isinstance(target, Table):
        keys, relation = _key_columns(target, target.key), codes[target.name].table
    else:
        keys, sided = [Fragment(f"r{index}") for index in range(len(target.key))], 0
        texts = (
            f"CAST({ident(key)} AS VARCHAR) AS {name}" for key, name in zip(target.key, keys, strict=True)
        )
        relation = Fragment(f"(SELECT {', '.join(texts)} FROM {target.relation.sql})")
    ties = _ties(table, names, keys)
    codes_table = codes[table.name].table
    return render("evaluate/dangling", table=codes_table, target=relation, sided=sided, ties=ties)


def _key_line(
    codes: Codes, table: Table, names: tuple[str, ...], target: str, sql: Fragment
) -> dict[str, object]:
    frame = fetched(codes.engine, sql).set_index("side")
    line: dict[str, object] = {"table": table.name, "key": ", ".join(names), "names": target}
    line["owning"] = names == table.foreign_key
    for number, side in enumerate(COMPARED):
        for figure in _COUNTED:
            line[f"{figure}_{side}"] = int(frame[figure].get(number, 0))
    return line


def notes_on_keys(tree: Tree, keys: pd.DataFrame) -> list[str]:
    """Rows that name no row above are left out of all figures but those of keys."""
    notes = []
    for line in keys[keys["names"] != ""].to_dict("records"):
        for side in COMPARED:
            lost = line[f"missing_{side}"] + line[f"broken_{side}"]
            if not (lost and line["owning"]):
                continue
            if tree[line["table"]].parent is None:
                notes.append(f"{lost:,} {side} rows have no unit; figures on units leave them out.")
            else:
                notes.append(
                    f"{lost:,} {side} rows of {line['table']} name no row of {line['names']}: they belong to "
                    "no unit, and figures but those of keys leave them and the rows below them out."
                )
    return notes


# -- sums of sides, side by side -----------------------------------------------------------------------

Sums = Mapping[str, "pd.Series[Any]"]
"""By side: a sum for each cell."""

_DISTANCES = (("real", "synthetic"), ("first half", "second half"))


def fetched(engine: DuckDBEngine, sql: Fragment) -> pd.DataFrame:
    """The rows of a statement; -2000 stands for NULL."""
    columns = engine.fetch(sql, step=STEP)
    return pd.DataFrame({name: np.ma.filled(np.ma.asarray(cells), -2_000) for name, cells in columns.items()})


def of_side(frame: pd.DataFrame, side: str) -> pd.DataFrame:
    """Its rows."""
    return frame[frame["part"].isin(PARTS[side])]


def sums(frame: pd.DataFrame, cells: Sequence[str], value: str) -> Sums:
    """Of a value in each cell."""
    return {side: of_side(frame, side).groupby([*cells])[value].sum() for side in PARTS}


def apart(summed: Sums) -> tuple[float, float]:
    """Total variation of the synthetic from the real table, and of the halves of the real units."""
    synthetic, halves = (_distance(summed[first], summed[second]) for first, second in _DISTANCES)
    return synthetic, halves


def _distance(first: pd.Series[Any], second: pd.Series[Any]) -> float:
    totals = first.sum(), second.sum()
    if not all(totals):
        return float("nan")
    return float((first / totals[0]).sub(second / totals[1], fill_value=0).abs().sum() / 2)


def ratio(over: float, under: float) -> float:
    """NaN of nothing."""
    return float(over / under) if under else float("nan")
