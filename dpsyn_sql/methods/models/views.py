"""The model of consistent views: tables over a few attributes each, which agree where they share some."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.belief import Beliefs
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.network import ModelTables, Network, affordable, tree_network
from dpsyn_sql.fit.reconstruct import most_cells, reconstructed
from dpsyn_sql.fit.views import summed_to
from dpsyn_sql.methods.models.checks import Answering, over_codes
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.views import Synthesis, ViewsSampler

MOST_CODES = 2**26
"""Cells over codes of a marginal of three or more attributes: 512 MB."""


@dataclass(frozen=True, slots=True)
class ViewsModel(Answering):
    """Consistent views.

    ``views``: probabilities over working bins by positions of attributes (ascending), none negative; every
    attribute has a one-way view too. ``beliefs``: a graphical model of the strongest views, of which a
    database draws rows. ``bins[i]`` (int64, one per code) is the working bin of each code, ``within[i]``
    (float64, one per code) its probability given the bin. ``synthesis`` and ``reconstruction``: the ways to
    rows and to marginals that no view holds.
    """

    domain: Domain
    total: float
    views: Mapping[Scope, FloatArray]
    beliefs: Beliefs
    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    synthesis: Synthesis
    reconstruction: str

    def _answers(self, places: tuple[int, ...]) -> bool:
        """Whether a view holds them all, or they are few enough to be reconstructed."""
        return not self._too_large(places)

    def _counts(self, places: tuple[int, ...]) -> FloatArray:
        """From the smallest view that holds the attributes, or reconstructed from all that hold some."""
        if problem := self._too_large(places):
            raise InputError(problem)
        scope = tuple(sorted(places))
        table = self._joint(scope).transpose([scope.index(place) for place in places])
        return over_codes(max(0.0, self.total) * table, places, self.bins, self.within)

    def _joint(self, scope: Scope) -> FloatArray:
        """Probabilities over working bins."""
        view = self._smallest(scope)
        if view is not None:
            return summed_to(self.views[view], view, scope)
        return reconstructed(self.views, scope, self.beliefs.tree.sizes, self.reconstruction)

    def _smallest(self, scope: Scope) -> Scope | None:
        wanted = set(scope)
        holding = (view for view in self.views if wanted <= set(view))
        return min(holding, key=lambda view: self.views[view].size, default=None)

    def _too_large(self, scope: Scope) -> str:
        """Why a marginal cannot be made; empty if it can."""
        codes = math.prod(self.bins[place].size for place in scope)
        limits = [(codes, MOST_CODES, "")] if len(scope) > 2 else []
        if self._smallest(scope) is None:
            cells = math.prod(self.beliefs.tree.sizes[position] for position in scope)
            limits.append((cells, most_cells(self.reconstruction), ", as it is reconstructed from views"))
        for cells, most, why in limits:
            if cells > most:
                return (
                    f"a marginal of {cells:,} cells is too large{why}: allowed are {most:,}; ask for fewer "
                    "attributes, or count it in the synthetic table"
                )
        return ""

    def network(self) -> Network:
        """The graphical model of the strongest views, and codes after their bins."""
        return tree_network(self.beliefs, self.bins, self.within, self.domain.names)

    def tables(self) -> ModelTables:
        """The views, and the pairs that no view holds."""
        sizes = self.beliefs.tree.sizes
        held = {attribute for view in self.views if len(view) > 1 for attribute in view}
        views = [view for view in self.views if len(view) > 1 or view[0] not in held]
        kept, room = affordable(views, sizes)
        inside = {pair for view in views for pair in combinations(view, 2)}
        across = (pair for pair in combinations(range(len(sizes)), 2) if pair not in inside)
        pairs, _ = affordable(across, sizes, max(room, 0))
        return ModelTables(self.bins, self.within, tuple(self._stored([*kept, *pairs])))

    def _stored(self, scopes: Sequence[Scope]) -> Iterator[tuple[Scope, FloatArray]]:
        for scope in scopes:
            if scope in self.views:
                yield scope, self.views[scope]
            else:  # a pair in no view is independent
                yield scope, np.outer(self.views[scope[:1]], self.views[scope[1:]])

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> ViewsSampler:
        """Rows that meet the views, as well as ``deadline`` leaves the time."""
        views = {scope: table for scope, table in self.views.items() if len(scope) > 1}
        return ViewsSampler(self.beliefs, views, self.bins, self.within, self.synthesis, deadline)
