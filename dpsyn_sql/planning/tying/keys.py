"""What is known of the tables of a database, and their keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dpsyn_sql.attributes.database_file import StatedTable
from dpsyn_sql.attributes.types import SqlType, parse_type
from dpsyn_sql.attributes.unit import family_of, identifies
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
                column = text[len(begin) + 1 :]
                names = split_name(column)
                quoted = names is not None and len(names) == 1 and column.startswith('"')
                return table, names[0] if quoted and names is not None else column
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
        names = [*self.private, *self.public]
        return next((name for name in names if fold(text) in (fold(name), fold(display_name(name)))), None)

    def column(self, table: str, text: str, where: str) -> Column:
        """The column of a table that the owner means."""
        match = self.facts(table).column(text)
        if match is None:
            hint = name_hint(text, [column.name for column in self.facts(table).columns])
            raise InputError(f"{where} names {text!r}, which is not a column of {table}; {hint}")
        return match

    def columns(self, table: str, texts: Iterable[str], where: str) -> tuple[str, ...]:
        return tuple(self.column(table, text, where).name for text in texts)


# -- keys --------------------------------------------------------------------------------------------

# The key of each table, and whether foreign keys fit the keys that they name.


def keys_of(
    database: Given, links: Mapping[str, Sequence[Link]], owners: Mapping[str, Link]
) -> dict[str, tuple[str, ...]]:
    """The key of each table that has one; of each that is referred to.

    Raises:
        InputError: a table that others refer to has no key, or the unit is no key.
    """
    keys: dict[str, tuple[str, ...]] = {}
    for name in (*database.private, *database.public):
        named_keys = {
            link.key
            for table_links in links.values()
            for link in table_links
            if link.table == name and link.key
        }
        needed = any(link.table == name for table_links in links.values() for link in table_links)
        key = _key(database, name, named_keys)
        if not key and needed:
            who = next(
                referrer
                for referrer, referring in links.items()
                if any(link.table == name for link in referring)
            )
            section = "tables" if name in database.private else "public_tables"
            raise InputError(
                f"{name} has no key, and {who} refers to its rows. Name the columns that tell them apart in "
                f"the file of the database: {section}: {{{name}: {{key: ...}}}}."
            )
        if key:
            keys[name] = key
        for column in key if needed or name == database.root else ():
            _check_key_type(name, database.column(name, column, "the key"))
    if database.root not in keys:
        raise InputError(
            f"{database.root} holds the units and has no key: name its column, "
            f"unit='{database.root}.customer_id'."
        )
    return keys


def _key(database: Given, name: str, named_keys: set[tuple[str, ...]]) -> tuple[str, ...]:
    facts = database.facts(name)
    stated = database.words(name).key if name in database.private else database.public_keys.get(name, ())
    key = database.columns(name, stated, f"the file of the database, key of {name},") or facts.primary
    if name == database.root and database.unit:
        unit = database.column(name, database.unit, "unit=").name
        if (key and key != (unit,)) and not facts.are_unique((unit,)):
            raise InputError(
                f"unit='{name}.{unit}' is not the key of {name}, which is {', '.join(key)}. A unit is a row "
                f"of {name}: give unit='{name}.{key[0]}', or state key: {unit} in the file of the database."
                if len(key) == 1
                else f"unit='{name}.{unit}' is not the key of {name}, which is ({', '.join(key)}). Give "
                f"unit='{name}'."
            )
        return (unit,)
    if not key and len(named_keys) == 1:
        return next(iter(named_keys))
    return key


def _check_key_type(table: str, column: Column) -> None:
    if not identifies(column) or parse_type(column.sql_type) is None:
        raise InputError(
            f"{table}.{column.name} is of type {family_of(column.sql_type)}, which cannot be a key: each "
            "value must have exactly one spelling. Allowed are text, ENUM, BOOLEAN, whole numbers, "
            "DECIMAL, DATE, TIMESTAMP and UUID. Cast the column in a view, in both tables."
        )


def check_link(database: Given, name: str, link: Link, keys: Mapping[str, tuple[str, ...]]) -> None:
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
    for column, key_column in zip(in_order(link, key).columns, key, strict=True):
        ours = database.column(name, column, "a link")
        theirs = database.column(link.table, key_column, "a link")
        if not _comparable(parse_type(ours.sql_type), parse_type(theirs.sql_type)):
            raise InputError(
                f"{name}.{column} is of type {family_of(ours.sql_type)} and {link.table}.{key_column}, which "
                f"it names, of type {family_of(theirs.sql_type)}: they must be of one type. Cast one of them "
                "in a view."
            )


def _comparable(left: SqlType | None, right: SqlType | None) -> bool:
    """Whether equal values have the same text."""
    if left is None or right is None:
        return False
    text = {"text", "enum"}
    if left.family in text and right.family in text:
        return True
    alike = (left.family == right.family == "integer") or left.text == right.text
    return alike or (left.family == right.family == "decimal" and left.scale == right.scale)


def in_order(link: Link, key: Sequence[str]) -> Link:
    """The same link with its columns in the order of the key."""
    if not link.key:
        return replace(link, key=tuple(key))
    column_of = dict(zip(link.key, link.columns, strict=True))
    return replace(link, columns=tuple(column_of[column] for column in key), key=tuple(key))
