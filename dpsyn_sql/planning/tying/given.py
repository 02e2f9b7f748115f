"""What the catalog and the owner say of the tables of a database (public facts)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from dpsyn_sql.domain.database_file import StatedTable
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.tree import Link
from dpsyn_sql.source.names import display_name, fold, name_hint, split_name
from dpsyn_sql.source.relation import Column, Relation


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table or view as the catalog states it: its primary key, other unique columns, and its links.

    A view has none of them.
    """

    name: str
    columns: tuple[Column, ...]
    primary: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    links: tuple[Link, ...] = field(default=())

    def column(self, name: str) -> Column | None:
        """The column that a person means; letter case decides only where it must."""
        exact = [column for column in self.columns if column.name == name]
        alike = [column for column in self.columns if fold(column.name) == fold(name)]
        return exact[0] if exact else alike[0] if len(alike) == 1 else None

    def are_unique(self, columns: Collection[str]) -> bool:
        """Whether a constraint says that no two rows have the same values in these columns."""
        return any(set(key) <= set(columns) for key in (self.primary, *self.unique) if key)


def split_column(text: str, tables: Iterable[str]) -> tuple[str, str] | None:
    """The table and the column of ``table.column``, either perhaps quoted; None if no table fits.

    A name of a table may hold dots: the longest one that fits is taken.
    """
    for table in sorted(tables, key=len, reverse=True):
        for begin in dict.fromkeys((table, display_name(table))):
            if fold(text).startswith(fold(begin) + ".") and len(text) > len(begin) + 1:
                rest = text[len(begin) + 1 :]
                parts = split_name(rest)
                quoted = parts is not None and len(parts) == 1 and rest.startswith('"')
                return table, parts[0] if quoted and parts is not None else rest
    return None


@dataclass(frozen=True, slots=True)
class Given:
    """What is known of the tables that are released together, by their names.

    ``root``: the table of the units; ``unit``: the column that the owner calls its key, if it is named.
    ``stated``: the owner's words; ``public_keys``: keys of public tables as the owner states them.
    ``excluded``: columns that are not written.
    """

    root: str
    unit: str
    private: Mapping[str, TableFacts]
    public: Mapping[str, TableFacts]
    relations: Mapping[str, Relation]
    stated: Mapping[str, StatedTable]
    public_keys: Mapping[str, tuple[str, ...]]
    most: Mapping[str, int]
    excluded: Mapping[str, frozenset[str]]

    def facts(self, name: str) -> TableFacts:
        return self.private[name] if name in self.private else self.public[name]

    def words(self, name: str) -> StatedTable:
        return self.stated.get(name, StatedTable())

    def named(self, text: str) -> str | None:
        """The table of this name, whatever its letter case."""
        known = [*self.private, *self.public]
        return next((name for name in known if fold(text) in (fold(name), fold(display_name(name)))), None)

    def column(self, table: str, text: str, where: str) -> Column:
        """The column of a table that the owner means."""
        found = self.facts(table).column(text)
        if found is None:
            hint = name_hint(text, [column.name for column in self.facts(table).columns])
            raise InputError(f"{where} names {text!r}, which is not a column of {table}; {hint}")
        return found

    def columns(self, table: str, texts: Iterable[str], where: str) -> tuple[str, ...]:
        return tuple(self.column(table, text, where).name for text in texts)
