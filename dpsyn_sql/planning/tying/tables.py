"""From foreign keys to a tree of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpsyn_sql.domain.specs import KeySpec, PointSpec
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.tree import DEFAULT_MOST, Link, PublicTable, Reference, ReferenceKind, Table, Tree
from dpsyn_sql.planning.tying.keys import Given, check_link, in_order, keys_of
from dpsyn_sql.source.names import fold, listed, name_hint
from dpsyn_sql.source.relation import WEIGHT, Column

# -- links -------------------------------------------------------------------------------------------

# The foreign keys of a table, and which one of them says whose row each row is.
#
# The owner's words come first, then the constraints of the catalog.


def foreign_keys(given: Given, name: str) -> tuple[Link, ...]:
    """The foreign keys of a table: the owner's, and those of the catalog that they do not replace."""
    facts, words = given.private[name], given.words(name)
    plain = {
        column.name for text in words.domain.columns if (column := facts.column(text)) is not None
    } | given.excluded.get(name, frozenset())
    references = list(_stated_references(given, name))
    stated = [*stated_owner(given, name), *references]
    taken = {link.columns[0] for link in references}
    found = [link for link in stated if not plain & set(link.columns)]
    if len(found) < len(stated):
        lost = next(link for link in stated if plain & set(link.columns))
        raise InputError(
            f"{name}: {listed(lost.columns)} is left out or has a domain of its own, and ties the table to "
            f"{lost.table} too. Take away one of the two."
        )
    for link in facts.links:
        if plain >= set(link.columns) or link.columns[0] in taken or _same(link, stated):
            continue
        if plain & set(link.columns):
            raise InputError(
                f"{name}: the foreign key ({', '.join(link.columns)}) to {link.table} is left out in part. "
                "Leave out all of its columns or none."
            )
        if link.table not in given.private and link.table not in given.public:
            raise InputError(
                f"{name}.{link.columns[0]} refers to {link.table}, which is neither a table to release nor "
                "in public_tables=. Name it as one of them, or leave the column out: "
                f"exclude={name}.{link.columns[0]}."
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
                f"{name}: ({', '.join(link.columns)}) refers to {seen[columns]} and to {link.table}. Say in "
                "the file of the database which of them is meant. Rows that name no row of that table "
                "are left out: if each row names one of the two, make a view of the rows of each."
            )
        seen[columns] = link.table


def stated_owner(given: Given, name: str) -> Iterator[Link]:
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
                f"{where} has parent: {words.parent!r}, which is no private table; "
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
                f"{where} has {first}: references: {stated.table!r}, which is no table of the release, "
                f"private or public; {name_hint(stated.table, known, 'they are')}"
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


# -- whose row each row is -----------------------------------------------------------------------------


def owners_of(given: Given, links: Mapping[str, tuple[Link, ...]]) -> dict[str, Link]:
    """The owning foreign key of each table but the root.

    Raises:
        InputError: a table reaches no unit, or in several ways.
    """
    words = given.words(given.root)
    if words.parent or words.foreign_key:
        raise InputError(
            f"{given.root} holds the units, so it has no parent: take away parent: and foreign_key:."
        )
    upwards = {
        name: [link for link in links[name] if link.table in given.private and link.table != name]
        for name in given.private
    }
    reaching = _reaching(given.root, upwards)
    for name in given.private:
        if name not in reaching:
            raise _unreached(given, name, upwards, links)
    return {name: _owner(given, name, upwards[name]) for name in given.private if name != given.root}


def root_of(given: Given) -> str:
    """The one table that has no parent, where nobody says which holds the units.

    Raises:
        InputError: several tables have none, or each has one.
    """
    roots = [
        name
        for name in given.private
        if not any(link.table in given.private and link.table != name for link in foreign_keys(given, name))
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
    found = [root]
    for name in found:  # grows
        found += [
            other
            for other, links in upwards.items()
            if other not in found and any(link.table == name for link in links)
        ]
    return found


def _unreached(
    given: Given, name: str, upwards: Mapping[str, list[Link]], links: Mapping[str, tuple[Link, ...]]
) -> InputError:
    """Why a table reaches no unit."""
    if upwards[name]:
        names = listed(dict.fromkeys(link.table for link in upwards[name]))
        return InputError(f"{name} reaches no unit: nor do the tables that it names, {names}. {_cure(name)}")
    if any(link.table == name for link in links[name]):
        return InputError(f"{name} names itself alone, so nothing says whose rows they are. {_cure(name)}")
    return InputError(
        f"{name} reaches no unit: it has no foreign key to {given.root} or to a table that belongs to it. "
        f"{_cure(name)}"
    )


def _owner(given: Given, name: str, links: list[Link]) -> Link:
    words = given.words(name)
    if words.parent or words.foreign_key:
        stated = next(stated_owner(given, name))
        if stated.table == name:
            raise InputError(f"{name} cannot be its own parent: a row belongs to a row of another table.")
        return stated
    if len(links) > 1:
        told = listed([f"{', '.join(link.columns)} -> {link.table}" for link in links])
        raise InputError(
            f"{name} belongs to units in several ways: {told}. Say in the file of the database which one "
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


def tied_tables(given: Given) -> Tree:
    """The tree of the tables.

    Raises:
        InputError: the tables are no tree, a key is missing or cannot be one, or a bound is out of range.
    """
    links = {name: foreign_keys(given, name) for name in given.private}
    owners = owners_of(given, links)
    keys = keys_of(given, links, owners)
    for name in given.private:
        for link in links[name]:
            check_link(given, name, link, keys)
    ordered = {name: tuple(in_order(link, keys[link.table]) for link in links[name]) for name in links}
    owning = {
        name: next(new for old, new in zip(links[name], ordered[name], strict=True) if old == owner)
        for name, owner in owners.items()
    }
    _check_bounds(given)
    tables = []
    for name in _sorted(given, links):
        owner = owning.get(name)
        others = [link for link in ordered[name] if link != owner]
        key = keys.get(name, ())
        tables.append(
            Table(
                name,
                given.relations[name],
                key,
                None if owner is None else owner.table,
                () if owner is None else owner.columns,
                1 if owner is None else _most(given, name, owner.columns, key),
                given.words(name).order,
                tuple(_references(given, name, owner, others, owning, keys)),
                _measured_key(given, name, key, ordered[name]),
            )
        )
    public = (PublicTable(name, given.relations[name], keys.get(name, ())) for name in given.public)
    return Tree(tuple(tables), tuple(public))


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
    way = [next(iter(left))]
    while way.count(way[-1]) < 2:
        way.append(min(left[way[-1]]))
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
                f"{name}: the foreign key ({', '.join(link.columns)}) to {link.table} shares "
                f"{listed(shared)} with another one. Name {link.table} as the parent in the file of the "
                "database, or say there that a column of it is none (columns:)."
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


def _measured_key(given: Given, name: str, key: Sequence[str], links: Sequence[Link]) -> frozenset[str]:
    """The columns of a key that the owner declares as more than a key; what names rows of a table is none."""
    columns = set[str]()
    for text, entry in given.words(name).domain.columns.items():
        if isinstance(entry, KeySpec):
            continue
        stated = entry.columns if isinstance(entry, PointSpec) else (text,)
        found = (given.private[name].column(one) for one in stated)
        columns.update(column.name for column in found if column is not None)
    return frozenset(columns.intersection(key)) - {column for link in links for column in link.columns}


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


def _check_bounds(given: Given) -> None:
    if given.most.get(given.root, 1) != 1 or (given.words(given.root).most or 1) != 1:
        raise InputError(
            f"most= names {given.root}, whose rows are the units: each has one. Leave it out of most."
        )


def _most(given: Given, name: str, columns: Sequence[str], key: Sequence[str]) -> int:
    """The rows that are kept of one row of the parent: one where its key allows no more."""
    if (key and set(key) <= set(columns)) or given.private[name].are_unique(columns):
        return 1
    stated = given.words(name).most
    return given.most.get(name, DEFAULT_MOST if stated is None else stated)


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
