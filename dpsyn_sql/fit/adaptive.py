"""The model of adaptive marginals: a graphical model over working bins, and codes within bins."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.domain.attributes import Domain
from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.belief import Beliefs, Conditionals, marginals, pair_tables
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.served import checked_names

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GraphicalModel:
    """A fitted graphical model.

    Variable i < number of attributes of ``beliefs`` is attribute i in its working bins; further variables
    are coarse twins, functions of an attribute's bin. ``bins[i]`` (int64, one per code) is the working
    bin of each code, ``within[i]`` (float64, one per code) its probability given the bin.
    """

    domain: Domain
    total: float
    beliefs: Beliefs
    bins: tuple[NDArray[np.int64], ...]
    within: tuple[FloatArray, ...]

    def project(self, attrs: Sequence[str]) -> FloatArray:
        """Expected counts of one or two attributes, or of several within one clique; sums to
        max(0, total).

        Raises:
            InputError: none given, one twice or unknown, or more than two that no clique holds.
        """
        names = checked_names(self.domain, attrs)
        variables = tuple(self.domain.index(name) for name in names)
        table = self._joint(variables)
        for axis, variable in enumerate(variables):
            table = table.take(self.bins[variable], axis=axis)
        within = reduce(np.multiply.outer, (self.within[variable] for variable in variables))
        return np.asarray(max(0.0, self.total) * table * within)

    def _joint(self, variables: tuple[int, ...]) -> FloatArray:
        """Probabilities over working bins, axes in the order of ``variables``."""
        scope = tuple(sorted(variables))
        if self.beliefs.tree.home(scope) is not None:
            table = marginals(self.beliefs, [scope])[scope]
            return table.transpose([scope.index(variable) for variable in variables])
        if len(variables) == 2:
            own = marginals(self.beliefs, [(variable,) for variable in variables])
            return pair_tables(self.beliefs, variables[0], variables[1:], own, {})[variables[1]]
        raise InputError(
            "this model answers marginals of one or two attributes, and larger ones of attributes that were "
            "fitted together; count others in the synthetic table"
        )


def within_bins(probabilities: FloatArray, bins: NDArray[np.int64]) -> FloatArray:
    """Of each code its probability given its bin; uniform in a bin of no mass."""
    mass = np.bincount(bins, weights=probabilities)[bins]
    codes = np.bincount(bins)[bins]
    return np.divide(probabilities, mass, out=1.0 / codes, where=mass > 0)


def all_pairs(beliefs: Beliefs, pairs: Sequence[Scope]) -> dict[Scope, FloatArray]:
    """Joint distributions of many pairs of variables, in and across cliques.

    Of a pair across cliques the variable nearer to a root is carried to the other one: the later a variable
    comes in, the fewer are left that it has to be carried to, and the less of the tree.
    """
    found: dict[Scope, FloatArray] = {}
    known: Conditionals = {}
    own = marginals(beliefs, [(variable,) for variable in sorted(set(itertools.chain(*pairs)))])
    place = {variable: number for number, variable in enumerate(beliefs.tree.introduced)}
    carried: dict[int, list[int]] = {}
    for first, second in (sorted(pair, key=place.__getitem__) for pair in pairs):
        carried.setdefault(first, []).append(second)
    for first, others in carried.items():
        for second, table in pair_tables(beliefs, first, others, own, known).items():
            found[min(first, second), max(first, second)] = table if first < second else table.T
    return found
