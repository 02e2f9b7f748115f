"""What was lost, in words and as facts of a certificate: what is large enough, and no noise, and what
happened to the values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dpsyn_sql.report.labels import counted, outer_values
from dpsyn_sql.report.losses import NOISE, ColumnLosses, Losses, Share, several_values
from dpsyn_sql.report.verdict import Judged, Verdict

if TYPE_CHECKING:
    import pandas as pd

_NOTABLE = 0.005
_HEAVY_END = 0.05
_MOST_NAMED = 2
_SAID = {"good": "good", "rough": "rough", "do not use": "not to be used"}


def column_words(column: ColumnLosses) -> Iterator[str]:
    """What is worth telling of the losses of a column."""
    for share, of in ((column.other, "a value that is not named"), (column.null, "no value")):
        if share and _notable(share, _NOTABLE):
            hidden = share.label in column.unwritten
            yield (
                f"{_percent(share)} of the rows have {of}"
                + (", and are written with another" if hidden else f" ({share.label})")
            )
    wide = sorted(column.wide, key=lambda share: -share.share)
    yield from _end_words(column, wide[:_MOST_NAMED])
    for share in wide[:_MOST_NAMED]:
        yield f"{_percent(share)} share the wide range {share.words}: where in it is lost"
    if len(wide) > _MOST_NAMED:
        yield counted(len(wide) - _MOST_NAMED, "more wide range")
    prefixes = column.shortened is not None and _notable(column.shortened, _NOTABLE)
    if column.shortened and prefixes:
        yield f"{_percent(column.shortened)} keep only the beginning of their text"
    if column.labels_found is not None and (
        column.other is None or prefixes or _notable(column.other, _NOTABLE)
    ):
        hidden_below = "" if column.hidden is None else f", those below {column.hidden:,.0f} hidden"
        yield f"{_found(column, column.labels_found)} found{hidden_below}"
    if column.faint:
        many = counted(len(column.faint), "category", "categories")
        yield f"{many} cannot be told from the noise"


def _end_words(column: ColumnLosses, wide: Sequence[Share]) -> Iterator[str]:
    """Of end bins that hold much and are not named as wide; one value is written as it is."""
    if not column.ends:
        return
    several, values = several_values(column.attribute), outer_values(column.attribute)
    infinite = ", also infinite ones" if column.attribute.type.family == "float" else ""
    for end, side, beyond, limit in ((0, "lowest", "below", "least"), (-1, "highest", "above", "most")):
        share = column.ends[end]
        if several[end] and share not in wide and _notable(share, _HEAVY_END):
            null = ", and rows without a value" if end == 0 and column.attribute.fallback_code == 0 else ""
            more, hint = infinite + null, " (if there are any, declare nullable: true)" if null else ""
            yield (
                f"{_percent(share)} are in the {side} range, {share.words}: values "
                f"{beyond} {values[end]}{more}{',' * bool(more)} are written as at {limit} that{hint}"
            )


def _notable(share: Share, least: float) -> bool:
    return share.share > max(least, NOISE * share.error)


def _found(column: ColumnLosses, labels_found: int) -> str:
    """``labels_found`` has prefixes too, which are named where rows have them."""
    prefixes = len(column.stems) if column.shortened else 0
    values = counted(labels_found - prefixes, "value")
    return f"{values} and {counted(prefixes, 'prefix', 'prefixes')}" if prefixes else values


def _percent(share: Share) -> str:
    """``12.3 % ± 0.4``; a noisy share above the whole is the whole."""
    return f"{min(100.0, 100 * share.share):.1f} % ± {100 * share.error:.1f}"


# -- of a certificate ---------------------------------------------------------------------------


def facts_of_losses(losses: Losses, verdicts: Judged, warnings: Sequence[str]) -> dict[str, Any]:
    """For a certificate, JSON-ready. ``verdict`` of a column, of the dependences and of the table: the grade;
    ``why``: the reason and what helps, missing where it is good; ``harm``: a larger one is worse. Of pairs
    ``seen_from``: the part of the rows that dependence must move to be seen, where all were looked at."""
    return {
        "table": _verdict_facts(verdicts.table),
        "dependences": _verdict_facts(verdicts.dependences),
        "columns": [
            {**column_facts(column), **_verdict_facts(verdicts.columns[column.name])}
            for column in losses.columns
        ],
        "pairs": asdict(losses.pairs)
        | ({} if verdicts.seen_from is None else {"seen_from": round(verdicts.seen_from, 4)}),
        "warnings": list(warnings),
    }


def _verdict_facts(verdict: Verdict) -> dict[str, Any]:
    if not verdict.why:
        return {"verdict": verdict.grade}
    return {"verdict": verdict.grade, "why": verdict.why, "harm": round(verdict.harm, 3)}


def column_facts(column: ColumnLosses) -> dict[str, Any]:
    """JSON-ready; a key is missing where there is nothing to tell. ``lost``: the same in words, of what is
    worth telling."""
    first, last = column.ends or (None, None)
    prefixes = _share_facts(column.shortened)
    facts = {
        "name": column.name,
        "tables": column.tables,
        "other": _share_facts(column.other),
        "null": _share_facts(column.null),
        "prefixes": prefixes and {**prefixes, "found": len(column.stems)},
        "first_bin": _share_facts(first),
        "last_bin": _share_facts(last),
        "wide_bins": [_share_facts(share) for share in column.wide],
        "found": column.labels_found,
        "hidden_below": column.hidden,
        "not_written": list(column.unwritten),
        "in_noise": list(column.faint),
        "lost": "; ".join(column_words(column)) or None,
    }
    return {key: part for key, part in facts.items() if part not in (None, [])}


def _share_facts(share: Share | None) -> dict[str, Any] | None:
    """Six decimal places: more are noise."""
    if share is None:
        return None
    return {"code": share.label, "share": round(share.share, 6), "standard_error": round(share.error, 6)}


def lines_of_verdicts(facts: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Of each column that is not good its name, the verdict and why, the worst first; then the name, "good"
    and the losses of each column that lost something. From ``facts_of_losses``."""
    not_good = [column for column in facts["columns"] if "why" in column]
    not_good = sorted(not_good, key=lambda column: -float(column["harm"]))
    lossy = [column for column in facts["columns"] if "why" not in column and "lost" in column]
    return [
        *((str(column["name"]), str(column["verdict"]), str(column["why"])) for column in not_good),
        *((str(column["name"]), str(column["verdict"]), str(column["lost"])) for column in lossy),
    ]


def verdict_table(facts: Mapping[str, Any]) -> pd.DataFrame:
    """All verdicts of ``facts_of_losses``, those on columns the worst first."""
    import pandas as pd

    columns = sorted(facts["columns"], key=lambda column: -float(column.get("harm", 0.0)))
    rows = [
        *((about, None, facts[about]) for about in ("table", "dependences")),
        *(("column", column["name"], column) for column in columns),
    ]
    return pd.DataFrame(
        [(about, name, entry["verdict"], entry.get("why", "")) for about, name, entry in rows],
        columns=["about", "column", "verdict", "why"],
    )


def pairs_in_words(facts: Mapping[str, Any]) -> str:
    """One line about pairs, from ``facts_of_losses``."""
    pairs = facts["pairs"]
    seen_words = ""
    if "seen_from" in pairs:
        seen_words = f" (of all pairs, dependence that moves {pairs['seen_from']:.1%} of the rows shows)"
    return (
        f"Pairs of columns: {pairs['measured']:,} measured, {pairs['modelled']:,} modelled through others, "
        f"{pairs['independent']:,} independent{seen_words}"
    )


def summary_of_losses(facts: Mapping[str, Any]) -> Sequence[str]:
    """All of ``facts_of_losses`` in lines."""
    lines = lines_of_verdicts(facts)
    width = max((len(name) for name, *_ in lines), default=0)
    columns = [f"  {name.ljust(width)}  {grade.ljust(10)}  {words}" for name, grade, words in lines]
    grades = [f"Verdict: the table is {_SAID[facts['table']['verdict']]}, dependences are "
              f"{_SAID[facts['dependences']['verdict']]}."]  # fmt: skip
    warnings = [f"Warning: {text}" for text in facts["warnings"]]
    return [*grades, *columns, f"{pairs_in_words(facts)}.", *warnings]
