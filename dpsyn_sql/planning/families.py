"""Rows of one unit that go together: the attributes that all of them decide (public).

Each attribute of a family's rows has a level. A unit is drawn before its rows, and a row after what it
follows from: attributes of a unit (level 0), of the row before and of the place in the family (level 1),
of the row itself (level 2).

What the rows of a unit decide together stands in hidden attributes after those of the table: they are
measured and drawn like the others, and not written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpsyn_sql.domain.attributes import Attribute, Domain

WEIGHT = 2**20
"""What all rows of a unit count together: a row of n counts WEIGHT // n (docs/privacy.md, "Weights")."""

UNIT, BEFORE, ROW = 0, 1, 2
"""Levels."""

MOST_EXACT = 64
"""Up to so many rows of a unit each number is a code of its own; above, eight bins for each doubling."""

PLACES = ("only", "first", "middle", "last")
"""Codes of the place of a row in its family."""


@dataclass(frozen=True, slots=True)
class Families:
    """Which attributes tie the rows of a unit together.

    ``domain``: the attributes of the table, then the hidden ones. ``written``: how many are of the table.
    ``persons``: those of ``domain`` that all rows of a unit share. ``size``: the number of rows of the unit.
    ``previous``: names of hidden attributes and the attributes of which they hold the code in the row before,
    NULL in a first row. ``place``: one of ``PLACES``. ``since``: bins of the time since the row before, NULL
    in a first row. ``order``: the attribute that orders the rows. All but ``size`` may be missing.
    """

    domain: Domain
    written: int
    persons: frozenset[str]
    size: str
    previous: tuple[tuple[str, str], ...] = ()
    place: str = ""
    since: str = ""
    order: str = ""

    @property
    def levels(self) -> tuple[int, ...]:
        """The level of each attribute of ``domain``."""
        before = {self.place, *(name for name, _ in self.previous)}
        return tuple(
            UNIT if name in self.persons else BEFORE if name in before else ROW for name in self.domain.names
        )


def numbers_of_rows(name: str, most: int) -> Attribute:
    """The number of rows of a unit, 1 to ``most``, as bins."""
    edges = [*range(1, min(most, MOST_EXACT) + 1)]
    while edges[-1] < most:
        edges.append(min(most + 1, edges[-1] + max(1, edges[-1] >> 3)))
    if edges[-1] == most:
        edges.append(most + 1)
    return Attribute(name, "BIGINT", "numeric", edges=tuple(edges), ordered=True)


def before(name: str, attribute: Attribute) -> Attribute:
    """The code of an attribute in the row before; its last code, NULL, is that of a first row too."""
    return replace(attribute, name=name, nullable=True)
