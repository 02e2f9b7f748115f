"""References of private rows to others, as codes in the relation, before anything is encoded.

A public table is read openly. A reference to it becomes the number of the group of the row that it names: a
public fact of the private row, NULL where it names none. A reference to a private row becomes one where there
is one: whether the named row exists depends on another unit, so it is never looked up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.tree import PublicTable, Reference, Table, Tree
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.names import fold
from dpsyn_sql.source.relation import Column, Relation
from dpsyn_sql.sqltext.fragments import Fragment, ident, qualified
from dpsyn_sql.sqltext.render import render

MOST_GROUPS = 1_000
"""Groups of a public table that a reference can be measured with."""

_TYPE = "BIGINT"
_STEP = "reading a public table"


@dataclass(frozen=True, slots=True)
class PublicRows:
    """The rows of a public table that a reference can name, by their groups.

    ``key``: names of the columns of its key, in the order of the reference's columns; ``sql_types`` their
    types. ``texts``: of each of these columns the values as text, object arrays of shape (rows,), ordered
    by group.
    ``sizes``: int64, shape (groups,): how many rows each group has, one at least. ``labels``: of each group
    the values that make it, as text.
    """

    table: str
    key: tuple[str, ...]
    sql_types: tuple[str, ...]
    texts: tuple[NDArray[np.object_], ...] = field(repr=False, compare=False)
    sizes: NDArray[np.int64] = field(repr=False, compare=False)
    labels: tuple[str, ...] = field(repr=False, compare=False)

    @property
    def digest(self) -> str:
        """Of all that decides which row has which code."""
        told = json.dumps([self.sizes.tolist(), *(one.tolist() for one in self.texts)])
        return hashlib.sha256(told.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Lookup:
    """A public table in the engine: ``name`` of the temporary table, and its rows."""

    name: Fragment
    rows: PublicRows


class Lookups:
    """The public tables that references name, each read once."""

    def __init__(self, engine: Engine, tree: Tree) -> None:
        self._engine = engine
        self._public = {table.name: table for table in tree.public}
        self._made: dict[tuple[str, tuple[str, ...]], _Lookup] = {}

    def of(self, table: Table, reference: Reference) -> _Lookup:
        """The rows that a reference to a public table can name.

        Raises:
            InputError: the keys of the public table do not tell its rows apart, or it has no rows or too many
                groups.
        """
        public = self._public[reference.table]
        wanted = (public.name, reference.by)
        if wanted not in self._made:
            self._made[wanted] = self._read(public, reference, f"{table.name}.{reference.columns[0]}")
        return self._made[wanted]

    def _read(self, public: PublicTable, reference: Reference, who: str) -> _Lookup:
        name = qualified("temp", "main", f"dpsyn_public_{len(self._made)}")
        keys = [ident(column) for column in public.key]
        by = [ident(column) for column in reference.by or public.key]
        made = render("source/public_rows", table=name, relation=public.relation.sql, keys=keys, by=by)
        self._engine.execute(made, step=_STEP)
        facts = render("source/public_facts", table=name, keys=len(keys))
        found = {what: int(value[0]) for what, value in self._engine.fetch(facts, step=_STEP).items()}
        _check(public, reference, found, who)
        fetched = self._engine.fetch(
            render("source/public_keys", table=name, keys=len(keys)),
            step="reading the keys of a public table",
        )
        named = self._engine.fetch(
            render("source/public_labels", table=name, columns=len(by)),
            step="reading the groups of a public table",
        )
        types = {column.name: column.sql_type for column in public.relation.columns}
        rows = PublicRows(
            public.name,
            public.key,
            tuple(types[column] for column in public.key),
            tuple(np.asarray(fetched[f"k{place}"], dtype=object) for place in range(len(keys))),
            np.bincount(np.asarray(fetched["code"], dtype=np.int64), minlength=found["codes"]).astype(
                np.int64
            ),
            tuple(map(str, named["label"])),
        )
        return _Lookup(name, rows)


def _check(public: PublicTable, reference: Reference, found: Mapping[str, int], who: str) -> None:
    key = ", ".join(public.key)
    if not found["total"]:
        raise InputError(
            f"The public table {public.name} has no rows, and {who} refers to them: leave the column out "
            "with exclude=."
        )
    if found["without"]:
        raise InputError(
            f"The public table {public.name} has rows without a key ({key} is NULL), and {who} refers to it."
        )
    if found["different"] < found["total"]:
        raise InputError(
            f"The key ({key}) of the public table {public.name} does not tell its rows apart: "
            f"{found['total'] - found['different']:,} rows repeat one. Name its key in the file of the "
            f"database (public_tables: {{{public.name}: {{key: ...}}}}), or take the repeated rows away."
        )
    if found["codes"] > MOST_GROUPS:
        grouped = f"by ({', '.join(reference.by)})" if reference.by else "by its own key"
        raise InputError(
            f"{who} refers to {public.name}, which has {found['codes']:,} groups {grouped}; at most "
            f"{MOST_GROUPS:,} can be measured. Name columns of {public.name} with fewer values in the file "
            f"of the database: columns: {{{reference.columns[0]}: {{references: {public.name}, by: "
            f"[category]}}}}."
        )


@dataclass(frozen=True, slots=True)
class _Coded:
    """A reference in the relation, for the template: the column's name, the table that is looked up with its
    alias, and the columns that name a row of it."""

    name: Fragment
    lookup: Fragment
    columns: list[Fragment]
    alias: Fragment


def with_references(
    table: Table, lookups: Lookups
) -> tuple[Table, tuple[Attribute, ...], dict[str, PublicRows]]:
    """The table with a column of codes for each reference, which gives an attribute of the name of its first
    column; and by these names what a reference to a public table names.

    Raises:
        InputError: as ``Lookups.of``.
    """
    if not table.references:
        return table, (), {}
    relation = table.relation
    kept = [column for column in relation.columns if not column.refused]
    names = list(_hidden(relation, table.references))
    coded, attributes, rows = list[_Coded](), list[Attribute](), dict[str, PublicRows]()
    for name, reference in zip(names, table.references, strict=True):
        columns, found = [ident(column) for column in reference.columns], None
        if reference.kind == "public":
            found = lookups.of(table, reference)
            rows[reference.columns[0]] = found.rows
        lookup = Fragment("") if found is None else found.name
        coded.append(_Coded(ident(name), lookup, columns, Fragment(f"r{len(coded)}")))
        labels = (f"a row of {reference.table}",) if found is None else found.rows.labels
        attributes.append(_attribute(relation, reference, name, labels))
    sql = render(
        "source/referring",
        relation=relation.sql,
        columns=[ident(column.name) for column in kept],
        references=coded,
    )
    seen = replace(relation, sql=sql, columns=(*kept, *(Column(name, _TYPE) for name in names)))
    return replace(table, relation=seen), tuple(attributes), rows


def _attribute(relation: Relation, reference: Reference, name: str, named: tuple[str, ...]) -> Attribute:
    codes = tuple(range(len(named))) if reference.kind == "public" else (1,)
    strict = {column.name for column in relation.columns if column.not_null}
    return Attribute(
        reference.columns[0],
        _TYPE,
        "categorical",
        codes,
        nullable=not strict.issuperset(reference.columns),
        source=ident(name),
        named=named,
    )


def _hidden(relation: Relation, references: tuple[Reference, ...]) -> Iterator[str]:
    """Names of the columns of codes, which no other column has."""
    taken = {fold(column.name) for column in relation.columns}
    for reference in references:
        wanted = name = f"code of {reference.columns[0]}"
        number = 1
        while fold(name) in taken:
            number += 1
            name = f"{wanted} ({number})"
        taken.add(fold(name))
        yield name
