"""Joint distributions of pairs of variables of a junction tree, in and across cliques.

Out-of-clique queries (Koller and Friedman 2009, 10.3.3.2) of many variables at once. Of a pair the variable
that comes in earlier, from the roots on, is carried to the clique that brings in the later one: its joint
table with a separator becomes that with the next one by the conditional distribution of the next given the
last. The tables of a block of variables are rows of one matrix, so that a step is one product for all.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.belief import Beliefs, arranged, marginals
from dpsyn_sql.fit.graph import JunctionTree, Scope
from dpsyn_sql.fit.sums import summed

_WIDEST = 1_024
# Rows of a block: longer ones are multiplied no faster.

_MOST_CELLS = 2**22
# About the most cells of a matrix: rows times separators.


def all_pairs(beliefs: Beliefs, pairs: Sequence[Scope]) -> dict[Scope, FloatArray]:
    """Joint distributions of pairs of variables (ascending), each with ascending axes."""
    tree, place = beliefs.tree, beliefs.tree.places
    beside = {
        variable: set(tree.cliques[index])
        for index in tree.order
        for variable in tree.cliques[index]
        if variable not in tree.separators[index]
    }
    inside, partners = list[Scope](), dict[int, list[int]]()
    for one, other in pairs:
        first, second = (one, other) if place[one] < place[other] else (other, one)
        if first in beside[second]:  # else no clique holds both
            inside.append((one, other))
        else:
            partners.setdefault(first, []).append(second)
    found = marginals(beliefs, inside)
    if not partners:
        return found
    own = marginals(beliefs, [(variable,) for variable in sorted(partners)])
    steps = _Steps(beliefs)
    for block in _blocks(tree, sorted(partners, key=place.__getitem__)):
        wanted: dict[int, list[int]] = {}
        for variable in block:
            for other in partners[variable]:
                wanted.setdefault(other, []).append(variable)
        tables = {variable: own[variable,][:, None] for variable in block}
        for other, variable, table in _tables(steps, tables, wanted):
            if variable < other:
                found[variable, other] = table
            else:
                found[other, variable] = table.T
    return found


def _blocks(tree: JunctionTree, variables: Sequence[int]) -> Iterator[list[int]]:
    """Runs of variables whose codes together are the rows of a matrix."""
    rows = max((math.prod(tree.sizes[v] for v in separator) for separator in tree.separators), default=1)
    most, block, held = min(_WIDEST, _MOST_CELLS // rows), list[int](), 0
    for variable in variables:
        if block and held + tree.sizes[variable] > most:
            yield block
            block, held = [], 0
        block.append(variable)
        held += tree.sizes[variable]
    yield block


Tables = dict[int, FloatArray]
"""Of variables their joint tables (codes, configurations of a separator) with it."""


class _Steps:
    """Products of tables of separators with conditional distributions within cliques, which are kept."""

    def __init__(self, beliefs: Beliefs) -> None:
        self.beliefs, self.tree = beliefs, beliefs.tree
        self._known: dict[tuple[int, Scope, Scope, Scope], FloatArray] = {}

    def rows(self, scope: Scope) -> int:
        """Configurations of variables."""
        return math.prod(self.tree.sizes[variable] for variable in scope)

    def within(self, index: int, target: Scope, variable: int) -> FloatArray:
        """(Codes of ``variable``, configurations of ``target``), all in one clique."""
        table = arranged(self.beliefs.tables[index], self.tree.cliques[index], (variable, *target))
        return table.reshape(self.tree.sizes[variable], -1)

    def carried(self, index: int, separator: Scope, tables: Tables, target: Scope) -> Tables:
        """The tables with ``target`` of variables whose tables with a separator of this clique are known."""
        if target == separator or not tables:
            return tables
        first, *others = tables.values()
        rows = np.concatenate([first, *others]) if others else first
        rows = self._carried(index, separator, rows, target)
        ends = itertools.accumulate(len(table) for table in tables.values())
        return {v: rows[end - len(tables[v]) : end] for v, end in zip(tables, ends, strict=True)}

    def _carried(self, index: int, separator: Scope, tables: FloatArray, target: Scope) -> FloatArray:
        """P(v, T) = sum over S without T of P(v, S) P(T without S | S), S the separator; of each row."""
        kept = tuple(v for v in separator if v in target)
        gone = tuple(v for v in separator if v not in target)
        new = tuple(v for v in target if v not in separator)
        tables = tables.reshape([-1, *(self.tree.sizes[v] for v in separator)])
        if not new:
            return summed(tables, [1 + separator.index(v) for v in gone]).reshape(-1, self.rows(target))
        tables = tables.transpose([0, *(1 + separator.index(v) for v in (*kept, *gone))])
        tables = tables.reshape(-1, self.rows(kept), self.rows(gone)).transpose(1, 0, 2)
        mixed = (tables @ self._conditional(index, kept, gone, new)).transpose(1, 0, 2)
        names = (*kept, *new)
        mixed = mixed.reshape([-1, *(self.tree.sizes[v] for v in names)])
        mixed = mixed.transpose([0, *(1 + names.index(v) for v in target)])
        return mixed.reshape(-1, self.rows(target))

    def _conditional(self, index: int, kept: Scope, gone: Scope, new: Scope) -> FloatArray:
        """P(new | kept, gone) in a clique, three axes: configurations of kept, gone and new."""
        place = index, kept, gone, new
        if place not in self._known:
            local = arranged(self.beliefs.tables[index], self.tree.cliques[index], (*kept, *gone, *new))
            local = local.reshape(self.rows(kept), self.rows(gone), self.rows(new))
            weight = local.sum(axis=2, keepdims=True)
            self._known[place] = np.divide(local, weight, out=np.zeros_like(local), where=weight > 0)
        return self._known[place]


def _tables(
    steps: _Steps, own: Tables, wanted: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int, FloatArray]]:
    """(later variable, variable of the block, their joint table with the later one last) of what is
    ``wanted``: by the later variable those of the block, whose ``own`` tables are (codes, 1)."""
    tree, places = steps.tree, steps.tree.places
    partners = dict.fromkeys(own, 0)  # the places of each one's as bits
    for later, variables in wanted.items():
        for variable in variables:
            partners[variable] |= 1 << places[later]
    last = max(places[later] for later in wanted)
    upward, arrived = _upward(steps, own, partners, last), dict[int, dict[Scope, Tables]]()
    for index in tree.order:
        start, end = tree.spans[index]
        if start > last:
            break
        above, separator, below = tree.parents[index], tree.separators[index], (1 << end) - (1 << start)
        needed = [v for v in own if partners[v] & below and places[v] < start and v not in separator]
        if needed:
            tables = _downward(steps, index, needed, arrived.get(above, {})) if separator else own
            arrived[index] = {separator: dict(tables)}
            for later in tree.cliques[index]:
                if later in wanted and later not in separator:
                    told = {variable: tables[variable] for variable in wanted[later]}
                    for variable, table in steps.carried(index, separator, told, (later,)).items():
                        yield later, variable, table
        if index in upward:
            arrived.setdefault(above, {}).setdefault(separator, {}).update(upward[index])


def _downward(steps: _Steps, index: int, needed: Sequence[int], arrived: Mapping[Scope, Tables]) -> Tables:
    """Tables with the separator of a clique of what is ``needed`` below it: of variables of its parent, and
    of those whose tables ``arrived`` there."""
    tree, separator, parent = steps.tree, steps.tree.separators[index], steps.tree.parents[index]
    inside, asked = set(tree.cliques[parent]), set(needed)
    found = {v: steps.within(parent, separator, v) for v in needed if v in inside}
    for own, tables in arrived.items():
        wanted = {variable: table for variable, table in tables.items() if variable in asked}
        found |= steps.carried(parent, own, wanted, separator)
    return found


def _upward(steps: _Steps, own: Tables, partners: Mapping[int, int], last: int) -> dict[int, Tables]:
    """Of cliques with variables of the block below the separator their tables with it; of those alone that
    have a partner after them, up to the place ``last``."""
    tree, found, below = steps.tree, dict[int, Tables](), dict[int, list[int]]()
    for index in reversed(tree.order):
        separator, end = tree.separators[index], tree.spans[index][1]
        children = below.pop(index, [])
        if not separator or end > last:
            continue
        tables = {
            variable: steps.within(index, separator, variable)
            for variable in tree.cliques[index]
            if variable in own and variable not in separator and partners[variable] >> end
        }
        for child in children:
            further = {v: table for v, table in found[child].items() if partners[v] >> end}
            tables |= steps.carried(index, tree.separators[child], further, separator)
        if tables:
            found[index] = tables
            below.setdefault(tree.parents[index], []).append(index)
    return found
