"""One question about a column that nobody declared, as it stands in a plan: a look at it, and its price."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.planning.queries import TreeQuery

Ask = Literal[
    "rows",
    "mixed",
    "types",
    "keys",
    "again",
    "prefixes",
    "values",
    "grid",
    "steps",
    "parts",
    "cells",
    "tree",
    "leaves",
    "total",
    "contributions",
]


def counted_per_unit(ask: Ask, rows_per_unit: int) -> int:
    """How many keys, or codes of a grid, a unit of up to k rows counts for.

    Signal over noise of a unit with d different ones is proportional to min(m, d) / sqrt(m) for Gaussian
    noise: m = sqrt(k) is within k^(1/4) of the best whatever d is. There are few steps, so d is small: one.
    """
    return 1 if ask in ("steps", "contributions") else math.isqrt(rows_per_unit - 1) + 1


@dataclass(frozen=True, slots=True)
class Look:
    """One question of discovery: ``attr`` is the column, None for the number of units, or of their rows.

    ``budget``: what it costs at most. ``length``: of the beginnings of text that are asked for, 0 for every
    other question. ``tree``: the question, for "tree", "leaves" and "total" (the rows below its root). A key
    of several attributes goes by the name of its first one.
    """

    ask: Ask
    attr: str | None
    budget: Budget
    length: int = 0
    tree: TreeQuery | None = None
