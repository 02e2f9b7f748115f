"""Which losses of a column are worth telling: large enough, and no noise."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

NOISE = 2.0
"""A share below so many standard errors may be noise."""

_NOTABLE = 0.005
_HEAVY_END = 0.05
_MOST_NAMED = 2

Kind = Literal[
    "other", "null", "first bin", "last bin", "wide bin", "wide bins", "prefixes", "found", "in noise"
]


@dataclass(frozen=True, slots=True)
class Told:
    """One loss. ``share``: its facts (``code``, ``share``, ``standard_error``), or none. ``number``: of
    codes. ``written``: whether rows of the code are written as it."""

    kind: Kind
    share: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
    written: bool = True


def worth_telling(column: Mapping[str, Any], single: Collection[str]) -> Iterator[Told]:
    """The losses of a column.

    Args:
        column: facts of a certificate, as ``ColumnLosses.facts``.
        single: labels of end bins that hold one value, which is written as it is.
    """
    unwritten = column.get("not_written", [])
    if _notable(column, "other", _NOTABLE):
        yield Told("other", column["other"], written=column["other"]["code"] not in unwritten)
    if _notable(column, "null", _NOTABLE):
        yield Told("null", column["null"], written=column["null"]["code"] not in unwritten)
    wide = sorted(column.get("wide_bins", []), key=lambda share: -float(share["share"]))
    named = {*single, *(share["code"] for share in wide[:_MOST_NAMED])}
    if _notable(column, "first_bin", _HEAVY_END) and column["first_bin"]["code"] not in named:
        yield Told("first bin", column["first_bin"])
    if _notable(column, "last_bin", _HEAVY_END) and column["last_bin"]["code"] not in named:
        yield Told("last bin", column["last_bin"])
    for share in wide[:_MOST_NAMED]:
        yield Told("wide bin", share)
    if len(wide) > _MOST_NAMED:
        yield Told("wide bins", number=len(wide) - _MOST_NAMED)
    prefixes = _notable(column, "prefixes", _NOTABLE)
    if prefixes:
        yield Told("prefixes", column["prefixes"])
    if "found" in column and ("other" not in column or prefixes or _notable(column, "other", _NOTABLE)):
        yield Told("found", number=column["found"])
    if "in_noise" in column:
        yield Told("in noise", number=len(column["in_noise"]))


def _notable(column: Mapping[str, Any], key: str, least: float) -> bool:
    share = column.get(key)
    return share is not None and share["share"] > max(least, NOISE * share["standard_error"])
