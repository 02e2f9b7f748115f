"""The other parts of the page: what it is, the promise, pairs, accuracy, budget, use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsyn_sql.accounting.account import shown
from dpsyn_sql.report.certificate import NOT_PROMISED
from dpsyn_sql.report.html.charts import Cell, heat_map
from dpsyn_sql.report.html.element import Html, element, joined, named
from dpsyn_sql.report.html.page import box, bullets, folded, paragraph, scrolled, table
from dpsyn_sql.report.public.pairs import MOST_COLUMNS, Pair, Pairs
from dpsyn_sql.report.public.promise import WEAK, Promise, chance_in_words, of_hundred
from dpsyn_sql.report.public.spending import Spending
from dpsyn_sql.report.public.words import percent

_MOST_LISTED = 12
_MOST_FOLDED = 200
_PERSON = 5
"""Rows of a person in the example of a promise for rows."""

WEAK_WORDS = "This is a weak promise. "

_KINDS = {
    "measured": "counted together",
    "modelled": "through other columns",
    "independent": "taken as independent",
}


# -- the promise -----------------------------------------------------------------------------------


def promise_part(promise: Promise, facts: Mapping[str, Any]) -> Html:
    """What the guarantee means for one person."""
    return joined(
        box(*_bet(promise, facts), warning=promise.weak),
        paragraph(
            "Only counts were taken from the rows of the source, and random noise was added to every count "
            "before anybody saw it. No later calculation can weaken the promise. ",
            None
            if promise.weak
            else joined("It hides whether any one ", _unit(facts), " is in the source at all."),
        ),
        _weak(promise),
        _persons(promise, facts),
        folded("The promise in exact terms", _exact(promise, facts)),
        folded("What is not promised", bullets(facts.get("not_promised") or NOT_PROMISED)),
        folded(
            "Software that made it", bullets(f"{k} {v}" for k, v in (facts.get("versions") or {}).items())
        ),
    )


def _unit(facts: Mapping[str, Any]) -> Html:
    unit = str(facts["guarantee"]["privacy_unit"])
    if unit == "row" or unit.startswith("a row of"):
        return joined("row")
    return joined("person, in the sense of one value of ", named(unit, 60), ",")


def _by_row(facts: Mapping[str, Any]) -> bool:
    unit = str(facts["guarantee"]["privacy_unit"])
    return unit == "row" or unit.startswith("a row of")


def _bet(promise: Promise, facts: Mapping[str, Any]) -> list[Html]:
    whose = "your row is" if _by_row(facts) else "you are"
    best = of_hundred(promise.best)
    made = [
        paragraph(
            f"Suppose somebody bets 50:50 on whether {whose} in the source. She may know everything else "
            "about "
            "it, and she sees everything that is published here. Then she is right in at most ",
            element("strong", f"{best} bets"),
            ". By pure guessing she is right in 50.",
            class_="lead",
        )
    ]
    if promise.delta:
        made.append(
            paragraph(
                "The number counts in delta, which the promise adds to the probability of any result: "
                f"{chance_in_words(promise.delta)}.",
                class_="small",
            )
        )
    if best != of_hundred(promise.by_epsilon):
        made.append(
            paragraph(
                f"Somebody who knows only the privacy figure epsilon = {shown(promise.epsilon)} would have "
                f"to allow for {of_hundred(promise.by_epsilon)}; the noise that was really used gives the "
                "smaller number.",
                class_="small",
            )
        )
    return made


def _weak(promise: Promise) -> Html | None:
    if not promise.weak:
        return None
    return box(
        paragraph(
            element("strong", WEAK_WORDS),
            f"Epsilon is {shown(promise.epsilon)}, and above {WEAK:g} the promise alone lets "
            f"{of_hundred(promise.by_epsilon)} bets be right. Handle the synthetic rows as if they could "
            "reveal single persons.",
        ),
        warning=True,
    )


def _persons(promise: Promise, facts: Mapping[str, Any]) -> Html:
    most = int(facts["guarantee"]["rows_per_unit"])
    if _by_row(facts):
        return paragraph(
            "The promise is for one row. A person with several rows is protected less: with "
            f"{_PERSON} rows, {of_hundred(promise.of_group(_PERSON))} bets can be right."
        )
    rows = "one row" if most == 1 else f"{most:,} rows"
    return paragraph(
        "The promise is for all rows of one value of ",
        named(str(facts["guarantee"]["privacy_unit"]), 60),
        f" together; at most {rows} of each were used.",
    )


def _exact(promise: Promise, facts: Mapping[str, Any]) -> Html:
    guarantee = facts["guarantee"]
    rows = [
        ("epsilon", repr(promise.epsilon)),
        ("delta", repr(promise.delta)),
        ("definition", str(guarantee.get("definition", "(epsilon, delta)"))),
        ("accounting", str(guarantee.get("accounting", ""))),
        ("neighbours", str(guarantee.get("neighbours", ""))),
        ("privacy unit", str(guarantee["privacy_unit"])),
        ("rows per unit, at most", str(guarantee["rows_per_unit"])),
        ("release", str(facts.get("release", ""))),
        ("charged to the ledger", str(facts.get("debited_at", ""))),
    ]
    told = table("The guarantee of the certificate", ["term", "value"], [(k, named(v)) for k, v in rows])
    return joined(
        paragraph(
            "Differential privacy: take the source with and without one unit. Any result that can be "
            "published "
            "is at most e^epsilon times as likely with it as without it, and the other way round, up to an "
            "extra "
            "probability of delta. The bet follows from that by arithmetic. It is about this release "
            "alone: whoever has several releases of a source can bet better, and a ledger adds up what they "
            "spend together."
        ),
        told,
    )


# -- pairs -----------------------------------------------------------------------------------------


def pairs_part(pairs: Pairs) -> Html:
    """The matrix, and the strongest pairs as text."""
    if not pairs.possible:
        return paragraph("There are no two columns to compare.")
    linked = [pair for pair in pairs.strongest if pair.kind != "independent"]
    shown = linked[:_MOST_LISTED]
    left = pairs.possible - pairs.computed
    return joined(
        paragraph(_counted(pairs)),
        paragraph(
            "Strength is 0 if one column says nothing about the other, and 1 if it settles it (Cramér's V of "
            "the "
            "model). “Clear” says that the noisy counts differ from independence by far more than noise does."
        ),
        _matrix(pairs),
        _strongest("The strongest pairs", shown) if shown else None,
        folded(
            f"More pairs ({min(len(linked), _MOST_FOLDED) - len(shown):,})",
            _strongest("Further pairs by strength", linked[_MOST_LISTED:_MOST_FOLDED]),
        )
        if len(linked) > _MOST_LISTED
        else None,
        paragraph(f"Left out: the strength of {left:,} pairs was not computed.", class_="soft")
        if left
        else None,
    )


def _counted(pairs: Pairs) -> str:
    """How many pairs are known in which way; a way without pairs is left out."""
    ways: list[tuple[int, str]] = [
        (pairs.counted["measured"], "counted together with noise"),
        (pairs.counted["modelled"], "known only through other columns"),
        (pairs.counted["independent"], "taken as independent"),
    ]
    told = [f"{number:,} {'is' if number == 1 else 'are'} {words}" for number, words in ways if number]
    last = f", and {told[-1]}" if len(told) > 1 else ""
    number = "1 pair" if pairs.possible == 1 else f"{pairs.possible:,} pairs"
    first = f"Of {number} of columns, {', '.join(told[:-1] or told)}{last}."
    if not pairs.counted["independent"]:
        return first
    return f"{first} Of independent columns, the synthetic rows do not say what goes with what in the source."


def _matrix(pairs: Pairs) -> Html | None:
    names = pairs.columns
    if len(names) < 2:
        return None
    cells = [[_cell(pairs.found[other, name]) for other in names[:row]] for row, name in enumerate(names)]
    limited = "" if len(names) < MOST_COLUMNS else f" Only {len(names)} columns are drawn."
    drawn = heat_map(
        "Pairs of columns",
        "A square for each pair, in a strong colour for a strong link. The table below has the strongest "
        "pairs.",
        names,
        cells,
    )
    note = (
        "Each square is a pair: the column named at its left, and the one with the number below it. A strong "
        f"colour: a strong link. Full square: counted together. Small square: through other columns. Empty: "
        f"independent.{limited}"
    )
    return element("figure", scrolled(drawn, "Matrix of pairs"), element("figcaption", note))


def _cell(pair: Pair) -> Cell:
    told = "strength not computed" if pair.strength is None else f"strength {pair.strength:.2f}"
    words = f"{pair.first[:60]} and {pair.second[:60]}: {told}, {_KINDS[pair.kind]}"
    if pair.strength is None and pair.kind != "independent":
        return Cell(0.0, "unknown", words)
    return Cell(pair.strength or 0.0, pair.kind, words)


def _strongest(caption: str, pairs: Sequence[Pair]) -> Html:
    clear = {True: "clear", False: "may be noise", None: ""}
    rows = [
        (
            joined(named(pair.first, 40), " and ", named(pair.second, 40)),
            _KINDS[pair.kind],
            clear[pair.clear],
            f"{pair.strength or 0:.2f}",
        )
        for pair in pairs
    ]
    return table(caption, ["columns", "how it is known", "beside noise", "strength"], rows, numbers=1)


# -- budget and use -----------------------------------------------------------------------------------


def spending_part(spending: Spending | None, learnt: Sequence[str]) -> Html:
    """What was discovered and what it cost."""
    told = (
        paragraph(
            "The possible values of ",
            *(
                joined(", " if place else "", named(name, 40))
                for place, name in enumerate(learnt[:_MOST_LISTED])
            ),
            f" and {len(learnt) - _MOST_LISTED:,} more columns" if len(learnt) > _MOST_LISTED else "",
            " were learnt from the rows with noise. Values of few rows were not found: they are counted as "
            "other "
            "values, or have the nearest range.",
        )
        if learnt
        else paragraph(
            "Nothing had to be learnt about which values occur: all columns were described beforehand."
        )
    )
    if spending is None:
        return joined(told, paragraph("The certificate does not say what each step cost."))
    rows = [(step, percent(share)) for step, share in spending.steps.items()]
    rows += [("Not used", percent(spending.unused))] if spending.unused >= 0.0005 else []
    return joined(
        told,
        paragraph(
            "All of this is paid from one privacy budget. What goes to one question is missing for the "
            "others."
        ),
        table("What the privacy budget was spent on", ["step", "share of the budget"], rows, numbers=1),
        folded(
            "Learning the values, by column",
            table(
                "Share of the budget by column",
                ["column", "share of the budget"],
                [(named(name, 60), percent(share)) for name, share in spending.columns.items()],
                numbers=1,
            ),
        )
        if spending.columns
        else None,
    )


def use_part(facts: Mapping[str, Any], name: str, columns: Sequence[str]) -> Html:
    """How to get more out of it, how to cite it, how not to use it. ``name``: of the release."""
    versions = facts.get("versions") or {}
    release, version = str(facts.get("release", "")), str(versions.get("dpsyn_sql", ""))
    own = _literal(name, "NAME")
    column = _literal(columns[0] if columns else "", "COLUMN")
    return joined(
        element("h3", "How to get more out of it"),
        paragraph(
            "More rows and any count of one or two columns cost nothing further. Open the DuckDB file of the "
            "release, or the file .dpsyn.duckdb beside its rows, and ask in SQL:"
        ),
        bullets(
            joined(element("code", code), f": {what}")
            for code, what in (
                (f"FROM dpsyn_marginal({own}, [{column}]);", "counts, noisy counts and their errors"),
                (f"FROM dpsyn_sample({own}, 1000, seed := 7);", "more synthetic rows"),
                (f"FROM dpsyn_certificate({own});", "all facts behind this page"),
                ("FROM dpsyn_releases();", "which releases there are"),
            )
        ),
        element("h3", "How to cite it"),
        paragraph(
            f"Synthetic data with differential privacy (epsilon {facts['guarantee']['epsilon']!r}, delta "
            f"{facts['guarantee']['delta']!r}), release {release} of "
            f"{str(facts.get('debited_at', ''))[:10]}, made "
            f"with dpsyn_sql {version}, method {facts.get('method', '')}."
        ),
        element("h3", "How not to use it"),
        bullets(
            (
                "Not for decisions about single persons: no synthetic row is a person.",
                "Not for small groups, rare values and extremes: see the smallest groups above.",
                "Not to link rows with other data: every match is an accident.",
                "Not as a substitute for the source: check results that matter with the owner of the source.",
                "Do not count the synthetic rows as observations: a test of significance on them ignores the "
                "noise.",
            )
        ),
    )


def _literal(text: str, otherwise: str) -> str:
    """A text for SQL; ``otherwise`` in the place of none, and of one too long to read."""
    return "'" + (text if 0 < len(text) <= 60 else otherwise).replace("'", "''") + "'"
