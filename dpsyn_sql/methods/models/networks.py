"""Models that are networks: given evidence, of families, and with the law of a target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import ClassVar

import numpy as np

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InputError, InternalError
from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray, raked, summed
from dpsyn_sql.fit.belief import Beliefs, marginals
from dpsyn_sql.fit.conditional import Conditional
from dpsyn_sql.fit.elimination import MOST_LINES, fits, joint, levelled_network, tree_network, work_of
from dpsyn_sql.fit.graph import Scope, largest
from dpsyn_sql.fit.network import (
    ModelTables,
    Network,
    affordable,
    joined,
    tables_of_codes,
)
from dpsyn_sql.fit.pairs import all_pairs
from dpsyn_sql.fit.variances import Components
from dpsyn_sql.methods.models.margins import Answering, over_codes
from dpsyn_sql.planning.families import BEFORE, Families
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.graphical import TreeRows, with_target
from dpsyn_sql.rows.sample.moments import Succession, succession
from dpsyn_sql.rows.sample.systematic import Batches
from dpsyn_sql.rows.sample.walk import FamilySampler, network_rows

# -- networks ----------------------------------------------------------------------------------------

# Any network of conditional tables as a model, for methods without a class of their own.

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

    ``families``: how rows of a unit go together. The nodes ascend by level (``fitted.levels``) then: units,
    what is known of the row before, rows. ``total`` is of units, and marginals are means over units. Rows are
    drawn unit by unit: then the row before is known, and no node draws it.

    Raises:
        InternalError: the network has another domain, does not draw a code of an attribute with several, or
            its nodes do not ascend.
    """

    domain: Domain
    total: float
    fitted: Network
    families: Families | None = None
    _drawn: list[Codes] = field(default_factory=list, init=False, repr=False, compare=False)
    # The rows that are counted, once they are drawn.

    def __post_init__(self) -> None:
        if tuple(self.fitted.sizes[variable] for variable in self.fitted.codes) != self.domain.shape():
            raise InternalError("a network does not have the attributes and codes of its domain")
        drawn = {variable for node in self.fitted.nodes for variable in node.variables}
        if any(v not in drawn and self.fitted.sizes[v] > 1 for v in self.fitted.codes):
            raise InternalError("a network does not draw every attribute of its domain")
        levels = self.fitted.levels
        if self.families is not None and (len(levels), list(levels)) != (
            len(self.fitted.nodes),
            sorted(levels),
        ):
            raise InternalError("the nodes of a network of families do not ascend by level")

    def _answers(self, positions: tuple[int, ...]) -> bool:
        """Whether they are one or two attributes, or all tables on the way to their marginal are small
        enough."""
        return self._countable(positions) or fits(self.fitted, self._variables(positions))

    def _countable(self, positions: tuple[int, ...]) -> bool:
        return (
            len(positions) <= 2
            and math.prod(self.domain.shape()[position] for position in positions) <= MOST_COUNTED
        )

    def _variables(self, positions: tuple[int, ...]) -> list[int]:
        return [self.fitted.codes[position] for position in positions]

    def _counts(self, positions: tuple[int, ...]) -> FloatArray:
        """Summed over all other attributes.

        Where elimination takes too large a table, one or two attributes are counted in ``DRAWN`` rows of the
        network: always the same rows, so that the same question has the same answer.
        """
        variables = self._variables(positions)
        if fits(self.fitted, variables):
            table = joint(self.fitted, variables)
        elif self._countable(positions):
            (table,) = self._counted([positions])
        else:
            raise InputError(
                f"this marginal needs a table of more than {MOST_LINES:,} cells on the way; ask for fewer "
                "attributes, or count them in the synthetic table"
            )
        return np.asarray(max(0.0, self.total) * table)

    def _counted(self, scopes: Sequence[Scope]) -> list[FloatArray]:
        """Shares of each combination of values in ``DRAWN`` rows."""
        if not self._drawn:
            self._drawn.append(np.concatenate(list(network_rows(self.fitted).batches(DRAWN, 0))))
        rows = self._drawn[0]
        shares = list[FloatArray]()
        for scope in scopes:
            shape = [self.domain.shape()[position] for position in scope]
            numbers = np.ravel_multi_index(tuple(rows[:, position] for position in scope), shape)
            shares.append(np.bincount(numbers, minlength=math.prod(shape)).reshape(shape) / DRAWN)
        return shares

    def network(self) -> Network:
        """Its network; neighbours are drawn together if their common table stays small. With families it is
        without nodes of the row before, whose attributes are evidence."""
        fitted = self.fitted
        if self.families is None:
            return Network(fitted.sizes, joined(fitted.nodes, fitted.sizes), fitted.codes)
        drawn = [i for i, level in enumerate(fitted.levels) if level != BEFORE]
        evidence = [position for position, level in enumerate(self.families.levels) if level == BEFORE]
        return Network(
            fitted.sizes,
            tuple(fitted.nodes[i] for i in drawn),
            fitted.codes,
            tuple(fitted.levels[i] for i in drawn),
            {
                fitted.codes[position]: np.arange(self.domain.attributes[position].size)
                for position in evidence
            },
        )

    def tables(self) -> ModelTables:
        """Attributes that a node joins, with its parents; pairs of others; single ones that are in none.

        Tables that would take too long are left out, but each attribute is in one.
        """
        sizes = self.domain.shape()
        families, room = affordable(self._families(), sizes)
        affordable_families, work = self._within(families, MOST_WORK)
        inside = {pair for scope in affordable_families for pair in combinations(scope, 2)}
        pairs = (pair for pair in combinations(range(len(sizes)), 2) if pair not in inside)
        across, work = self._within(affordable(pairs, sizes, room)[0], work)
        covered = set(chain(*affordable_families, *across))
        single = [(position,) for position in range(len(sizes)) if position not in covered]
        alone, _ = self._within(single, work)
        counted = [scope for scope in single if scope not in alone]
        exact = (
            (scope, joint(self.fitted, self._variables(scope)))
            for scope in (*affordable_families, *across, *alone)
        )
        return tables_of_codes(
            sizes, chain(exact, zip(counted, self._counted(counted) if counted else (), strict=True))
        )

    def _within(self, scopes: Sequence[Scope], work: int) -> tuple[list[Scope], int]:
        """The tables that can be made with so much work together, and the work that is left."""
        within_work = list[Scope]()
        for scope in scopes:
            needed = work_of(self.fitted, self._variables(scope))
            if needed is not None and needed <= work:
                work -= needed
                within_work.append(scope)
        return within_work, work

    def _families(self) -> list[Scope]:
        position = {variable: attribute for attribute, variable in enumerate(self.fitted.codes)}
        families = [
            tuple(sorted(position[v] for v in (*node.parents, *node.variables) if v in position))
            for node in self.fitted.nodes
        ]
        return largest(family for family in families if family)

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Batches | FamilySampler:
        """Rows with low variance, units before their rows; only SQL draws faster."""
        if self.families is None:
            return network_rows(self.fitted)
        return FamilySampler(self.network(), self.families)


# -- graphical models --------------------------------------------------------------------------------

# The model of adaptive marginals: a graphical model over working bins, and codes within bins.


@dataclass(frozen=True, slots=True)
class GraphicalModel(Answering):
    """A fitted graphical model.

    Variable i < number of attributes of ``beliefs`` is attribute i in its working bins; further variables
    are coarse twins, functions of an attribute's bin, or a hidden group. ``bins[i]`` (int64, one per code) is
    the working bin of each code, ``within[i]`` (float64, one per code) its probability given the bin.

    ``beside``: joint probabilities over working bins of pairs of attributes, by ascending scope, that the
    tree does not hold; their margins are the model's. The model answers these pairs so, and rows of its
    ``sampler`` are moved towards them; rows of its ``network``, which SQL draws, know the tree alone.

    ``components``: of the errors of pairs, by positions of attributes. ``clear``: of pairs, likewise, that
    were seen to go together the rows that this moves, whether they were measured then or not. ``sets``:
    attributes within one clique whose dependence no pairs show; rows keep their joint table.
    ``balance``: rows are moved towards pairs; never where a hidden group ties all attributes.
    ``families``: how rows of a unit go together; ``total`` is then of units. The tree has their levels, and
    rows are drawn unit by unit, never moved; but rows of the root of a tree of tables are each by themselves.
    Of a table below it the attributes above are evidence.
    """

    domain: Domain
    total: float
    beliefs: Beliefs
    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    beside: Mapping[Scope, FloatArray] = field(default_factory=dict)
    components: Mapping[Scope, Components] = field(default_factory=dict)
    sets: tuple[Scope, ...] = ()
    balance: bool = True
    families: Families | None = None
    clear: Mapping[Scope, float] = field(default_factory=dict)

    def _answers(self, positions: tuple[int, ...]) -> bool:
        """Whether they are one or two attributes, or several within one clique."""
        return len(positions) <= 2 or self._together(positions)

    def _together(self, variables: Sequence[int]) -> bool:
        """Whether a clique holds all of them."""
        return self.beliefs.tree.home(tuple(sorted(variables))) is not None

    def _counts(self, positions: tuple[int, ...]) -> FloatArray:
        return over_codes(max(0.0, self.total) * self.joint(positions), positions, self.bins, self.within)

    def joint(self, variables: tuple[int, ...]) -> FloatArray:
        """Probabilities over working bins, axes in the order of ``variables``."""
        scope = tuple(sorted(variables))
        if self._together(scope):
            table = marginals(self.beliefs, [scope])[scope]
            return table.transpose([scope.index(variable) for variable in variables])
        if scope in self.beside:
            table = self.beside[scope]
            return table if scope == variables else table.T
        if len(variables) == 2:
            table = all_pairs(self.beliefs, [scope])[scope]
            return table if scope == variables else table.T
        raise InputError(
            "this model answers marginals of one or two attributes, and of more attributes if they "
            "were fitted together; count others in the synthetic table"
        )

    def network(self) -> Network:
        """The junction tree from its roots, and codes after their bins; without ``beside``. With families
        units before their rows."""
        families = self.families
        if families is not None and not families.by_themselves:
            position = self.domain.index
            previous = {position(hidden): position(shown) for hidden, shown in families.previous}
            return levelled_network(
                self.beliefs,
                self.bins,
                self.within,
                self.domain.names,
                previous,
                given_units=bool(families.above),
                retained=families.kept,
            )
        return tree_network(self.beliefs, self.bins, self.within, self.domain.names)

    def tables(self) -> ModelTables:
        """The cliques without their twins, and the pairs of attributes across cliques."""
        cliques, pairs = self._attribute_tables(), combinations(range(len(self.bins)), 2)
        inside = {pair for scope in cliques for pair in combinations(scope, 2)}
        across, _ = affordable((pair for pair in pairs if pair not in inside), self.beliefs.tree.sizes)
        beyond = {
            pair: self.beside.get(pair, table) for pair, table in all_pairs(self.beliefs, across).items()
        }
        return ModelTables(self.bins, self.within, (*cliques.items(), *beyond.items()))

    def _attribute_tables(self) -> dict[Scope, FloatArray]:
        """The attributes, without twins, of every clique that no other clique holds."""
        tables: dict[Scope, FloatArray] = {}
        for clique, table in zip(self.beliefs.tree.cliques, self.beliefs.tables, strict=True):
            twins = [axis for axis, variable in enumerate(clique) if variable >= len(self.bins)]
            scope = tuple(variable for variable in clique if variable < len(self.bins))
            if scope and scope not in tables:
                tables[scope] = summed(table, twins)
        return {scope: tables[scope] for scope in largest(tables)}

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Batches | FamilySampler:
        """Rows below others; or rows of a root with low variance, balanced if ``deadline`` leaves the time.

        No deadline where tables are below: their evidence is the same rows, drawn once more.
        """
        families = self.families
        if families is not None and not families.by_themselves:
            return FamilySampler(self.network(), families, self._succession(families))
        return self.tree_rows(NO_DEADLINE if families is not None and families.below else deadline).sampler()

    def _succession(self, families: Families) -> Succession | None:
        """How the moments of rows follow each other; None if nothing orders rows, or none follows."""
        hidden = next((name for name, of in families.previous if of == families.order), None)
        if hidden is None:
            return None
        before, order = self.domain.index(hidden), self.domain.index(families.order)
        return succession(
            self.joint((before, order)), self.bins[order], self.bins[before], self.within[before]
        )

    def tree_rows(self, deadline: Deadline = NO_DEADLINE) -> TreeRows:
        """Rows that are each by themselves, with low variance, balanced if ``deadline`` leaves the time."""
        return TreeRows(self.beliefs, self.bins, self.within, self.beside, self.sets, self.balance, deadline)


# -- targets -----------------------------------------------------------------------------------------

# A graphical model whose target follows a law of its own given all other attributes.


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

    def _answers(self, positions: tuple[int, ...]) -> bool:
        """Whether the graphical model answers for them without the target."""
        without_target = self._others(positions)
        return not without_target or self.graphical.supports(
            [self.domain.names[position] for position in without_target]
        )

    def _others(self, positions: Sequence[int]) -> tuple[int, ...]:
        return tuple(position for position in positions if position != self.conditional.target)

    def _counts(self, positions: tuple[int, ...]) -> FloatArray:
        graphical, without_target = self.graphical, self._others(positions)
        if len(without_target) == len(positions) or not without_target:
            return graphical.project([self.domain.names[position] for position in positions])
        joint = self._joint(without_target)
        joint = np.moveaxis(joint, -1, positions.index(self.conditional.target))
        return over_codes(max(0.0, self.total) * joint, positions, graphical.bins, graphical.within)

    def _joint(self, positions: tuple[int, ...]) -> FloatArray:
        """Probabilities over working bins of other attributes and, last, the target: what rows have, with
        the margins of the graphical model."""
        table = self.graphical.joint(positions)
        shares = self.graphical.joint((self.conditional.target,))
        numbers = np.ravel_multi_index(tuple(self.rows[position] for position in positions), table.shape)
        sums = np.stack([np.bincount(numbers, law_of_bin, table.size) for law_of_bin in self.given.T], axis=1)
        rows_of_cell = sums.sum(axis=1, keepdims=True)
        # A cell that few rows show is like all others.
        law = (sums + shares) / (rows_of_cell + 1.0)
        joint = raked(law * table.reshape(-1, 1), table.ravel(), shares)
        return np.asarray(joint.reshape(*table.shape, shares.size))

    def network(self) -> Network:
        """That of the graphical model: its target is the one before the correction."""
        return self.graphical.network()

    def tables(self) -> ModelTables:
        """Those of the graphical model without the target, and the pairs of the target."""
        graphical, target = self.graphical.tables(), self.conditional.target
        summed_tables: dict[Scope, FloatArray] = {}
        for scope, table in graphical.tables:
            without_target = self._others(scope)
            if target in scope and table.ndim == len(scope):
                table = table.sum(axis=scope.index(target))
            if without_target and (target not in scope or without_target not in summed_tables):
                summed_tables[without_target] = table
        maximal = {scope: summed_tables[scope] for scope in largest(summed_tables)}
        size = len(self.domain.attributes)
        for position in (index for index in range(size) if index != target):
            pair = (min(position, target), max(position, target))
            table = self._joint((position,))
            maximal[pair] = table if position < target else table.T
        alone = [
            scope
            for scope in maximal
            if len(scope) == 1 and any(scope[0] in wider for wider in maximal if len(wider) > 1)
        ]
        return ModelTables(
            graphical.bins, graphical.within, tuple((s, t) for s, t in maximal.items() if s not in alone)
        )

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Batches:
        """Rows of the graphical model, with a target of its own law."""
        shares = self.graphical.joint((self.conditional.target,))
        return with_target(self.graphical.tree_rows(deadline), self.conditional, shares)
