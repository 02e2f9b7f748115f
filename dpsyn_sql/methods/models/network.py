"""Any network of conditional tables as a model, for methods without a class of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations

import numpy as np

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.fit.arrays import Codes, FloatArray
from dpsyn_sql.fit.elimination import MOST_LINES, fits, joint, work_of
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.network import ModelTables, Network, affordable, joined, largest, tables_of_codes
from dpsyn_sql.methods.models.checks import Answering
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.systematic import NetworkSampler

MOST_WORK = 2**23
"""The most lines of all steps to the stored tables; they take some seconds."""

DRAWN = 2**17
"""Rows, drawn with a fixed seed, in which one or two attributes are counted where elimination takes too large
a table."""

MOST_COUNTED = 2**22
"""The most cells of such a count: 32 MB."""


@dataclass(frozen=True, slots=True)
class NetworkModel(Answering):
    """A fitted network whose ``codes`` are those of a domain; ``total`` as in ``Model``.

    Raises:
        InternalError: the network has another domain, or does not draw a code of an attribute with several.
    """

    domain: Domain
    total: float
    fitted: Network
    _drawn: list[Codes] = field(default_factory=list, init=False, repr=False, compare=False)
    # The rows that are counted, once they are drawn.

    def __post_init__(self) -> None:
        if tuple(self.fitted.sizes[variable] for variable in self.fitted.codes) != self.domain.shape():
            raise InternalError("a network does not have the attributes and codes of its domain")
        drawn = {variable for node in self.fitted.nodes for variable in node.variables}
        if any(v not in drawn and self.fitted.sizes[v] > 1 for v in self.fitted.codes):
            raise InternalError("a network does not draw every attribute of its domain")

    def _answers(self, places: tuple[int, ...]) -> bool:
        """Whether they are one or two attributes, or all tables on the way to their marginal are small
        enough."""
        return self._countable(places) or fits(self.fitted, self._variables(places))

    def _countable(self, places: tuple[int, ...]) -> bool:
        return len(places) <= 2 and math.prod(self.domain.shape()[place] for place in places) <= MOST_COUNTED

    def _variables(self, places: tuple[int, ...]) -> list[int]:
        return [self.fitted.codes[place] for place in places]

    def _counts(self, places: tuple[int, ...]) -> FloatArray:
        """Summed over all other attributes.

        Where elimination takes too large a table, one or two attributes are counted in ``DRAWN`` rows of the
        network: always the same rows, so that the same question has the same answer.
        """
        variables = self._variables(places)
        if fits(self.fitted, variables):
            table = joint(self.fitted, variables)
        elif self._countable(places):
            (table,) = self._counted([places])
        else:
            raise InputError(
                f"this marginal needs a table of more than {MOST_LINES:,} cells on the way; ask for fewer "
                "attributes, or count them in the synthetic table"
            )
        return np.asarray(max(0.0, self.total) * table)

    def _counted(self, scopes: Sequence[Scope]) -> list[FloatArray]:
        """Shares of each combination of values in ``DRAWN`` rows."""
        if not self._drawn:
            self._drawn.append(np.concatenate(list(NetworkSampler(self.fitted).batches(DRAWN, 0))))
        rows = self._drawn[0]
        found = list[FloatArray]()
        for scope in scopes:
            shape = [self.domain.shape()[place] for place in scope]
            numbers = np.ravel_multi_index(tuple(rows[:, place] for place in scope), shape)
            found.append(np.bincount(numbers, minlength=math.prod(shape)).reshape(shape) / DRAWN)
        return found

    def network(self) -> Network:
        """Its network; neighbours are drawn together if their common table stays small."""
        sizes = self.fitted.sizes
        return Network(sizes, joined(self.fitted.nodes, sizes), self.fitted.codes)

    def tables(self) -> ModelTables:
        """Attributes that a node joins, with its parents; pairs of others; single ones that are in none.

        Tables that would take too long are left out, but each attribute is in one.
        """
        sizes = self.domain.shape()
        families, room = affordable(self._families(), sizes)
        kept, work = self._within(families, MOST_WORK)
        inside = {pair for scope in kept for pair in combinations(scope, 2)}
        pairs = (pair for pair in combinations(range(len(sizes)), 2) if pair not in inside)
        across, work = self._within(affordable(pairs, sizes, room)[0], work)
        held = set(chain(*kept, *across))
        single = [(place,) for place in range(len(sizes)) if place not in held]
        alone, _ = self._within(single, work)
        counted = [scope for scope in single if scope not in alone]
        exact = ((scope, joint(self.fitted, self._variables(scope))) for scope in (*kept, *across, *alone))
        return tables_of_codes(
            sizes, chain(exact, zip(counted, self._counted(counted) if counted else (), strict=True))
        )

    def _within(self, scopes: Sequence[Scope], work: int) -> tuple[list[Scope], int]:
        """The tables that can be made with so much work together, and the work that is left."""
        kept = list[Scope]()
        for scope in scopes:
            needed = work_of(self.fitted, self._variables(scope))
            if needed is not None and needed <= work:
                work -= needed
                kept.append(scope)
        return kept, work

    def _families(self) -> list[Scope]:
        place = {variable: attribute for attribute, variable in enumerate(self.fitted.codes)}
        families = [
            tuple(sorted(place[v] for v in (*node.parents, *node.variables) if v in place))
            for node in self.fitted.nodes
        ]
        return largest(family for family in families if family)

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> NetworkSampler:
        """Rows with low variance; only SQL draws faster."""
        return NetworkSampler(self.fitted)
