"""Moments of the rows of people as a chain (``sample.chain``), beside what else a network says of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.network import Node
from dpsyn_sql.rows.sample.chain import Chain, Succession, Units, fitted
from dpsyn_sql.rows.sample.lines import Lines
from dpsyn_sql.rows.sample.people import People

_MOST_CELLS = 2**22
# Of the table of a node.


def linked(
    succession: Succession | None, moments: Sequence[Lines], variable: int, code: int, sizes: tuple[int, ...]
) -> LinkedMoments | None:
    """What draws moments as a chain; None if they are sorted.

    Args:
        succession: None if the model has none that can be followed.
        moments: the nodes of the moments.
        variable: of the working bins of the order.
        code: of its codes.
        sizes: of all variables.
    """
    if succession is None or not moments or variable not in moments[0].node.variables:
        return None
    if moments[0].known.size * sizes[variable] > _MOST_CELLS:
        return None
    return LinkedMoments(succession, moments, variable, code, sizes)


class LinkedMoments:
    """The node of the moments' bins as a table ``weights`` (configurations of its parents, bins), and the
    nodes of what is drawn ``after`` the bins."""

    def __init__(
        self,
        succession: Succession,
        moments: Sequence[Lines],
        variable: int,
        code: int,
        sizes: tuple[int, ...],
    ) -> None:
        self.variable, self._code = variable, code
        self._succession, self._lines = succession, moments[0]
        node = moments[0].node
        place = node.variables.index(variable)
        bins = node.values[:, place]
        columns = dict(zip(node.parents, node.given.T, strict=True))
        self.weights: FloatArray = np.zeros((moments[0].known.size, sizes[variable]))
        np.add.at(self.weights, (moments[0].groups(columns, bins.size), bins), node.weights)
        others = [i for i in range(len(node.variables)) if i != place]
        given, values = np.column_stack([node.given, bins]), node.values[:, others]
        order = np.lexsort([*values.T[::-1], *given.T[::-1]])
        rest = Node(
            node.label,
            tuple(node.variables[i] for i in others),
            (*node.parents, variable),
            given[order],
            values[order],
            node.weights[order],
            node.reach[order],
        )
        self.after = [*([Lines(rest, sizes)] if others else []), *moments[1:]]

    def chain(self, people: People, shares: FloatArray) -> Chain | None:
        """The chain of these units, whose rows weigh ``shares`` (units,) together; None where their moments
        are sorted."""
        asked = self._lines.groups(people.columns, people.rows.size)
        return fitted(self._succession, self.weights, people.rows, asked, shares)

    def bins(
        self, people: People, chain: Chain, numbers: IntArray, generator: np.random.Generator
    ) -> IntArray:
        """The bins of the rows of these numbers, ascending: of a unit all from one rank on, after the moment
        of the row before."""
        first = numbers[people.firsts(numbers)]
        units, ranks = people.owners(first)
        start, later = np.full(units.size, -1), np.flatnonzero(ranks > 0)
        if later.size:
            start[later] = self._succession.bins[people.moments[self._code][first[later] - 1]]
        asked = self._lines.groups({v: own[units] for v, own in people.columns.items()}, units.size)
        rows, apart = people.rows[units], people.in_unit(units, ranks)
        return chain.draw(self.weights, Units(rows, rows - ranks, asked, start, apart), generator)
