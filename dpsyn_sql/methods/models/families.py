"""A network of rows that follow from their unit and the row before, as a model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.network import Network
from dpsyn_sql.methods.models.network import NetworkModel
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.planning.families import BEFORE, Families
from dpsyn_sql.rows.sample.families import FamilySampler


@dataclass(frozen=True, slots=True)
class FamilyNetworkModel(NetworkModel):
    """A network over the domain of ``families`` whose nodes ascend by level (``fitted.levels``): units, what
    is known of the row before, rows. ``total`` is of units.

    Marginals are means over units. Rows are drawn unit by unit: then the row before is known, and no node
    draws it.

    Raises:
        InternalError: as of ``NetworkModel``; or the nodes do not ascend.
    """

    families: Families

    def __post_init__(self) -> None:
        NetworkModel.__post_init__(self)
        levels = self.fitted.levels
        if len(levels) != len(self.fitted.nodes) or any(one > next_ for one, next_ in pairwise(levels)):
            raise InternalError("the nodes of a network of families do not ascend by level")

    def network(self) -> Network:
        """The network without nodes of the row before, whose attributes are evidence."""
        fitted, domain = self.fitted, self.domain
        kept = [i for i, level in enumerate(fitted.levels) if level != BEFORE]
        known = [place for place, level in enumerate(self.families.levels) if level == BEFORE]
        return Network(
            fitted.sizes,
            tuple(fitted.nodes[i] for i in kept),
            fitted.codes,
            tuple(fitted.levels[i] for i in kept),
            {fitted.codes[place]: np.arange(domain.attributes[place].size) for place in known},
        )

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> FamilySampler:  # type: ignore[override]
        """Units, then their rows one after another."""
        return FamilySampler(self.network(), self.families)
