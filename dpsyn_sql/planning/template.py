"""The form that ``dpsyn init`` writes, of one table and of tables that keys tie."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.discovered import undeclared
from dpsyn_sql.attributes.roles import Key
from dpsyn_sql.attributes.spec import Terms
from dpsyn_sql.attributes.types import SqlType, parse_type
from dpsyn_sql.attributes.unit import family_of, names_persons
from dpsyn_sql.planning.tree import DEFAULT_MOST, Link
from dpsyn_sql.planning.tying.keys import TableFacts
from dpsyn_sql.source.relation import Column, Relation

# -- one table ---------------------------------------------------------------------------------------

# The form that ``dpsyn init`` writes: a domain file to fill in, from the types of the catalog alone.
#
# Nothing of an anonymous ENUM or a nested type is printed, because such types can be made from the data
# itself. Names are always double-quoted YAML, so that no name can leave its comment line.

_HEAD = """\
# Public domain of {name}.
#
# Declare here what is known about every column without looking at the data. The protection depends
# on it: take bounds and categories from a code book, a law or common sense, never from the rows.
# What you write is printed in the plan and the certificate, and never checked against the rows.
#
"""
HOW_TO_DECLARE = """\
# How to fill in: remove the "# " before a line that starts with a column's name, replace FILL.
# A column without an entry is learnt from the rows with noise. This costs part of the budget and
# finds only frequent values. With --no-discover it is an error instead.
#
# Columns that are measured:
#   numeric      lower and upper bound, both included. With more than 100 values between them, bins and
#                frequent values are learnt with noise, at a small cost. Or bins: so many equal intervals;
#                or edges: [0, 1, 5000, 99999] for cuts of your own (the last one is the upper bound)
#   temporal     the same with dates: 2020-12-31; write times of day in quotes: '08:30:00'
#   categorical  categories: [a, b]; other: false if no further value can occur;
#                prefixes: [3] if text that is not listed may count as "250*", which then is a category;
#                ordered: true if neighbours in the list are alike
#   nullable     true if NULL may occur and shall occur in the synthetic table
#   per_unit     true if all rows of a unit have the same value, such as a year of birth; with unit=
#   granularity  values are whole multiples of it: 0.01, 100, or second, minute, hour, day, month
#   discover     {type: discover}: learn the column with noise; lower, upper: no value beyond is looked
#                for; max_codes: at most so many values or bins, one each for all other values and for
#                NULL included; as: categorical for whole numbers that are codes, such as zones;
#                prefixes: [3, 1] for text that is a code: a value that is not found keeps its beginning
# Columns of more values than can be listed: trees of values that are learnt, fine where the rows are:
#   point        places: {type: point, columns: {lat: [40.4, 41.0], lon: [-74.3, -73.6]}}, under a name of
#                its own, with lower and upper bounds; a way from one place to another has four columns
#   string       names and search words: {type: string, alphabet: "a-zA-Z' -", longest: 20}, every
#                character that the text may have, and the length at which it is cut
#   taxonomy     codes: {type: taxonomy, ids: ["250.1", "250.2", "401"], prefixes: [1, 3]}, or ids with
#                their parents: {type: taxonomy, parents: {"250": "240-279", "251": "240-279"}}
#   dyadic       numbers and dates of fine detail: {type: dyadic, lower: 0, upper: 100000}
# Columns that are made, not measured:
#   key          {type: key}: tells rows apart; fresh values, each once
#   constant     {type: constant, value: x}: the same public value in every row
#   derived      {derived: "age >= 18"}: computed from other columns by a SQL expression, or from
#                one column by a table: {derived: {education: {Bachelors: 13, Masters: 14}}, else: 0}
# Rows that cannot be, as SQL conditions that hold in no row of the output (a key of its own, last):
#   never: ["age < 16 AND marital_status = 'Married'"]
# Columns that shall not be released: exclude= in Python, --exclude on the command line.
"""
"""What the form says of declarations: comment lines."""

_CSV = """\
# This is a CSV file, which has no types, and no row was read to guess them. Say of each column:
#   sql_type     BIGINT, DECIMAL(10,2), DOUBLE, DATE, TIMESTAMP, TIME, BOOLEAN, or VARCHAR for text and codes
# That alone is much: without it the type is learnt from the rows with noise, at a cost. Bounds or categories
# in place of type: discover are better still; sql_type can stand beside them.
"""
_TEXT = "text; sql_type: BIGINT, DECIMAL(10,2), DOUBLE, DATE, TIMESTAMP, TIME, BOOLEAN or VARCHAR"
_LONGEST_KEY = 100  # longer ones need YAML's explicit key mark


def template_text(relation: Relation) -> str:
    """A domain file with a commented form for every column that needs one; valid YAML as it is,
    and a valid domain once the forms are uncommented and filled."""
    csv = relation.kind == "csv"
    head = _HEAD.format(name=quoted(relation.name)) + HOW_TO_DECLARE + (_CSV if csv else "") + "columns:\n"
    return head + "".join(column_form(column, csv=csv) for column in relation.columns)


def quoted(text: str) -> str:
    """A double-quoted YAML scalar in one line."""
    dumped: str = yaml.safe_dump(text, default_style='"', allow_unicode=True, width=float("inf"))
    return dumped.strip()


def column_form(column: Column, *, csv: bool = False) -> str:
    """The commented form of one column, indented by two, after an empty line."""
    name, kind = quoted(column.name), parse_type(column.sql_type)
    if kind is None:
        return f"\n  # {name}: type {_family(column)} is not supported; exclude this column.\n"
    from_catalog = _known(column, kind)
    if from_catalog:
        return f"\n  # {name}: {from_catalog}; nothing to write.\n"
    if csv:
        return _commented(name, _TEXT, "{type: discover, sql_type: FILL}")
    shown = "ENUM without a name" if kind.family == "enum" else kind.text
    form = _form(kind, nullable=not column.not_null)
    instead = "{type: discover}" + (
        ", for codes {type: discover, prefixes: [3, 1]}" if kind.family == "text" else ""
    )
    return _commented(name, f"{shown}; or instead: {instead}", form)


def _commented(name: str, remark: str, form: str) -> str:
    """A column's remark, and its form as a comment."""
    lines = f"{name}: {form}" if len(name) <= _LONGEST_KEY else f"? {name}\n: {form}"
    commented = "".join(f"  # {line}\n" for line in lines.split("\n"))
    return f"\n  ## {remark}\n{commented}"


def _known(column: Column, kind: SqlType) -> str:
    """What the catalog makes public of a column, in words; empty if nothing."""
    matched = undeclared(column, kind, Terms(discover=False))
    if isinstance(matched, Key):
        why = "unique by a constraint of the table" if column.unique else "a UUID"
        return f"a key, {why}: gets fresh values"
    if not isinstance(matched, Attribute):
        return ""
    if kind.family == "boolean":
        return "BOOLEAN, known from the catalog"
    if kind.family == "enum":
        return f"ENUM of {len(column.enum_labels or ())} labels, known from the catalog"
    if matched.kind == "categorical":
        return f"{kind.text} of {matched.regular} values, known from a CHECK constraint"
    return f"{kind.text} with bounds, known from a CHECK constraint"


def _family(column: Column) -> str:
    word = family_of(column.sql_type)
    return word if word.replace(" ", "").isalpha() else "of this column"


def _form(kind: SqlType, *, nullable: bool) -> str:
    form: dict[str, Any]
    if kind.family in ("text", "enum"):
        form = {"type": "categorical", "categories": ["FILL"], "other": True}
    else:
        numeric = kind.family in ("integer", "decimal", "float")
        form = {"type": "numeric" if numeric else "temporal", "lower": "FILL", "upper": "FILL"}
    form["nullable"] = nullable
    dumped: str = yaml.safe_dump(form, default_flow_style=True, sort_keys=False, width=float("inf"))
    return dumped.strip()


# -- tables that keys tie ----------------------------------------------------------------------------

# The form that ``dpsyn init`` writes for a database: keys, links and the columns of its tables.
#
# From the catalog alone: a foreign key tells whose row a row is if it is the only one that leads to the
# units. Names are double-quoted YAML, as in the form of one table.

_HEAD_OF_TABLES = """\
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
    return _HEAD_OF_TABLES + HOW_TO_DECLARE + "\n".join(_Form(facts, tuple(public)).lines()) + "\n"


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
