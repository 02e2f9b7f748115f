"""Rows that meet no condition, drawn in rounds: in this process or, part by part, in tasks elsewhere.

This module imports the standard library only: it travels to tasks, which have no more.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator

PART_ROWS = 2**20
"""Rows of a part: parts of independent rows are drawn, and looked at, each by itself."""

_ROUNDS = 30
_SMALL = 20_000  # rows that any round may draw, however few are missing
_SPARE = 16
_MOST_DRAWN = 100  # rows drawn for each row wanted, at most
APART = 2**40
"""Numbers of rows that a part may use, where conditions leave gaps."""


def parts(rows: int, *, gaps: bool) -> Iterator[tuple[int, int]]:
    """The number of the first row of every part, and its rows. ``gaps``: conditions remove rows."""
    for number, start in enumerate(range(0, rows, PART_ROWS)):
        yield (number * APART if gaps else start), min(PART_ROWS, rows - start)


def rows_left(
    rows: int,
    seed: int,
    first: int,
    draw: Callable[[int, int, int], int],
    reject: Callable[[int], int],
    trim: Callable[[int], None],
) -> int:
    """Draw rows, remove those that cannot be, and draw others in their place until enough are left.

    Bounded: after some rounds, or when the conditions leave almost nothing, fewer rows are left.

    Args:
        rows: wanted.
        seed: of the first rows and, together with the round, of the others.
        first: number of the first row.
        draw: ``draw(rows, seed, number)`` adds rows, numbered from ``number`` on, and says how many.
        reject: changes or removes rows, from a number on, that cannot be, and says how many are left of all.
        trim: keeps the first rows of all, so many.

    Returns:
        The number of rows that are left.
    """
    drawn, looked_at, kept = draw(rows, seed, first), 0, 0
    for attempt in range(1, _ROUNDS + 1):
        kept, looked_at = reject(first + looked_at), drawn
        if kept >= rows or attempt == _ROUNDS or drawn > _MOST_DRAWN * max(rows, _SMALL):
            break
        share = max(kept / drawn, 1 / _MOST_DRAWN)
        wanted = min(math.ceil((rows - kept) / share) + _SPARE, max(rows, _SMALL))
        drawn += draw(wanted, _seed_of_round(seed, attempt), first + drawn)
    if kept > rows:
        trim(rows)
    return min(kept, rows)


def _seed_of_round(seed: int, attempt: int) -> int:
    digest = hashlib.sha256(f"{seed}|round|{attempt}".encode()).digest()
    return int.from_bytes(digest[:8], "big")
