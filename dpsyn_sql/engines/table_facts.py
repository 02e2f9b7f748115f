"""What the catalog, a call and the file of a database say of open tables, by their names (public facts)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dpsyn_sql.domain.database_file import DatabaseFile, StatedTable
from dpsyn_sql.engines.catalog import DuckDBCatalog, folded
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.tree import Link
from dpsyn_sql.planning.tying.given import Given, TableFacts
from dpsyn_sql.planning.tying.links import root_of
from dpsyn_sql.source.engine import Engine
from dpsyn_sql.source.names import Identity, display_name, fold, listed, name_hint
from dpsyn_sql.source.relation import Relation
from dpsyn_sql.sqltext.fragments import literal
from dpsyn_sql.sqltext.render import render

if TYPE_CHECKING:
    from dpsyn_sql.engines.source_session import SourceSession


# -- what the catalog says ---------------------------------------------------------------------------


def facts_of(
    engine: Engine, identities: Mapping[str, Identity | None], relations: Mapping[str, Relation]
) -> dict[str, TableFacts]:
    """Keys and links of relations that are open together; what is no table of a catalog has none.

    Args:
        engine: reads them.
        identities: by name, of tables and views; None of what is in no catalog.
        relations: by name.
    """
    names = {folded(identity): name for name, identity in identities.items() if identity is not None}
    catalog, facts = DuckDBCatalog(engine), dict[str, TableFacts]()
    for name, identity in identities.items():
        columns = relations[name].columns
        if identity is None or relations[name].kind != "table":
            facts[name] = TableFacts(name, columns)
            continue
        constraints = [*_constraints(engine, identity)]
        primary = [own_columns for kind, own_columns, _, _ in constraints if kind == "PRIMARY KEY"]
        unique = tuple(own_columns for kind, own_columns, _, _ in constraints if kind == "UNIQUE")
        links = list[Link]()
        for kind, own_columns, referenced, key in constraints:
            if kind not in ("PRIMARY KEY", "UNIQUE"):
                target = (identity[0], identity[1], referenced)
                table = names.get(folded(target)) or _outside(target, names.values(), catalog)
                links.append(Link(own_columns, table, key))
        facts[name] = TableFacts(name, columns, primary[-1] if primary else (), unique, tuple(links))
    return facts


def _constraints(
    engine: Engine, identity: Identity
) -> Iterator[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    """Each constraint: its kind, its columns, and the table and the columns that a foreign key names."""
    catalog, schema, name = map(literal, identity)
    rows = engine.fetch(
        render("source/keys", catalog=catalog, schema=schema, name=name), step="reading the catalog"
    )
    columns = [rows[part].tolist() for part in ("kind", "columns", "referenced", "referenced_columns")]
    for kind, own_columns, referenced, key in zip(*columns, strict=True):
        yield str(kind), tuple(map(str, own_columns)), str(referenced), tuple(map(str, key))


def _outside(identity: Identity, names: Iterable[str], catalog: DuckDBCatalog) -> str:
    """The shortest name that finds a table that is not open here, and that none of the open ones has."""
    relation = catalog.find((identity[2],)) if fold(identity[2]) not in map(fold, names) else None
    short = relation is not None and folded(relation.identity) == folded(identity)
    return identity[2] if short else display_name(*identity)


# -- what a call and the file say --------------------------------------------------------------------


def given_of(
    session: SourceSession,
    file: DatabaseFile,
    unit: str = "",
    most: Mapping[str, int] | None = None,
    exclude: Iterable[str] = (),
) -> Given:
    """What a call, its file and the catalog say, by the names of the tables.

    Args:
        session: the open tables.
        file: what the owner states of them.
        unit: the table of the units or its key, such as ``"customers.customer_id"``; if empty, the units are
            in the table that has no parent.
        most: by table the rows that are kept of one row of the parent.
        exclude: columns that are not written, such as ``"orders.note"``.

    Raises:
        InputError: a name is unknown, or nothing says where the units are.
    """
    root, column = _unit(unit, session) if unit else ("", "")
    stated = dict[str, StatedTable]()
    for text, table in file.tables.items():
        if (name := _stated_name(text, session, "tables", session.private)) is not None:
            stated[name] = table
    public_keys = dict[str, tuple[str, ...]]()
    for text, key in file.public.items():
        if (name := _stated_name(text, session, "public_tables", session.public)) is not None:
            public_keys[name] = key
    given = Given(
        root=root,
        unit=column,
        private={name: session.facts[name] for name in session.private},
        public={name: session.facts[name] for name in session.public},
        relations={name: source.relation for name, source in {**session.private, **session.public}.items()},
        stated=stated,
        public_keys=public_keys,
        most=_most(most or {}, session),
        excluded=_excluded(exclude, session),
    )
    return given if root else replace(given, root=root_of(given))


def _unit(text: str, session: SourceSession) -> tuple[str, str]:
    """The table of the units, and the column of its key if it is named."""
    table = session.named(text)
    table_and_column = (table, "") if table is not None else session.named_column(text)
    if table_and_column is None:
        raise InputError(
            f"unit={text!r} names no table of the release: give the key of one of "
            f"{listed(session.private)}, such as '{next(iter(session.private))}.id', and name its "
            "table in tables=."
        )
    if table_and_column[0] not in session.private:
        raise InputError(
            f"unit={text!r} is of {table_and_column[0]}, a public table: units are rows of a private one."
        )
    return table_and_column


def _stated_name(text: str, session: SourceSession, section: str, tables: Mapping[str, object]) -> str | None:
    """The table of the release that the file means; None if it is another table of the database."""
    name = session.named(text)
    if name is not None and name in tables:
        return name
    if name is not None:
        side = "public" if section == "tables" else "private"
        raise InputError(
            f"The file of the database has {text!r} under {section}:, and {name} is {side} in this "
            "release: a table is either private or public."
        )
    catalog = DuckDBCatalog(session.engine)
    if catalog.look_up(text) is None:
        hint = name_hint(text, session.facts, "the release has")
        raise InputError(f"The file of the database has {text!r} under {section}:, which is no table; {hint}")
    return None


def _most(most: Mapping[str, int], session: SourceSession) -> dict[str, int]:
    numbers = dict[str, int]()
    for text, number in most.items():
        name = session.named(text)
        if name is None or name not in session.private:
            hint = name_hint(text, session.private, "they are")
            raise InputError(f"most= names {text!r}, which is no private table of the release; {hint}")
        numbers[name] = number
    return numbers


def _excluded(exclude: Iterable[str], session: SourceSession) -> dict[str, frozenset[str]]:
    excluded: dict[str, frozenset[str]] = {}
    for text in exclude:
        name, spelled = session.named_column(text) or ("", "")
        if name not in session.private:
            raise InputError(
                f"exclude= names {text!r}: give a table of the release and its column, such as "
                f"'{next(iter(session.private))}.note'. The tables are {listed(session.private)}."
            )
        column = session.facts[name].column(spelled)
        if column is None:
            hint = name_hint(spelled, [column.name for column in session.facts[name].columns])
            raise InputError(f"exclude= names {text!r}, and {name} has no such column; {hint}")
        excluded[name] = excluded.get(name, frozenset()) | {column.name}
    return excluded
