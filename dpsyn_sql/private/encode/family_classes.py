"""PRIVATE side: the class of a unit as SQL over its rows. Total, in integers, and of one unit alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dpsyn_sql.planning.family_classes import DRAW_BITS, FamilyClass, gumbel_costs
from dpsyn_sql.planning.row_labels import MOST_CLASSES
from dpsyn_sql.sqltext.dialect import Dialect
from dpsyn_sql.sqltext.fragments import Fragment

_BITS = 62
# Of a BIGINT that holds the sums of several classes, which are not below zero.


def class_expression(
    family: FamilyClass,
    codes: Mapping[str, Fragment],
    unit: Fragment,
    key: int,
    dialect: Dialect,
    *,
    rows: int,
    number: int = 0,
) -> Fragment:
    """The code of a class that ``FamilyClass.check`` has accepted, in the smallest unsigned type: an
    aggregate of the kept rows of a unit, in a statement that groups them by ``unit``.

    Args:
        family: the class.
        codes: of each of its attributes an expression of the row's code, BIGINT and never NULL.
        unit: whose row it is, as bytes; a plain reference.
        key: of the draw, 0 to 2**64 - 1, secret and of this statement alone.
        dialect: of the engine that runs the statement.
        rows: that a unit has at most, as ``check`` was told.
        number: of the class among those of the statement: each has draws of its own.
    """
    offsets, _ = family.costs.ranked()
    size = family.costs.size
    drawn = [cost * size for cost in gumbel_costs()]
    ranks = []
    first = number * MOST_CLASSES
    for j, (offset, rank) in enumerate(zip(offsets, _sums(family, codes, rows, dialect), strict=True)):
        lot = dialect.lot([f"CAST({first + j} AS BIGINT)"], str(unit), key)
        draw = dialect.of_places(drawn, f"CAST({lot} >> {64 - DRAW_BITS} AS BIGINT)")
        ranks.append(f"CAST({offset} AS BIGINT) + {rank} + {draw}")
    return Fragment(f"CAST(LEAST({', '.join(ranks)}) % {size} AS {dialect.code_type(size)})")


def _sums(family: FamilyClass, codes: Mapping[str, Fragment], rows: int, dialect: Dialect) -> Iterator[str]:
    """For each class the sum of the scores of a unit's rows. One aggregate has those of as many classes as
    fit into it, each in bits of its own: no sum passes them."""
    _, scores = family.costs.ranked()
    bits = max(1, (rows * sum(max(map(max, table)) for _, table in scores)).bit_length())
    together = max(1, _BITS // bits)
    for first in range(0, family.costs.size, together):
        classes = range(first, min(first + together, family.costs.size))
        found = [
            dialect.of_places(
                [
                    sum(score << bits * place for place, score in enumerate(of_classes))
                    for of_classes in zip(*(table[j] for j in classes), strict=True)
                ],
                str(codes[name]),
            )
            for name, table in scores
        ]
        # A list of small numbers is INTEGER, and the sum of two such can pass it.
        row = " + ".join(f"CAST({score} AS BIGINT)" for score in found)
        summed = f"COALESCE(CAST(sum({row}) AS BIGINT), 0)"
        for place in range(len(classes)):
            yield f"(({summed} >> {bits * place}) & {2**bits - 1})"
