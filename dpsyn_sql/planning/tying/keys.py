"""What is known of the tables of a database, and their keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpsyn_sql.domain.database_file import StatedTable
from dpsyn_sql.domain.types import SqlType, parse_type
from dpsyn_sql.domain.unit import family_of, identifies
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


# -- keys --------------------------------------------------------------------------------------------

# The key of each table, and whether foreign keys fit the keys that they name.


def keys_of(
    given: Given, links: Mapping[str, Sequence[Link]], owners: Mapping[str, Link]
) -> dict[str, tuple[str, ...]]:
    """The key of each table that has one; of each that is referred to.

    Raises:
        InputError: a table that others refer to has no key, or the unit is no key.
    """
    keys: dict[str, tuple[str, ...]] = {}
    for name in (*given.private, *given.public):
        named = {link.key for own in links.values() for link in own if link.table == name and link.key}
        needed = any(link.table == name for own in links.values() for link in own)
        key = _key(given, name, named)
        if not key and needed:
            who = next(own for own, found in links.items() if any(one.table == name for one in found))
            section = "tables" if name in given.private else "public_tables"
            raise InputError(
                f"{name} has no key, and {who} refers to its rows. Name the columns that tell them apart in "
                f"the file of the database: {section}: {{{name}: {{key: ...}}}}."
            )
        if key:
            keys[name] = key
        for column in key if needed or name == given.root else ():
            _check_key_type(name, given.column(name, column, "the key"))
    if given.root not in keys:
        raise InputError(
            f"{given.root} holds the units and has no key: name its column, unit='{given.root}.customer_id'."
        )
    return keys


def _key(given: Given, name: str, named: set[tuple[str, ...]]) -> tuple[str, ...]:
    facts = given.facts(name)
    stated = given.words(name).key if name in given.private else given.public_keys.get(name, ())
    key = given.columns(name, stated, f"the file of the database, key of {name},") or facts.primary
    if name == given.root and given.unit:
        unit = given.column(name, given.unit, "unit=").name
        if (key and key != (unit,)) and not facts.are_unique((unit,)):
            raise InputError(
                f"unit='{name}.{unit}' is not the key of {name}, which is {', '.join(key)}. A unit is a row "
                f"of {name}: give unit='{name}.{key[0]}', or state key: {unit} in the file of the database."
                if len(key) == 1
                else f"unit='{name}.{unit}' is not the key of {name}, which is ({', '.join(key)}). Give "
                f"unit='{name}'."
            )
        return (unit,)
    if not key and len(named) == 1:
        return next(iter(named))
    return key


def _check_key_type(table: str, column: Column) -> None:
    if not identifies(column) or parse_type(column.sql_type) is None:
        raise InputError(
            f"{table}.{column.name} is of type {family_of(column.sql_type)}, which cannot be a key: each "
            "value must have exactly one spelling. Allowed are text, ENUM, BOOLEAN, whole numbers, "
            "DECIMAL, DATE, TIMESTAMP and UUID. Cast the column in a view, in both tables."
        )


def check_link(given: Given, name: str, link: Link, keys: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse a foreign key that does not fit the key that it names.

    Raises:
        InputError: it names other columns, another number of them, or columns of other types.
    """
    key = keys[link.table]
    if link.key and set(link.key) != set(key):
        raise InputError(
            f"{name}: ({', '.join(link.columns)}) names {link.table} by ({', '.join(link.key)}), and its "
            f"key is ({', '.join(key)}): a table can have one key. State key: in the file of the database, "
            "or leave the column out with exclude=."
        )
    if len(link.columns) != len(key):
        raise InputError(
            f"{name}: ({', '.join(link.columns)}) names a row of {link.table}, whose key is "
            f"({', '.join(key)}): name as many columns, in the order of the key."
        )
    for own, other in zip(in_order(link, key).columns, key, strict=True):
        ours, theirs = given.column(name, own, "a link"), given.column(link.table, other, "a link")
        if not _comparable(parse_type(ours.sql_type), parse_type(theirs.sql_type)):
            raise InputError(
                f"{name}.{own} is of type {family_of(ours.sql_type)} and {link.table}.{other}, which it "
                f"names, of type {family_of(theirs.sql_type)}: they must be of one type. Cast one of them "
                "in a view."
            )


def _comparable(one: SqlType | None, other: SqlType | None) -> bool:
    """Whether equal values have the same text."""
    if one is None or other is None:
        return False
    text = {"text", "enum"}
    if one.family in text and other.family in text:
        return True
    whole = (one.family == other.family == "integer") or one.text == other.text
    return whole or (one.family == other.family == "decimal" and one.scale == other.scale)


def in_order(link: Link, key: Sequence[str]) -> Link:
    """The same link with its columns in the order of the key."""
    if not link.key:
        return replace(link, key=tuple(key))
    own = dict(zip(link.key, link.columns, strict=True))
    return replace(link, columns=tuple(own[column] for column in key), key=tuple(key))
