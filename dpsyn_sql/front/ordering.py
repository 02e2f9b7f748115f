"""The column that orders the rows of a unit, or of a row above."""

from __future__ import annotations

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.domain.shape import Shape, Undiscovered
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.rows.sample.ticks import MOST_TICK, check_ticks
from dpsyn_sql.source.names import fold, listed


def ordering(shape: Shape, order: str) -> str:
    """The attribute that orders the rows of a unit.

    Raises:
        InputError: it is no measured column, or its values have no bins of whole numbers, dates or times.
    """
    found = [item for item in shape.measured if fold(item.name) == fold(order)]
    if not found:
        names = [item.name for item in shape.measured if _orders(item)]
        raise InputError(
            f"order={said(order)} is not a measured column of the source. "
            + (f"Rows can be ordered by {listed(names)}." if names else "No column can order rows.")
        )
    if not _orders(found[0]):
        raise InputError(
            f"order={said(order)} cannot order rows: it must be a date, a timestamp or a whole number, with "
            "bounds or bins within 2^61 of zero in the domain file. Declare it as temporal or numeric "
            "(dpsyn init writes a form)."
        )
    if found[0].name in shape.per_unit:
        raise InputError(
            f"order={said(order)} is declared per_unit: true, so it orders no rows of a unit. "
            "Take away one of the two."
        )
    if isinstance(found[0], Attribute):
        check_ticks(found[0])
    return found[0].name


def _orders(item: Attribute | Undiscovered) -> bool:
    kind = item.type
    if isinstance(item, Undiscovered):
        bounded = all(end is not None and abs(end) < MOST_TICK for end in (item.least, item.most))
        small = kind.high - kind.low < 2**33 or kind.temporal or bounded
        if item.hierarchy is not None or not item.typed or not small:
            return False
    return item.kind != "categorical" and kind.discrete and kind.family != "time" and kind.scale == 0
