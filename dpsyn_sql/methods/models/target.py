"""A graphical model whose target follows a law of its own given all other attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.fit.arrays import Codes, FloatArray
from dpsyn_sql.fit.conditional import Conditional
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.network import ModelTables, Network, largest
from dpsyn_sql.methods.models.checks import Answering, over_codes
from dpsyn_sql.methods.models.graphical import GraphicalModel
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.graphical import RedrawnSampler

_ROUNDS = 20
# Of scaling a table to the margins of the graphical model.


@dataclass(frozen=True, slots=True)
class TargetModel(Answering):
    """``graphical`` for all attributes but the target, which follows ``conditional``.

    What it answers about the target is an expectation over public ``rows`` of the graphical model: of each
    attribute their working bins (n,). ``given`` (n, bins of the target): the law of the target for each.

    Rows are drawn by ``sampler`` alone (``exact``). The ``network``, which SQL draws, is that of the
    graphical model: its target is the one before the correction.
    """

    domain: Domain
    total: float
    graphical: GraphicalModel
    conditional: Conditional
    rows: tuple[Codes, ...]
    given: FloatArray
    exact: ClassVar[bool] = True

    def _answers(self, places: tuple[int, ...]) -> bool:
        """Whether the graphical model answers for them without the target."""
        others = self._others(places)
        return not others or self.graphical.supports([self.domain.names[place] for place in others])

    def _others(self, places: Sequence[int]) -> tuple[int, ...]:
        return tuple(place for place in places if place != self.conditional.target)

    def _counts(self, places: tuple[int, ...]) -> FloatArray:
        graphical, others = self.graphical, self._others(places)
        if len(others) == len(places) or not others:
            return graphical.project([self.domain.names[place] for place in places])
        joint = self._joint(others)
        joint = np.moveaxis(joint, -1, places.index(self.conditional.target))
        return over_codes(max(0.0, self.total) * joint, places, graphical.bins, graphical.within)

    def _joint(self, others: tuple[int, ...]) -> FloatArray:
        """Probabilities over working bins of other attributes and, last, the target: what rows have, with
        the margins of the graphical model."""
        table = self.graphical.joint(others)
        shares = self.graphical.joint((self.conditional.target,))
        numbers = np.ravel_multi_index(tuple(self.rows[place] for place in others), table.shape)
        sums = np.stack([np.bincount(numbers, own, table.size) for own in self.given.T], axis=1)
        seen = sums.sum(axis=1, keepdims=True)
        # A cell that few rows show is like all others.
        law = (sums + shares) / (seen + 1.0)
        joint = law * table.reshape(-1, 1)
        for _ in range(_ROUNDS):
            own = joint.sum(axis=0)
            joint = joint * np.divide(shares, own, out=np.zeros_like(own), where=own > 0)
            each = joint.sum(axis=1, keepdims=True)
            joint *= np.divide(table.reshape(-1, 1), each, out=np.zeros_like(each), where=each > 0)
        return np.asarray(joint.reshape(*table.shape, shares.size))

    def network(self) -> Network:
        """That of the graphical model: its target is the one before the correction."""
        return self.graphical.network()

    def tables(self) -> ModelTables:
        """Those of the graphical model without the target, and the pairs of the target."""
        own, target = self.graphical.tables(), self.conditional.target
        found: dict[Scope, FloatArray] = {}
        for scope, table in own.tables:
            others = self._others(scope)
            if target in scope and table.ndim == len(scope):
                table = table.sum(axis=scope.index(target))
            if others and (target not in scope or others not in found):
                found[others] = table
        kept = {scope: found[scope] for scope in largest(found)}
        size = len(self.domain.attributes)
        for other in (place for place in range(size) if place != target):
            pair = (min(other, target), max(other, target))
            table = self._joint((other,))
            kept[pair] = table if other < target else table.T
        alone = [
            scope
            for scope in kept
            if len(scope) == 1 and any(scope[0] in other for other in kept if len(other) > 1)
        ]
        return ModelTables(own.bins, own.within, tuple((s, t) for s, t in kept.items() if s not in alone))

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> RedrawnSampler:
        """Rows of the graphical model, with a target of its own law."""
        shares = self.graphical.joint((self.conditional.target,))
        return RedrawnSampler(self.graphical.row_sampler(deadline), self.conditional, shares)
