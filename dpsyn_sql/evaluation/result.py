"""What ``evaluate()`` returns. All of it is as private as the real table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

PRIVATE = (
    "PRIVATE: made from exact counts of the real rows, without noise. Keep it as you keep the real table; do "
    "not publish it, and do not choose a release to publish by it."
)
"""The mark on every page, file and summary."""


@dataclass(frozen=True, slots=True, repr=False)
class Evaluation:
    """Figures of one synthetic table beside the real one.

    ``real``, ``synthetic``: as they were named. ``rows``: of both. ``tables``: data frames by the name of
    what is measured: ``"columns"``, ``"marginals"``, ``"worst"``, ``"conjunctions"``, ``"pairs"``,
    ``"ranges"``, ``"conditions"``, ``"efficacy"``, ``"clusters"``, ``"membership"``; what was not asked for
    is not there. ``notes``: what a reader must know, such as what could not be computed and why.
    ``homes``: the folders of the real rows, whose ledgers know where releases were written.
    """

    real: str
    synthetic: str
    rows: tuple[int, int]
    tables: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...]
    homes: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"Evaluation({self.synthetic} beside {self.real}; private)"

    def summary(self) -> str:
        """The mark, the rows, the head of every table with its meaning, and the notes, as plain text."""
        from dpsyn_sql.evaluation.page import summary_of

        return summary_of(self)

    def to_dict(self) -> dict[str, Any]:
        """All figures, JSON-ready (NaN as None); the first key, ``"PRIVATE"``, holds the mark."""
        from dpsyn_sql.evaluation.page import document_of

        return document_of(self)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a new page (``.private.html``) or document (``.private.json``) that its owner alone can read.

        The mark is on every page, also printed. A page needs neither network nor JavaScript.

        Returns:
            The absolute path.

        Raises:
            InputError: the name does not end so, the file exists, its folder does not, or the folder holds
                public output, or lies in one that does: a released file with its model, a released Parquet
                file, a database of releases alone, or a file that a ledger knows as the output of a release.
        """
        from dpsyn_sql.evaluation.files import checked_place, write_private
        from dpsyn_sql.evaluation.page import text_of

        place = checked_place(path, self.homes)
        return write_private(place, text_of(self, place.suffix))
