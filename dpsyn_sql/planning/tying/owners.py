"""Whose row each row is: the one foreign key of each table that leads to the units."""

from __future__ import annotations

from collections.abc import Mapping

from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.links import Link
from dpsyn_sql.planning.tying.given import Given
from dpsyn_sql.planning.tying.links import foreign_keys, stated_owner
from dpsyn_sql.source.names import listed


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
            f"{links[0].columns[0]}}}}}."
        )
    return links[0]


def _cure(name: str) -> str:
    return (
        f"Name its parent: and foreign_key: in the file of the database, name {name} in public_tables= if "
        "nothing in it is private, or release it on its own."
    )
