"""Whose row each row is: the one foreign key of each table that leads to the units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpsyn_sql.errors import InputError
from dpsyn_sql.planning.links import Link
from dpsyn_sql.planning.tying.given import Given
from dpsyn_sql.planning.tying.links import stated_owner
from dpsyn_sql.source.names import listed


@dataclass(frozen=True, slots=True)
class Owners:
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
            stated = next(stated_owner(self.given, name))
            if stated.table == name:
                raise InputError(
                    f"{name} cannot be its own parent: a row belongs to a row of another table. {_cure(name)}"
                )
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
            f"{name} reaches no unit: it has no foreign key to {self.given.root} or to a table that belongs "
            f"to it. {_cure(name)}"
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


def _cure(name: str) -> str:
    return (
        f"Name its parent: and foreign_key: in the file of the database, name {name} in public_tables= if "
        "nothing in it is private, or release it on its own."
    )
