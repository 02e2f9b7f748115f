"""The form that ``dpsyn init`` writes for a database: keys, links and the columns of its tables.

From the catalog alone: a foreign key tells whose row a row is if it is the only one that leads to the units.
Names are double-quoted YAML, as in the form of one table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dpsyn_sql.domain.template import HOW_TO_DECLARE, column_form, quoted
from dpsyn_sql.domain.unit import names_persons
from dpsyn_sql.planning.tree import DEFAULT_MOST, Link
from dpsyn_sql.planning.tying.keys import TableFacts

_HEAD = """\
# Public facts of a database whose tables are released together.
#
# unit: the key of the table whose rows are protected. Every other table belongs to it by one foreign key, on
# its own or over other tables. A table without private data, such as a list of products, stands under
# public_tables: and is kept as it is.
#
# Of each table under tables:
#   key          the columns that tell its rows apart
#   parent       the table above; foreign_key: the columns that name its rows, in the order of its key
#   most         rows that count of one row above; further ones are left out by lot (noise does not grow)
#   order        a date, a timestamp or a whole number with bounds that orders the rows of one row above
#   columns      domains, as described below; or of a key of another table
#   references   {references: products, by: [category]}: the category of the public row is measured, and a
#                row of it drawn; without by: the row itself is measured, one of at most 1,000
#   never        as described below
#
# Declare here what is known about every column without looking at the data. The protection depends
# on it: take bounds and categories from a code book, a law or common sense, never from the rows.
# What you write is printed in the plan and the certificate, and never checked against the rows.
#
"""


def database_template(facts: Mapping[str, TableFacts], public: Collection[str]) -> str:
    """A file of a database with what its constraints say; valid YAML as it is, and a valid file once it is
    filled in. If constraints tell whose row each row is, it is one already.

    Args:
        facts: keys, links and columns of all tables, by name.
        public: the tables that the owner calls public.
    """
    return _HEAD + HOW_TO_DECLARE + "\n".join(_Form(facts, tuple(public)).lines()) + "\n"


@dataclass(frozen=True, slots=True)
class _Form:
    facts: Mapping[str, TableFacts]
    public: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        root = self._root()
        tied = self._tied(root)
        yield from self._unit(root)
        loose = [name for name in self.facts if name not in (*tied, *self.public)]
        yield from self._public(loose, root)
        yield "tables:"
        for name in tied or loose:
            yield from self._table(name, tied or loose, root)

    def _links(self, name: str) -> list[Link]:
        """The foreign keys that name rows of these tables."""
        return [link for link in self.facts[name].links if link.table in self.facts]

    def _named_by_others(self, name: str) -> bool:
        other_tables = (table for table in self.facts if table != name)
        return any(link.table == name for table in other_tables for link in self._links(table))

    def _roots(self) -> list[str]:
        """The private tables that name no other and are named by others."""
        return [
            name
            for name in self.facts
            if name not in self.public
            and self._named_by_others(name)
            and all(link.table in (name, *self.public) for link in self._links(name))
        ]

    def _units(self) -> list[str]:
        """The private tables that can be the unit: others name their rows. Persons by their names come
        first."""
        units = [name for name in self.facts if name not in self.public and self._named_by_others(name)]
        return sorted(units, key=lambda name: not names_persons(name))

    def _root(self) -> str | None:
        """The only table of ``_roots`` to which foreign keys of all other tables lead, if it is the only one
        that can be the unit, or one of persons by its name; else None. The top of a tree may be a list of
        regions, or of physicians whose patients are to be protected."""
        roots = self._roots()
        linked = {name for name in self.facts if name not in (*roots, *self.public) and self._links(name)}
        reached = [name for name in roots if linked <= set(self._tied(name))]
        guessed = len(reached) == 1 and (names_persons(reached[0]) or self._units() == reached)
        return reached[0] if guessed else None

    def _tied(self, root: str | None) -> list[str]:
        """The tables from which foreign keys lead to the root, the root first."""
        tied = [] if root is None else [root]
        for name in tied:  # grows
            tied += [
                table
                for table in self.facts
                if table not in (*tied, *self.public)
                and any(link.table == name for link in self._links(table))
            ]
        return tied

    def _unit(self, root: str | None) -> Iterator[str]:
        if root is not None and self.facts[root].primary:
            yield "# Guessed from the foreign keys. Is one row of this table one person?"
            yield f"unit: {self._key(root)}"
            return
        yield "# Whose data are these? Name the key of the table of persons:"
        for name in self._units():
            yield f"# unit: {self._key(name)}"
        yield from () if self._units() else ("# unit: FILL",)

    def _key(self, name: str) -> str:
        key = self.facts[name].primary
        return quoted(f"{name}.{key[0]}" if len(key) == 1 else name)

    def _public(self, loose: Sequence[str], root: str | None) -> Iterator[str]:
        if self.public:
            yield f"public_tables: [{', '.join(map(quoted, self.public))}]"
        if root is None or not loose:
            return
        yield f"# No foreign key leads from these tables to {quoted(root)}. Those without private data:"
        yield f"# public_tables: [{', '.join(map(quoted, [*self.public, *loose]))}]"

    def _table(self, name: str, tied: Sequence[str], root: str | None) -> Iterator[str]:
        facts = self.facts[name]
        owners = [link for link in self._links(name) if link.table in tied and link.table != name]
        owners = [] if name == root else owners
        yield f"  {quoted(name)}:"
        yield f"    key: {_names(facts.primary)}" if facts.primary else "    # key: FILL"
        if len(owners) == 1:
            yield from _owner(owners[0], "    ")
        elif name != root:
            yield "    # Whose row is it? Name the table and the columns that say it:"
            for owner in owners or [Link((), "")]:
                yield from _owner(owner, "    # ")
        if name != root:
            yield f"    {'# ' if root is None else ''}most: {DEFAULT_MOST}"
            yield "    # order: FILL"
        yield "    columns:"
        for column in facts.columns:
            yield from self._column(name, column.name, owners[0] if len(owners) == 1 else None)

    def _column(self, table: str, name: str, owner: Link | None) -> Iterator[str]:
        facts = self.facts[table]
        about = ""
        if owner is not None and name in owner.columns:
            about = f"names the row of {quoted(owner.table)} that it belongs to; nothing to write."
        further_links = [link for link in facts.links if link != owner and name in link.columns]
        if not about and further_links:
            yield from _reference(name, further_links[0], self)
            return
        if not about and name in facts.primary:
            about = "of the key: fresh values are written; nothing to write"
            about += ", unless it has a meaning, such as a year." if len(facts.primary) > 1 else "."
        if about:
            yield from ("", f"      # {quoted(name)}: {about}")
            return
        column = next(column for column in facts.columns if column.name == name)
        yield from (f"    {line}" if line else "" for line in column_form(column).rstrip("\n").split("\n"))

    def is_private(self, name: str) -> bool:
        return name in self._tied(self._root())


def _reference(name: str, link: Link, form: _Form) -> Iterator[str]:
    """What can be said of a foreign key beside the owning one."""
    yield ""
    if form.is_private(link.table):
        yield f"      # {quoted(name)}: names a row of {quoted(link.table)}: one at random is written."
        return
    yield f"      ## names a row of {quoted(link.table)}; if that is a public table:"
    yield f"      # {quoted(name)}: {{references: {quoted(link.table)}, by: [FILL]}}"


def _owner(link: Link, begin: str) -> Iterator[str]:
    yield f"{begin}parent: {quoted(link.table) if link.table else 'FILL'}"
    yield f"{begin}foreign_key: {_names(link.columns) if link.columns else 'FILL'}"


def _names(names: Sequence[str]) -> str:
    if len(names) == 1:
        return quoted(names[0])
    return f"[{', '.join(map(quoted, names))}]"
