"""The public report of a release of several tables: how they are tied, the promise once, then each table.

All of it is computed from models, noisy answers and certificates, which are public. Its words are in
``database.html``.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dpsyn_sql.accounting.events import cost_units
from dpsyn_sql.report.certificate import event_of
from dpsyn_sql.report.database_certificate import protected_words
from dpsyn_sql.report.html.templates import template
from dpsyn_sql.report.public.families import Alike, Sizes, alike_columns, hidden_names, sizes_of
from dpsyn_sql.report.public.page import NAMES, PublicRelease, Report, report_of, write_page
from dpsyn_sql.report.public.promise import Promise, Spending, promise_of, spending_of
from dpsyn_sql.report.public.words import public_name


@dataclass(frozen=True, slots=True)
class DatabasePage:
    """What a page is made from. ``into``: what was written. ``facts``: the certificate of the whole.
    ``tables``: by name, the root first."""

    into: str
    facts: Mapping[str, Any]
    tables: Mapping[str, PublicRelease]


@dataclass(frozen=True, slots=True)
class TableLine:
    """A line of the tree: ``depth`` (the root has 0), ``most`` rows of a row of the parent, ``most_of_unit``
    of one root row, ``rows`` that were written."""

    name: str
    depth: int
    parent: str | None
    most: int
    most_of_unit: int
    rows: int


@dataclass(frozen=True, slots=True)
class Link:
    """A table and its parent. ``sizes``: rows of a row of the parent, None if unknown. ``alike``: columns in
    which rows of one row of the parent agree more often than others."""

    table: str
    parent: str
    most: int
    sizes: Sizes | None
    alike: Sequence[Alike]
    order: str


@dataclass(frozen=True, slots=True)
class TableReport:
    """A table: its line of the tree, what its own page would show, and how it is tied to its parent."""

    line: TableLine
    report: Report
    link: Link | None


@dataclass(frozen=True, slots=True)
class DatabaseReport:
    """What the page shows."""

    into: str
    facts: Mapping[str, Any]
    tables: Sequence[TableReport]
    promise: Promise
    spending: Spending
    spent: Mapping[str, float]

    @property
    def title(self) -> str:
        """Name of the output without its folder."""
        return public_name(self.into)[:120]

    @property
    def protects(self) -> str:
        """Whom, as a clause."""
        return protected_words(self.facts["tree"])

    @property
    def rows(self) -> int:
        """Of all tables."""
        return sum(one.line.rows for one in self.tables)

    @property
    def root(self) -> str:
        """The table whose rows are protected."""
        return self.tables[0].line.name


def report_of_database(page: DatabasePage) -> DatabaseReport:
    """All that the page of a release shows."""
    lines = _lines(page)
    return DatabaseReport(
        into=page.into,
        facts=page.facts,
        tables=[
            TableReport(line, report_of(page.tables[line.name]), _link(page.tables, line)) for line in lines
        ],
        promise=promise_of(page.facts),
        spending=spending_of(page.facts),
        spent=_spent(page.facts),
    )


def _lines(page: DatabasePage) -> list[TableLine]:
    depths, lines = dict[str, int](), list[TableLine]()
    for one in page.facts["tree"]:
        name, parent = str(one["table"]), one["parent"]
        depths[name] = 0 if parent is None else depths[str(parent)] + 1
        rows = page.tables[name].rows
        lines.append(TableLine(name, depths[name], parent, one["most"], one["rows_per_unit"], rows))
    return _below(lines, None)


def _below(lines: Sequence[TableLine], parent: str | None) -> list[TableLine]:
    """Each table followed by those below it."""
    found = list[TableLine]()
    for line in lines:
        if line.parent == parent:
            found += [line, *_below(lines, line.name)]
    return found


def _link(tables: Mapping[str, PublicRelease], line: TableLine) -> Link | None:
    if line.parent is None:
        return None
    above, own = tables[line.parent], tables[line.name]
    numbers = [
        one["name"]
        for one in above.facts["public_facts"]["families"]["below"]
        if one["table"] == line.name and one["number"]
    ]
    families, hidden = own.facts["public_facts"]["families"], hidden_names(own.facts)
    names = own.model.domain.names
    given = [one["name"] for one in families["above"] if one["name"] in names]
    columns = [name for name in names if name not in hidden]
    return Link(
        table=line.name,
        parent=line.parent,
        most=line.most,
        sizes=sizes_of(above.model, numbers[0]) if numbers else None,
        alike=alike_columns(own.model, columns, given),
        order=families["order"],
    )


def _spent(facts: Mapping[str, Any]) -> Mapping[str, float]:
    """Shares of the budget that was reserved, by table."""
    reserved, kind = facts["budget"]["reserved_units_of_1e-15"], facts["budget"]["kind"]
    shares = defaultdict[str, float](float)
    for one in facts["mechanisms"]:
        shares[str(one["table"])] += cost_units(event_of(one), kind) / reserved
    return shares


def database_page(page: DatabasePage) -> str:
    """The page as HTML."""
    return f"{_parts().whole(report_of_database(page))}\n"


def short_database_report(page: DatabasePage) -> str:
    """A short form for notebooks, in elements without a style of their own."""
    return str(
        _parts().short(page, _lines(page), promise_of(page.facts), protected_words(page.facts["tree"]))
    )


def write_database_report(page: DatabasePage, path: str | os.PathLike[str]) -> Path:
    """Write the page; a file that exists is replaced.

    Raises:
        InputError: as ``check_report_path``, or the file cannot be written.
    """
    return write_page(lambda: database_page(page), path)


@cache
def _parts() -> Any:
    """The macros of the template."""
    return template(Path(__file__).with_name("database.html"), **NAMES)
