"""What a catalog says of keys and links of tables (public facts)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from dpsyn_sql.source.names import display_name, fold, split_name
from dpsyn_sql.source.relation import Column


@dataclass(frozen=True, slots=True)
class Link:
    """A foreign key: ``columns`` name a row of ``table`` by its columns ``key``, in the same order.

    ``key`` is empty if nobody says more than the table: then it is the key of it.
    """

    columns: tuple[str, ...]
    table: str
    key: tuple[str, ...] = ()


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
