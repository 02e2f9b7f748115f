"""From keys and links to a tree of tables: whose row each row is, and what else it refers to.

Public facts only: constraints of the catalog, and the owner's words, which come first. Every contradiction
is refused here. What only rows can tell (a key that is not unique, NULL, a row that names no row) is no
contradiction: such rows are left out, or count for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpsyn_sql.domain.specs import KeySpec, PointSpec
from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.tree import DEFAULT_MOST, Link, PublicTable, Reference, ReferenceKind, Table, Tree
from dpsyn_sql.planning.tying.given import Given
from dpsyn_sql.planning.tying.keys import check_link, in_order, keys_of
from dpsyn_sql.planning.tying.links import foreign_keys, owners_of
from dpsyn_sql.source.names import fold, listed
from dpsyn_sql.source.relation import WEIGHT, Column


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
