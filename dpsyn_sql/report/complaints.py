"""What a column badly lost, and what helps: one sentence or two for each cause, by the figures of ``losses``.

A figure says so only if it stands out from its own noise, so that an accurate release says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from dpsyn_sql.attributes.attribute import Attribute
from dpsyn_sql.report.labels import counted, edge_words, some_of
from dpsyn_sql.report.losses import ColumnLosses, Losses, Share, bin_widths, several_values
from dpsyn_sql.report.trust import MOVED

MOST_OF_ALL = 0.5
"""A share of the rows above this one is most of a column."""

NEARLY_ALL = 0.95
"""A column of more NULL than this share has hardly a value."""

CLEAR = 3.0
"""Standard errors by which a share must exceed what it is compared with."""

_END, _TIMES = 0.05, 4.0
# An end bin of more than this share, and of so many times the density of those near it, holds clipped values.

_NEAR = 2
# Bins that an end bin is compared with, at least; a quarter of all, since a column may have gaps.

_CROWDED = 0.8
# A bin of several values that holds more of the rows hides them, however narrow it is.

_FEW = 3
# A column of at most so many categories is an indicator: each of them matters.

_LONGEST_CODE = 12
# Characters of text that can be a code of a list.

_CODES = 12
# Up to so many bins of one value each are codes, of which any may be the most frequent.


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong with a column. A lower ``rank`` is worse, and up to 1 the column should not be used;
    ``share`` says how much is affected."""

    rank: int
    share: float
    text: str


def complaint_of(
    column: ColumnLosses,
    *,
    in_workload: bool,
    units: str,
    total: float,
    larger: bool = True,
    text: bool = False,
) -> Complaint | None:
    """The worst of a column: what else there is has the same cause.

    Args:
        column: of the release.
        in_workload: whether the workload names it.
        units: what a threshold counts, in words: ``"rows"``, or the values of the privacy unit's column.
        total: noisy number of rows.
        larger: whether a larger epsilon can be advised.
        text: whether it is text of a file that is read as the type that its owner stated.
    """
    complaints = [
        _nothing_found(column, units),
        _outside(column, units, larger),
        _one_category(column, total, larger),
        *_clipped(column, text=text),
        _cut_short(column, larger),
        _crowded(column, larger, text=text),
        _faint(column, in_workload, total, larger),
    ]
    return next((complaint for complaint in complaints if complaint), None)


def _nothing_found(column: ColumnLosses, units: str) -> Complaint | None:
    """A column of text without a single found value."""
    if column.labels_found != 0:
        return None
    name, needs = column.name, "" if column.hidden is None else f" (one needs {column.hidden:,.0f} {units})"
    if column.null is not None and column.null.share > MOST_OF_ALL:
        return Complaint(0, 1.0, f"Hardly any row has a value of {name!r}: the column is NULL.")
    return Complaint(
        0,
        1.0,
        f"No value of {name!r} is frequent enough to be found{needs}: every row of it is '__other__'. If the "
        f"values tell rows apart, as ids and names do, write {name}: {{type: key}} in the domain; otherwise "
        "declare the categories, convert numbers or dates that are written as text (1,234 or 31.12.2024) in "
        "a query, or leave the column out.",
    )


def _outside(column: ColumnLosses, units: str, larger: bool) -> Complaint | None:
    """Most rows have values that no label stands for, or many if the labels were learnt."""
    unlisted, name = column.other, column.name
    most = MOST_OF_ALL if column.labels_found is None else MOVED
    if unlisted is None or not _exceeds(unlisted, most):
        return None
    written = " (written as found ones)" if unlisted.label in column.unwritten else ""
    if column.labels_found is not None:
        below = (
            "" if column.hidden is None else f"; those of fewer than {column.hidden:,.0f} {units} are hidden"
        )
        labels = counted(column.labels_found, "label" if column.stems else "value")
        labels += " is" if column.labels_found == 1 else " are"
        text = (
            f"{_share(unlisted)} of the rows have a value of {name!r} that is not found{written}: "
            f"{labels} found{below}. Declare its categories, {'spend a larger epsilon, ' if larger else ''}"
            f"{_keep_beginnings(column)}or write {name}: {{type: key}} if its values tell rows "
            "apart."
        )
    elif column.attribute.leaves is not None:
        text = (
            f"{_share(unlisted)} of the rows are outside of the hierarchy {name!r}{written}: its box, "
            "alphabet or ids do not fit. Correct them, or convert the values in a query."
        )
    else:
        text = (
            f"{_share(unlisted)} of the rows have a value of {name!r} that is not among its categories: the "
            "list does not fit. Correct it (spelling, letter case, blanks), or write {type: discover}."
        )
    return Complaint(1 if _exceeds(unlisted, MOST_OF_ALL) else 3, unlisted.share, text)


def _keep_beginnings(column: ColumnLosses) -> str:
    """A cure for text: for codes, as the public labels show them (short, mostly with a digit), their
    beginnings of given lengths."""
    attribute = column.attribute
    if attribute.type.family != "text" or attribute.prefixes or attribute.leaves is not None:
        return ""
    spelled = "keep how its values begin with {type: string, alphabet: ..., longest: ...}, "
    labels = [label for label in attribute.labels if isinstance(label, str)]
    if len(labels) < _FEW:
        return spelled
    codes = [x for x in labels if len(x) <= _LONGEST_CODE and any(map(str.isdigit, x)) and " " not in x]
    lengths = [length for length in (3, 1) if length < max(map(len, labels))]
    if len(codes) < MOST_OF_ALL * len(labels) or not lengths:
        return spelled
    return f"keep the beginnings of its codes with {{type: discover, prefixes: {lengths}}}, "


def _cut_short(column: ColumnLosses, larger: bool) -> Complaint | None:
    """Many rows have a text of which the beginning alone is written: the rest of it is lost."""
    short, leaves = column.shortened, column.attribute.leaves
    if short is None or not _exceeds(short, MOVED):
        return None
    texts = (
        [column.name]
        if leaves is None
        else [hierarchy.name for hierarchy in leaves.hierarchies if hierarchy.text]
    )
    example = "car*" if leaves is not None else column.attribute.labels[column.stems[0]]
    return Complaint(
        2,
        short.share,
        f"{_share(short)} of the rows keep only the beginning of {some_of(texts)}, written as {example!r}: "
        f"whole values have too few rows. {'Spend a larger epsilon, or write' if larger else 'Write'} "
        f"{texts[0]}: {{type: key}} if its values tell rows apart.",
    )


def _one_category(column: ColumnLosses, total: float, larger: bool = True) -> Complaint | None:
    """Of the declared categories only the one stands out that values outside the list count as, or none."""
    attribute, name = column.attribute, column.name
    labels = column.shares[: attribute.regular]
    if (
        attribute.kind != "categorical"
        or column.labels_found is not None
        or attribute.other
        or len(labels) < 2
    ):
        return None
    loud = [share for share in labels if share.share > CLEAR * share.error]
    fallback = column.shares[attribute.fallback_code]
    if any(share is not fallback for share in loud) or not _exceeds(fallback, MOST_OF_ALL):
        return None
    rows = CLEAR * max(share.error for share in labels) * total
    return Complaint(
        1,
        fallback.share,
        f"{fallback.label!r} is the only value of {name!r} that stands out from the noise. Values outside "
        "its categories count as this one (other: false): check the list. If the list is right, the "
        f"others have fewer than about {rows:,.0f} rows each{', and a larger epsilon shows them' * larger}.",
    )


def _clipped(column: ColumnLosses, *, text: bool) -> Iterator[Complaint]:
    """End bins that hold far more than those near them: values beyond the bounds are in them.

    Zero is a bound of its own accord, where many rows can lie.
    """
    attribute = column.attribute
    if attribute.regular == 1 and attribute.fill:
        yield from _all_at_a_bound(column, text=text)
        return
    several = several_values(attribute) if column.ends else []
    if len(several) < _FEW:
        return
    codes = not any(several) and len(several) <= _CODES  # perhaps of a list: one of them may hold much
    last = len(several) - 1
    near = max(_NEAR, len(several) // 4)
    for end, neighbours in ((0, range(1, near + 1)), (last, range(last - near, last))):
        share, alone = column.shares[end], _alone(column, end)
        natural = end == 0 and attribute.edges[0] == 0
        if (
            not column.clips[end != 0]
            or natural
            or not _exceeds(share, _END)
            or not (alone or (not codes and _towers(column, end, neighbours)))
        ):
            continue
        side, beyond = ("lowest", "below") if end == 0 else ("highest", "above")
        atom = attribute.fill[end] if attribute.fill else ()
        value = edge_words(atom[0]) if len(atom) == 1 else share.words
        null = ", or NULL," if end == 0 and attribute.fallback_code == 0 else ""
        wider = "wider bounds" + (" (or nullable: true)" if null else "")
        yield Complaint(
            1,
            share.share,
            f"{_share(share)} of the rows are in the {side} range of {column.name!r}, {share.words}, where "
            f"every value {beyond} the bounds{null} is counted. "
            + (
                f"The bounds do not fit: declare {wider}."
                if several[end]
                else f"If so many are not {value} in the source, declare {wider}."
            )
            + (unread(attribute) if null and text else ""),
        )


def _all_at_a_bound(column: ColumnLosses, *, text: bool) -> Iterator[Complaint]:
    """The one value that was learnt is a stated bound: rows beyond it count there."""
    cuts, attribute = column.attribute.fill[0], column.attribute
    if column.null is not None and _exceeds(column.null, NEARLY_ALL):
        return  # there is no value that could be at a bound
    if len(cuts) == 1 and any(column.clips) and cuts[0] != 0:
        side, beyond = ("lower", "below") if column.clips[0] else ("upper", "above")
        yield Complaint(
            1,
            1.0,
            f"Every row of {column.name!r} is at its {side} bound {edge_words(cuts[0])}, where every value "
            f"{beyond} it is counted. If that is not so in the source, the bounds do not fit: declare wider "
            f"bounds.{unread(attribute) if text and attribute.fallback_code == 0 else ''}",
        )


def unread_text(column: ColumnLosses) -> Complaint | None:
    """Of a text file whose owner says that this column holds numbers or times: hardly one can be read."""
    null = column.null
    if column.attribute.kind == "categorical" or null is None or null.share <= NEARLY_ALL:
        return None
    text = f"Hardly any row of {column.name!r} has a value.{unread(column.attribute)}"
    return Complaint(2, null.share, text)


def unread(attribute: Attribute) -> str:
    """Why a column of a text file may have no values at all."""
    kind = attribute.type
    example, cure = "1,234", "TRY_CAST(replace(x, ',', '') AS DOUBLE)"
    if kind.temporal:
        example, cure = "31/12/2020", "try_strptime(x, '%d/%m/%Y')"
    return (
        f" Of a CSV file, text that is no {kind.text} as DuckDB reads it, such as {example}, counts as NULL: "
        f"convert it in a query, {cure}."
    )


def _towers(column: ColumnLosses, end: int, neighbours: Collection[int]) -> bool:
    """Whether an end bin holds several times the rows of each of ``neighbours``, and is as much denser."""
    widths = bin_widths(column.attribute)
    for code in neighbours:
        neighbour = column.shares[code]
        rows = max(neighbour.share + CLEAR * neighbour.error, 0.0)
        ratio = widths[end] / widths[code] if widths[code] > 0 else 1.0
        if column.shares[end].share <= _TIMES * rows * max(ratio, 1.0):
            return False
    return True


def _alone(column: ColumnLosses, code: int) -> bool:
    """Whether no other bin stands out from the noise."""
    shares = column.shares[: column.attribute.regular]
    elsewhere = (share for index, share in enumerate(shares) if index != code)
    return all(share.share <= CLEAR * share.error for share in elsewhere)


def _crowded(column: ColumnLosses, larger: bool, *, text: bool) -> Complaint | None:
    """One bin of several values that holds most rows, unless an end bin of clipped values is told."""
    attribute = column.attribute
    if attribute.kind == "categorical" or not column.shares:
        return None
    wide = {share.label for share in column.wide}
    for code, several in enumerate(several_values(attribute)):
        share = column.shares[code]
        if several and _exceeds(share, MOST_OF_ALL if share.label in wide else _CROWDED):
            cures = [_cure_of_crowds(column, larger)]
            if text and code == 0 == attribute.fallback_code and share.share > NEARLY_ALL:
                # Noise does not hide the other ranges.
                shown = attribute.regular > 1 and column.clips[0]
                cures = [*cures[shown:], f"NULL is counted there, too.{unread(attribute)}"]
            return Complaint(
                2,
                share.share,
                f"{_share(share)} of the rows are in the one range {share.words} of "
                f"{column.name!r}: where in it they lie is lost. {' '.join(cures)}",
            )
    return None


def _cure_of_crowds(column: ColumnLosses, larger: bool) -> str:
    if column.attribute.origin == "declared":
        return "Declare edges inside it."
    if all(column.clips):
        more = "spend a larger epsilon, " if larger else ""
        return f"Noise hides it: {more}name fewer columns, or declare edges inside it."
    return f"Declare its bounds or edges{', or spend a larger epsilon' * larger}."


def _faint(column: ColumnLosses, in_workload: bool, total: float, larger: bool) -> Complaint | None:
    """Categories that are lost in the noise, where each of them matters."""
    labels = column.attribute.regular
    if not column.faint or not (in_workload or 2 <= labels <= _FEW) or _one_category(column, total):
        return None
    error = max(share.error for share in column.shares[:labels]) * total
    return Complaint(
        3,
        len(column.faint) / labels,
        f"{some_of(column.faint)} of {column.name!r} cannot be told from the noise ({error:,.0f} rows): "
        "there are few such rows or none. "
        f"{'Spend a larger epsilon, or give' if larger else 'Give'} the column weight: "
        f"workload={{{column.name!r}: 10}}.",
    )


def independent(losses: Losses, in_workload: Collection[str], *, larger: bool = True) -> str:
    """Columns that no measured table joins to another: those that matter, or if they are most."""
    alone = losses.alone
    several = sum(column.attribute.size > 1 for column in losses.columns)
    isolated = alone if len(alone) > several / 2 else tuple(name for name in alone if name in in_workload)
    if not isolated:
        return ""
    single = len(isolated) == 1
    return (
        f"{some_of(isolated)} {'is' if single else 'are'} independent of all other columns in the output: no "
        f"pair with {'it' if single else 'one of them'} was worth its noise. "
        f"{'Spend a larger epsilon, or give' if larger else 'Give'} weight to what matters: "
        f"workload={{{isolated[0]!r}: 10}}."
    )


def _exceeds(share: Share, bound: float) -> bool:
    return share.share - CLEAR * share.error > bound


def _share(share: Share) -> str:
    return f"{100 * min(share.share, 1.0):.0f} %"
