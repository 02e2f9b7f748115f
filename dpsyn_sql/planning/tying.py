"""From keys and links to a tree of tables: whose row each row is, and what else it refers to.

Public facts only: constraints of the catalog, and the owner's words, which come first. Every contradiction
is refused here. What only rows can tell (a key that is not unique, NULL, a row that names no row) is no
contradiction: such rows are left out, or count for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dpsyn_sql.domain.database_file import StatedTable
from dpsyn_sql.domain.types import SqlType, parse_type
from dpsyn_sql.domain.unit import family_of, identifies
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.links import Link, TableFacts
from dpsyn_sql.planning.tree import PublicTable, Reference, ReferenceKind, Table, Tree
from dpsyn_sql.source.names import display_name, fold, listed, name_hint
from dpsyn_sql.source.relation import WEIGHT, Column, Relation

DEFAULT_MOST = 16
"""Rows that are kept of one row of the parent, unless the owner says otherwise."""


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


def tied_tables(given: Given) -> Tree:
    """The tree of the tables.

    Raises:
        InputError: the tables are no tree, a key is missing or cannot be one, or a bound is out of range.
    """
    if len(given.private) == 1:
        raise InputError(
            f"Only one private table is named, {next(iter(given.private))}: release it with release(), and give "
            "the column that says whose rows they are as privacy_unit=."
        )
    links = {name: _links(given, name) for name in given.private}
    owners = _Owners(given, links).all()
    keys = _keys(given, links, owners)
    for name in given.private:
        for link in links[name]:
            _check_link(given, name, link, keys)
    ordered = {name: tuple(_in_order(link, keys[link.table]) for link in links[name]) for name in links}
    owning = {
        name: next(new for old, new in zip(links[name], ordered[name], strict=True) if old == owner)
        for name, owner in owners.items()
    }
    _check_bounds(given)
    tables = []
    for name in _sorted(given, links):
        owner = owning.get(name)
        others = [link for link in ordered[name] if link != owner]
        tables.append(
            Table(
                name,
                given.relations[name],
                keys.get(name, ()),
                None if owner is None else owner.table,
                () if owner is None else owner.columns,
                1 if owner is None else _most(given, name),
                given.words(name).order,
                tuple(_references(given, name, owner, others, owning, keys)),
            )
        )
    public = (PublicTable(name, given.relations[name], keys.get(name, ())) for name in given.public)
    tree = Tree(tuple(tables), tuple(public))
    _check_weights(tree)
    return tree


# -- links ---------------------------------------------------------------------------------------------


def _links(given: Given, name: str) -> tuple[Link, ...]:
    """The foreign keys of a table: the owner's, and those of the catalog that they do not replace."""
    facts, words = given.private[name], given.words(name)
    plain = {
        column.name for text in words.domain.columns if (column := facts.column(text)) is not None
    } | given.excluded.get(name, frozenset())
    stated = [*_stated_owner(given, name), *_stated_references(given, name)]
    taken = {column for link in stated for column in link.columns[:1]}
    found = [link for link in stated if not plain & set(link.columns)]
    if len(found) < len(stated):
        lost = next(link for link in stated if plain & set(link.columns))
        raise InputError(
            f"{name}: {listed(lost.columns)} is left out or has a domain of its own, and ties the table to "
            f"{lost.table} too. Take away one of the two."
        )
    for link in facts.links:
        if plain >= set(link.columns) or taken & set(link.columns[:1]) or _same(link, stated):
            continue
        if plain & set(link.columns):
            raise InputError(
                f"{name}: the foreign key ({', '.join(link.columns)}) to {link.table} is left out in part. Leave "
                "out all of its columns or none."
            )
        if link.table not in given.private and link.table not in given.public:
            raise InputError(
                f"{name}.{link.columns[0]} refers to {link.table}, which is neither in tables= nor in "
                f"public_tables=. Name it in one of them, or leave the column out: exclude={name}.{link.columns[0]}."
            )
        found.append(link)
    _check_one_each(name, found)
    return tuple(found)


def _same(link: Link, stated: Sequence[Link]) -> bool:
    return any(set(link.columns) == set(one.columns) for one in stated)


def _check_one_each(name: str, links: Sequence[Link]) -> None:
    """Two foreign keys of the same columns to different tables."""
    seen: dict[frozenset[str], str] = {}
    for link in links:
        columns = frozenset(link.columns)
        if columns in seen:
            raise InputError(
                f"{name}: ({', '.join(link.columns)}) refers to {seen[columns]} and to {link.table}. Say in the "
                "file of the database which of them is meant."
            )
        seen[columns] = link.table


def _stated_owner(given: Given, name: str) -> Iterator[Link]:
    """The foreign key that the owner names with the parent, if the catalog lacks it."""
    words, facts = given.words(name), given.private[name]
    if not words.parent and not words.foreign_key:
        return
    where = f"the file of the database, tables.{name},"
    columns = given.columns(name, words.foreign_key, f"{where} foreign_key:")
    if words.parent:
        parent = given.named(words.parent)
        if parent is None or parent not in given.private:
            raise InputError(
                f"{where} has parent: {words.parent!r}, which is no private table of the release; "
                f"{name_hint(words.parent, given.private, 'they are')}"
            )
        known = [link for link in facts.links if link.table == parent]
        known = [link for link in known if not columns or set(link.columns) == set(columns)]
        if len(known) == 1:
            yield known[0]
        elif columns:
            yield Link(columns, parent)
        else:
            why = "no foreign key to it" if not known else "several foreign keys to it"
            raise InputError(f"{where} has parent: {parent}, and there are {why}: name foreign_key: too.")
        return
    known = [link for link in facts.links if set(link.columns) == set(columns)]
    if len(known) != 1:
        raise InputError(
            f"{where} has foreign_key: without parent:, and no constraint tells it: name parent:."
        )
    yield known[0]


def _stated_references(given: Given, name: str) -> Iterator[Link]:
    facts, where = given.private[name], f"the file of the database, tables.{name}.columns,"
    for first, stated in given.words(name).references.items():
        table = given.named(stated.table)
        if table is None:
            known = [*given.private, *given.public]
            raise InputError(
                f"{where} has {first}: references: {stated.table!r}, which is no table of the release; "
                f"{name_hint(stated.table, known, 'they are')}"
            )
        own = given.column(name, first, where).name
        columns = given.columns(name, stated.columns, where) or (own,)
        if own not in columns:
            raise InputError(f"{where} has {first}: columns: without {first!r} itself.")
        catalog = [link for link in facts.links if own in link.columns and link.table == table]
        if len(catalog) == 1 and (not stated.columns or set(columns) == set(catalog[0].columns)):
            yield catalog[0]
        else:
            yield Link((own, *(column for column in columns if column != own)), table)


# -- owners --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Owners:
    """Finds the foreign key of each table that says whose row it is."""

    given: Given
    links: Mapping[str, tuple[Link, ...]]

    def all(self) -> dict[str, Link]:
        """By the names of all tables but the root."""
        found = {name: self._owner(name) for name in self.given.private if name != self.given.root}
        words = self.given.words(self.given.root)
        if words.parent or words.foreign_key:
            raise InputError(
                f"{self.given.root} holds the units, so it has no parent: take away parent: and foreign_key:."
            )
        for name in found:
            self._check_reaches(name, found)
        return found

    def _owner(self, name: str) -> Link:
        words = self.given.words(name)
        links = [link for link in self.links[name] if link.table in self.given.private]
        others = [link for link in links if link.table != name]
        if words.parent or words.foreign_key:
            stated = next(_stated_owner(self.given, name))
            if stated.table == name:
                raise InputError(f"{name} is its own parent: {_ADVICE.format(name=name)}")
            return stated
        ways = [link for link in others if self._reaches(link.table, {name})]
        if len(ways) == 1:
            return ways[0]
        if ways:
            told = listed([f"{', '.join(link.columns)} -> {link.table}" for link in ways])
            raise InputError(
                f"{name} belongs to units in several ways: {told}. Say in the file of the database which one "
                f"owns its rows, such as tables: {{{name}: {{parent: {ways[0].table}, foreign_key: "
                f"{ways[0].columns[0]}}}}}."
            )
        if others:
            told = " -> ".join((name, *self._way_round(name)))
            raise InputError(
                f"{name} reaches no unit: its foreign keys go round or end, {told}. {_cure(name)}"
            )
        if links:
            raise InputError(
                f"{name} refers to itself alone, so nothing says whose rows they are. {_cure(name)}"
            )
        raise InputError(
            f"{name} reaches no unit: it has no foreign key to {self.given.root} or to a table that belongs to "
            f"it. {_cure(name)}"
        )

    def _reaches(self, name: str, without: set[str]) -> bool:
        """Whether a way of foreign keys leads to the units and around these tables."""
        if name == self.given.root:
            return True
        seen = without | {name}
        return any(
            link.table in self.given.private and link.table not in seen and self._reaches(link.table, seen)
            for link in self.links[name]
        )

    def _way_round(self, name: str) -> list[str]:
        """The tables that the foreign keys lead to, until one comes again or none follows."""
        way, here = list[str](), name
        while True:
            after = [
                one.table for one in self.links[here] if one.table in self.given.private and one.table != here
            ]
            if not after:
                return way
            here = after[0]
            way.append(here)
            if here == name or here in way[:-1]:
                return way

    def _check_reaches(self, name: str, owners: Mapping[str, Link]) -> None:
        way = [name]
        while way[-1] != self.given.root:
            way.append(owners[way[-1]].table)
            if way[-1] in way[:-1]:
                raise InputError(f"The tables go round: {' -> '.join(way)}. {_cure(name)}")


_ADVICE = "a row belongs to a row of another table"


def _cure(name: str) -> str:
    return (
        f"Name its parent: and foreign_key: in the file of the database, name {name} in public_tables= if "
        "nothing in it is private, or release it on its own."
    )


# -- keys ----------------------------------------------------------------------------------------------


def _keys(
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
                f"{name} has no key, and {who} refers to its rows. Name the columns that tell them apart in the "
                f"file of the database: {section}: {{{name}: {{key: ...}}}}."
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
                f"unit='{name}.{unit}' is not the key of {name}, which is {', '.join(key)}. A unit is a row of "
                f"{name}: give unit='{name}.{key[0]}', or state key: {unit} in the file of the database."
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
            f"{table}.{column.name} is of type {family_of(column.sql_type)}, which cannot be a key: each value "
            "must have exactly one spelling. Allowed are text, ENUM, BOOLEAN, whole numbers, DECIMAL, DATE, "
            "TIMESTAMP and UUID. Cast the column in a view, in both tables."
        )


def _check_link(given: Given, name: str, link: Link, keys: Mapping[str, tuple[str, ...]]) -> None:
    key = keys[link.table]
    if link.key and set(link.key) != set(key):
        raise InputError(
            f"{name}: ({', '.join(link.columns)}) names {link.table} by ({', '.join(link.key)}), and its key is "
            f"({', '.join(key)}): a table can have one key. State key: in the file of the database, or leave "
            "the column out with exclude=."
        )
    if len(link.columns) != len(key):
        raise InputError(
            f"{name}: ({', '.join(link.columns)}) names a row of {link.table}, whose key is ({', '.join(key)}): "
            "name as many columns, in the order of the key."
        )
    for own, other in zip(_in_order(link, key).columns, key, strict=True):
        ours, theirs = given.column(name, own, "a link"), given.column(link.table, other, "a link")
        if not _comparable(parse_type(ours.sql_type), parse_type(theirs.sql_type)):
            raise InputError(
                f"{name}.{own} is of type {family_of(ours.sql_type)} and {link.table}.{other}, which it names, of "
                f"type {family_of(theirs.sql_type)}: they must be of one type. Cast one of them in a view."
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


def _in_order(link: Link, key: Sequence[str]) -> Link:
    """The same link with its columns in the order of the key."""
    if not link.key:
        return replace(link, key=tuple(key))
    own = dict(zip(link.key, link.columns, strict=True))
    return replace(link, columns=tuple(own[column] for column in key), key=tuple(key))


# -- the tree ------------------------------------------------------------------------------------------


def _sorted(given: Given, links: Mapping[str, Sequence[Link]]) -> list[str]:
    """The private tables, each after those that it refers to; the root first.

    Raises:
        InputError: they go round.
    """
    left = {
        name: {link.table for link in links[name] if link.table in given.private and link.table != name}
        for name in given.private
    }
    ordered = list[str]()
    while left:
        ready = [name for name, after in left.items() if not after]
        if not ready or (not ordered and ready != [given.root]):
            raise InputError(
                f"The tables go round: {' -> '.join(_round(left))}. Leave a foreign key out with exclude=, or say "
                "in the file of the database that its column is none (columns:)."
            )
        for name in ready:
            del left[name]
        for after in left.values():
            after.difference_update(ready)
        ordered += ready
    return ordered


def _round(left: Mapping[str, set[str]]) -> list[str]:
    way = [next(iter(left))]
    while way.count(way[-1]) < 2:
        way.append(next(iter(left[way[-1]])))
    return way[way.index(way[-1]) :]


def _references(
    given: Given,
    name: str,
    owner: Link | None,
    links: Sequence[Link],
    owning: Mapping[str, Link],
    keys: Mapping[str, tuple[str, ...]],
) -> Iterator[Reference]:
    """The foreign keys beside the owning one; what follows from that is none."""
    taken: set[str] = set(owner.columns if owner is not None else ())
    for link in sorted(links, key=lambda one: given.private[name].columns.index(_first(given, name, one))):
        if owner is not None and _follows(name, link, owning, keys):
            continue
        shared = taken & set(link.columns)
        if shared:
            raise InputError(
                f"{name}: the foreign key ({', '.join(link.columns)}) to {link.table} shares {listed(shared)} with "
                f"another one. Name {link.table} as the parent in the file of the database, or say there that a "
                "column of it is none (columns:)."
            )
        taken |= set(link.columns)
        public = link.table in given.public
        kind: ReferenceKind = "public" if public else "self" if link.table == name else "other"
        words = [one for first, one in given.words(name).references.items() if fold(first) in _folded(link)]
        by = words[0].by if words else ()
        if by and not public:
            raise InputError(
                f"{name}.{link.columns[0]}: by: names columns of {link.table}, which is private: its columns "
                "would tell of other units. Leave out by:."
            )
        where = f"the file of the database, by: of {name}.{link.columns[0]},"
        yield Reference(link.columns, link.table, kind, given.columns(link.table, by, where) if by else ())


def _first(given: Given, name: str, link: Link) -> Column:
    return given.column(name, link.columns[0], "a link")


def _folded(link: Link) -> set[str]:
    return {fold(column) for column in link.columns}


def _follows(name: str, link: Link, owning: Mapping[str, Link], keys: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a link to a table above names the very row that the row belongs to, whatever the rows are."""
    here, columns = name, link.columns
    while here in owning:
        owner = owning[here]
        if not set(columns) <= set(owner.columns):
            return False
        place = dict(zip(owner.columns, keys[owner.table], strict=True))
        columns, here = tuple(place[column] for column in columns), owner.table
        if here == link.table and columns == keys[here]:
            return True
    return False


# -- bounds --------------------------------------------------------------------------------------------


def _check_bounds(given: Given) -> None:
    for name in given.most:
        if name not in given.private:
            raise InputError(
                f"most= names {name!r}, which is no private table of the release; "
                f"{name_hint(name, given.private, 'they are')}"
            )
    if given.most.get(given.root, 1) != 1 or (given.words(given.root).most or 1) != 1:
        raise InputError(
            f"most= names {given.root}, whose rows are the units: each has one. Leave it out of most."
        )


def _most(given: Given, name: str) -> int:
    stated = given.words(name).most
    return given.most.get(name, DEFAULT_MOST if stated is None else stated)


def _check_weights(tree: Tree) -> None:
    if tree.countable:
        return
    deepest = next(table for table in tree if tree.rows_per_unit(table.name) > WEIGHT)
    bounds = " x ".join(str(table.most) for table in tree.path(deepest.name)[1:])
    raise InputError(
        f"A unit may have {tree.rows_per_unit(deepest.name):,} rows in {deepest.name} ({bounds}), more than "
        f"{WEIGHT:,}, so that a row would count nothing. Give smaller numbers: most={{'{deepest.name}': 4}}."
    )
