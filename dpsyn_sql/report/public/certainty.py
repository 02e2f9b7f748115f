"""The part of the page about how exact counts are: by estimates where their error is known, else by noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dpsyn_sql.report.html.element import Html, element, joined, named
from dpsyn_sql.report.html.page import box, folded, paragraph, table
from dpsyn_sql.report.public.accuracy import Accuracy, TableAccuracy, of_all_counts, spoken_of
from dpsyn_sql.report.public.figures import ColumnFigures
from dpsyn_sql.report.public.pairs import Pairs
from dpsyn_sql.report.public.words import rounded_up, rows_words

_MOST_LISTED = 15
_MOST_FOLDED = 200


def accuracy_lines(
    columns: Sequence[ColumnFigures], pairs: Pairs, tables: Sequence[TableAccuracy]
) -> list[Accuracy]:
    """What is known of the counts of every column, of pairs by falling strength, and of larger tables."""
    lines = [*_of_columns(columns, tables), *_of_pairs(pairs, tables)]
    return lines + [
        Accuracy(one.attrs, "noise", True, one.exactness, one.grouped) for one in tables if len(one.attrs) > 2
    ]


def _of_columns(columns: Sequence[ColumnFigures], tables: Sequence[TableAccuracy]) -> Iterator[Accuracy]:
    measured = {one.attrs: one for one in reversed(tables)}
    for one in columns:
        attrs = (one.attribute.name,)
        if one.error_of != "none":
            yield Accuracy(attrs, one.error_of, True, of_all_counts(one.typical_error))
        elif attrs in measured:
            found = measured[attrs]
            yield Accuracy(attrs, "noise", True, found.exactness, found.grouped)


def _of_pairs(pairs: Pairs, tables: Sequence[TableAccuracy]) -> Iterator[Accuracy]:
    measured = {frozenset(one.attrs): one for one in reversed(tables) if len(one.attrs) == 2}
    for pair in pairs.strongest:
        attrs = (pair.first, pair.second)
        found = measured.pop(frozenset(attrs), None)
        if pair.exactness is not None:
            yield Accuracy(attrs, "estimate", pair.kind == "measured", pair.exactness)
        elif found is not None:
            yield Accuracy(attrs, "noise", True, found.exactness, found.grouped)
    for found in measured.values():
        yield Accuracy(found.attrs, "noise", True, found.exactness, found.grouped)


def accuracy_part(lines: Sequence[Accuracy], total: float) -> Html:
    """What is known of the error of counts."""
    if not lines:
        return paragraph("No table was measured, so there is no error to state.")
    return joined(
        box(_example(lines, total)),
        paragraph(
            "The error comes from the noise, which is known exactly, because it was added on purpose. It "
            "hardly shrinks with the group: a large group is known well, and a small one may be noise alone."
        ),
        *_meaning(lines),
        *_listed("Single columns", [one for one in lines if len(one.attrs) == 1]),
        *_listed("Two columns together", [one for one in lines if len(one.attrs) == 2]),
        *_listed("Three and more columns together", [one for one in lines if len(one.attrs) > 2]),
    )


def _example(lines: Sequence[Accuracy], total: float) -> Html:
    """A count of the listed pair with counts nearest to the one spoken of; otherwise of the first line."""
    count = spoken_of(total)
    pairs = [one for one in lines if len(one.attrs) == 2 and not one.grouped][:_MOST_LISTED]
    chosen = min(pairs, key=lambda one: _away(one, count)) if pairs else lines[0]
    own = chosen.exactness.count
    rows = rows_words(count if math.isnan(own) else own)
    return paragraph(
        f"A {'noisy ' if chosen.of == 'noise' else ''}count of {rows} in ",
        element("strong", _names(chosen)),
        f" is within ±{rows_words(math.ceil(chosen.exactness.within))} of the truth in 95 % of releases.",
        class_="lead",
    )


def _away(line: Accuracy, count: float) -> float:
    """How far the counts of a line are from one, by ratio."""
    own = line.exactness.count
    return 0.0 if math.isnan(own) else abs(math.log((own + 1) / (count + 1)))


def _meaning(lines: Sequence[Accuracy]) -> Iterator[Html]:
    """Which counts the errors are of, and of which there is none."""
    use = element("a", "How to use it", href="#use")
    own = any(one.of == "estimate" for one in lines)
    if own:
        yield paragraph(
            "These are errors of the model's counts, which the bars above show and the synthetic rows "
            "follow. The model makes the noisy counts agree with each other and smooths them. Of two columns "
            "the error also has what the model may not see of them. 95 % holds over the counts of a table "
            "taken together: a single count that is unlike all others of its table may be further off. The "
            "noisy counts themselves are in the release, too: ",
            use,
            ".",
        )
    if any(one.of == "noise" for one in lines):
        yield paragraph(
            "Where the table says “noisy count”, the error is that of the count with its noise"
            + ("." if own else ", which is in the release: "),
            None if own else joined(use, "."),
            " The model's count is mostly closer to the truth, but its own error is not known.",
        )
    yield paragraph(
        "No error is known of the model's counts of three or more columns"
        + (
            ". "
            if any(one.of == "estimate" for one in lines if len(one.attrs) == 2)
            else ", nor of two columns that were not counted together. "
        )
        + "Do not rely on them without a check by the owner."
    )


def _names(line: Accuracy) -> Html:
    return joined(*(joined(" x " if place else "", named(one, 40)) for place, one in enumerate(line.attrs)))


def _listed(title: str, lines: Sequence[Accuracy]) -> Iterator[Html]:
    if lines:
        yield _table(title, lines[:_MOST_LISTED])
    if len(lines) > _MOST_LISTED:
        left = len(lines) - _MOST_FOLDED
        yield folded(
            f"More of them ({min(len(lines), _MOST_FOLDED) - _MOST_LISTED:,})",
            _table(f"{title}, continued", lines[_MOST_LISTED:_MOST_FOLDED]),
            paragraph(f"And {left:,} more.") if left > 0 else None,
        )


def _table(title: str, lines: Sequence[Accuracy]) -> Html:
    several = len(lines[0].attrs) > 1
    rows = []
    for one in lines:
        known = "counted together" if one.together else "through other columns"
        shown = f"{known}, noisy count" if one.of == "noise" else known
        cells = [
            joined(_names(one), element("span", " (in wider groups)", class_="soft") if one.grouped else None)
        ]
        if several:
            cells.append(joined(shown))
        elif one.of == "noise":
            cells[0] = joined(cells[0], element("span", " (noisy count)", class_="soft"))
        if several:
            count = one.exactness.count
            cells.append(joined("any" if math.isnan(count) else rows_words(count)))
        cells += [
            joined(f"±{rows_words(math.ceil(one.exactness.within))}"),
            joined(_smallest(one.exactness.smallest)),
        ]
        rows.append(cells)
    ends = ["is right to", "smallest useful group"]
    return table(
        f"{title}: in 95 % of releases a count is within so many rows of the truth. In the smallest useful "
        "group this is half of the count",
        ["columns", "how it is known", "a count of", *ends] if several else ["column", *ends],
        rows,
        numbers=3 if several else 2,
    )


def _smallest(rows: float) -> str:
    return rows_words(rounded_up(rows)) if math.isfinite(rows) else "none"
