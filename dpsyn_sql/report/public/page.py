"""The public report: one page that needs neither network nor JavaScript.

All of it is computed from the model, the noisy answers and the certificate, which are public. Its words are
in ``report.html``.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.model import MarginalModel
from dpsyn_sql.fit.variances import TWO_SIDED, Variances
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.html.charts import Cell
from dpsyn_sql.report.html.templates import template
from dpsyn_sql.report.labels import counted
from dpsyn_sql.report.loss_words import lines_of_verdicts, pairs_in_words
from dpsyn_sql.report.public.accuracy import Accuracy, accuracy_lines, measured_tables, smallest_group
from dpsyn_sql.report.public.columns import Card, card_of
from dpsyn_sql.report.public.families import PersonsRows, hidden_names, persons_rows
from dpsyn_sql.report.public.figures import ColumnFigures, column_figures
from dpsyn_sql.report.public.pairs import MOST_COLUMNS, Pair, Pairs, pairs_of
from dpsyn_sql.report.public.promise import (
    WEAK,
    Promise,
    Spending,
    chance_in_words,
    of_hundred,
    promise_of,
    spending_of,
)
from dpsyn_sql.report.public.words import (
    percent,
    public_name,
    release_name,
    rounded_up,
    rows_words,
    source_words,
)
from dpsyn_sql.report.stored import attribute_of_facts

ENDINGS = (".html", ".htm")

_STRONG = 0.1
_MOST_LISTED = 15

_KNOWN = {
    "measured": "counted together",
    "modelled": "through other columns",
    "independent": "taken as independent",
}


@dataclass(frozen=True, slots=True)
class PublicRelease:
    """What a report is made from: values of a release, all of them public."""

    table: str
    rows: int
    facts: Mapping[str, Any]
    model: MarginalModel
    measurements: Sequence[NoisyMarginal]
    variances: Variances


@dataclass(frozen=True, slots=True)
class Report:
    """What the page shows. ``total``: noisy number of rows of the source."""

    table: str
    rows: int
    total: float
    facts: Mapping[str, Any]
    columns: Sequence[ColumnFigures]
    pairs: Pairs
    accuracy: Sequence[Accuracy]
    promise: Promise
    spending: Spending
    families: PersonsRows | None = None

    @property
    def title(self) -> str:
        """Name of the table without its folder."""
        return public_name(self.table)[:120]

    @property
    def name(self) -> str:
        """Of the release."""
        return release_name(self.table)

    @property
    def by_row(self) -> bool:
        """Whether a row is protected, not a person."""
        unit = str(self.facts["guarantee"]["privacy_unit"])
        return unit == "row" or unit.startswith("a row of")

    @property
    def unmeasured(self) -> list[str]:
        """Columns that are written and not measured."""
        return [str(role["name"]) for role in self.facts["public_facts"]["roles"]]

    @property
    def written(self) -> int:
        """Number of written columns."""
        return sum(len(one.attribute.columns) for one in self.columns) + len(self.unmeasured)

    @property
    def group(self) -> float:
        """The smallest group that a typical count of one column can be trusted for; NaN if unknown."""
        known = [one.typical_error for one in self.columns if math.isfinite(one.typical_error)]
        return 2 * TWO_SIDED * sorted(known)[len(known) // 2] if known else math.nan

    @property
    def group_of_pairs(self) -> float:
        """The same for two columns together."""
        return smallest_group([one for one in self.accuracy if one.pair and one.together])

    @property
    def counts_are_useful(self) -> bool:
        """Whether there are groups that large."""
        return math.isfinite(self.group) and self.group <= self.total

    @property
    def unfit(self) -> list[tuple[str, str, str]]:
        """Columns that are rough or not to be used, the worst first: name, verdict, why."""
        return [line for line in lines_of_verdicts(self.facts["losses"]) if line[1] != "good"]

    @property
    def warnings(self) -> list[str]:
        """Of the release, the gravest first."""
        told = [str(text) for text in self.facts["losses"]["warnings"]]
        if self.rows == 0:
            told.insert(0, "The release has no rows: the noisy number of rows is zero or below.")
        if self.promise.weak:
            weak = "The promise of privacy is weak: handle these rows as if they could reveal single persons."
            told.insert(0, weak)
        return told

    @property
    def cards(self) -> Iterable[Card]:
        """Of every column."""
        lost = {str(one["name"]): one for one in self.facts["losses"]["columns"]}
        for one in self.columns:
            name = one.attribute.name
            yield card_of(one, lost.get(name, {}), self.spending.columns.get(name))

    @property
    def telling_pairs(self) -> list[Pair]:
        """The three strongest that were counted together and are no noise."""
        strong = [one for one in self.pairs.strongest if (one.strength or 0) >= _STRONG]
        return [one for one in strong if one.kind == "measured" and one.clear is not False][:3]

    @property
    def ways(self) -> list[str]:
        """How many pairs are known in which way; a way without pairs is left out."""
        ways = (
            (self.pairs.counted["measured"], "counted together with noise"),
            (self.pairs.counted["modelled"], "known only through other columns"),
            (self.pairs.counted["independent"], "taken as independent"),
        )
        told = [f"{number:,} {'is' if number == 1 else 'are'} {words}" for number, words in ways if number]
        return [*told[:-1], f"and {told[-1]}"] if len(told) > 2 else told

    @property
    def accuracy_groups(self) -> list[tuple[str, list[Accuracy]]]:
        """Lines by the number of their columns."""
        titles = ("Single columns", "Two columns together", "Three and more columns together")
        return [
            (title, [one for one in self.accuracy if min(len(one.attrs), 3) == number])
            for number, title in enumerate(titles, 1)
        ]

    @property
    def example(self) -> Accuracy:
        """The listed pair with counts nearest to the one spoken of; otherwise the first line."""
        pairs = [one for one in self.accuracy if one.pair and not one.grouped][:_MOST_LISTED]
        return min(pairs, key=lambda one: one.away_from(self.total)) if pairs else self.accuracy[0]


def report_of(release: PublicRelease) -> Report:
    """All that the page of a release shows."""
    hidden = hidden_names(release.facts)
    measured = [table for table in release.measurements if not hidden & {*table.attrs}]
    parts = release.model, measured, release.variances
    known = map(attribute_of_facts, release.facts["public_facts"]["domain"])
    attributes = [attribute for attribute in known if attribute.name not in hidden]
    columns = [column_figures(*parts, attribute) for attribute in attributes]
    total = max(0.0, float(release.model.total))
    pairs = pairs_of(*parts, hidden)
    return Report(
        table=release.table,
        rows=release.rows,
        total=total,
        facts=release.facts,
        columns=columns,
        pairs=pairs,
        accuracy=accuracy_lines(columns, pairs, measured_tables(measured, total)),
        promise=promise_of(release.facts),
        spending=spending_of(release.facts),
        families=persons_rows(release.model, release.facts),
    )


def report_page(release: PublicRelease) -> str:
    """The page as HTML."""
    return f"{_parts().whole(report_of(release))}\n"


def short_report(release: PublicRelease) -> str:
    """A short form for notebooks, in elements without a style of their own."""
    return str(_parts().short(release, promise_of(release.facts)))


def check_report_path(path: str | os.PathLike[str]) -> Path:
    """Where a report may be written.

    Raises:
        InputError: a folder, another ending than .html, or a folder that does not exist.
    """
    place = Path(path)
    if place.is_dir():
        raise InputError(f"{place} is a folder: give a file in it, such as {place / 'report.html'}")
    if place.suffix.lower() not in ENDINGS:
        raise InputError(f"{place} has no ending of a page: use {' or '.join(ENDINGS)}")
    if not place.absolute().parent.is_dir():
        raise InputError(f"the folder of {place} does not exist")
    return place


def write_report(release: PublicRelease, path: str | os.PathLike[str]) -> Path:
    """Write the page; a file that exists is replaced.

    Raises:
        InputError: as ``check_report_path``, or the file cannot be written.
    """
    return write_page(lambda: report_page(release), path)


def write_page(made: Callable[[], str], path: str | os.PathLike[str]) -> Path:
    """Write a page that is made once its place is known to be good; a file that exists is replaced.

    Raises:
        InputError: as ``check_report_path``, or the file cannot be written.
    """
    place = check_report_path(path)
    text = made()
    with contextlib.suppress(OSError):
        place.write_text(text, encoding="utf-8")
        return place
    raise InputError(f"{place} cannot be written: give a file in a folder that exists and that you own")


# -- what the template calls ------------------------------------------------------------------------


@cache
def _parts() -> Any:
    """The macros of the template."""
    return template(Path(__file__).with_name("report.html"), **NAMES)


def _literal(text: str, otherwise: str) -> str:
    """A text for SQL; ``otherwise`` in the place of none, and of one too long to read."""
    return "'" + (text if 0 < len(text) <= 60 else otherwise).replace("'", "''") + "'"


def _cells(pairs: Pairs) -> list[list[Cell]]:
    """Of each column the pairs with those before it."""
    names = pairs.columns
    return [[_cell(pairs.found[other, name]) for other in names[:row]] for row, name in enumerate(names)]


def _cell(pair: Pair) -> Cell:
    told = "strength not computed" if pair.strength is None else f"strength {pair.strength:.2f}"
    words = f"{pair.first[:60]} and {pair.second[:60]}: {told}, {_KNOWN[pair.kind]}"
    if pair.strength is None and pair.kind != "independent":
        return Cell(0.0, "unknown", words)
    return Cell(pair.strength or 0.0, pair.kind, words)


NAMES: Mapping[str, Any] = {
    "cells": _cells,
    "chance": chance_in_words,
    "counted": counted,
    "infinite": math.inf,
    "known": _KNOWN.__getitem__,
    "lines_of_verdicts": lines_of_verdicts,
    "literal": _literal,
    "most_columns": MOST_COLUMNS,
    "number": "{:,}".format,
    "of_hundred": of_hundred,
    "pairs_in_words": pairs_in_words,
    "percent": percent,
    "public_name": public_name,
    "rounded": lambda rows: rows_words(rounded_up(rows)),
    "rows": rows_words,
    "shown": shown,
    "source": source_words,
    "weak": WEAK,
}
"""What templates of reports may use."""
