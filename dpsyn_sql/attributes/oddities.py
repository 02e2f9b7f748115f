"""What is odd about declarations, of columns and of trees of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, time
from itertools import pairwise

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.attributes.bins import BinsSpec
from dpsyn_sql.attributes.discovered import DiscoverSpec
from dpsyn_sql.attributes.labels import CategoricalSpec
from dpsyn_sql.attributes.shape import Undiscovered
from dpsyn_sql.attributes.types import Edge
from dpsyn_sql.attributes.unit import (
    Case,
    Finding,
    Severity,
    Table,
    names_a_code,
    names_a_person,
    names_an_identifier,
    names_money,
    says_whose_row,
    words_of,
)
from dpsyn_sql.source.names import listed

# -- trees -------------------------------------------------------------------------------------------

# Rules of advice about columns that are best declared as trees: places, names and codes.
#
# As in ``oddities.py``, a rule sees names, types and declarations alone.

_LATITUDES = frozenset({"lat", "latitude"})
_LONGITUDES = frozenset({"lon", "lng", "long", "longitude"})
_MANY_TEXTS = frozenset(
    {"address", "city", "description", "query", "search", "street", "tailnum", "title", "word", "words"}
    | {"forename", "name", "names", "surname", "lastname", "firstname"}
)


def places(table: Table) -> Iterator[Finding]:
    """Latitude and longitude that are measured each by itself."""
    numbers = [case for case in table.cases if _is_number(case)]
    for latitude in numbers:
        for longitude in numbers:
            common = _without(latitude.name, _LATITUDES)
            if common is not None and common == _without(longitude.name, _LONGITUDES):
                yield Finding(
                    latitude.name,
                    f"with {longitude.name!r} it is a place by its name, but each is measured by itself: "
                    "places in between are written",
                    f"declare {'_'.join((*common, 'place'))}: {{type: point, columns: {{{latitude.name}: "
                    f"[lower, upper], {longitude.name}: [lower, upper]}}}} in their place",
                    "hint",
                )


def _without(name: str, words: frozenset[str]) -> tuple[str, ...] | None:
    """The words of a name without the one that is among ``words``; None if there is not one."""
    name_words = words_of(name)
    remaining = tuple(word for word in name_words if word not in words)
    return remaining if len(remaining) == len(name_words) - 1 else None


def _is_number(case: Case) -> bool:
    item = case.item
    if not isinstance(item, Attribute | Undiscovered) or case.kind is None:
        return False
    tree = item.hierarchy if isinstance(item, Undiscovered) else item.leaves
    return tree is None and case.kind.family in ("float", "decimal") and case.name == item.name


def rare_text(table: Table, case: Case) -> tuple[str, str] | None:
    """Text of so many values, by its name, that few of them are shared by enough rows to be found."""
    item = case.item
    if not isinstance(item, Undiscovered) or item.hierarchy is not None or item.prefixes:
        return None
    if case.kind is None or case.kind.family != "text" or (table.csv and case.entry is None):
        return None
    if case.entry is not None and not isinstance(case.entry, DiscoverSpec):
        return None
    if names_a_code(case.name):
        return (
            "its name says that it holds codes: those that few rows share are written as __other__",
            "write type: taxonomy with ids: and prefixes: if the list of codes is public, or type: discover, "
            "prefixes: [3, 1]",
        )
    if names_an_identifier(case.name) or not _MANY_TEXTS.intersection(words_of(case.name)):
        return None
    return (
        "its name says that it has many values: those that few rows share are written as __other__",
        "write type: string with its alphabet: and longest:, which keeps their beginnings",
    )


# -- columns -----------------------------------------------------------------------------------------

# The rules of advice: each a function of a ``Table`` that yields what is odd, in ``RULES`` by importance.
#
# To add a rule, write a function and its line in ``RULES``. A rule sees public facts alone, names the cure,
# and does not fire on a domain file that a careful owner has written
# (tests/unit/attributes/test_domain_advice.py).

Rule = Callable[[Table], Iterator[Finding]]
Found = tuple[str, str] | None
"""What is odd about a column, and the cure."""

MANY_CODES = 100
"""Codes of a column, from which on its pairs have little left of each count."""

MANY_COLUMNS = 300
"""Columns, from which on pairs can no longer be chosen by how strong they are."""

_YEARS = 200
_WIDE = 1e9
# Bounds so far apart, or by a quarter of what the type holds, are hardly what a column has.

_EQUAL_SPAN = 10_000
# Numbers of one bound to the other, from which on bins of equal width are doubtful.

_LAST_GROWS = 3.0
# A last bin that is this many times wider than the growth of those before it.


def _of_each(severity: Severity, judge: Callable[[Table, Case], Found]) -> Rule:
    """A rule that looks at one column after the other."""

    def rule(table: Table) -> Iterator[Finding]:
        for case in table.cases:
            advice = judge(table, case)
            if advice is not None:
                yield Finding(case.name, *advice, severity)

    return rule


def _of_all(
    severity: Severity, applies: Callable[[Table, Case], bool], single: str, many: str, cure: str
) -> Rule:
    """A rule whose columns are named together; ``many`` has the place ``{n}`` for their number."""

    def rule(table: Table) -> Iterator[Finding]:
        names = [case.name for case in table.cases if applies(table, case)]
        if len(names) == 1:
            yield Finding(names[0], single, cure, severity)
        elif names:
            yield Finding(None, f"{many.format(n=len(names))}: {listed(names, 8)}", cure, severity)

    return rule


# -- who is protected ------------------------------------------------------------------------------


def _person_in_rows(table: Table) -> Iterator[Finding]:
    """A column that says whose row it is, while a row is protected: neither type: key nor leaving it out says
    anything about persons."""
    for column in table.columns:
        if table.by_row and says_whose_row(column):
            yield Finding(
                column.name,
                "its name says whose row it is, but one row is protected, not one person",
                f"release with unit={column.name!r} and most=, or write "
                "unit='row' if every person has one row",
                "serious",
            )


# -- what kind of column it is ---------------------------------------------------------------------


def _number_that_is_a_code(_: Table, case: Case) -> Found:
    """Whole numbers that tell things apart or stand for something, measured as amounts."""
    if case.kind is None or case.kind.family != "integer" or not _measured_as_number(case):
        return None
    identifier = names_an_identifier(case.name)
    if not identifier and not names_a_code(case.name):
        return None
    return (
        "its name says that its numbers are ids or codes, but it is measured as an amount: values between "
        "those of the source are written",
        "write type: key if it tells rows apart, or type: discover, as: categorical if it has few values"
        if identifier
        else "write categories:, or type: discover, as: categorical",
    )


def _measured_as_number(case: Case) -> bool:
    if isinstance(case.item, Undiscovered):
        return case.item.kind == "numeric"
    if isinstance(case.item, Attribute):
        return case.item.kind == "numeric"
    return isinstance(case.entry, BinsSpec)


def _text_that_is_unique(_: Table, case: Case) -> Found:
    """Text that is different in nearly every row: nothing of it is found."""
    if case.kind is None or case.kind.family != "text" or not isinstance(case.item, Undiscovered):
        return None
    if not names_an_identifier(case.name) and not names_a_person(case.name):
        return None
    return (
        "its name says that it tells rows apart: values that few rows share are not found, and its part of "
        "the budget is lost",
        "write type: key, or leave it out with exclude=",
    )


# -- bounds and bins -------------------------------------------------------------------------------


def _too_wide(_: Table, case: Case) -> Found:
    """Stated bins between bounds that say no more than the type does; learnt bins find where the rows are."""
    cuts = _cuts(case)
    if cuts is None or case.kind is None:
        return None
    low, high = cuts[0], cuts[-1]
    if case.kind.temporal:
        wide = case.kind.family != "time" and high - low > _YEARS * 366 * 86_400.0
        extent = f"more than {_YEARS} years"
    else:
        span = (case.kind.high - case.kind.low) / 10**case.kind.scale or math.inf
        wide, extent = high - low >= max(_EQUAL_SPAN, min(span / 4, _WIDE)), f"{high - low:.3g}"
    if not wide:
        return None
    return (
        f"its bounds span {extent}: nearly all rows fall into one bin",
        "leave out bins:, and they are learnt, or write bounds that people who know the column would name: "
        "values beyond them fall into the end bins",
    )


def _wide_last_bin(_: Table, case: Case) -> Found:
    """A last bin that does not grow as those before it: it is filled far beyond its values."""
    widths = _widths(case)
    if widths is None or len(widths) < 3:
        return None
    growth = max(1.0, *(later / earlier for earlier, later in pairwise(widths[:-1])))
    last, before = widths[-1], widths[-2]
    if last <= sum(widths[:-1]) or last <= _LAST_GROWS * growth * before:
        return None
    return (
        f"its last bin is {last / sum(widths[:-1]):.3g} times as wide as all others together",
        f"add edges within it that grow like the others{_next_edge(case)}, or lower the "
        "last one: values beyond it fall into the last bin",
    )


def _equal_bins(table: Table, case: Case) -> Found:
    """Stated bins of equal width over bounds that amounts spread over unevenly."""
    entry, cuts = case.entry, _cuts(case)
    if not isinstance(entry, BinsSpec) or entry.type != "numeric" or entry.edges or cuts is None:
        return None
    low, high, number = cuts[0], cuts[-1], len(cuts) - 1
    if low < 0 or high - low < _EQUAL_SPAN or low > high / 10 or _too_wide(table, case):
        return None
    return (
        f"its {number} bins are all {(high - low) / number:,.6g} wide: if most values are small, one bin "
        "holds nearly all of them",
        f"write edges that grow: [{', '.join(map(_shown, _growing(low, high)))}]",
    )


def _growing(low: float, high: float) -> list[float]:
    """Edges of the series 1, 2, 5 from one bound to the other, three powers of ten below the upper one."""
    least = 10.0 ** (math.floor(math.log10(high)) - 3)
    series = [digit * least * 10.0**power for power in range(5) for digit in (1, 2, 5)]
    return [low, *(value for value in series if low < value < high), high]


def _next_edge(case: Case) -> str:
    """An edge within the last bin, if it is a number."""
    cuts = _cuts(case)
    if cuts is None or case.kind is None or case.kind.temporal:
        return ""
    return f" (next: {_shown(2 * cuts[-2] - cuts[0])})"


def _shown(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6g}"


def _cuts(case: Case) -> list[float] | None:
    """The edges of declared bins as numbers (seconds for dates and times); None of anything else."""
    if not isinstance(case.item, Attribute) or case.item.kind == "categorical" or not case.item.edges:
        return None
    if not isinstance(case.entry, BinsSpec):
        return None
    return [_position(edge) for edge in case.item.edges]


def _position(edge: Edge) -> float:
    if isinstance(edge, datetime):
        return (edge if edge.tzinfo else edge.replace(tzinfo=UTC)).timestamp()
    if isinstance(edge, date):
        return edge.toordinal() * 86_400.0
    if isinstance(edge, time):
        return edge.hour * 3600.0 + edge.minute * 60 + edge.second + edge.microsecond / 1e6
    return float(edge)


def _widths(case: Case) -> list[float] | None:
    """Widths of bins that the owner wrote as edges."""
    cuts = _cuts(case) if isinstance(case.entry, BinsSpec) and case.entry.edges else None
    return None if cuts is None else [high - low for low, high in pairwise(cuts)]


# -- codes -----------------------------------------------------------------------------------------


def _too_many_codes(table: Table, case: Case) -> Found:
    """Pairs of so many codes have no counts that stand out of the noise, or are not measured at all."""
    item = case.item
    if not isinstance(item, Attribute | Undiscovered) or _size(case) <= MANY_CODES:
        return None
    size = _size(case)
    partner_sizes = {partner.name: _size(partner) for partner in table.cases if partner is not case}
    largest = max(partner_sizes, key=partner_sizes.__getitem__, default="")
    never = sum(partner_size * size > table.most_cells for partner_size in partner_sizes.values())
    together = f", {partner_sizes[largest] * size:,} cells together with {largest!r}" if largest else ""
    lost = f"; {never} of its pairs have too many cells to be measured" if never else ""
    fewer = "max_codes:" if isinstance(item, Undiscovered) else "bins:" if item.kind != "categorical" else ""
    cure = f"state fewer with {fewer}" if fewer else "list the common ones alone, with other: true"
    return f"it has {size:,} codes{together}: little of each count stands out of the noise{lost}", cure


def _size(case: Case) -> int:
    if isinstance(case.item, Attribute):
        return case.item.size
    return case.item.max_codes if isinstance(case.item, Undiscovered) else 0


def _alike_categories(_: Table, case: Case) -> Found:
    """Categories that are the same to a reader."""
    if not isinstance(case.entry, CategoricalSpec):
        return None
    groups: dict[str, list[str]] = {}
    for label in case.entry.categories:
        if isinstance(label, str):
            groups.setdefault("".join(label.split()).casefold(), []).append(label)
    alike = [group for group in groups.values() if len(group) > 1]
    if not alike:
        return None
    return (
        f"its categories {listed(alike[0])} differ in case or spaces alone",
        "keep the spelling that occurs in the source, or clean the column in a query",
    )


def _no_other(_: Table, case: Case) -> bool:
    return (
        isinstance(case.entry, CategoricalSpec)
        and "other" not in case.stated
        and isinstance(case.item, Attribute)
        and case.item.other
    )


# -- NULL and granularity ----------------------------------------------------------------------------


def _nullable_unstated(table: Table, case: Case) -> bool:
    measured = isinstance(case.entry, BinsSpec | CategoricalSpec)
    return table.cataloged and measured and "nullable" not in case.stated and not case.column.not_null


def _moments_without_step(_: Table, case: Case) -> bool:
    stepped = isinstance(case.entry, BinsSpec) and case.entry.granularity is None
    return stepped and case.kind is not None and case.kind.family in ("timestamp", "time")


def _money_without_step(_: Table, case: Case) -> bool:
    stated = isinstance(case.entry, BinsSpec | DiscoverSpec) and case.entry.granularity is not None
    number = case.kind is not None and case.kind.family == "float" and _measured_as_number(case)
    return number and not stated and names_money(case.name)


# -- the table -------------------------------------------------------------------------------------


def _undeclared(table: Table, case: Case) -> bool:
    undeclared = isinstance(case.item, Undiscovered) and case.entry is None
    return table.cataloged and undeclared and not table.csv


def _csv_text(table: Table, case: Case) -> bool:
    return table.csv and case.entry is None


def _many_columns(table: Table) -> Iterator[Finding]:
    measured = sum(isinstance(case.item, Attribute | Undiscovered) for case in table.cases)
    if measured > MANY_COLUMNS:
        yield Finding(
            None,
            f"{measured} columns are measured: they share the budget, and auto takes the method 'copula'",
            "leave out what nobody needs with exclude=, or declare derived columns and keys",
            "serious",
        )


def _nothing_declared(table: Table) -> Iterator[Finding]:
    if not table.cataloged and not table.cases:
        yield Finding(
            None,
            "the file declares no column: all are learnt with noise",
            'remove the "# " before a column that you know, and replace FILL',
            "hint",
        )


RULES: Sequence[Rule] = (
    _nothing_declared,
    _person_in_rows,
    _of_all(
        "serious",
        _csv_text,
        "it is a column of a CSV file without a declaration: even its type is learnt with noise",
        "{n} columns of the CSV file are not declared: even their types are learnt with noise",
        "state at least sql_type: (dpsyn init writes the form); better bounds or categories",
    ),
    _of_each("serious", _number_that_is_a_code),
    _of_each("serious", _text_that_is_unique),
    _of_each("serious", _too_wide),
    _of_each("serious", _wide_last_bin),
    _of_each("serious", _equal_bins),
    _many_columns,
    _of_each("serious", _alike_categories),
    places,
    _of_each("hint", rare_text),
    _of_each("hint", _too_many_codes),
    _of_all(
        "hint",
        _no_other,
        "its categories do not say whether they are all",
        "{n} columns list categories and do not say whether they are all",
        "state other: false if no further value can occur, else other: true",
    ),
    _of_all(
        "hint",
        _nullable_unstated,
        "it may be NULL, and nullable: is not stated: NULL is counted as another value",
        "{n} columns may be NULL, and nullable: is not stated: NULL is counted as another value",
        "state nullable: true, or false if it never is NULL",
    ),
    _of_all(
        "hint",
        _moments_without_step,
        "it has no granularity: times to the last digit of the type are written",
        "{n} columns have no granularity: times to the last digit of the type are written",
        "state granularity: second, minute, hour or day",
    ),
    _of_all(
        "hint",
        _money_without_step,
        "its name says money, and it has no granularity: amounts of any number of digits are written",
        "{n} columns are money by their names, and have no granularity: amounts of any number of digits are "
        "written",
        "state granularity: 0.01",
    ),
    _of_all(
        "hint",
        _undeclared,
        "it is not declared: it is learnt with noise, from at most a tenth of the budget",
        "{n} columns are not declared: they are learnt with noise, from at most a tenth of the budget",
        "declare what is public about them",
    ),
)
"""The most important first; findings are ordered by severity, then in this order."""
