"""Components of the errors of pairs for models that follow their noisy tables (``fit/variances.py``).

Post-processing of noisy answers only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.variances import Components
from dpsyn_sql.planning.queries import Map, NoisyMarginal

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Table:
    """Noisy counts (rows) of a pair over the bins of ``maps``, with the variance of a cell."""

    values: FloatArray
    variance: float
    maps: tuple[Map | None, ...]


def followed_pairs(domain: Domain, answers: Sequence[NoisyMarginal]) -> dict[Scope, Components]:
    """Of each pair within a measured table.

    Its dispersion is that of its noisy counts around independence: what the model would not see without the
    table.
    """
    found = dict[Scope, Components]()
    for pair, tables in _pair_tables(domain, answers).items():
        precision = sum(1 / table.variance for table in tables)
        best = min(tables, key=lambda table: table.variance * table.values.size)
        rows, columns = (np.maximum(best.values.sum(axis=axis), 0) for axis in (1, 0))
        expected = np.multiply.outer(rows, columns) / max(float(best.values.sum()), 1.0)
        found[pair] = Components(max(0.0, _dispersion(best, expected)), precision)
    return found


def _dispersion(table: _Table, expected: FloatArray) -> float:
    """k of the counts around what is expected (rows), beyond the noise; negative by chance."""
    squares = float(((table.values - expected) ** 2).sum()) - table.variance * expected.size
    return squares / max(float(expected.sum()), 1.0) - 1


def _pair_tables(domain: Domain, answers: Sequence[NoisyMarginal]) -> Mapping[Scope, list[_Table]]:
    """The tables of every pair, alone or summed from larger ones; of several binnings that of the first."""
    found = dict[Scope, list[_Table]]()
    for answer in answers:
        for pair, table in _pairs_of(domain, answer):
            own = found.setdefault(pair, [])
            if not own or own[0].maps == table.maps:
                own.append(table)
    return found


def _pairs_of(domain: Domain, answer: NoisyMarginal) -> Iterator[tuple[Scope, _Table]]:
    maps, places = answer.maps or (None,) * len(answer.attrs), [domain.index(name) for name in answer.attrs]
    for axes in combinations(range(len(places)), 2):
        first, second = sorted(axes, key=places.__getitem__)
        others = tuple(axis for axis in range(len(places)) if axis not in axes)
        values = answer.values.sum(axis=others).astype(np.float64)
        values = values if first < second else values.T
        variance = max(answer.sigma, 1e-6) ** 2 * answer.values.size / values.size
        yield (places[first], places[second]), _Table(values, variance, (maps[first], maps[second]))
