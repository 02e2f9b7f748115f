"""What an attribute above a family explains of its rows: the class of the family stands for the rest alone.

Rows of a family agree because of what stands above them, and because of what nothing shows: a class. If the
classes explained both, a row that follows from its class and from what is above would agree with its
siblings twice. So the explained part is taken off the tables that classes are learnt from, and the class of a
family is drawn given what stands above it. With r_z(x) = P(x | z) / P(x), and a the code above,

    P(x | z, a) = P(x | a) r_z(x) / Z_z(a),    Z_z(a) = sum over x of P(x | a) r_z(x),

each row x of the family says log r_z(x) - log Z_z(a) for class z.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.classes import Classes

_LEAST = 1e-6
# No probability of a bin is smaller.


@dataclass(frozen=True, slots=True, eq=False)
class Reason:
    """What explains most of an attribute: ``name`` is of the attribute above; ``shares`` (codes,) of its
    codes, ``laws`` (codes, bins) of the attribute given each, both with sum 1."""

    name: str
    shares: FloatArray
    laws: FloatArray


def reason_of(name: str, table: FloatArray, sigma: float) -> Reason:
    """From the noisy table (codes, bins) of families, with noise of deviation ``sigma``: codes that the noise
    nearly hides have the law of all."""
    counts = np.maximum(table, 0.0)
    whole = np.maximum(counts.sum(axis=0), _LEAST)
    whole = whole / whole.sum()
    prior = sigma * table.shape[1]
    laws = (counts + prior * whole) / (counts.sum(axis=1, keepdims=True) + prior)
    sums = np.maximum(counts.sum(axis=1), _LEAST)
    return Reason(name, sums / sums.sum(), laws / laws.sum(axis=1, keepdims=True))


def unexplained(table: FloatArray, first: str, second: str, reasons: Mapping[str, Reason]) -> FloatArray:
    """The noisy table of pairs over two attributes without what one attribute above explains of both."""
    one, other = reasons.get(first), reasons.get(second)
    if one is None or other is None or one.name != other.name:
        return table
    rows = one.laws - one.shares @ one.laws
    columns = other.laws - other.shares @ other.laws
    covariance = np.einsum("a,ax,ay->xy", (one.shares + other.shares) / 2, rows, columns)
    return np.asarray(table - max(float(table.sum()), 0.0) * covariance)


def given_reasons(
    classes: Classes, names: Sequence[str], reasons: Mapping[str, Reason]
) -> list[tuple[str, FloatArray]]:
    """For each attribute above that explains some of ``names``: 1 / Z_z(a) as float64[K, codes], above 0 and
    at most 1 (a factor that all classes have in common says nothing)."""
    found = dict[str, FloatArray]()
    for name, law in zip(names, classes.laws, strict=True):
        reason = reasons.get(name)
        if reason is not None:
            ratio = law / np.maximum(classes.shares @ law, _LEAST)
            inverse = 1 / np.maximum(ratio @ reason.laws.T, _LEAST)
            found[reason.name] = found.get(reason.name, 1.0) * inverse
    return [(name, inverse / inverse.max()) for name, inverse in found.items()]
