"""The class of a unit: a public integer function of its rows, and of a draw (public).

A unit has one of ``size`` codes, which all its rows share. It is drawn from what the classes say of the
unit's own rows: the class that minimises costs less a Gumbel number has the probability exp(-cost) (Gumbel;
Maddison, Tarlow and Minka 2014). The Gumbel numbers come from a hash of a secret key, the unit and the class
(docs/privacy.md, "Classes of a family").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Attribute, Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.planning.row_labels import LARGEST_SUM, Columns, NearestLabel, check_labels

SCALE = 2**16
"""Costs are whole numbers of 1/SCALE."""

DRAW_BITS = 12
"""So many high bits of a hash choose one of the quantiles of a Gumbel law."""


def gumbel_costs() -> tuple[int, ...]:
    """What a draw adds to a cost: for each of its 2^DRAW_BITS values the largest Gumbel number less its own,
    the quantile at the middle of its share; 0 or more, in 1/SCALE."""
    places = 2**DRAW_BITS
    quantiles = [-math.log(-math.log((place + 0.5) / places)) for place in range(places)]
    return tuple(round((quantiles[-1] - one) * SCALE) for one in quantiles)


@dataclass(frozen=True, slots=True)
class FamilyClass:
    """The class of a unit: the least j that minimises, over the rows of the unit and the attributes a,

        offsets[j] + sum over rows x and a of scores[a][j][x_a] + gumbel_costs()[draw of the unit and j].

    ``costs`` has the offsets and scores; its own name is that of the attribute.
    """

    costs: NearestLabel

    @property
    def attribute(self) -> Attribute:
        """The class as an attribute of units."""
        return Attribute(self.costs.name, "INTEGER", "categorical", labels=tuple(range(self.costs.size)))

    def check(self, domain: Domain, rows: int) -> None:
        """Accept a class whose value is total and whole, for units of at most ``rows`` rows.

        Raises:
            InternalError: as ``check_labels``; it is no plain ``FamilyClass``, or its sums could pass BIGINT.
        """
        if type(self) is not FamilyClass or type(self.costs) is not NearestLabel:
            raise InternalError("a class of families is a plain FamilyClass of a NearestLabel")
        check_labels([self.costs], domain)
        offsets, scores = self.costs.ranked()
        most = sum(max(map(max, table)) for _, table in scores)
        if max(offsets) + rows * most + max(gumbel_costs()) * self.costs.size >= LARGEST_SUM:
            raise InternalError("the sums of a class of families could pass 2^62")

    def codes(
        self, columns: Columns, units: NDArray[np.int64], draws: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The classes of public units: int64[units].

        Args:
            columns: the codes of each attribute of the rows, int64[rows].
            units: the number of the unit of each row, int64[rows].
            draws: for each unit and class a whole number below 2^DRAW_BITS, int64[units, size].
        """
        offsets, scores = self.costs.ranked()
        ranks = np.array(offsets) + np.array(gumbel_costs())[draws] * self.costs.size
        for name, table in scores:
            np.add.at(ranks, units, np.array(table, dtype=np.int64).T[columns[name]])
        return np.asarray(ranks.min(axis=1) % self.costs.size)


def class_costs(
    name: str, shares: NDArray[np.float64], laws: Sequence[tuple[str, NDArray[np.float64]]]
) -> FamilyClass:
    """The class of units whose rows follow a mixture.

    Args:
        name: of the class.
        shares: of the classes, float64[K], above 0.
        laws: attributes, each with the probabilities of its codes in each class, float64[K, codes], above 0.
    """
    offsets = tuple(_costs(shares))
    scores = tuple((attribute, tuple(tuple(_costs(row)) for row in law)) for attribute, law in laws)
    return FamilyClass(NearestLabel(name, offsets, scores))


def _costs(probabilities: NDArray[np.float64]) -> list[int]:
    return [round(-math.log(one) * SCALE) for one in probabilities.tolist()]
