"""What adaptive marginals know after each round: variables in working bins, measured tables, the fitted
model.

A pair *beside the tree* is worth measuring, but the cap on the junction tree keeps it out of the model. Its
table is measured in the last round like the others. It is not fitted: the sample meets it by exchanges of
values (``rows/sample/moves.py``), and the model answers the pair with what the sample aims at.

Post-processing of noisy answers only.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.budget import Budget
from dpsyn_sql.attributes.attribute import Attribute, Domain, edge_ticks
from dpsyn_sql.common.progress import phase
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.belief import Beliefs, calibrate
from dpsyn_sql.fit.centres import agreeing, centres, target
from dpsyn_sql.fit.denoise import binned, merged_neighbours
from dpsyn_sql.fit.estimate import Fit, Likelihood, Observation, Potentials, fit_potentials, total_of
from dpsyn_sql.fit.given import Given
from dpsyn_sql.fit.graph import JunctionTree, Scope, cells_of, junction_tree
from dpsyn_sql.fit.pairs import all_pairs
from dpsyn_sql.fit.variances import Dispersions
from dpsyn_sql.methods.adaptive.budget import (
    Settings,
    distributions,
    score_share,
    score_share_of_many,
    tied,
    tree_cap,
)
from dpsyn_sql.methods.independent import map_of
from dpsyn_sql.planning.asking import Door, Reserve
from dpsyn_sql.planning.families import BEFORE, UNIT, Families
from dpsyn_sql.planning.limits import Terms
from dpsyn_sql.planning.plan import equivalent_rho
from dpsyn_sql.planning.queries import MarginalQuery
from dpsyn_sql.source.relation import PrivacyUnit

_FORBIDDEN = -1e3
"""Log-factor of a structural zero: its exponential is 0 in float64, and it stays finite in sums."""

_LEAST_PROBABILITY = 1e-3
"""A bin starts with at least this share of an even one: the fit could never correct a zero."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the model: an attribute (by position) and the bin of each of its codes."""

    attribute: int
    bins: IntArray

    @property
    def size(self) -> int:
        """Number of bins."""
        return int(self.bins.max()) + 1


@dataclass(frozen=True, slots=True)
class Working:
    """The start of the rounds.

    ``variables``: the attributes in their working bins, in domain order, then coarse twins. ``observed`` are
    the one-way tables over working bins, ``base`` their logarithms, ``links`` the 0/1 tables (as
    logarithms) that tie a twin to its attribute. ``within``: as in ``GraphicalModel``. ``levels``: of the
    variables of families, empty where rows are by themselves; what is drawn first is eliminated last.
    ``given``: the variables of rows above the table, ``ties`` pairs of them that the tree holds, so that what
    goes through one is not taken for the other's.
    """

    domain: Domain
    variables: tuple[Variable, ...]
    observed: Mapping[Scope, Observation]
    base: Mapping[Scope, FloatArray]
    links: Mapping[Scope, FloatArray]
    within: tuple[FloatArray, ...]
    levels: tuple[int, ...] = ()
    given: frozenset[int] = frozenset()
    ties: tuple[Scope, ...] = ()

    def tree(self, scopes: Iterable[Scope]) -> JunctionTree:
        """A junction tree that holds these scopes and the links."""
        return junction_tree(self.sizes, [*scopes, *self.held], self.levels, self.given)

    @property
    def held(self) -> tuple[Scope, ...]:
        """The scopes that every tree has."""
        return (*self.links, *self.ties)

    def fitted(self, tables: Mapping[Scope, Observation]) -> dict[Scope, Observation]:
        """The tables that are not of given variables alone."""
        return {scope: table for scope, table in tables.items() if not self.given.issuperset(scope)}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each variable."""
        return tuple(variable.size for variable in self.variables)

    def attributes(self, scope: Scope) -> Scope:
        """The attributes (ascending) of variables, some of which may be coarse twins."""
        if scope[-1] < len(self.domain.attributes):
            return scope
        return tuple(sorted(self.variables[variable].attribute for variable in scope))

    def sum_of_sigma(self, variable: int) -> float:
        """Sum over the bins of a variable of the noise of its one-way table (rows)."""
        of_variable = self.variables[variable]
        fine, table = self.variables[of_variable.attribute], self.observed[of_variable.attribute,]
        squares = np.broadcast_to(table.sigma, table.values.shape) ** 2
        coarse = of_variable.bins[np.unique(fine.bins, return_index=True)[1]]
        return float(np.sqrt(np.bincount(coarse, squares)).sum())

    def queries(self, scopes: Sequence[Scope]) -> list[MarginalQuery]:
        """The questions for the tables over ``scopes``, attributes in domain order."""
        columns = [(v.attribute, self.domain.names[v.attribute], map_of(v.bins)) for v in self.variables]
        queries = []
        for scope in scopes:
            _, names, maps = zip(*sorted(columns[v] for v in scope), strict=True)
            queries.append(MarginalQuery(names, maps if any(maps) else ()))
        return queries

    def turned(self, scope: Scope, table: NDArray[np.generic]) -> FloatArray:
        """A table from the axes of ``query(scope)`` to those of ``scope``, or back: of a pair, or of three
        attributes without twins, whose axes are the same."""
        attributes = [self.variables[v].attribute for v in scope]
        return np.asarray(table if attributes == sorted(attributes) else table.T, dtype=np.float64)


def working_domain(
    domain: Domain,
    one_ways: Sequence[Observation],
    strength: float,
    settings: Settings,
    families: Families | None = None,
    given: Given | None = None,
) -> Working:
    """Denoise the one-way tables, choose working bins and twins.

    Args:
        domain: the public domain.
        one_ways: one noisy table per attribute, in domain order.
        strength: N sqrt(rho), how much there is to see.
        settings: of the recipe.
        families: of a table whose rows stay together; ``domain`` is theirs.
        given: rows above the table.
    """
    most = settings.bins * (strength / settings.bins_strength) ** settings.bins_power
    most = float(np.clip(most, *settings.bins_range))
    # A table without noise of its own has that of the tables that it will be in.
    noise = max((float(table.sigma) for table in one_ways), default=0.0)
    least = [
        max(settings.merge_sigmas, math.sqrt(2 * math.log(attribute.size))) * (float(table.sigma) or noise)
        for attribute, table in zip(domain.attributes, one_ways, strict=True)
    ]
    working_bins = binned(domain, one_ways, least, most, finer_tails=True)
    variables = [Variable(index, bins) for index, bins in enumerate(working_bins.bins)]
    observed: dict[Scope, Observation] = {(i,): table for i, table in enumerate(working_bins.observed)}
    base: dict[Scope, FloatArray] = {}
    for index, shares in enumerate(working_bins.shares):
        start = np.maximum(shares, _LEAST_PROBABILITY / shares.size)
        base[index,] = np.log(start / start.sum())
    coarse = strength < settings.twin_strength
    levels = () if families is None or families.by_themselves else families.levels
    above = (
        [] if families is None else [domain.index(attribute_above.name) for attribute_above in families.above]
    )
    # What may be known of a row has no twin: a twin would be drawn beside it.
    single = {*above, *(domain.index(name) for name in (families.kept if families else ()))}
    twinned = [
        attribute
        if coarse and position not in single and (not levels or levels[position] != BEFORE)
        else None
        for position, attribute in enumerate(domain.attributes)
    ]
    twins, links = _twins(twinned, variables, observed, settings)
    variables += twins
    levels = tuple(levels[variable.attribute] for variable in variables) if levels else ()
    ties = () if given is None else tied(given, domain, above, working_bins.bins)
    return Working(
        domain, tuple(variables), observed, base, links, working_bins.within, levels, frozenset(above), ties
    )


def _twins(
    attributes: Sequence[Attribute | None],
    variables: Sequence[Variable],
    observed: Mapping[Scope, Observation],
    settings: Settings,
) -> tuple[list[Variable], dict[Scope, FloatArray]]:
    """Coarse twins of ordered attributes with many working bins, and the tables that tie them."""
    twins = list[Variable]()
    links: dict[Scope, FloatArray] = {}
    for index, (attribute, variable) in enumerate(zip(attributes, variables, strict=False)):
        if (
            attribute is None
            or not attribute.ordered
            or variable.size <= settings.twin_from * settings.twin_bins
        ):
            continue
        coarse = merged_neighbours(observed[index,].values, 0.0, settings.twin_bins, finer_tails=True)
        match = coarse[:, None] == np.arange(coarse.max() + 1)
        links[index, len(variables) + len(twins)] = np.where(match, 0.0, _FORBIDDEN)
        twins.append(Variable(index, coarse[variable.bins]))
    return twins, links


@dataclass(frozen=True, slots=True)
class Task:
    """The door, what is public of the table, and the results of the one-way tables.

    ``reserve``: the candidate pairs, and what else may be asked for; None if there are no pairs. ``budget``:
    of all that the method asks. ``working``: the variables of the model. ``total``: rows, at least 1.
    ``cap``: cells of the junction tree in the last round.
    """

    door: Door
    domain: Domain
    budget: Budget
    reserve: Reserve | None
    terms: Terms
    constants: Settings
    working: Working
    total: float
    cap: int

    @classmethod
    def of(
        cls,
        door: Door,
        domain: Domain,
        budget: Budget,
        reserve: Reserve | None,
        terms: Terms,
        constants: Settings,
        most: int,
        one_ways: Sequence[Observation],
    ) -> Task:
        """Choose the variables by the noisy one-way tables; ``most`` cells of the junction tree."""
        rho = equivalent_rho(terms.unit, domain, budget, of_units=terms.of_tree)
        weight = terms.unit.weight if terms.of_tree else 1
        strength, given = max(total_of(one_ways), 1.0) / weight * math.sqrt(rho), terms.evidence.read().given
        working = working_domain(domain, one_ways, strength, constants, terms.families, given)
        total = max(total_of(list(working.observed.values())), 1.0)
        cap = min(most, tree_cap(rho, total / weight, constants))
        return cls(door, domain, budget, reserve, terms, constants, working, total, cap)

    @property
    def unit(self) -> PrivacyUnit:
        """What is protected."""
        return self.terms.unit

    @property
    def rows_above(self) -> Given | None:
        """The rows above the table, if there are any."""
        return self.terms.evidence.read().given

    @property
    def pairs(self) -> tuple[MarginalQuery, ...]:
        """The candidate pairs."""
        return () if self.reserve is None else self.reserve.queries

    @property
    def further(self) -> bool:
        """Whether other tables than pairs may be asked for."""
        return self.reserve is not None and self.reserve.further

    def given(self, tree: JunctionTree) -> dict[int, FloatArray]:
        """Of each clique of given variables their distribution in the rows above."""
        names = self.domain.names
        bins_of = [(names[variable.attribute], variable.bins) for variable in self.working.variables]
        return distributions(self.rows_above, tree, bins_of)

    @property
    def rho(self) -> float:
        """The rho of the release, for units of one row."""
        return equivalent_rho(self.unit, self.domain, self.budget, of_units=self.terms.of_tree)

    def grain(self, scope: Scope) -> float:
        """What one independent observation counts in a table: a row, or where rows stay together a unit. A
        table that tells the rows of a unit apart has as many as their weights make independent: W times the
        mean of 1 / n over units."""
        families = self.terms.families
        if families is None:
            return 1.0
        weight = float(self.unit.weight)
        if self.terms.of_tree:
            return weight if self.rows_above is None else weight * self.rows_above.grain
        if all(self.working.levels[variable] == UNIT for variable in scope):
            return weight
        size_column = families.domain.index(families.size)
        edges = np.array(edge_ticks(families.domain.attributes[size_column]), dtype=np.float64)
        rows = (edges[:-1] + edges[1:] - 1) / 2
        shares = np.exp(self.working.base[size_column,])[self.working.variables[size_column].bins]
        shares = shares * self.working.within[size_column]
        return weight * float((shares / rows).sum() / shares.sum())

    @property
    def paired(self) -> list[int]:
        """The attributes of two working bins or more that candidate pairs hold. Of others no value was found:
        no table of several columns asks about them, and where discovery has their one-way tables they are not
        even counted."""
        names, sizes = self.domain.names, self.working.sizes
        in_pairs = {name for query in self.pairs for name in query.attrs}
        return [index for index, name in enumerate(names) if sizes[index] > 1 and name in in_pairs]

    @property
    def many(self) -> bool:
        """Whether there are so many attributes that the scores take much of the budget, in one round."""
        return len(self._sizes) > self.constants.preselect_between[1]

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.working.sizes[: len(self.domain.attributes)]

    @property
    def preselection(self) -> tuple[int, float]:
        """Pairs that a private choice selects before their distances are asked for (0: none), and its share
        of the budget of the scores."""
        constants, attributes = self.constants, len(self._sizes)
        fewest, most = constants.preselect_between
        if attributes <= most and not self.budget.gaussian:
            return constants.pure_preselected * attributes, constants.pure_preselect_share
        if fewest <= attributes <= most:
            return constants.preselected * attributes, constants.preselect_share
        return 0, 0.0

    def parts(self, budget: Budget) -> tuple[Budget, Budget]:
        """The budget of a round for the scores, and for the tables that they choose."""
        if self.many:
            share = score_share_of_many(self._sizes, budget.law().power, self.constants)
        else:
            share = score_share(self.rho, self.constants, gaussian=budget.gaussian)
        scores, tables = budget.split((share, 100 - share))
        return scores, tables


_FIT_SHARE = 0.5
# Share of the time after the last question; the rest is for the sample.


@dataclass(frozen=True, slots=True)
class State:
    """``tables``: beyond one attribute, over working bins. ``total``: rows, at least 1. ``misfit``: that of
    the last fit. ``beside``: tables of pairs that are not in the tree; the sample meets them.
    ``dispersions``: of pairs of attributes, as their scores told them, one round after the other. ``sets``:
    attributes whose joint table rows have to keep, because no pairs show it. ``grouped``: the
    variable after the attributes is that of hidden groups, on which all of them depend."""

    total: float
    beliefs: Beliefs
    tables: Mapping[Scope, Observation] = field(default_factory=dict)
    potentials: Potentials = field(default_factory=dict)
    misfit: float = 0.0
    beside: Mapping[Scope, Observation] = field(default_factory=dict)
    dispersions: tuple[Dispersions, ...] = ()
    sets: tuple[Scope, ...] = ()
    grouped: bool = False


def independence(task: Task) -> State:
    """The first model: the one-way tables alone."""
    fixed = {**task.working.base, **task.working.links}
    tree = task.working.tree(fixed)
    return State(task.total, calibrate(tree, fixed, given_tables=task.given(tree)))


def fitted(
    task: Task,
    state: State,
    tables: Mapping[Scope, Observation],
    outside_scopes: Collection[Scope],
    *,
    last: bool,
) -> State:
    """The graphical model of all ``tables`` but those of ``outside_scopes``, which are kept; its fit starts
    where the last fit ended.

    The last fit, after the last question, follows tables that agree on one-way sums: first around
    independence, then around what these tables make likely. Only it can be cut short; earlier fits form
    questions.
    """
    working, constants, deadline = task.working, task.constants, task.terms.deadline
    inside = {scope: table for scope, table in tables.items() if scope not in outside_scopes}
    outside = {scope: table for scope, table in tables.items() if scope in outside_scopes}
    observed = {**working.observed, **inside}
    total = max(total_of(list(observed.values())), 1.0)
    tree = working.tree(observed)
    base = {**working.base, **working.links}
    if last:
        observed = agreeing(observed, working.links, total)
    observed, given_tables = working.fitted(observed), task.given(tree)

    def stop() -> bool:
        return last and deadline.over(_FIT_SHARE, "the last fit stopped early")

    first = constants.iterations // 2 if last else constants.iterations
    most = first + constants.iterations_last if last else first
    clock = deadline.running() if last else nullcontext()
    with clock, phase("fit", most) as advance:
        fit = fit_potentials(
            Likelihood(tree, observed, total, base, given_tables=given_tables),
            state.potentials,
            first,
            constants.tolerance_first if last else constants.tolerance,
            stop,
            advance,
        )
        if last and not stop():
            fit = fit_potentials(
                _centred(task, fit, observed, total, base, given_tables),
                fit.potentials,
                constants.iterations_last,
                constants.tolerance_last,
                stop,
                advance,
            )
    return State(
        total, fit.beliefs, inside, fit.potentials, fit.misfit, outside, state.dispersions, state.sets
    )


def _centred(
    task: Task,
    first: Fit,
    observed: Mapping[Scope, Observation],
    total: float,
    base: Mapping[Scope, FloatArray],
    given_tables: Mapping[int, FloatArray],
) -> Likelihood:
    """The objective around what the pair tables make likely after a first fit (``fit/centres.py``)."""
    attributes = task.domain.attributes
    ordered = [attributes[variable.attribute].ordered for variable in task.working.variables]
    around = centres(first.potentials, first.beliefs, observed, total, ordered)
    around |= {scope: first.potentials[scope] for scope in observed if len(scope) == 1}
    return Likelihood(first.beliefs.tree, observed, total, base, around, given_tables)


def beside_the_tree(task: Task, measured: Sequence[Scope], refused: Set[Scope]) -> frozenset[Scope]:
    """The ``refused`` pairs that no clique of the tree of the others ``measured`` holds."""
    working = task.working
    if not refused:
        return frozenset()
    inside = [scope for scope in measured if scope not in refused]
    tree = working.tree([*working.observed, *inside])
    return frozenset(pair for pair in refused if tree.home(pair) is None)


_FAINTEST = 1e-200
# Rows that a model expects: no less, so that no ratio to them leaves float64. A cell of fewer stays one.


def targets(task: Task, state: State) -> dict[Scope, FloatArray]:
    """Of each pair of attributes beside the tree its joint probabilities over working bins.

    A pair that was measured both with a coarse twin and without follows the larger table. What a coarse
    table says of a coarse cell holds for the finer cells in it.
    """
    working, sizes = task.working, task.working.sizes
    joints = dict[Scope, FloatArray]()
    scopes = sorted(state.beside, key=lambda scope: (cells_of([scope], sizes), scope))
    tables = all_pairs(state.beliefs, [*scopes, *{working.attributes(scope) for scope in scopes}])
    for scope in scopes:
        ordered = [task.domain.attributes[working.variables[v].attribute].ordered for v in scope]
        expected = state.total * tables[scope]
        ratio = target(state.beside[scope], expected, ordered) / np.maximum(expected, _FAINTEST)
        chosen = [working.variables[v] for v in scope]
        if chosen[0].attribute > chosen[1].attribute:
            chosen, ratio = chosen[::-1], ratio.T
        pair = working.attributes(scope)
        bins = []
        for variable in chosen:  # the bin of this variable for each working bin of its attribute
            fine_bins = working.variables[variable.attribute].bins
            bins.append(variable.bins[np.unique(fine_bins, return_index=True)[1]])
        joint = tables[pair] * ratio[np.ix_(*bins)]
        joints[pair] = joint / joint.sum()
    return joints
