"""What a release lost: shares of rows in codes that say little, by noisy answers and public facts alone.

All of it is post-processing of what was measured. It costs nothing, and a certificate may hold it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

from dpsyn_sql.attributes.attribute import Attribute, edge_ticks, fill_ticks
from dpsyn_sql.attributes.cuts import limits_of
from dpsyn_sql.attributes.leaves import finished_leaves
from dpsyn_sql.attributes.shape import Shape, Undiscovered
from dpsyn_sql.fit.variances import OneWayCounts, one_way_counts
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.fitted import FittedRelease
from dpsyn_sql.report.labels import code_labels, code_words

NOISE = 2.0
"""A share below so many standard errors may be noise."""

HEAVY = 0.1
"""A bin that holds more than this share of the rows is told if it is wide."""

WIDE = 0.1
"""A bin is wide if it is wider than this part of the range that the other bins cover."""

_ONE_VALUE = 0.75
# A bin hides nothing if discovery found more than this part of its fill to be one value.

_PRECISION, _SMALLEST = 2.0**-22, 1e-37
# Of FLOAT: neighbours are no closer, relatively or at all.


@dataclass(frozen=True, slots=True)
class Share:
    """A noisy share of the rows in one code and its standard error. ``label`` names the code, and ``words``
    say it as a person does."""

    label: str
    share: float
    error: float
    words: str = ""


@dataclass(frozen=True, slots=True)
class ColumnLosses:
    """What is known of one measured column.

    ``tables``: measured tables it is in. ``joined``: in how many of them with another column.
    ``labels_found``: of a discovered categorical column, prefixes among them. ``hidden``: a value of fewer
    units was not found. ``unwritten``: ``__other__`` or NULL, if their rows are written as other codes.
    ``faint``: labels of a declared column whose count is noise. ``shares``: one per code; empty if no table
    tells the codes apart. ``wide``: bins that hold much and are wide. ``clips``: whether the first bin counts
    values below it, and the last one values above it.
    """

    attribute: Attribute
    tables: int
    joined: int
    labels_found: int | None
    hidden: float | None
    unwritten: tuple[str, ...]
    faint: tuple[str, ...]
    shares: tuple[Share, ...]
    wide: tuple[Share, ...]
    clips: tuple[bool, bool]

    @property
    def name(self) -> str:
        """Of the column."""
        return self.attribute.name

    def of(self, code: int | None) -> Share | None:
        """The share of a code, if there is one and it is known."""
        return None if code is None or not self.shares else self.shares[code]

    @property
    def other(self) -> Share | None:
        """Of ``__other__``."""
        return self.of(self.attribute.other_code)

    @property
    def null(self) -> Share | None:
        """Of NULL."""
        return self.of(self.attribute.null_code)

    @property
    def stems(self) -> tuple[int, ...]:
        """Codes with text of a beginning alone."""
        return tuple(unfinished(self.attribute))

    @property
    def shortened(self) -> Share | None:
        """Rows that keep only the beginning of their value: those of such labels or leaves."""
        part_of_code = unfinished(self.attribute)
        if not part_of_code or not self.shares:
            return None
        share = sum(self.shares[code].share * part for code, part in part_of_code.items())
        error = math.hypot(*(self.shares[code].error * part for code, part in part_of_code.items()))
        return Share("prefixes", share, error)

    @property
    def ends(self) -> tuple[Share, ...]:
        """Of the first and the last bin of a numeric or temporal column of several."""
        attribute = self.attribute
        if attribute.kind == "categorical" or attribute.regular < 2 or not self.shares:
            return ()
        return self.shares[0], self.shares[attribute.regular - 1]


@dataclass(frozen=True, slots=True)
class PairLosses:
    """Pairs of columns of several codes: in a measured table together; joined by other columns alone;
    independent in the output."""

    measured: int
    modelled: int
    independent: int


@dataclass(frozen=True, slots=True)
class Losses:
    """What was lost, column by column. ``total``: noisy number of rows."""

    total: float
    columns: tuple[ColumnLosses, ...]
    pairs: PairLosses

    @property
    def alone(self) -> tuple[str, ...]:
        """Columns of several codes that no measured table joins to another."""
        several = [column for column in self.columns if column.attribute.size > 1]
        return tuple(column.name for column in several if not column.joined) if len(several) > 1 else ()


def losses_of(fitted: FittedRelease, hidden: Mapping[str, float], before: Shape) -> Losses:
    """What a release lost.

    Args:
        fitted: the answers, with a shape that says what is written.
        hidden: for discovered columns of categories the units that a value needs to be found.
        before: the shape before discovery, with the bounds that the owner stated.
    """
    bounded = {column.name: column for column in before.undiscovered if column.clipped}
    domain, tables = fitted.shape.domain, fitted.measurements
    counts = one_way_counts(domain, tables)
    sizes = {attribute.name: attribute.size for attribute in domain.attributes}
    measured = dict(zip(fitted.plan.domain.names, fitted.plan.domain.shape(), strict=True))
    total, joining = fitted.model.total, _joining(tables, measured)
    columns = tuple(
        _column(
            attribute,
            counts.get(attribute.name),
            total,
            joining.get(attribute.name, (0, 0)),
            hidden,
            bounded.get(attribute.name),
        )
        for attribute in domain.attributes
    )
    return Losses(total, columns, pair_losses([name for name, size in sizes.items() if size > 1], tables))


def _joining(tables: Sequence[NoisyMarginal], sizes: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """In how many tables each column is, and in how many with another one of several codes."""
    holding, joined = Counter[str](), Counter[str]()
    for table in tables:
        several = sum(sizes[name] > 1 for name in table.attrs)
        holding.update(table.attrs)
        joined.update(name for name in table.attrs if several > (sizes[name] > 1))
    return {name: (number, joined[name]) for name, number in holding.items()}


def _column(
    attribute: Attribute,
    one_way: OneWayCounts | None,
    total: float,
    tables: tuple[int, int],
    hidden: Mapping[str, float],
    bounded: Undiscovered | None = None,
) -> ColumnLosses:
    labels = ["NULL" if label is None else str(label) for label in code_labels(attribute)]
    shares: tuple[Share, ...] = ()
    if one_way is not None and total > 0:
        figures = zip(
            labels, one_way.counts.tolist(), one_way.sigma.tolist(), code_words(attribute), strict=True
        )
        shares = tuple(
            Share(label, count / total, sigma / total, words) for label, count, sigma, words in figures
        )
    keys = attribute.origin == "discovered" and attribute.kind == "categorical" and attribute.leaves is None
    listed = attribute.kind == "categorical" and attribute.origin != "discovered"
    extra = () if attribute.recoding is None else attribute.recoding.codes
    return ColumnLosses(
        attribute=attribute,
        tables=tables[0],
        joined=tables[1],
        labels_found=attribute.regular if keys else None,
        hidden=hidden.get(attribute.name) if keys else None,
        unwritten=tuple(labels[code] for code in extra),
        faint=tuple(s.label for s in shares[: attribute.regular] if listed and s.share < NOISE * s.error),
        shares=shares,
        wide=tuple(_wide(attribute, shares)),
        clips=_clips(attribute, bounded),
    )


def _clips(attribute: Attribute, bounded: Undiscovered | None) -> tuple[bool, bool]:
    """Learnt bins clip where they reach a bound that the owner stated."""
    if bounded is None or attribute.kind == "categorical":
        declared = attribute.origin == "declared"
        return declared, declared
    (low, high), least, most = limits_of(attribute), bounded.least, bounded.most
    return least is not None and low <= least, most is not None and high >= most


def _wide(attribute: Attribute, shares: Sequence[Share]) -> Iterator[Share]:
    """Bins that hold much of the rows and are wide beside the range of the others."""
    if attribute.kind == "categorical" or not shares:
        return
    widths, several, inside = bin_widths(attribute), several_values(attribute), attribute.found
    total_width = sum(widths[inside])  # cells beyond the found range are wide, and nearly empty
    for width, share, wider in zip(widths[inside], shares[inside], several[inside], strict=True):
        if share.share > HEAVY and wider and width > WIDE * (total_width - width):
            yield share


def unfinished(attribute: Attribute) -> dict[int, float]:
    """The codes with text of which only a beginning is known, each with the part of its rows that have it."""
    if attribute.leaves is None:
        stems = (code for length in attribute.prefixes for _, code in attribute.stems(length))
        return dict.fromkeys(sorted(stems), 1.0)
    leaves = attribute.leaves
    occupied = {code for code, rows in zip(leaves.codes, leaves.rows, strict=True) if rows > 0}
    unfinished_rows, rows_of_code = defaultdict[int, float](float), defaultdict[int, float](float)
    for code, rows, ended in zip(leaves.codes, leaves.rows, finished_leaves(leaves), strict=True):
        weight = rows if code in occupied else 1.0  # without rows all leaves of a code are alike
        rows_of_code[code] += weight
        unfinished_rows[code] += 0 if ended else weight
    return {code: rows / rows_of_code[code] for code, rows in sorted(unfinished_rows.items()) if rows > 0}


def bin_widths(attribute: Attribute) -> list[float]:
    """The widths of the bins of a numeric or temporal attribute, in ticks (values for FLOAT and DOUBLE)."""
    floats = attribute.type.family == "float"
    cuts = [float(edge) for edge in attribute.edges] if floats else edge_ticks(attribute)  # type: ignore[arg-type]
    return [float(high - low) for low, high in pairwise(cuts)]


def several_values(attribute: Attribute) -> list[bool]:
    """For each bin whether it holds several values, at the precision of FLOAT.

    A discovered bin also holds one value if nearly all its rows are known to share one.
    """
    single = _known_as_one(attribute)
    return [wide and not is_single for wide, is_single in zip(_spanning(attribute), single, strict=True)]


def _known_as_one(attribute: Attribute) -> list[bool]:
    """For each bin whether discovery found one value for more than ``_ONE_VALUE`` of its fill."""
    if attribute.origin != "discovered" or not attribute.fill:
        return [False] * attribute.regular
    return [
        len(cuts) == 1 or max(Counter(cuts).values()) - 1 > _ONE_VALUE * (len(cuts) - 1)
        for cuts in attribute.fill
    ]


def _spanning(attribute: Attribute) -> list[bool]:
    """For each bin whether there are several values between its edges, at the precision of FLOAT."""
    widths = bin_widths(attribute)
    if attribute.type.family != "float":
        return [width > 1 for width in widths]
    lows = (float(edge) for edge in attribute.edges)  # type: ignore[arg-type]
    return [width > max(abs(low) * _PRECISION, _SMALLEST) for width, low in zip(widths, lows, strict=False)]


def pair_losses(names: Sequence[str], tables: Sequence[NoisyMarginal]) -> PairLosses:
    """How the pairs of columns of several codes, ``names``, are known."""
    several = set(names)
    measured = {
        frozenset(pair)
        for table in tables
        for pair in combinations([name for name in table.attrs if name in several], 2)
    }
    group = joined_columns(names, tables)
    connected = sum(size * (size - 1) // 2 for size in Counter(group[name] for name in names).values())
    possible = len(names) * (len(names) - 1) // 2
    return PairLosses(len(measured), connected - len(measured), possible - connected)


def joined_columns(names: Sequence[str], tables: Sequence[NoisyMarginal]) -> dict[str, str]:
    """Of each column another one that stands for all columns which measured tables join to it, directly or
    through others."""
    group = {name: name for name in names}

    def root(name: str) -> str:
        while group[name] != name:
            group[name] = group[group[name]]  # shorter for the next look
            name = group[name]
        return name

    for table in tables:
        joined = [name for name in table.attrs if name in group]
        for first, second in pairwise(joined):
            group[root(first)] = root(second)
    return {name: root(name) for name in names}


# -- where the values of the codes of a column lie, as rows are written ------------------------------


def ends_of(attribute: Attribute) -> list[float]:
    """The cuts between bins: ticks for discrete types."""
    cuts = edge_ticks(attribute) if attribute.type.discrete else attribute.edges
    return [float(cut) for cut in cuts]  # type: ignore[arg-type]


def even_pieces(attribute: Attribute) -> Iterator[tuple[int, float, float, float]]:
    """Even pieces of the bins, ascending: their code, ends (ticks for discrete types, upper ends exclusive),
    and part of the code."""
    discrete = attribute.type.discrete
    fill: Sequence[Sequence[float]] = ()
    if attribute.fill:
        fill = fill_ticks(attribute) if discrete else attribute.fill  # type: ignore[assignment]
    for code, (low, high) in enumerate(pairwise(ends_of(attribute))):
        cuts = [float(cut) for cut in fill[code]] if fill else [low, high]
        if len(cuts) == 1:
            yield code, cuts[0], cuts[0] + discrete, 1.0
            continue
        for first, last in pairwise(cuts):
            yield code, first, max(last, first + discrete), 1 / (len(cuts) - 1)
