"""PRIVATE side: the class of a unit as SQL over its rows. Total, in integers, and of one unit alone."""

from __future__ import annotations

from collections.abc import Mapping

from dpsyn_sql.planning.family_classes import DRAW_BITS, FamilyClass, gumbel_costs
from dpsyn_sql.planning.row_labels import MOST_CLASSES
from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment


def class_expression(
    family: FamilyClass,
    codes: Mapping[str, Fragment],
    unit: Fragment,
    key: int,
    dialect: Dialect,
    number: int = 0,
) -> Fragment:
    """The code of a class that ``FamilyClass.check`` has accepted, BIGINT: an aggregate of the kept rows of a
    unit, in a statement that groups them by ``unit``.

    Args:
        family: the class.
        codes: of each of its attributes an expression of the row's code, BIGINT and never NULL.
        unit: whose row it is, as bytes; a plain reference.
        key: of the draw, 0 to 2**64 - 1, secret and of this statement alone.
        dialect: of the engine that runs the statement.
        number: of the class among those of the statement: each has draws of its own.
    """
    offsets, scores = family.costs.ranked()
    size = family.costs.size
    drawn = [cost * size for cost in gumbel_costs()]
    ranks = []
    first = number * MOST_CLASSES
    for j, offset in enumerate(offsets):
        row = " + ".join(str(dialect.of_places(table[j], str(codes[name]))) for name, table in scores)
        lot = dialect.lot([f"CAST({first + j} AS BIGINT)"], str(unit), key)
        draw = dialect.of_places(drawn, f"CAST({lot} >> {64 - DRAW_BITS} AS BIGINT)")
        ranks.append(f"CAST({offset} AS BIGINT) + COALESCE(sum(CAST({row} AS BIGINT)), 0) + {draw}")
    return Fragment(f"CAST(LEAST({', '.join(ranks)}) % {size} AS BIGINT)")
