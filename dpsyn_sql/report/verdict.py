"""The verdict on a release in words: on each column, on the dependences, and on the table; public.

A column is good, rough, or not to be used. What its losses say comes first (``report/complaints.py``), then
what noise does to its figures (``report/trust.py``).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal

import numpy as np

from dpsyn_sql.accounting.budget import MOST_ADVISED
from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.planning.queries import NoisyMarginal
from dpsyn_sql.report.complaints import CLEAR, complaint_of, independent, unread_text
from dpsyn_sql.report.departures import Departure
from dpsyn_sql.report.fitted import FittedRelease, total_error
from dpsyn_sql.report.labels import counted, edge_words, outer_values, some_of
from dpsyn_sql.report.losses import NOISE, ColumnLosses, Losses, Share, joined_columns, several_values
from dpsyn_sql.report.trust import MISSING, MOVED, SPREAD, Trust, trust_of

Grade = Literal["good", "rough", "do not use"]

LEAST_CHANCE, NO_CHANCE = 0.6, 0.2
"""A column that is believed less often is rough; one that hardly ever is should not be used."""

FAR, ALL_NOISE = 2.0, 0.5
"""One that is believed so rarely should not be used if a figure of it may be off by so many times what is
allowed; it is nearly all noise if it may be off by half of itself, or half of the rows have another value."""

RUINED = 2.0
"""A column should not be used if rows that noise hides would change its standard deviation so many times."""

OFF, FAR_OFF = 0.1, 0.3
"""Errors of correlations from which dependences are rough, and from which they should not be used."""

_GOOD_TABLE, _POOR_TABLE = 0.8, 0.2
# A table is good if this part of its columns is; it should not be used if at most that part is.

_LEAST_TOTAL = 4.0
# Standard errors of the total below which rows in all may be noise.

_FACTORS = (1.5, 2, 3, 5, 10, 20, 50, 100)
_MOST_PAIRS = 200
_SIGMAS = 3.0  # noise, and what the fit takes for noise (docs/decisions/0045)


@dataclass(frozen=True, slots=True)
class Verdict:
    """``why``: the reason and what helps, empty if it is good. A higher ``harm`` (0 to 3) is worse."""

    grade: Grade = "good"
    why: str = ""
    harm: float = 0.0


@dataclass(frozen=True, slots=True)
class Terms:
    """What verdicts depend on beside the answers.

    ``epsilon``: of the release. ``hidden``: rows that noise hides in a cell beyond a learnt range. ``named``:
    columns that matter most. ``units``: what a threshold counts, in words. ``chosen``: the method asks for no
    pairs, as its user chose. ``departures``: of the rows from the answers, the worst first. ``beyond``: of
    columns of one value or none the part of the units that may have another one, where discovery counted
    them. ``seen``: the rows that a dependence must move to be seen, where all pairs were looked at.
    ``clear``: of columns that were seen to go together the rows that this moves. ``texts``: columns of
    text whose owner stated another type; what cannot be read is NULL.
    """

    epsilon: float
    hidden: Mapping[str, float] = field(default_factory=dict)
    named: Collection[str] = ()
    units: str = "rows"
    chosen: bool = False
    departures: Sequence[Departure] = ()
    beyond: Mapping[str, float] = field(default_factory=dict)
    seen: float | None = None
    clear: Mapping[tuple[str, str], float] = field(default_factory=dict)
    texts: Collection[str] = ()

    @property
    def larger(self) -> bool:
        """Whether a larger epsilon can be advised at all."""
        return self.epsilon < MOST_ADVISED

    def looked(self, total: float) -> bool:
        """Whether no pair has a dependence that matters and was not seen, in so many rows (noisy). One that
        was seen can still be lost: ``_given_up``."""
        return self.seen is not None and 0 < self.seen <= OFF * total


@dataclass(frozen=True, slots=True)
class Judged:
    """Verdicts on the table, on the dependences, and on each column by its name. ``seen_from``: the part of
    the rows that a dependence must move to be seen, where all pairs were looked at that closely."""

    table: Verdict
    dependences: Verdict
    columns: Mapping[str, Verdict]
    seen_from: float | None = None


def judged(fitted: FittedRelease, losses: Losses, terms: Terms) -> Judged:
    """All verdicts on a release."""
    lost = losses.total <= _LEAST_TOTAL * total_error(fitted.measurements)
    columns = {
        column.name: _unknown(column) if lost else _of_column(column, losses, terms)
        for column in losses.columns
    }
    dependences = _of_dependences(fitted, losses, terms)
    seen_from = (terms.seen or 0.0) / losses.total if terms.looked(losses.total) else None
    return Judged(_of_table(columns, dependences), dependences, columns, seen_from)


# -- columns --------------------------------------------------------------------------------------------


def _unknown(column: ColumnLosses) -> Verdict:
    return Verdict("do not use", f"Nothing is known of {column.name!r}: the rows in all may be noise.", 2.0)


def _of_column(column: ColumnLosses, losses: Losses, terms: Terms) -> Verdict:
    in_workload, text = column.name in terms.named, column.name in terms.texts
    complaint = unread_text(column) if text else None
    constant = complaint is None and _is_constant(column, terms)
    complaint = complaint or complaint_of(
        column, in_workload=in_workload, units=terms.units, total=losses.total, larger=terms.larger, text=text
    )
    if constant:
        verdict = Verdict()
    elif complaint is not None:
        grade: Grade = "do not use" if complaint.rank <= 1 else "rough"
        verdict = Verdict(grade, complaint.text, (1 if complaint.rank <= 1 else 0) + complaint.share)
    else:
        verdict = _constant(column, losses, terms) or _by_noise(column, losses, terms)
    departed = next((departure for departure in terms.departures if departure.attrs == (column.name,)), None)
    if departed is not None and (verdict.grade != "do not use" or departed.moved > MOVED):
        unfit = departed.moved > MOVED
        verdict = Verdict("do not use" if unfit else "rough", departed.text, 1.0 + unfit + departed.moved)
    return replace(verdict, harm=verdict.harm + in_workload) if verdict.why else verdict


def _is_constant(column: ColumnLosses, terms: Terms) -> bool:
    """Whether hardly any row can have another value than the one that is written, or than NULL if none is."""
    attribute = column.attribute
    if not column.shares or attribute.leaves is not None or column.name in terms.named:
        return False
    values = [code for code, share in enumerate(column.shares[: attribute.regular]) if not _is_faint(share)]
    values = [code for code in values if column.shares[code].label not in column.unwritten]
    numbers = bool(values) and attribute.kind != "categorical"
    if len(values) > 1 or (numbers and (attribute.regular > 1 or not _single(attribute, values[0]))):
        return False
    if values and _takes_others(column, values[0]):
        return False
    beyond = terms.beyond.get(column.name)
    if beyond is None:
        codes = [*values, *([] if attribute.null_code is None else [attribute.null_code])]
        shares = [column.shares[code] for code in codes]
        error = math.hypot(*(share.error for share in shares))
        beyond = 1 - sum(share.share for share in shares) + CLEAR * error
    return beyond <= MISSING


def _takes_others(column: ColumnLosses, code: int) -> bool:
    """Whether rows outside of what the owner stated count as this code: a list or bounds that do not fit."""
    attribute = column.attribute
    if attribute.kind != "categorical":
        return any(column.clips) and bool(attribute.fill) and attribute.fill[code][0] != 0
    return attribute.origin == "declared" and not attribute.other and code == attribute.fallback_code


def _is_faint(share: Share) -> bool:
    return share.share < NOISE * share.error


def _single(attribute: Attribute, code: int) -> bool:
    """Whether rows of a bin are written with one value, which is the only one that it holds."""
    return not several_values(attribute)[code] and (not attribute.fill or len(attribute.fill[code]) == 1)


def _constant(column: ColumnLosses, losses: Losses, terms: Terms) -> Verdict | None:
    """Of a learnt column of numbers or times that is written as one value, or as none."""
    attribute = column.attribute
    if attribute.kind == "categorical" or attribute.origin != "discovered" or not column.shares:
        return None
    written = [code for code, share in enumerate(column.shares) if share.share > 0]
    written = [code for code in written if column.shares[code].label not in column.unwritten]
    values = [code for code in written if code < attribute.regular]
    if not values or (attribute.recoding is not None and 0 in attribute.recoding.codes):
        why = f"Nothing of {column.name!r} stands out from the noise: every row is NULL."
        return Verdict("do not use", f"{why} {_cures(_more(terms, 5), 'declare it')}", 2.0)
    (first, *further), fill = values, attribute.fill[values[0]] if attribute.fill else ()
    if further or len(fill) != 1:
        return None
    rows = terms.hidden.get(column.name, column.shares[first].error * losses.total)
    value = edge_words(fill[0])
    every = "every row" if len(written) == 1 else "every row that has a value"
    why = (
        f"{every.capitalize()} of {column.name!r} is {value}: other values, of fewer than about "
        f"{max(rows, 1):,.0f} rows each, are hidden."
    )
    why += f" {more} if the source has others." if (more := _more(terms, 5)) else ""
    return Verdict("rough" if rows < 0.001 * losses.total else "do not use", why, 1.0)


def _by_noise(column: ColumnLosses, losses: Losses, terms: Terms) -> Verdict:
    """By how often such a column is believed, and by what rows beyond its range would do."""
    attribute = column.attribute
    if not column.shares or attribute.leaves is not None:
        return Verdict()
    counts = np.array([share.share for share in column.shares]) * losses.total
    sigma = max(share.error for share in column.shares) * losses.total
    hidden = 0.0 if _ends_at_bounds(column) else terms.hidden.get(column.name, 0.0)

    def trust(times: float) -> Trust:
        return trust_of(attribute, counts, sigma / times, losses.total, hidden / times)

    as_released = trust(1)
    if as_released.chance >= LEAST_CHANCE and as_released.stretch <= SPREAD:
        return Verdict()
    index = bisect_left(_FACTORS, True, key=lambda factor: _good(trust(factor)))
    helps = _FACTORS[index] if index < len(_FACTORS) else None
    if as_released.chance < LEAST_CHANCE:
        why, harm = _noise_words(column, as_released), 1 - as_released.chance
        hopeless = as_released.chance < NO_CHANCE and as_released.times > FAR
    else:
        why, harm = _stretch_words(column, terms), min(as_released.stretch, 1.0)
        hopeless = as_released.stretch > RUINED
    declared = "declare its bounds" if hidden else ""
    cures = _cures(_more(terms, helps), _fewer(losses, helps), declared)
    return Verdict("do not use" if hopeless else "rough", f"{why}. {cures}".strip(), hopeless + harm)


def _ends_at_bounds(column: ColumnLosses) -> bool:
    """Whether a learnt range of numbers reaches the stated bounds on each side that can have a tail."""
    if column.attribute.kind != "numeric":
        return False
    low, high = column.clips
    return high and (low or column.attribute.edges[0] >= 0)  # type: ignore[operator]


def _good(trust: Trust) -> bool:
    return trust.chance >= LEAST_CHANCE and trust.stretch <= SPREAD


def _noise_words(column: ColumnLosses, trust: Trust) -> str:
    name, nearly = repr(column.name), "nearly all noise" if trust.off >= ALL_NOISE else "rough"
    if trust.worst == "share of NULL":
        return f"{name} is {nearly}: its share of NULL may be off by {trust.off:.2f}"
    if trust.shape == "values":
        return f"{name} is {nearly}: up to {min(trust.off, 1):.0%} of its rows may have another value"
    if trust.shape == "indicator":
        bins = zip(column.attribute.fill, column.shares, strict=False)
        values = "/".join(edge_words(cuts[0]) for cuts, share in bins if share.share > 0)
        return f"{name} is {nearly}: {values} shares may be off by {trust.shares:.2g}"
    return f"{name} is {nearly}: its {trust.worst} may be off by {min(trust.off, 10):.0%}"


def _stretch_words(column: ColumnLosses, terms: Terms) -> str:
    if any(column.attribute.beyond):
        return (
            f"The tail of {column.name!r} is an estimate: noise hides how many of its outermost values there "
            "are, and sums and deviations may be off"
        )
    low, high = outer_values(column.attribute)
    beyond = f"above {high}" if column.attribute.edges[0] >= 0 else f"below {low} or above {high}"  # type: ignore[operator]
    return (
        f"Values of {column.name!r} {beyond} may be missing: noise hides up to "
        f"{terms.hidden[column.name]:,.0f} rows there, and sums and deviations may be too low"
    )


def _more(terms: Terms, factor: float | None) -> str:
    """A cure by a larger epsilon; none above ``MOST_ADVISED``."""
    epsilon = terms.epsilon * (factor or 1)
    if not terms.larger or epsilon > MOST_ADVISED:
        return ""
    return f"Spend epsilon {epsilon:.3g}" if factor else "Spend a larger epsilon"


def _fewer(losses: Losses, factor: float | None) -> str:
    """The same noise as with so much more, by naming fewer columns: it grows as their root."""
    columns = len(losses.columns)
    few = 0 if factor is None else int(columns / factor**2)
    return f"name at most {counted(few, 'column')}" if 0 < few < columns else ""


def _cures(*cures: str) -> str:
    """What helps, as a sentence; the domain does not, and epsilon is large: then nothing is said."""
    text = " or ".join(cure for cure in cures if cure)
    return f"{text[0].upper()}{text[1:]}." if text else ""


# -- dependences and the table ----------------------------------------------------------------------------


def _of_dependences(fitted: FittedRelease, losses: Losses, terms: Terms) -> Verdict:
    by_noise = _by_noise_of_pairs(fitted, losses, terms)
    written = {column.name for column in losses.columns}
    departed = [
        departure
        for departure in terms.departures
        if len(departure.attrs) > 1 or departure.attrs[0] not in written
    ]
    if not departed:
        return by_noise
    worst = departed[0]
    unfit = by_noise.grade == "do not use" or worst.moved > FAR_OFF
    more = f" So it is with {counted(len(departed) - 1, 'more table')}." if len(departed) > 1 else ""
    why = f"{worst.text}{more} {by_noise.why}".strip()
    return Verdict("do not use" if unfit else "rough", why, max(by_noise.harm, worst.moved))


def _by_noise_of_pairs(fitted: FittedRelease, losses: Losses, terms: Terms) -> Verdict:
    pairs = losses.pairs
    possible = pairs.measured + pairs.modelled + pairs.independent
    if not possible:
        return Verdict()
    more = "Spend a larger epsilon, or name fewer columns." if terms.larger else "Name fewer columns."
    all_seen = terms.looked(losses.total)
    below = fitted.families is not None and bool(
        fitted.families.table
    )  # columns go together through rows above
    tied = below and any(len(table.attrs) > 1 for table in fitted.measurements)
    given_up = "" if tied else _given_up(fitted, losses, terms)
    if not pairs.measured and not pairs.modelled and not tied:
        if given_up:
            return Verdict("do not use", f"No pair of columns is measured. {given_up}", 1.0)
        if all_seen:
            return Verdict()
        if terms.chosen:
            return Verdict("do not use", "No pair of columns is measured.", 1.0)
        return Verdict(
            "do not use",
            "The noise is too large to tell which columns go together: those of the output are independent. "
            f"{more}",
            1.0,
        )
    off = _SIGMAS * correlation_error(fitted.measurements, losses.total)
    alone = "" if all_seen else independent(losses, terms.named, larger=terms.larger)
    lost = 0.0 if below or all_seen else pairs.independent / possible
    if off <= OFF and lost <= 0.5 and not alone and not given_up:
        return Verdict()
    reasons = [given_up] if given_up else []
    if off > OFF:
        more_off = "; other pairs may be much weaker than in the source" if pairs.modelled else ""
        reasons.append(
            f"Correlations may be off by {min(off, 1.0):.2f} in pairs that were measured{more_off}."
        )
    if lost > 0.5:
        reasons.append(f"{pairs.independent:,} of {possible:,} pairs are independent in the output.")
    if alone:
        reasons.append(alone)
    elif off > OFF or lost > 0.5:
        reasons.append(more)
    return Verdict("do not use" if off > FAR_OFF else "rough", " ".join(reasons), min(1.0, max(off, lost)))


def _given_up(fitted: FittedRelease, losses: Losses, terms: Terms) -> str:
    """The strongest pair that was seen to go together, and that no measured table joins; what helps."""
    written = {column.name for column in losses.columns}
    names = written.union(*(table.attrs for table in fitted.measurements))
    group = joined_columns(sorted(names), fitted.measurements)
    apart = {
        pair: rows / losses.total
        for pair, rows in terms.clear.items()
        if rows > OFF * losses.total > 0 and written.issuperset(pair) and group[pair[0]] != group[pair[1]]
    }
    if not apart:
        return ""
    (first, second), further = max(apart, key=lambda pair: (apart[pair], pair)), len(apart) - 1
    more = f" So it is with {counted(further, 'more pair')}." if further else ""
    helps = "Spend a larger epsilon, or give" if terms.larger else "Give"
    return (
        f"{first!r} and {second!r} go together, which moves about {min(apart[first, second], 1):.0%} of the "
        f"{terms.units}, but are independent in the output: the release saw it, and it was not worth its "
        f"noise at this epsilon.{more} {helps} weight to what matters: workload={{{(first, second)!r}: 10}}."
    )


def correlation_error(tables: Collection[NoisyMarginal], total: float) -> float:
    """The median standard error of rank correlations in measured tables of pairs, by their noise alone.

    A rank correlation is the sum of x_i y_j n_ij / n, with scores x and y of the codes whose mean is 0 and
    whose variance is 1. Noise of deviation s in each cell makes s |x| |y| / n of it.
    """
    errors = [error for table in tables for error in _errors(table, max(total, 1.0))]
    return float(np.median(errors[:: 1 + len(errors) // _MOST_PAIRS])) if errors else 0.0


def _errors(table: NoisyMarginal, total: float) -> Iterator[float]:
    several = [axis for axis, size in enumerate(table.values.shape) if size > 1]
    for first, second in combinations(several, 2):
        summed = tuple(axis for axis in range(table.values.ndim) if axis not in (first, second))
        values = table.values.sum(axis=summed).astype(np.float64)
        sigma = table.sigma * np.sqrt(table.values.size / values.size)
        yield float(sigma * _norm(values.sum(axis=1)) * _norm(values.sum(axis=0)) / total)


def _norm(rows: FloatArray) -> float:
    """The length of the scores of the codes, by their ranks."""
    shares = np.maximum(rows, 0.0)
    shares = shares / max(float(shares.sum()), 1e-9)
    scores = np.cumsum(shares) - shares / 2
    scores = scores - shares @ scores
    deviation = float(np.sqrt(shares @ scores**2))
    return float(np.linalg.norm(scores)) / deviation if deviation > 1e-9 else 0.0


def _of_table(columns: Mapping[str, Verdict], dependences: Verdict) -> Verdict:
    """By how many of its columns are good."""
    worst = sorted(columns, key=lambda name: -columns[name].harm)
    of = {grade: [x for x in worst if columns[x].grade == grade] for grade in ("good", "rough", "do not use")}
    good = len(of["good"]) / max(1, len(columns))
    grade: Grade = "good" if good >= _GOOD_TABLE else "do not use" if good <= _POOR_TABLE else "rough"
    if grade == "good" and dependences.grade != "good":
        grade = "rough"
    if len(of["good"]) == len(columns):
        return Verdict(grade)
    phrases = [f"Of {counted(len(columns), 'column')} {len(of['good']):,} {_are(of['good'])} good"]
    phrases += [f"{len(of['rough']):,} rough ({some_of(of['rough'], 3)})"] if of["rough"] else []
    unfit = of["do not use"]
    phrases += [f"{len(unfit):,} not to be used ({some_of(unfit, 3)})"] if unfit else []
    reason = f" {columns[worst[0]].why}"
    hint = " Of the others summary() says the same." if len(columns) - len(of["good"]) > 1 else ""
    return Verdict(grade, f"{', '.join(phrases)}.{reason}{hint}", 1 - good)


def _are(names: Collection[str]) -> str:
    return "is" if len(names) == 1 else "are"
