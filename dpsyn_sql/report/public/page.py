"""The public report of a release: one page that needs neither network nor JavaScript.

All of it is computed from models, noisy answers and certificates, which are public. Of several tables the
page says how they are tied and the promise once, then shows one table after the other. Its words are in
``report.html``.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.network import MarginalModel
from dpsyn_sql.fit.variances import TWO_SIDED, Variances
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.certificate import protected_words
from dpsyn_sql.report.html.templates import Cell, template
from dpsyn_sql.report.labels import (
    counted,
    percent,
    public_name,
    release_name,
    rounded_up,
    rows_words,
    source_words,
)
from dpsyn_sql.report.loss_words import lines_of_verdicts, pairs_in_words
from dpsyn_sql.report.public.accuracy import (
    MOST_COLUMNS,
    Accuracy,
    Pair,
    Pairs,
    accuracy_lines,
    measured_tables,
    pairs_of,
    smallest_group,
)
from dpsyn_sql.report.public.columns import Card, ColumnFigures, card_of, column_figures
from dpsyn_sql.report.public.promise import (
    WEAK,
    Link,
    PersonsRows,
    Promise,
    Spending,
    TableLine,
    chance_in_words,
    hidden_names,
    link_of,
    of_hundred,
    persons_rows,
    promise_of,
    spending_of,
    tree_lines,
)
from dpsyn_sql.report.stored_facts import attribute_of_facts

ENDINGS = (".html", ".htm")

_STRONG = 0.1
_MOST_LISTED = 15

_BASES = {
    "measured": "counted together",
    "modelled": "through other columns",
    "independent": "taken as independent",
}


@dataclass(frozen=True, slots=True)
class PublicTable:
    """What the page of a table is made from: values of it, all of them public."""

    table: str
    rows: int
    facts: Mapping[str, Any]
    model: MarginalModel
    measurements: Sequence[NoisyMarginal]
    variances: Variances


@dataclass(frozen=True, slots=True)
class PublicRelease:
    """What the page of a release is made from. ``into``: what was written. ``facts``: its certificate.
    ``tables``: by name, the root first."""

    into: str
    facts: Mapping[str, Any]
    tables: Mapping[str, PublicTable]

    @property
    def only(self) -> PublicTable | None:
        """The table of a release of one."""
        return next(iter(self.tables.values())) if len(self.tables) == 1 else None

    @property
    def lines(self) -> list[TableLine]:
        """The tables of a tree, each followed by those below it; of one table none."""
        if self.only is not None:
            return []
        return tree_lines(self.facts["tree"], {name: table.rows for name, table in self.tables.items()})


@dataclass(frozen=True, slots=True)
class TableReport:
    """What the page shows of a table. ``total``: noisy number of rows of the source. ``line`` and ``link``:
    in a tree of several, its line and how it is tied to its parent."""

    rows: int
    total: float
    facts: Mapping[str, Any]
    columns: Sequence[ColumnFigures]
    pairs: Pairs
    accuracy: Sequence[Accuracy]
    spending: Spending
    families: PersonsRows | None = None
    line: TableLine | None = None
    link: Link | None = None

    @property
    def unmeasured(self) -> list[str]:
        """Columns that are written and not measured."""
        return [str(role["name"]) for role in self.facts["public_facts"]["roles"]]

    @property
    def written(self) -> int:
        """Number of written columns."""
        return sum(len(column.attribute.columns) for column in self.columns) + len(self.unmeasured)

    @property
    def group(self) -> float:
        """The smallest group that a typical count of one column can be trusted for; NaN if unknown."""
        errors = [column.typical_error for column in self.columns if math.isfinite(column.typical_error)]
        return 2 * TWO_SIDED * sorted(errors)[len(errors) // 2] if errors else math.nan

    @property
    def group_of_pairs(self) -> float:
        """The same for two columns together."""
        return smallest_group([line for line in self.accuracy if line.pair and line.together])

    @property
    def counts_are_useful(self) -> bool:
        """Whether there are groups that large."""
        return math.isfinite(self.group) and self.group <= self.total

    @property
    def unfit(self) -> list[tuple[str, str, str]]:
        """Columns that are rough or not to be used, the worst first: name, verdict, why."""
        return [line for line in lines_of_verdicts(self.facts["losses"]) if line[1] != "good"]

    @property
    def cards(self) -> Iterable[Card]:
        """Of every column."""
        lost = {str(losses["name"]): losses for losses in self.facts["losses"]["columns"]}
        for column in self.columns:
            name = column.attribute.name
            yield card_of(column, lost.get(name, {}), self.spending.columns.get(name))

    @property
    def telling_pairs(self) -> list[Pair]:
        """The three strongest that were counted together and are no noise."""
        strong = [pair for pair in self.pairs.strongest if (pair.strength or 0) >= _STRONG]
        return [pair for pair in strong if pair.kind == "measured" and pair.clear is not False][:3]

    @property
    def pairs_by_basis(self) -> list[str]:
        """How many pairs are known in which way, in words; a way without pairs is left out."""
        bases = (
            (self.pairs.counted["measured"], "counted together with noise"),
            (self.pairs.counted["modelled"], "known only through other columns"),
            (self.pairs.counted["independent"], "taken as independent"),
        )
        clauses = [
            f"{number:,} {'is' if number == 1 else 'are'} {words}" for number, words in bases if number
        ]
        return [*clauses[:-1], f"and {clauses[-1]}"] if len(clauses) > 2 else clauses

    @property
    def accuracy_groups(self) -> list[tuple[str, list[Accuracy]]]:
        """Lines by the number of their columns."""
        titles = ("Single columns", "Two columns together", "Three and more columns together")
        return [
            (title, [line for line in self.accuracy if min(len(line.attrs), 3) == number])
            for number, title in enumerate(titles, 1)
        ]

    @property
    def example(self) -> Accuracy:
        """The listed pair with counts nearest to the one spoken of; otherwise the first line."""
        pairs = [line for line in self.accuracy if line.pair and not line.grouped][:_MOST_LISTED]
        return min(pairs, key=lambda line: line.away_from(self.total)) if pairs else self.accuracy[0]


@dataclass(frozen=True, slots=True)
class Report:
    """What the page of a release shows. ``tables``: each followed by those below it."""

    into: str
    facts: Mapping[str, Any]
    tables: Sequence[TableReport]
    promise: Promise
    spending: Spending

    @property
    def only(self) -> TableReport | None:
        """The table of a release of one."""
        return self.tables[0] if len(self.tables) == 1 else None

    @property
    def title(self) -> str:
        """Name of the output without its folder."""
        return public_name(self.into)[:120]

    @property
    def name(self) -> str:
        """Of the release; of a table of a tree by itself that of the release and its own."""
        tree = self.facts.get("database")
        if tree is not None:
            return f"{tree['name']}.{tree['table']}"
        return release_name(self.into) if self.only else str(self.facts["name"])

    @property
    def by_row(self) -> bool:
        """Whether a row is protected, not a person."""
        unit = str(self.facts["guarantee"]["privacy_unit"])
        return unit == "row" or unit.startswith("a row of")

    @property
    def rows(self) -> int:
        """Of all tables."""
        return sum(table.rows for table in self.tables)

    @property
    def warnings(self) -> list[str]:
        """Of the release, the gravest first."""
        warnings = [str(text) for text in self.facts["losses"]["warnings"]]
        if self.rows == 0:
            warnings.insert(0, "The release has no rows: the noisy number of rows is zero or below.")
        if self.promise.weak:
            weak = "The promise of privacy is weak: handle these rows as if they could reveal single persons."
            warnings.insert(0, weak)
        return warnings


def report_of(release: PublicRelease) -> Report:
    """All that the page of a release shows."""
    tables = [_table_report(table) for table in release.tables.values() if release.only]
    for line in release.lines:
        table, parent = release.tables[line.name], release.tables[line.parent or line.name]
        link = link_of(line, (parent.model, parent.facts), (table.model, table.facts))
        tables.append(replace(_table_report(table), line=line, link=link))
    facts = release.facts
    return Report(release.into, facts, tables, promise_of(facts), spending_of(facts))


def _table_report(table: PublicTable) -> TableReport:
    hidden = hidden_names(table.facts)
    measured = [answer for answer in table.measurements if not hidden & {*answer.attrs}]
    fitted = table.model, measured, table.variances
    domain = map(attribute_of_facts, table.facts["public_facts"]["domain"])
    columns = [column_figures(*fitted, attribute) for attribute in domain if attribute.name not in hidden]
    total = max(0.0, float(table.model.total))
    pairs = pairs_of(*fitted, hidden)
    return TableReport(
        rows=table.rows,
        total=total,
        facts=table.facts,
        columns=columns,
        pairs=pairs,
        accuracy=accuracy_lines(columns, pairs, measured_tables(measured, total)),
        spending=spending_of(table.facts),
        families=persons_rows(table.model, table.facts),
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
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{file} is a folder: give a file in it, such as {file / 'report.html'}")
    if file.suffix.lower() not in ENDINGS:
        raise InputError(f"{file} has no ending of a page: use {' or '.join(ENDINGS)}")
    if not file.absolute().parent.is_dir():
        raise InputError(f"the folder of {file} does not exist")
    return file


def write_report(release: PublicRelease, path: str | os.PathLike[str]) -> Path:
    """Write the page, once its path is known to be good; a file that exists is replaced.

    Raises:
        InputError: as ``check_report_path``, or the file cannot be written.
    """
    file = check_report_path(path)
    text = report_page(release)
    with contextlib.suppress(OSError):
        file.write_text(text, encoding="utf-8")
        return file
    raise InputError(f"{file} cannot be written: give a file in a folder that exists and that you own")


# -- what the template calls ------------------------------------------------------------------------


@cache
def _parts() -> Any:
    """The macros of the template."""
    return template(Path(__file__).with_name("report.html"), **_NAMES)


def _literal(text: str, otherwise: str) -> str:
    """A text for SQL; ``otherwise`` in the place of none, and of one too long to read."""
    return "'" + (text if 0 < len(text) <= 60 else otherwise).replace("'", "''") + "'"


def _cells(pairs: Pairs) -> list[list[Cell]]:
    """Of each column the pairs with those before it."""
    names = pairs.columns
    return [[_cell(pairs.by_names[before, name]) for before in names[:row]] for row, name in enumerate(names)]


def _cell(pair: Pair) -> Cell:
    strength = "strength not computed" if pair.strength is None else f"strength {pair.strength:.2f}"
    words = f"{pair.first[:60]} and {pair.second[:60]}: {strength}, {_BASES[pair.kind]}"
    if pair.strength is None and pair.kind != "independent":
        return Cell(0.0, "unknown", words)
    return Cell(pair.strength or 0.0, pair.kind, words)


_NAMES: Mapping[str, Any] = {
    "basis": _BASES.__getitem__,
    "cells": _cells,
    "chance": chance_in_words,
    "counted": counted,
    "infinite": math.inf,
    "lines_of_verdicts": lines_of_verdicts,
    "literal": _literal,
    "most_columns": MOST_COLUMNS,
    "number": "{:,}".format,
    "of_hundred": of_hundred,
    "pairs_in_words": pairs_in_words,
    "percent": percent,
    "protected": protected_words,
    "public_name": public_name,
    "rounded": lambda rows: rows_words(rounded_up(rows)),
    "rows": rows_words,
    "shown": shown,
    "source": source_words,
    "weak": WEAK,
}
"""What the template may use."""
