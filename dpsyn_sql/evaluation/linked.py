"""PRIVATE: the rows of all tables of a tree as codes, each row beside the rows above it.

Two temporary tables for each table: the codes of all rows with their keys, and of the rows that belong to a
unit the codes of the table and of the tables above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from dpsyn_sql.engines.duckdb_engine import DuckDBEngine
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.evaluation.codes import Coded, Codes, encode
from dpsyn_sql.evaluation.families import order_column
from dpsyn_sql.evaluation.parts import STEP, fetched, part_of
from dpsyn_sql.evaluation.session import Session
from dpsyn_sql.planning.tree import PublicTable, Reference, Table, Tree
from dpsyn_sql.source.names import fold
from dpsyn_sql.sqltext.dialect import DUCKDB
from dpsyn_sql.sqltext.fragments import Fragment, ident
from dpsyn_sql.sqltext.render import render

SIDES = ("real", "synthetic")

_KEYS = (
    "table",
    "key",
    "names",
    "owning",
    *(f"{what}_{side}" for what in ("rows", "missing", "broken") for side in SIDES),
)


@dataclass(frozen=True, slots=True)
class Linked:
    """One table: its ``codes`` of all rows, and ``rows`` of a unit.

    ``rows`` has part, side, id, unit, parent, the keys, and codes ``k<place of the table>_<place>``.
    """

    table: Table
    place: int
    codes: Codes
    rows: Fragment

    @property
    def engine(self) -> DuckDBEngine:
        """That reads it."""
        return self.codes.engine

    @property
    def columns(self) -> list[tuple[Coded, Fragment]]:
        """Each compared column, and the name of its codes in ``rows``."""
        return [(one, Fragment(f"k{self.place}_{one.place}")) for one in self.codes.columns]


def keys_of(table: Table) -> list[str]:
    """The columns of all keys, in the order of the table."""
    tied = {*map(fold, (*table.tied, *table.key))}
    return [column.name for column in table.relation.columns if fold(column.name) in tied]


def linked(tree: Tree, sessions: Mapping[str, Session], seed: int) -> tuple[list[Linked], pd.DataFrame]:
    """All tables in the order of the tree, and one line per key: how many rows break it.

    Args:
        tree: the tables of the real side.
        sessions: by table; the keys are ``keys_of`` it.
        seed: of the halves.

    Raises:
        InputError: the order of a table is no column of numbers or moments.
        EngineFailure: the database failed, such as for want of room.
    """
    codes = {table.name: _coded(table, sessions[table.name]) for table in tree}
    lines, found = list[dict[str, object]](), list[Linked]()
    twice = dict[str, bool]()
    for place, table in enumerate(tree):
        keys = _key_lines(tree, table, codes)
        twice[table.name] = any(
            one["broken_real"] or one["broken_synthetic"] for one in keys if not one["names"]
        )
        found.append(_linked(tree, table, place, codes, found, twice, seed))
        lines += keys
    return found, pd.DataFrame(lines, columns=[*_KEYS])


def _coded(table: Table, session: Session) -> Codes:
    more = {f"r{place}": key for place, key in enumerate(_values(session))}
    if table.order:
        ordering = order_column(session, table.order)
        more["moment"] = Fragment(f"v{session.columns.index(ordering)}")
    return encode(session, id=Fragment("row_number() OVER ()"), **more)


def _values(session: Session) -> list[Fragment]:
    return [Fragment(f"v{len(session.columns) + place}") for place in range(len(session.keys))]


def key_columns(table: Table, names: tuple[str, ...]) -> list[Fragment]:
    """The columns of codes that hold these keys."""
    known = [*map(fold, keys_of(table))]
    return [Fragment(f"r{known.index(fold(name))}") for name in names]


def _linked(
    tree: Tree,
    table: Table,
    place: int,
    codes: Mapping[str, Codes],
    above: list[Linked],
    twice: Mapping[str, bool],
    seed: int,
) -> Linked:
    own = codes[table.name]
    made = Linked(table, place, own, DUCKDB.temporary("linked"))
    kept = [Fragment(f"{one.key} AS {name}") for one, name in made.columns]
    kept += [*key_columns(table, table.key), *([Fragment("moment")] if table.order else [])]
    parent = next((one for one in above if one.table.name == table.parent), None)
    if parent is None:
        keys = key_columns(table, table.key)
        texts = Fragment("concat_ws(chr(31), " + ", ".join(keys) + ")")
        part = part_of(texts, seed)
        sql = render("evaluate/roots", table=made.rows, codes=own.table, part=part, keys=keys, columns=kept)
    else:
        path = {step.name for step in tree.path(table.name)[:-1]}
        names = [name for one in above if one.table.name in path for _, name in one.columns]
        keys = key_columns(parent.table, parent.table.key)
        ties = _ties(table, table.foreign_key, keys)
        sql = render(
            "evaluate/linked",
            table=made.rows,
            codes=own.table,
            parents=parent.rows,
            once=int(twice[parent.table.name]),
            keys=keys,
            ties=ties,
            above=names,
            columns=kept,
        )
    own.engine.execute(sql, step=STEP)
    return made


def _ties(table: Table, names: tuple[str, ...], keys: list[Fragment]) -> list[dict[str, Fragment]]:
    own = key_columns(table, names)
    if len(own) != len(keys):
        raise InputError(f"{table.name}: {said(names)} names {len(own)} columns, the key has {len(keys)}")
    return [{"own": one, "key": key} for one, key in zip(own, keys, strict=True)]


# -- keys --------------------------------------------------------------------------------------------


def _key_lines(tree: Tree, table: Table, codes: Mapping[str, Codes]) -> list[dict[str, object]]:
    """Of the key, the foreign key to the parent, and the references."""
    lines = list[dict[str, object]]()
    own = codes[table.name]
    if table.key:
        sql = render("evaluate/repeated", table=own.table, keys=key_columns(table, table.key))
        lines.append(_key_line(own, table, table.key, "", sql, "repeated"))
    if table.parent is not None:
        lines.append(_dangling(table, codes, table.foreign_key, tree[table.parent]))
    for reference in table.references:
        lines.append(_dangling(table, codes, reference.columns, _target(tree, reference)))
    return lines


def _target(tree: Tree, reference: Reference) -> Table | PublicTable:
    if reference.kind == "public":
        return tree.public_table(reference.table)
    return tree[reference.table]


def _dangling(
    table: Table, codes: Mapping[str, Codes], names: tuple[str, ...], target: Table | PublicTable
) -> dict[str, object]:
    own = codes[table.name]
    if isinstance(target, Table):
        keys, relation, sided = key_columns(target, target.key), codes[target.name].table, 1
    else:
        keys, sided = [Fragment(f"r{place}") for place in range(len(target.key))], 0
        named = ", ".join(
            f"CAST({ident(key)} AS VARCHAR) AS r{place}" for place, key in enumerate(target.key)
        )
        relation = Fragment(f"(SELECT {named} FROM {target.relation.sql})")
    ties = _ties(table, names, keys)
    sql = render("evaluate/dangling", table=own.table, target=relation, sided=sided, ties=ties)
    return _key_line(own, table, names, target.name, sql, "dangling")


def _key_line(
    codes: Codes, table: Table, names: tuple[str, ...], target: str, sql: Fragment, broken: str
) -> dict[str, object]:
    frame = fetched(codes.engine, sql).set_index("side")
    line: dict[str, object] = {"table": table.name, "key": ", ".join(names), "names": target}
    line["owning"] = names == table.foreign_key
    for number, side in enumerate(SIDES):
        for name, figure in (("rows", "rows"), ("missing", "missing"), ("broken", broken)):
            line[f"{name}_{side}"] = int(frame[figure].get(number, 0))
    return line
