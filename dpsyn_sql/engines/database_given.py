"""What a call and the file of a database say of its open tables, by their names (public facts)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dpsyn_sql.domain.database_file import DatabaseFile, StatedTable
from dpsyn_sql.engines.catalog import DuckDBCatalog
from dpsyn_sql.engines.database_session import DatabaseSession
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.tying.given import Given
from dpsyn_sql.planning.tying.links import root_of
from dpsyn_sql.source.names import listed, name_hint


def given_of(
    session: DatabaseSession,
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
        if (name := _stated_name(text, session, "tables", session.relations)) is not None:
            stated[name] = table
    public_keys = dict[str, tuple[str, ...]]()
    for text, key in file.public.items():
        if (name := _stated_name(text, session, "public_tables", session.public)) is not None:
            public_keys[name] = key
    given = Given(
        root=root,
        unit=column,
        private={name: session.facts[name] for name in session.relations},
        public={name: session.facts[name] for name in session.public},
        relations={**session.relations, **session.public},
        stated=stated,
        public_keys=public_keys,
        most=_most(most or {}, session),
        excluded=_excluded(exclude, session),
    )
    return given if root else replace(given, root=root_of(given))


def _unit(text: str, session: DatabaseSession) -> tuple[str, str]:
    """The table of the units, and the column of its key if it is named."""
    found = session.named(text)
    if found is not None:
        table, column = found, ""
    else:
        parts = session.named_column(text)
        if parts is None:
            raise InputError(
                f"unit={text!r} names no table of the release: give the key of one of "
                f"{listed(session.relations)}, such as '{next(iter(session.relations))}.id', and name its "
                "table in tables=."
            )
        table, column = parts
    if table not in session.relations:
        raise InputError(f"unit={text!r} is of {table}, a public table: units are rows of a private one.")
    return table, column


def _stated_name(
    text: str, session: DatabaseSession, section: str, known: Mapping[str, object]
) -> str | None:
    """The table of the release that the file means; None if it is another table of the database."""
    name = session.named(text)
    if name is not None and name in known:
        return name
    if name is not None:
        other = "public" if section == "tables" else "private"
        raise InputError(
            f"The file of the database has {text!r} under {section}:, and {name} is {other} in this "
            "release: a table is either private or public."
        )
    catalog = DuckDBCatalog(session.engine)
    if catalog.look_up(text) is None:
        hint = name_hint(text, session.facts, "the release has")
        raise InputError(f"The file of the database has {text!r} under {section}:, which is no table; {hint}")
    return None


def _most(most: Mapping[str, int], session: DatabaseSession) -> dict[str, int]:
    found = dict[str, int]()
    for text, number in most.items():
        name = session.named(text)
        if name is None or name not in session.relations:
            hint = name_hint(text, session.relations, "they are")
            raise InputError(f"most= names {text!r}, which is no private table of the release; {hint}")
        found[name] = number
    return found


def _excluded(exclude: Iterable[str], session: DatabaseSession) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for text in exclude:
        name, called = session.named_column(text) or ("", "")
        if name not in session.relations:
            raise InputError(
                f"exclude= names {text!r}: give a table of the release and its column, such as "
                f"'{next(iter(session.relations))}.note'. The tables are {listed(session.relations)}."
            )
        column = session.facts[name].column(called)
        if column is None:
            hint = name_hint(called, [one.name for one in session.facts[name].columns])
            raise InputError(f"exclude= names {text!r}, and {name} has no such column; {hint}")
        found[name] = found.get(name, frozenset()) | {column.name}
    return found
