"""The model of adaptive marginals: a graphical model over working bins, and codes within bins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.belief import Beliefs, marginals
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.levelled import levelled_network
from dpsyn_sql.fit.network import ModelTables, Network, affordable, largest, tree_network
from dpsyn_sql.fit.pairs import all_pairs
from dpsyn_sql.fit.sums import summed
from dpsyn_sql.fit.variances import Components
from dpsyn_sql.methods.models.checks import Answering, over_codes
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.planning.families import ROW, Families
from dpsyn_sql.rows.sample.families import FamilySampler
from dpsyn_sql.rows.sample.graphical import GraphicalSampler
from dpsyn_sql.rows.sample.moments import Succession, succession


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

    def _answers(self, places: tuple[int, ...]) -> bool:
        """Whether they are one or two attributes, or several within one clique."""
        return len(places) <= 2 or self._together(places)

    def _together(self, variables: Sequence[int]) -> bool:
        """Whether a clique holds all of them."""
        return self.beliefs.tree.home(tuple(sorted(variables))) is not None

    def _counts(self, places: tuple[int, ...]) -> FloatArray:
        return over_codes(max(0.0, self.total) * self.joint(places), places, self.bins, self.within)

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
        own = self.families
        if own is not None and not own.by_themselves:
            place = self.domain.index
            previous = {place(hidden): place(shown) for hidden, shown in own.previous}
            return levelled_network(
                self.beliefs,
                self.bins,
                self.within,
                self.domain.names,
                previous,
                given=bool(own.above),
                kept=own.kept,
            )
        made = tree_network(self.beliefs, self.bins, self.within, self.domain.names)
        return made if own is None else replace(made, levels=(ROW,) * len(made.nodes))

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
        found: dict[Scope, FloatArray] = {}
        for clique, table in zip(self.beliefs.tree.cliques, self.beliefs.tables, strict=True):
            twins = [axis for axis, variable in enumerate(clique) if variable >= len(self.bins)]
            scope = tuple(variable for variable in clique if variable < len(self.bins))
            if scope and scope not in found:
                found[scope] = summed(table, twins)
        return {scope: found[scope] for scope in largest(found)}

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> GraphicalSampler | FamilySampler:
        """Rows with low variance, balanced if ``deadline`` leaves the time; with families those of units.

        No deadline where tables are below: their evidence is the same rows, drawn once more.
        """
        own = self.families
        if own is None:
            return self.row_sampler(deadline)
        if own.by_themselves:
            return FamilySampler(
                self.network(), own, rows_of_root=self.row_sampler(NO_DEADLINE if own.below else deadline)
            )
        return FamilySampler(self.network(), own, self._succession(own))

    def _succession(self, families: Families) -> Succession | None:
        """How the moments of rows follow each other; None if nothing orders rows, or none follows."""
        hidden = next((name for name, of in families.previous if of == families.order), None)
        if hidden is None:
            return None
        before, own = self.domain.index(hidden), self.domain.index(families.order)
        return succession(self.joint((before, own)), self.bins[own], self.bins[before], self.within[before])

    def row_sampler(self, deadline: Deadline = NO_DEADLINE) -> GraphicalSampler:
        """Rows that are each by themselves, with low variance, balanced if ``deadline`` leaves the time."""
        return GraphicalSampler(
            self.beliefs, self.bins, self.within, self.beside, self.sets, self.balance, deadline
        )
