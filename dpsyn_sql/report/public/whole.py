"""The public report: one page that needs neither network nor JavaScript.

All of it is computed from the model, the noisy answers and the certificate, which are public.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.errors import InputError
from dpsyn_sql.report.html.element import element, joined, named
from dpsyn_sql.report.html.page import Section, bullets, facts, page, paragraph
from dpsyn_sql.report.losses import pairs_in_words
from dpsyn_sql.report.public.accuracy import measured_tables
from dpsyn_sql.report.public.certainty import accuracy_lines, accuracy_part
from dpsyn_sql.report.public.columns import column_cards
from dpsyn_sql.report.public.figures import column_figures
from dpsyn_sql.report.public.lost import lost_words
from dpsyn_sql.report.public.overview import Overview, overview_part
from dpsyn_sql.report.public.pairs import pairs_of
from dpsyn_sql.report.public.promise import of_hundred, promise_of
from dpsyn_sql.report.public.sections import pairs_part, promise_part, spending_part, use_part
from dpsyn_sql.report.public.spending import spending_of
from dpsyn_sql.report.public.words import public_name, release_name
from dpsyn_sql.report.stored import attribute_of_facts

if TYPE_CHECKING:
    from dpsyn_sql.report.result import Release

ENDINGS = (".html", ".htm")


def report_page(release: Release) -> str:
    """The page as HTML."""
    told = _overview(release)
    spending = spending_of(release.facts)
    estimates = any(one.error_of == "estimate" for one in told.columns)
    learnt = [one.attribute.name for one in told.columns if one.attribute.origin == "discovered"]
    sections = (
        Section("what", "What this is", overview_part(told)),
        Section("promise", "What is promised to each person", promise_part(told.promise, told.facts)),
        Section(
            "columns",
            "The columns",
            joined(
                paragraph(
                    "Bars show shares of the rows by the model. The thin lines are 95 % intervals: in 95 of "
                    "100 "
                    "releases the true share is inside."
                    if estimates
                    else "Bars show shares of the rows by the model, which is denoised: mostly closer to the "
                    "truth than a noisy count. The thin lines show how far noisy counts reach: 95 of 100 are "
                    "within that of the truth."
                ),
                column_cards(told.columns, told.facts, spending),
            ),
        ),
        Section("pairs", "What goes with what", pairs_part(told.pairs)),
        Section("accuracy", "How exact counts are", accuracy_part(told.accuracy, told.total)),
        Section("budget", "What was learnt, and what it cost", spending_part(spending, learnt)),
        Section(
            "use",
            "How to use it",
            use_part(told.facts, release_name(release.table), [one.attribute.name for one in told.columns]),
        ),
    )
    closing = paragraph(
        "Everything on this page is public: it is computed from noisy counts, their model and the "
        "certificate. ",
        f"Release {told.facts.get('release', '')}.",
    )
    title = public_name(release.table)[:120]
    return page(f"Synthetic table {title}", joined(), sections, closing=closing)


def _overview(release: Release) -> Overview:
    domain = release.facts["public_facts"]["domain"]
    columns, pairs = [column_figures(release, attribute_of_facts(one)) for one in domain], pairs_of(release)
    return Overview(
        rows=release.rows,
        total=max(0.0, float(release.model.total)),
        facts=release.facts,
        columns=columns,
        pairs=pairs,
        accuracy=accuracy_lines(columns, pairs, measured_tables(release.measurements)),
        promise=promise_of(release.facts),
    )


def short_report(release: Release) -> str:
    """A short form for notebooks, in elements without a style of their own."""
    promise = promise_of(release.facts)
    lost = release.facts.get("losses") or {}
    columns = {str(one["name"]): one for one in lost.get("columns", ())}
    told = (
        (one.name, lost_words(columns.get(one.name, {}), one))
        for one in map(attribute_of_facts, release.facts["public_facts"]["domain"])
    )
    items = [joined(named(name, 60), f": {words}") for name, words in told if words]
    warnings = [str(text) for text in lost.get("warnings", ())]
    return element(
        "div",
        element("h3", "Synthetic table ", named(public_name(release.table), 80)),
        facts(
            (
                ("Rows", f"{release.rows:,}"),
                ("Columns", f"{len(release.model.domain.attributes):,}"),
                ("Privacy", f"epsilon {shown(release.epsilon)}, delta {release.delta:g}"),
                ("Release", release.id),
            )
        ),
        paragraph(
            "Somebody who bets 50:50 on whether one unit is in the source is right in at most "
            f"{of_hundred(promise.best)} bets. ",
            pairs_in_words(lost) + "." if lost else None,
        ),
        element("strong", "What was lost") if items else None,
        bullets(items) if items else None,
        element("strong", "Warnings") if warnings else None,
        bullets(warnings) if warnings else None,
        paragraph(element("code", 'release.report("report.html")'), " writes the whole report."),
    )


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


def write_report(release: Release, path: str | os.PathLike[str]) -> Path:
    """Write the page; a file that exists is replaced.

    Raises:
        InputError: as ``check_report_path``, or the file cannot be written.
    """
    place = check_report_path(path)
    text = report_page(release)
    with contextlib.suppress(OSError):
        place.write_text(text, encoding="utf-8")
        return place
    raise InputError(f"{place} cannot be written: give a file in a folder that exists and that you own")
