"""What a release is, and what it is good for, by its own facts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpsyn_sql.report.html.element import Html, element, joined, named
from dpsyn_sql.report.html.page import box, bullets, folded, paragraph
from dpsyn_sql.report.html.page import facts as short_facts
from dpsyn_sql.report.public.accuracy import TWO_SIDED, Accuracy, smallest_group
from dpsyn_sql.report.public.figures import ColumnFigures
from dpsyn_sql.report.public.pairs import Pairs
from dpsyn_sql.report.public.promise import Promise, of_hundred
from dpsyn_sql.report.public.words import percent, rounded_up, rows_words, source_words

_MUCH = 0.1
"""A column that keeps less than 1 minus this part of its rows is told."""

_NAMED = 6
_STRONG = 0.1


@dataclass(frozen=True, slots=True)
class Overview:
    """The facts that the summary is derived from."""

    rows: int
    total: float
    facts: Mapping[str, Any]
    columns: Sequence[ColumnFigures]
    pairs: Pairs
    accuracy: Sequence[Accuracy]
    promise: Promise

    @property
    def group(self) -> float:
        """The smallest group that a typical count of one column can be trusted for; NaN if unknown."""
        known = [one.typical_error for one in self.columns if math.isfinite(one.typical_error)]
        return 2 * TWO_SIDED * sorted(known)[len(known) // 2] if known else math.nan

    @property
    def group_of_pairs(self) -> float:
        """The same for two columns together."""
        return smallest_group([one for one in self.accuracy if len(one.attrs) == 2 and one.together])

    @property
    def damaged(self) -> list[str]:
        """Columns of which much is lost: in other values, in beginnings of text alone, in wide ranges."""
        found = []
        for one in (self.facts.get("losses") or {}).get("columns", ()):
            parts = [one.get("other"), one.get("prefixes"), *one.get("wide_bins", ())]
            if sum(float(part["share"]) for part in parts if part) > _MUCH:
                found.append(str(one["name"]))
        return found


def overview_part(it: Overview) -> Html:
    """The first part of the page."""
    good, bad = list(_good(it)), list(_bad(it))
    facts = it.facts
    method = f"method {facts.get('method', '')}"
    others = [str(role["name"]) for role in (facts.get("public_facts") or {}).get("roles", ())]
    return joined(
        paragraph(
            "This page describes a synthetic table: its rows are invented. A program counted groups of rows "
            "in "
            "the real table, added random noise to every count, learnt a model from the noisy counts, and "
            "drew "
            "new rows from it. No row is a real person.",
            class_="lead",
        ),
        short_facts(
            (
                ("Synthetic rows", f"{it.rows:,}"),
                ("Columns", f"{_number_of_columns(it, others):,}"),
                ("Made from", _shown(source_words(facts))),
                ("On", str(facts.get("debited_at", "unknown"))[:10]),
                ("Guessing who is in it", f"right at most {of_hundred(it.promise.best)}"),
                ("Smallest useful group", _group_words(it)),
            )
        ),
        _warnings(it),
        element("h3", "Good for"),
        bullets(good),
        element("h3", "Not good for"),
        bullets(bad),
        folded("What was stated by the owner", _stated(facts, method, others)),
    )


def _number_of_columns(it: Overview, others: Sequence[str]) -> int:
    return sum(len(one.attribute.columns) for one in it.columns) + len(others)


def _shown(text: str) -> Html:
    return named(text, 160)


def _group_words(it: Overview) -> str:
    group = it.group
    if not math.isfinite(group):
        return "unknown"
    return "none" if group > it.total else f"about {rows_words(rounded_up(group))} rows"


def _warnings(it: Overview) -> Html | None:
    told = [str(text) for text in (it.facts.get("losses") or {}).get("warnings", ())]
    if it.rows == 0:
        told.insert(0, "The release has no rows: the noisy number of rows is zero or below.")
    if it.promise.weak:
        told.insert(
            0, "The promise of privacy is weak: handle these rows as if they could reveal single persons."
        )
    if not told:
        return None
    return box(element("strong", "Warnings of this release"), bullets(told), warning=True)


def _good(it: Overview) -> Iterator[str]:
    group = it.group
    if math.isfinite(group) and group <= it.total:
        yield (
            f"Shares and counts of single columns, for groups of about {rows_words(rounded_up(group))} rows "
            "or more "
            f"({percent(group / it.total)} of all rows)."
        )
    strong = [one for one in it.pairs.strongest if (one.strength or 0) >= _STRONG and one.kind == "measured"]
    clear = [one for one in strong if one.clear is not False]
    if clear:
        told = joined(
            *(
                joined(", " if place else "", named(one.first, 40), " with ", named(one.second, 40))
                for place, one in enumerate(clear[:3])
            )
        )
        pairs = it.group_of_pairs
        groups = (
            f", for groups of about {rows_words(rounded_up(pairs))} rows or more"
            if math.isfinite(pairs) and pairs <= it.total
            else ""
        )
        yield joined(
            f"What goes with what in {it.pairs.counted['measured']:,} pairs of columns{groups}: most in ",
            told,
            ".",
        )
    yield (
        "Trying out programs, queries and dashboards; teaching: columns and types are those of the source."
    )


def _bad(it: Overview) -> Iterator[str]:
    group = it.group
    if not math.isfinite(group) or group > it.total:
        yield "Any count: the noise is larger than what there is to count."
    else:
        yield f"Groups of fewer than about {rows_words(rounded_up(group))} rows, rare values, and extremes."
    pairs = it.pairs
    if pairs.possible and pairs.counted["independent"] == pairs.possible:
        yield "Anything about two columns together: the columns are independent of each other."
    elif pairs.possible and not any(one.clear for one in pairs.strongest) and pairs.counted["measured"]:
        yield "Fine questions about two columns: no pair stands out from the noise by itself."
    elif pairs.counted.get("independent"):
        yield f"What goes with what in {pairs.counted['independent']:,} pairs that are taken as independent."
    if it.pairs.possible > 1:
        yield "Questions about three or more columns together: how right they are is not known."
    damaged = it.damaged
    if damaged:
        more = f" and {len(damaged) - _NAMED:,} more" if len(damaged) > _NAMED else ""
        names = (
            joined(", " if place else "", named(name, 40)) for place, name in enumerate(damaged[:_NAMED])
        )
        yield joined("Details of ", *names, f"{more}: more than a tenth of the rows lost detail there.")
    yield "Anything about a single person, and linking with other data."


def _stated(facts: Mapping[str, Any], method: str, others: Sequence[str]) -> Html:
    public = facts.get("public_facts") or {}
    items: list[str] = [f"Made with {method}."]
    items += [str(text) for text in public.get("statements", ())]
    items += [joined("Left out on purpose: ", named(str(text), 200)) for text in public.get("excluded", ())]
    items += [joined("Never happens: ", named(str(text), 200)) for text in public.get("never", ())]
    items += [joined("Not measured, but made or computed: ", named(name, 60)) for name in others]
    return bullets(items)
