"""Codes that are nothing but noise are not written; public, from noisy counts.

``__other__`` and NULL have a code wherever a value could need one. Where no row does, the noise of their
counts would still write some: a value that the column does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dpsyn_sql.domain.attributes import Attribute, Recoding
from dpsyn_sql.domain.shape import Shape
from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.variances import OneWayCounts

NOISE = 3.0
"""Standard errors below which a count is noise. A code without rows is written in one release of 740, and a
code that has six standard errors of rows is left out in one of 740."""

MOST_LEFT_OUT = 0.02
"""A code with a larger noisy share of the rows is written, however uncertain the share is."""

_PLACES = 256
"""Entries of a list of codes by their shares; it becomes a constant list of SQL."""


def recoded(shape: Shape, counts: Mapping[str, OneWayCounts], total: float) -> Shape:
    """The shape whose attributes say which codes are not written.

    Args:
        shape: complete.
        counts: of ``one_way_counts``.
        total: noisy number of rows.
    """
    return replace(shape, measured=tuple(_recoded(item, counts, total) for item in shape.domain.attributes))


def _recoded(attribute: Attribute, counts: Mapping[str, OneWayCounts], total: float) -> Attribute:
    known = counts.get(attribute.name)
    if known is None:
        return attribute
    codes = set() if attribute.recoding is None else set(attribute.recoding.codes)
    codes |= {code for code in _extra(attribute) if _is_noise(known, code, total)}
    if not _writes_other(attribute, codes):
        codes |= {code for code in (attribute.other_code,) if code is not None}
    if not codes or len(codes) == attribute.size:
        return attribute
    return replace(attribute, recoding=Recoding(tuple(sorted(codes)), _by_share(known.counts, codes)))


def _extra(attribute: Attribute) -> list[int]:
    """The codes of ``__other__`` and NULL."""
    return [code for code in (attribute.other_code, attribute.null_code) if code is not None]


def _is_noise(known: OneWayCounts, code: int, total: float) -> bool:
    return bool(known.counts[code] < min(NOISE * known.sigma[code], MOST_LEFT_OUT * total))


def _writes_other(attribute: Attribute, codes: set[int]) -> bool:
    """Whether a row of ``__other__`` can be written: as text, or as NULL where the column has NULL."""
    if attribute.leaves is not None:
        texts = all(hierarchy.text for hierarchy in attribute.leaves.hierarchies)
    else:
        texts = attribute.type.family == "text"
    if texts:
        return True
    return attribute.null_code is not None and attribute.null_code not in codes


def _by_share(counts: FloatArray, codes: set[int]) -> tuple[int, ...]:
    """The other codes, each as often as its share of their positive counts."""
    weights = np.maximum(counts, 0.0)
    weights[list(codes)] = 0.0
    if not weights.any():
        weights = np.ones_like(counts)
        weights[list(codes)] = 0.0
    ends = np.cumsum(weights)
    if not ends[-1] > 0:
        raise InternalError("no code of an attribute is left to be written")
    places = (np.arange(_PLACES) + 0.5) / _PLACES * ends[-1]
    return tuple(int(code) for code in np.searchsorted(ends, places, side="right"))
