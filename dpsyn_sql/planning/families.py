"""Rows of one unit that go together: the attributes that all of them decide (public).

Each attribute of a family's rows has a level: those of a unit come first, then the moment that orders its
rows, then the row before and the place in the family, then the row itself. A unit is drawn first. The
moments of its rows are drawn given the unit, in order. Then each row is drawn given the unit, its own
moment and the row before.

What the rows of a unit decide together stands in hidden attributes after those of the table: they are
measured and drawn like the others, and not written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain, edge_ticks
from dpsyn_sql.errors import InternalError
from dpsyn_sql.source.relation import PrivacyUnit

if TYPE_CHECKING:  # loads numpy, and a ledger is shown without
    from dpsyn_sql.planning.row_labels import FamilyClass

UNIT, MOMENT, BEFORE, ROW = range(4)
"""Levels."""

MOST_EXACT = 64
"""Up to so many rows of a unit each number is a code of its own; above, eight bins for each doubling."""

_LONGEST = 61
# Doublings of the time between rows; a stand-in for an order to be discovered has all of them.

PLACES = ("only", "first", "middle", "last")
"""Codes of the place of a row in its family."""


@dataclass(frozen=True, slots=True)
class Above:
    """A hidden attribute of a table of a tree: what the row above it, or one further above, has as
    ``attribute`` in the families of ``table``."""

    name: str
    table: str
    attribute: str


@dataclass(frozen=True, slots=True)
class Below:
    """A hidden attribute of a table of a tree: the number of rows of the child ``table`` that a row has, or,
    with a ``group``, a class of these rows."""

    name: str
    table: str
    group: FamilyClass | None = None


@dataclass(frozen=True, slots=True)
class Families:
    """Which attributes tie the rows of a unit together.

    ``domain``: the attributes of the table, then the hidden ones. ``written``: how many are of the table.
    ``persons``: those of ``domain`` that all rows of a unit share. ``size``: the number of rows of the unit.
    ``previous``: names of hidden attributes and the attributes of which they hold the code in the row before,
    NULL in a first row. ``place``: one of ``PLACES``. ``since``: bins of the time since the row before, NULL
    in a first row. ``order``: the attribute that orders the rows. ``differing``: which of the table's
    ``persons`` have several values in a unit. ``groups``: classes of the unit, drawn from its rows. All but
    ``size`` may be missing.

    Of a table of a tree (``table`` is its name) a family is the rows of one row of the parent. Hidden are
    first ``below``, attributes of its rows that the tables below need, then ``above``, those of the rows
    above it: they are ``persons``, and no others. The rows above are drawn before its own. ``size`` is then
    one of ``above``, empty for the root. ``kept``: attributes of the table whose code may be known of a row
    (in a period of a panel what a person keeps): they are drawn, where they are, before its others.
    """

    domain: Domain
    written: int
    persons: frozenset[str]
    size: str
    previous: tuple[tuple[str, str], ...] = ()
    place: str = ""
    since: str = ""
    order: str = ""
    differing: str = ""
    groups: tuple[FamilyClass, ...] = ()
    table: str = ""
    below: tuple[Below, ...] = ()
    above: tuple[Above, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def drawn(self) -> int:
        """How many attributes of ``domain``, the first ones, are drawn for each row and are of no other."""
        return self.written + len(self.below)

    @property
    def by_themselves(self) -> bool:
        """Whether rows follow from nothing that others have too: those of the root of a tree do not."""
        return set(self.levels) <= {ROW}

    @property
    def following(self) -> frozenset[str]:
        """The written attributes whose rows may follow from the row before them."""
        return frozenset(self.domain.names[: self.written] if self.previous else ()) - self.persons

    @property
    def number_above(self) -> str:
        """Of a table below the root the attribute of the parent's rows that says how many rows each has.

        Raises:
            InternalError: the root has no parent.
        """
        found = next((one.attribute for one in self.above if one.name == self.size), None)
        if found is None:
            raise InternalError("no attribute above a table says how many rows it has")
        return found

    def grouped(self, groups: Sequence[FamilyClass]) -> Families:
        """The same families with classes, further attributes of the unit; its rows are those of the table."""
        added = [group.attribute for group in groups]
        domain = Domain((*self.domain.attributes, *added))
        persons = self.persons.union(one.name for one in added)
        return replace(self, domain=domain, persons=persons, groups=tuple(groups))

    @property
    def shared(self) -> list[str]:
        """The attributes of the table that all rows of a unit share."""
        return [name for name in self.domain.names[: self.written] if name in self.persons]

    def hidden_names(self, wanted: str, number: int) -> list[str]:
        """Names that no attribute has."""
        names = _Names(set(self.domain.names))
        return [names.free(wanted) for _ in range(number)]

    def with_attributes(self, domain: Domain) -> Families:
        """The same families, with other values of the codes of the table's attributes."""
        hidden = self.domain.attributes[self.written :]
        return replace(self, domain=Domain((*domain.attributes, *hidden)))

    @property
    def lines(self) -> list[str]:
        """What an explained plan says of them. A tree of tables is explained as a whole."""
        if self.table:
            return []
        shared = ", ".join(self.shared)
        told = f"of one value per unit, the most frequent of its rows: {shared}" if shared else ""
        told = told or "no column of one value per unit is declared (per_unit: true)"
        lines = [f"Together    {told}"]
        if self.differing:
            lines.append("            one more table is asked: units of more than one value there")
        if self.order:
            lines.append(f"            rows follow each other by {self.order}; rows without one come last")
        return lines

    @property
    def facts(self) -> dict[str, Any]:
        """JSON-ready, for a certificate: names of the ``hidden`` attributes, of those of ``persons`` (hidden
        ones too), of ``size``, and of the ``order``, empty without one. Of a table of a tree also those
        ``above``, with table and attribute, and those ``below``: a ``number`` of rows of a table, or a
        class."""
        names = self.domain.names
        persons = [name for name in names if name in self.persons]
        hidden = list(names[self.written :])
        facts: dict[str, Any] = {
            "hidden": hidden,
            "persons": persons,
            "size": self.size,
            "order": self.order,
        }
        if not self.table:
            return facts
        above = [{"name": one.name, "table": one.table, "attribute": one.attribute} for one in self.above]
        below = [{"name": one.name, "table": one.table, "number": one.group is None} for one in self.below]
        return facts | {"table": self.table, "above": above, "below": below}

    @property
    def levels(self) -> tuple[int, ...]:
        """The level of each attribute of ``domain``."""
        known = dict.fromkeys((self.place, *(name for name, _ in self.previous)), BEFORE)
        known |= dict.fromkeys(self.kept, MOMENT)
        known |= {self.order: MOMENT, **dict.fromkeys(self.persons, UNIT)}
        return tuple(known.get(name, ROW) for name in self.domain.names)


ALONE = Families(Domain(()), 0, frozenset(), "")
"""Of rows that are each by themselves."""


def families_of(domain: Domain, unit: PrivacyUnit, persons: Collection[str]) -> Families | None:
    """The families of a table's attributes; None if rows do not stay together.

    ``persons``: the attributes that all rows of a unit share. ``unit.order`` is an attribute with bins.
    """
    if not unit.together:
        return None
    names = _Names(set(domain.names))
    size = numbers_of_rows(names.free("rows of the unit"), unit.max_rows)
    shared = [name for name in domain.names if name in persons]
    differing = _differing(names.free("columns that differ"), shared) if shared and size.size > 1 else None
    unit_hidden = (size,) if differing is None else (size, differing)
    tail = _before_row(domain, persons, unit.order, names) if unit.order is not None else _Before()
    return Families(
        Domain((*domain.attributes, *unit_hidden, *tail.hidden)),
        len(domain.attributes),
        frozenset({*(one.name for one in unit_hidden), *shared}),
        size.name,
        tail.previous,
        tail.place,
        tail.since,
        unit.order or "",
        differing="" if differing is None else differing.name,
    )


def families_of_table(
    table: str,
    domain: Domain,
    parent: Families | None,
    children: Sequence[tuple[str, int]],
    *,
    groups: Mapping[str, Sequence[FamilyClass]],
    order: str = "",
) -> Families:
    """The families of a table of a tree.

    Args:
        table: its name.
        domain: of its own attributes.
        parent: the families of the table above it, with the same ``groups``; None for the root.
        children: the tables right below it, with the most rows that are kept of one row.
        groups: by child table, the classes of a family of its rows.
        order: the attribute that orders the rows of a family, if not empty.
    """
    names = _Names(set(domain.names))
    hidden, below = list[Attribute](), list[Below]()
    for child, most in children:
        hidden.append(numbers_of_rows(names.free(f"number of {child}"), most, least=0))
        below.append(Below(hidden[-1].name, child))
        for group in groups.get(child, ()):
            hidden.append(replace(group.attribute, name=names.free(f"group of {child}")))
            below.append(Below(hidden[-1].name, child, group))
    above = list(_above(parent, names)) if parent is not None else []
    hidden += [attribute for _, attribute in above]
    size = next((one.name for one, _ in above if parent and _is_number(one, parent, table)), "")
    persons = frozenset(one.name for one, _ in above)
    own = Families(domain, len(domain.attributes), persons, size, table=table, below=tuple(below))
    tail = _before_row(domain, frozenset(), order, names) if order else _Before()
    return replace(
        own,
        domain=Domain((*domain.attributes, *hidden, *tail.hidden)),
        above=tuple(one for one, _ in above),
        previous=tail.previous,
        place=tail.place,
        since=tail.since,
        order=order,
    )


def _above(parent: Families, names: _Names) -> Iterator[tuple[Above, Attribute]]:
    """What the rows of a child table share: the attributes of the parent's rows, and those above them."""
    for attribute in parent.domain.attributes[: parent.drawn]:
        name = names.free(f"{parent.table}.{attribute.name}")
        yield Above(name, parent.table, attribute.name), replace(attribute, name=name)
    for one in parent.above:
        name = names.free(one.name)
        yield Above(name, one.table, one.attribute), replace(parent.domain[one.name], name=name)


def _is_number(one: Above, parent: Families, table: str) -> bool:
    numbers = {below.name for below in parent.below if below.table == table and below.group is None}
    return one.table == parent.table and one.attribute in numbers


@dataclass(frozen=True, slots=True)
class _Before:
    """The hidden attributes of rows that follow each other; none without an order."""

    hidden: tuple[Attribute, ...] = ()
    previous: tuple[tuple[str, str], ...] = ()
    place: str = ""
    since: str = ""


def _before_row(domain: Domain, persons: Collection[str], order: str, names: _Names) -> _Before:
    since, place = names.free("since the row before"), names.free("place of the row")
    hidden, previous = [_since(since, domain[order]), _places(place)], list[tuple[str, str]]()
    for attribute in domain.attributes:
        if attribute.name not in persons:
            hidden.append(before(names.free(f"{attribute.name} before"), attribute))
            previous.append((hidden[-1].name, attribute.name))
    return _Before(tuple(hidden), tuple(previous), place, since)


@dataclass(frozen=True, slots=True)
class _Names:
    """Names for hidden attributes: each only once."""

    taken: set[str]

    def free(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.taken:
            number += 1
            name = f"{wanted} ({number})"
        self.taken.add(name)
        return name


def _since(name: str, order: Attribute) -> Attribute:
    """The time since the row before in ticks: 0, 1, then each doubling a bin, up to the whole span."""
    span = edge_ticks(order)[-1] - edge_ticks(order)[0] if order.edges else 2**_LONGEST
    edges = (0, *(2**power for power in range(min(max(1, span.bit_length()), _LONGEST) + 1)))
    return Attribute(name, "BIGINT", "numeric", edges=edges, nullable=True, ordered=True)


def _differing(name: str, shared: Sequence[str]) -> Attribute:
    """Which columns of one value per unit have several: none, each of them alone, or several of them."""
    names = _Names(set(shared))
    some = (names.free("several of them"),) if len(shared) > 1 else ()
    return Attribute(name, "VARCHAR", "categorical", labels=(names.free("none"), *shared, *some))


def _places(name: str) -> Attribute:
    return Attribute(name, "VARCHAR", "categorical", labels=PLACES)


SIBLINGS_SHARE = 8
"""One part of the budget in so many is for the classes of families: a third of it for the test whether there
are any. What they do not need goes to the method."""


def divided(budget: Budget) -> tuple[Budget, Budget]:
    """What pays for classes of families, and what is left to the method."""
    own = budget.amount // SIBLINGS_SHARE
    return Budget(budget.kind, own), replace(budget, amount=budget.amount - own)


def numbers_of_rows(name: str, most: int, least: int = 1) -> Attribute:
    """The number of rows of a family, ``least`` to ``most``, as bins."""
    edges = [*range(least, min(most, MOST_EXACT) + 1)]
    while edges[-1] < most:
        edges.append(min(most + 1, edges[-1] + max(1, edges[-1] >> 3)))
    if edges[-1] == most:
        edges.append(most + 1)
    return Attribute(name, "BIGINT", "numeric", edges=tuple(edges), ordered=True)


def before(name: str, attribute: Attribute) -> Attribute:
    """The code of an attribute in the row before; its last code, NULL, is that of a first row too."""
    return replace(attribute, name=name, nullable=True)
