"""Where the values of the codes of a column lie, as rows are written; public."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dpsyn_sql.domain.attributes import Attribute, edge_ticks, fill_ticks


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
