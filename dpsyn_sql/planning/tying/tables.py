"""From foreign keys to a tree of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpsyn_sql.attributes.made import KeySpec
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.tree import DEFAULT_MOST, Link, PublicTable, Reference, ReferenceKind, Table, Tree
from dpsyn_sql.planning.tying.keys import Given, check_link, in_order, keys_of
from dpsyn_sql.source.names import fold, listed, name_hint
from dpsyn_sql.source.relation import WEIGHT, Column

# -- links -------------------------------------------------------------------------------------------

# The foreign keys of a table, and which one of them says whose row each row is.
#
# The owner's words come first, then the constraints of the catalog.


def foreign_keys(database: Given, name: str) -> tuple[Link, ...]:
    """The foreign keys of a table: the owner's, and those of the catalog that they do not replace."""
    facts, words = database.private[name], database.words(name)
    plain = {
        column.name for text in words.domain.columns if (column := facts.column(text)) is not None
    } | database.excluded.get(name, frozenset())
    references = list(_stated_references(database, name))
    stated = [*stated_owner(database, name), *references]
    referring = {link.columns[0] for link in references}
    links = [link for link in stated if not plain & set(link.columns)]
    if len(links) < len(stated):
        lost = next(link for link in stated if plain & set(link.columns))
        raise InputError(
            f"{name}: {listed(lost.columns)} is left out or has a domain of its own, and ties the table to "
            f"{lost.table} too. Take away one of the two."
        )
    for link in facts.links:
        if plain >= set(link.columns) or link.columns[0] in referring or _same(link, stated):
            continue
        if plain & set(link.columns):
            raise InputError(
                f"{name}: the foreign key ({', '.join(link.columns)}) to {link.table} is left out in part. "
                "Leave out all of its columns or none."
            )
        if link.table not in database.private and link.table not in database.public:
            raise InputError(
                f"{name}.{link.columns[0]} refers to {link.table}, which is neither a table to release nor "
                "in public_tables=. Name it as one of them, or leave the column out: "
                f"exclude={name}.{link.columns[0]}."
            )
        links.append(link)
    _check_one_each(name, links)
    return tuple(links)


def _same(link: Link, stated: Sequence[Link]) -> bool:
    return any(set(link.columns) == set(stated_link.columns) for stated_link in stated)


def _check_one_each(name: str, links: Sequence[Link]) -> None:
    """Two foreign keys of the same columns to different tables."""
    table_of: dict[frozenset[str], str] = {}
    for link in links:
        columns = frozenset(link.columns)
        if columns in table_of:
            raise InputError(
                f"{name}: ({', '.join(link.columns)}) refers to {table_of[columns]} and to {link.table}. Say "
                "in the file of the database which of them is meant. Rows that name no row of that table "
                "are left out: if each row names one of the two, make a view of the rows of each."
            )
        table_of[columns] = link.table


def stated_owner(database: Given, name: str) -> Iterator[Link]:
    """The foreign key that the owner names with the parent, if the catalog lacks it."""
    words, facts = database.words(name), database.private[name]
    if not words.parent and not words.foreign_key:
        return
    where = f"the file of the database, tables.{name},"
    columns = database.columns(name, words.foreign_key, f"{where} foreign_key:")
    if words.parent:
        parent = database.named(words.parent)
        if parent is None or parent not in database.private:
            raise InputError(
                f"{where} has parent: {words.parent!r}, which is no private table; "
                f"{name_hint(words.parent, database.private, 'they are')}"
            )
        candidates = [link for link in facts.links if link.table == parent]
        candidates = [link for link in candidates if not columns or set(link.columns) == set(columns)]
        if len(candidates) == 1:
            yield candidates[0]
        elif columns:
            yield Link(columns, parent)
        else:
            why = "no foreign key to it" if not candidates else "several foreign keys to it"
            raise InputError(f"{where} has parent: {parent}, and there are {why}: name foreign_key: too.")
        return
    candidates = [link for link in facts.links if set(link.columns) == set(columns)]
    if len(candidates) != 1:
        raise InputError(
            f"{where} has foreign_key: without parent:, and no constraint tells it: name parent:."
        )
    yield candidates[0]


def _stated_references(database: Given, name: str) -> Iterator[Link]:
    facts, where = database.private[name], f"the file of the database, tables.{name}.columns,"
    for first, stated in database.words(name).references.items():
        table = database.named(stated.table)
        if table is None:
            names = [*database.private, *database.public]
            raise InputError(
                f"{where} has {first}: references: {stated.table!r}, which is no table of the release "
                f"(a public one is named in public_tables=); {name_hint(stated.table, names, 'they are')}"
            )
        first_column = database.column(name, first, where).name
        columns = database.columns(name, stated.columns, where) or (first_column,)
        if first_column not in columns:
            raise InputError(f"{where} has {first}: columns: without {first!r} itself.")
        catalog = [link for link in facts.links if first_column in link.columns and link.table == table]
        if len(catalog) == 1 and (not stated.columns or set(columns) == set(catalog[0].columns)):
            yield catalog[0]
        else:
            yield Link((first_column, *(column for column in columns if column != first_column)), table)


# -- whose row each row is -----------------------------------------------------------------------------


def owners_of(database: Given, links: Mapping[str, tuple[Link, ...]]) -> dict[str, Link]:
    """The owning foreign key of each table but the root.

    Raises:
        InputError: a table reaches no unit, or in several ways.
    """
    words = database.words(database.root)
    if words.parent or words.foreign_key:
        raise InputError(
            f"{database.root} holds the units, so it has no parent: take away parent: and foreign_key:."
        )
    upwards = {
        name: [link for link in links[name] if link.table in database.private and link.table != name]
        for name in database.private
    }
    reaching = _reaching(database.root, upwards)
    for name in database.private:
        if name not in reaching:
            raise _unreached(database, name, upwards, links)
    return {name: _owner(database, name, upwards[name]) for name in database.private if name != database.root}


def root_of(database: Given) -> str:
    """The one table that has no parent, where nobody says which holds the units.

    Raises:
        InputError: several tables have none, or each has one.
    """
    roots = [
        name
        for name in database.private
        if not any(
            link.table in database.private and link.table != name for link in foreign_keys(database, name)
        )
    ]
    if len(roots) != 1:
        raise InputError(
            f"One table has no parent: the one that holds the units. Here these have none: "
            f"{listed(roots) or 'none'}. Say parent: and foreign_key: of the others in the file of the "
            "database."
        )
    return roots[0]


def _reaching(root: str, upwards: Mapping[str, list[Link]]) -> list[str]:
    """The tables from which foreign keys lead to the units."""
    reaching = [root]
    for name in reaching:  # grows
        reaching += [
            table
            for table, links in upwards.items()
            if table not in reaching and any(link.table == name for link in links)
        ]
    return reaching


def _unreached(
    database: Given, name: str, upwards: Mapping[str, list[Link]], links: Mapping[str, tuple[Link, ...]]
) -> InputError:
    """Why a table reaches no unit."""
    if upwards[name]:
        names = listed(dict.fromkeys(link.table for link in upwards[name]))
        return InputError(f"{name} reaches no unit: nor do the tables that it names, {names}. {_cure(name)}")
    if any(link.table == name for link in links[name]):
        return InputError(f"{name} names itself alone, so nothing says whose rows they are. {_cure(name)}")
    return InputError(
        f"{name} reaches no unit: it has no foreign key to {database.root} or to a table that belongs to it. "
        f"{_cure(name)}"
    )


def _owner(database: Given, name: str, links: list[Link]) -> Link:
    words = database.words(name)
    if words.parent or words.foreign_key:
        stated = next(stated_owner(database, name))
        if stated.table == name:
            raise InputError(f"{name} cannot be its own parent: a row belongs to a row of another table.")
        return stated
    if len(links) > 1:
        choices = listed([f"{', '.join(link.columns)} -> {link.table}" for link in links])
        raise InputError(
            f"{name} belongs to units in several ways: {choices}. Say in the file of the database which one "
            f"owns its rows, such as tables: {{{name}: {{parent: {links[0].table}, foreign_key: "
            f"{links[0].columns[0]}}}}}. Rows without that key are left out."
        )
    return links[0]


def _cure(name: str) -> str:
    return (
        f"Name its parent: and foreign_key: in the file of the database, name {name} in public_tables= if "
        "nothing in it is private, or release it on its own."
    )


# -- the tree ----------------------------------------------------------------------------------------

# From keys and links to a tree of tables: whose row each row is, and what else it refers to.
#
# Public facts only: constraints of the catalog, and the owner's words, which come first. Every contradiction
# is refused here. What only rows can tell (a key that is not unique, NULL, a row that names no row) is no
# contradiction: such rows are left out, or count for one.


def tied_tables(database: Given) -> Tree:
    """The tree of the tables.

    Raises:
        InputError: the tables are no tree, a key is missing or cannot be one, or a bound is out of range.
    """
    links = {name: foreign_keys(database, name) for name in database.private}
    owners = owners_of(database, links)
    keys = keys_of(database, links, owners)
    for name in database.private:
        for link in links[name]:
            check_link(database, name, link, keys)
    ordered = {name: tuple(in_order(link, keys[link.table]) for link in links[name]) for name in links}
    owning = {
        name: next(new for old, new in zip(links[name], ordered[name], strict=True) if old == owner)
        for name, owner in owners.items()
    }
    _check_bounds(database)
    tables = []
    for name in _sorted(database, links):
        owner = owning.get(name)
        further = [link for link in ordered[name] if link != owner]
        key = keys.get(name, ())
        tables.append(
            Table(
                name,
                database.relations[name],
                key,
                None if owner is None else owner.table,
                () if owner is None else owner.columns,
                1 if owner is None else _most(database, name, owner.columns, key),
                database.words(name).order,
                tuple(_references(database, name, owner, further, owning, keys)),
                _measured_key(database, name, key, ordered[name]),
            )
        )
    public = (PublicTable(name, database.relations[name], keys.get(name, ())) for name in database.public)
    return Tree(tuple(tables), tuple(public))


def _sorted(database: Given, links: Mapping[str, Sequence[Link]]) -> list[str]:
    """The private tables, each after those that it refers to; the root first.

    Raises:
        InputError: they go round.
    """
    left = {
        name: {link.table for link in links[name] if link.table in database.private and link.table != name}
        for name in database.private
    }
    ordered = list[str]()
    while left:
        ready = [name for name, after in left.items() if not after]
        if not ready or (not ordered and ready != [database.root]):
            raise InputError(
                f"The tables go round: {' -> '.join(_round(left))}. Leave a foreign key out with exclude=, "
                "or say in the file of the database that its column is none (columns:)."
            )
        for name in ready:
            del left[name]
        for after in left.values():
            after.difference_update(ready)
        ordered += ready
    return ordered


def _round(left: Mapping[str, set[str]]) -> list[str]:
    cycle = [next(iter(left))]
    while cycle.count(cycle[-1]) < 2:
        cycle.append(min(left[cycle[-1]]))
    return cycle[cycle.index(cycle[-1]) :]


def _references(
    database: Given,
    name: str,
    owner: Link | None,
    links: Sequence[Link],
    owning: Mapping[str, Link],
    keys: Mapping[str, tuple[str, ...]],
) -> Iterator[Reference]:
    """The foreign keys beside the owning one; what follows from that is none."""
    used: set[str] = set(owner.columns if owner is not None else ())
    for link in sorted(
        links, key=lambda candidate: database.private[name].columns.index(_first(database, name, candidate))
    ):
        if owner is not None and _follows(name, link, owning, keys):
            continue
        shared = used & set(link.columns)
        if shared:
            raise InputError(
                f"{name}: the foreign key ({', '.join(link.columns)}) to {link.table} shares "
                f"{listed(shared)} with another one. Name {link.table} as the parent in the file of the "
                "database, or say there that a column of it is none (columns:)."
            )
        used |= set(link.columns)
        public = link.table in database.public
        kind: ReferenceKind = "public" if public else "self" if link.table == name else "other"
        words = [
            reference
            for first, reference in database.words(name).references.items()
            if fold(first) in _folded(link)
        ]
        by = words[0].by if words else ()
        if by and not public:
            raise InputError(
                f"{name}.{link.columns[0]}: by: names columns of {link.table}, which is private: its columns "
                "would tell of other units. Leave out by:."
            )
        where = f"the file of the database, by: of {name}.{link.columns[0]},"
        yield Reference(link.columns, link.table, kind, database.columns(link.table, by, where) if by else ())


def _measured_key(database: Given, name: str, key: Sequence[str], links: Sequence[Link]) -> frozenset[str]:
    """The columns of a key that the owner declares as more than a key; what names rows of a table is none."""
    columns = set[str]()
    for text, entry in database.words(name).domain.columns.items():
        if isinstance(entry, KeySpec):
            continue
        stated = (entry.parts if entry is not None else ()) or (text,)
        declared = (database.private[name].column(part) for part in stated)
        columns.update(column.name for column in declared if column is not None)
    return frozenset(columns.intersection(key)) - {column for link in links for column in link.columns}


def _first(database: Given, name: str, link: Link) -> Column:
    return database.column(name, link.columns[0], "a link")


def _folded(link: Link) -> set[str]:
    return {fold(column) for column in link.columns}


def _follows(name: str, link: Link, owning: Mapping[str, Link], keys: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a link to a table above names the very row that the row belongs to, whatever the rows are."""
    here, columns = name, link.columns
    while here in owning:
        owner = owning[here]
        if not set(columns) <= set(owner.columns):
            return False
        key_column_of = dict(zip(owner.columns, keys[owner.table], strict=True))
        columns, here = tuple(key_column_of[column] for column in columns), owner.table
        if here == link.table and columns == keys[here]:
            return True
    return False


def _check_bounds(database: Given) -> None:
    if database.most.get(database.root, 1) != 1 or (database.words(database.root).most or 1) != 1:
        raise InputError(
            f"most= names {database.root}, whose rows are the units: each has one. Leave it out of most."
        )


def _most(database: Given, name: str, columns: Sequence[str], key: Sequence[str]) -> int:
    """The rows that are kept of one row of the parent: one where its key allows no more."""
    if (key and set(key) <= set(columns)) or database.private[name].are_unique(columns):
        return 1
    stated = database.words(name).most
    return database.most.get(name, DEFAULT_MOST if stated is None else stated)


def check_weights(tree: Tree) -> None:
    """Refuse a tree in which a row can count nothing.

    Raises:
        InputError: a unit may have more rows in a table than its weight divides into.
    """
    if tree.countable:
        return
    deepest = next(table for table in tree if tree.rows_per_unit(table.name) > WEIGHT)
    bounds = " x ".join(str(table.most) for table in tree.path(deepest.name)[1:])
    raise InputError(
        f"A unit may have {tree.rows_per_unit(deepest.name):,} rows in {deepest.name} ({bounds}), more than "
        f"{WEIGHT:,}, so that a row would count nothing. Give smaller numbers: most={{'{deepest.name}': 4}}."
    )
