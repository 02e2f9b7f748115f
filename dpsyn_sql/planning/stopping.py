"""Whether a release stops after it has learnt the values of its columns of text; by noisy answers and public
facts alone.

It stops where little can be kept and its owner can do something about it: many columns of which no value is
frequent enough to be found (each would be ``__other__`` in every row), in a table of so many columns that
pairs are not worth their budget. It never stops because noise hides everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

HIDDEN_COLUMNS, HIDDEN_PART = 5, 0.125
"""So many columns without a value, and this part of all columns, are worth a stop."""

TIED_PART = 0.5
"""Pairs that have to go together, as part of the number of columns, above which too few may: a table in which
each column goes with one other has half as many pairs as columns."""

CLEAR = 0.25
"""Values of this part of the rows have to be found, or noise hides whatever there is."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is known after the questions about values of text.

    ``rows``: the noisy number of units; ``columns``: how many are measured. ``hidden``: of each column
    without a value the noisy rows from which one would have been shown.
    """

    rows: float
    columns: int
    hidden: Mapping[str, int]


def little_is_kept(learnt: Learnt, tied: float) -> bool:
    """Whether to stop. ``tied``: how many pairs have to go together for pairs to be worth their budget."""
    least = max(HIDDEN_COLUMNS, HIDDEN_PART * learnt.columns)
    clear = max(learnt.hidden.values(), default=0) <= CLEAR * learnt.rows
    return clear and len(learnt.hidden) >= least and tied > TIED_PART * learnt.columns
