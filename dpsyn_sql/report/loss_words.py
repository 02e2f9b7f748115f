"""What a column lost, in words: what is large enough, and no noise, and what happened to the values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dpsyn_sql.domain.attributes import Attribute
from dpsyn_sql.report.labels import code_labels, code_words, counted, outer_values

NOISE = 2.0
"""A share below so many standard errors may be noise."""

_NOTABLE = 0.005
_HEAVY_END = 0.05
_MOST_NAMED = 2


def column_words(column: Mapping[str, Any], attribute: Attribute, single: Collection[str]) -> Iterator[str]:
    """What is worth telling of the losses of a column.

    Args:
        column: facts of a certificate, as ``ColumnLosses.facts``.
        attribute: the column.
        single: labels of end bins that hold one value, which is written as it is.
    """
    unwritten = column.get("not_written", [])
    words = dict(zip(map(_text, code_labels(attribute)), code_words(attribute), strict=True))
    for key, of in (("other", "a value that is not named"), ("null", "no value")):
        if _notable(column, key, _NOTABLE):
            code = column[key]["code"]
            written = ", and are written with another" if code in unwritten else f" ({code})"
            yield f"{_percent(column[key])} of the rows have {of}{written}"
    wide = sorted(column.get("wide_bins", []), key=lambda share: -float(share["share"]))
    named = {*single, *(share["code"] for share in wide[:_MOST_NAMED])}
    for key, place, beyond in (("first_bin", "lowest", "below"), ("last_bin", "highest", "above")):
        if _notable(column, key, _HEAVY_END) and column[key]["code"] not in named:
            end, limit = outer_values(attribute)[key == "last_bin"], "most" if beyond == "above" else "least"
            yield (
                f"{_percent(column[key])} are in the {place} range, {words[column[key]['code']]}: values "
                f"{beyond} {end} are written as at {limit} that"
            )
    for share in wide[:_MOST_NAMED]:
        yield f"{_percent(share)} share the wide range {words[share['code']]}: where in it is lost"
    if len(wide) > _MOST_NAMED:
        yield counted(len(wide) - _MOST_NAMED, "more wide range")
    prefixes = _notable(column, "prefixes", _NOTABLE)
    if prefixes:
        yield f"{_percent(column['prefixes'])} keep only the beginning of their text"
    if "found" in column and ("other" not in column or prefixes or _notable(column, "other", _NOTABLE)):
        yield f"{_found(column)} found{_hidden(column)}"
    if "in_noise" in column:
        many = counted(len(column["in_noise"]), "category", "categories")
        yield f"{many} cannot be told from the noise"


def _notable(column: Mapping[str, Any], key: str, least: float) -> bool:
    share = column.get(key)
    return share is not None and share["share"] > max(least, NOISE * share["standard_error"])


def _found(column: Mapping[str, Any]) -> str:
    """``found`` has prefixes too."""
    prefixes = column["prefixes"]["found"] if "prefixes" in column else 0
    values = counted(column["found"] - prefixes, "value")
    return f"{values} and {counted(prefixes, 'prefix', 'prefixes')}" if prefixes else values


def _hidden(column: Mapping[str, Any]) -> str:
    return f", those below {column['hidden_below']:,.0f} hidden" if "hidden_below" in column else ""


def _text(label: object) -> str:
    return "NULL" if label is None else str(label)


def _percent(share: Mapping[str, Any]) -> str:
    """``12.3 % ± 0.4``; a noisy share above the whole is the whole."""
    return f"{min(100.0, 100 * share['share']):.1f} % ± {100 * share['standard_error']:.1f}"


# -- of a certificate ---------------------------------------------------------------------------


def lines_of_losses(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and words for each column that lost something, from ``facts_of_losses``."""
    return [(str(column["name"]), str(column["lost"])) for column in facts["columns"] if "lost" in column]


def pairs_in_words(facts: Mapping[str, Any]) -> str:
    """One line about pairs, from ``facts_of_losses``."""
    pairs = facts["pairs"]
    return (
        f"Pairs of columns: {pairs['measured']:,} measured, {pairs['modelled']:,} modelled through others, "
        f"{pairs['independent']:,} independent"
    )


def summary_of_losses(facts: Mapping[str, Any]) -> Sequence[str]:
    """All of ``facts_of_losses`` in lines."""
    lines = lines_of_losses(facts)
    width = max((len(name) for name, _ in lines), default=0)
    columns = [f"  {name.ljust(width)}  {words}" for name, words in lines]
    lost = ["What was lost (noisy share of the rows):", *columns] if lines else []
    warnings = [f"Warning: {text}" for text in facts["warnings"]]
    return [*lost, f"{pairs_in_words(facts)}.", *warnings]
