"""The foreign keys of a table, and which one of them says whose row each row is.

The owner's words come first, then the constraints of the catalog.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.tree import Link
from dpsyn_sql.planning.tying.given import Given
from dpsyn_sql.source.names import listed, name_hint


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
                f"{name}.{link.columns[0]} refers to {link.table}, which is neither a table to release nor in "
                "public_tables=. Name it as one of them, or leave the column out: "
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
