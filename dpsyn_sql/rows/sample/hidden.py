"""Codes of hidden attributes that drawn rows decide, for a comparison with the noisy answers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dpsyn_sql.domain.attributes import edge_ticks
from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray
from dpsyn_sql.planning.families import Families
from dpsyn_sql.rows.sample.families import places


def with_hidden(
    families: Families, columns: Mapping[str, Codes], owners: IntArray
) -> tuple[dict[str, Codes], FloatArray]:
    """The codes (n,) of attributes of rows by their names, also of the number of rows of a family, of the row
    before and of the place; and float64 (n,), one over the rows of each row's family.

    Classes of families and the time since the row before are not among them.

    Args:
        families: of the rows.
        columns: codes (n,) of the attributes that are drawn.
        owners: int64 (n,), the family of each row; rows of one lie together, and all of them are there.
    """
    found = dict(columns)
    first = np.append(True, owners[1:] != owners[:-1])[: owners.size]
    starts = np.flatnonzero(first)
    sizes = np.diff(np.append(starts, owners.size))
    rows = np.repeat(sizes, sizes)
    if families.size and not families.table:
        edges = np.array(edge_ticks(families.domain[families.size]), np.int64)
        found[families.size] = np.searchsorted(edges, rows, side="right") - 1
    for name, attribute in families.previous:
        before = np.roll(columns[attribute].astype(np.int64), 1)
        before[first] = families.domain[name].size - 1
        found[name] = before
    if families.place:
        found[families.place] = places(rows, np.arange(owners.size) - np.repeat(starts, sizes))
    return found, 1 / np.maximum(rows, 1)
