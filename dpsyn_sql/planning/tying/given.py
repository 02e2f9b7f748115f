"""What the catalog and the owner say of the tables that are released together (public facts)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dpsyn_sql.domain.database_file import StatedTable
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.links import TableFacts
from dpsyn_sql.source.names import display_name, fold, name_hint
from dpsyn_sql.source.relation import Column, Relation


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
