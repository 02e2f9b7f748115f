"""Joint distributions of pairs of variables of a junction tree, in and across cliques.

Out-of-clique queries (Koller and Friedman 2009, 10.3.3.2) of many variables at once. Of a pair the variable
that comes in earlier, from the roots on, is carried to the clique that brings in the later one: its joint
table with a separator becomes that with the next one by the conditional distribution of the next given the
last. The tables of a block of variables are columns of one matrix, so that a step is one product for all.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dpsyn_sql.fit.arrays import FloatArray
from dpsyn_sql.fit.belief import Beliefs, arranged, marginals
from dpsyn_sql.fit.graph import JunctionTree, Scope

_WIDEST = 1_024
# Columns of a block: wider ones are multiplied no faster.

_MOST_CELLS = 2**22
# About the most cells of a matrix: separators times columns.


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
        carried = _Block(block, [own[variable,] for variable in block], place)
        wanted: dict[int, list[int]] = {}
        for variable in block:
            for other in partners[variable]:
                wanted.setdefault(other, []).append(variable)
        for other, variable, table in _tables(steps, carried, wanted):
            if variable < other:
                found[variable, other] = table.T
            else:
                found[other, variable] = table
    return found


def _blocks(tree: JunctionTree, variables: Sequence[int]) -> Iterator[list[int]]:
    """Runs of variables whose codes together are the columns of a matrix."""
    rows = max((math.prod(tree.sizes[v] for v in separator) for separator in tree.separators), default=1)
    most, block, held = min(_WIDEST, _MOST_CELLS // rows), list[int](), 0
    for variable in variables:
        if block and held + tree.sizes[variable] > most:
            yield block
            block, held = [], 0
        block.append(variable)
        held += tree.sizes[variable]
    yield block


class _Block:
    """Variables in the order in which they come in, and the columns of each."""

    def __init__(
        self, variables: Sequence[int], own: Sequence[FloatArray], places: Mapping[int, int]
    ) -> None:
        ends = list(itertools.accumulate(table.size for table in own))
        self._places, self._ends = [places[variable] for variable in variables], [0, *ends]
        self.columns = {
            variable: slice(end - table.size, end)
            for variable, table, end in zip(variables, own, ends, strict=True)
        }
        self.own, self.width = np.concatenate(own), ends[-1]

    def before(self, place: int) -> int:
        """How many columns are of variables that come in before this place."""
        return self._ends[bisect_left(self._places, place)]

    def inside(self, variables: Sequence[int]) -> list[int]:
        """Those of ``variables`` that are in the block."""
        return [variable for variable in variables if variable in self.columns]


@dataclass(slots=True)
class _Source:
    """Joint tables (configurations of a separator, columns): zeros but for columns ``first`` to ``last``."""

    tables: FloatArray
    first: int
    last: int


@dataclass(slots=True)
class _Sources:
    """What arrived at a clique, by separator."""

    by_separator: dict[Scope, _Source] = field(default_factory=dict)

    def add(self, separator: Scope, tables: FloatArray, first: int, last: int, width: int) -> None:
        """Tables of further columns."""
        known = self.by_separator.get(separator)
        if known is None:
            self.by_separator[separator] = _Source(tables, first, last)
            return
        if known.tables.shape[1] < width:
            whole = np.zeros((len(tables), width))
            whole[:, : known.tables.shape[1]] = known.tables
            known.tables = whole
        known.tables[:, first:last] = tables[:, first:last]
        known.first, known.last = min(known.first, first), max(known.last, last)


class _Steps:
    """Products of tables of separators with conditional distributions within cliques, which are kept."""

    def __init__(self, beliefs: Beliefs) -> None:
        self.beliefs, self.tree = beliefs, beliefs.tree
        self._known: dict[tuple[int, Scope, Scope, Scope], FloatArray] = {}

    def rows(self, scope: Scope) -> int:
        """Configurations of variables."""
        return math.prod(self.tree.sizes[variable] for variable in scope)

    def within(self, index: int, target: Scope, variable: int) -> FloatArray:
        """(Configurations of ``target``, codes of ``variable``), all in one clique."""
        table = arranged(self.beliefs.tables[index], self.tree.cliques[index], (*target, variable))
        return table.reshape(-1, self.tree.sizes[variable])

    def carried(self, index: int, separator: Scope, tables: FloatArray, target: Scope) -> FloatArray:
        """P(T, v) = sum over S without T of P(T without S | S) P(S, v), S the separator; of each column."""
        if target == separator:
            return tables
        kept = tuple(v for v in separator if v in target)
        gone = tuple(v for v in separator if v not in target)
        new = tuple(v for v in target if v not in separator)
        if gone or kept != separator:
            axes = [separator.index(v) for v in (*kept, *gone)]
            tables = tables.reshape([*(self.tree.sizes[v] for v in separator), -1])
            tables = tables.transpose([*axes, len(axes)])
        tables = tables.reshape(self.rows(kept), self.rows(gone), -1)
        mixed = tables.sum(axis=1) if not new else self._conditional(index, kept, gone, new) @ tables
        names = (*kept, *new)
        if names != target:
            mixed = mixed.reshape([*(self.tree.sizes[v] for v in names), -1])
            mixed = mixed.transpose([*(names.index(v) for v in target), len(names)])
        return mixed.reshape(self.rows(target), -1)

    def _conditional(self, index: int, kept: Scope, gone: Scope, new: Scope) -> FloatArray:
        """P(new | kept, gone) in a clique, three axes: configurations of kept, new and gone."""
        place = index, kept, gone, new
        if place not in self._known:
            local = arranged(self.beliefs.tables[index], self.tree.cliques[index], (*kept, *new, *gone))
            local = local.reshape(self.rows(kept), self.rows(new), self.rows(gone))
            weight = local.sum(axis=1, keepdims=True)
            self._known[place] = np.divide(local, weight, out=np.zeros_like(local), where=weight > 0)
        return self._known[place]


def _tables(
    steps: _Steps, block: _Block, wanted: Mapping[int, Sequence[int]]
) -> Iterator[tuple[int, int, FloatArray]]:
    """(later variable, variable of the block, their joint table with the later one first) of what is
    ``wanted``: by the later variable those of the block."""
    tree, later = steps.tree, sorted(steps.tree.places[variable] for variable in wanted)
    upward, arrived = _upward(steps, block, later[-1]), dict[int, _Sources]()
    for index in tree.order:
        start, end = tree.spans[index]
        if start > later[-1]:
            break
        above, separator = tree.parents[index], tree.separators[index]
        if bisect_left(later, start) < bisect_left(later, end):
            tables = _downward(steps, block, index, arrived.get(above))
            arrived[index] = _Sources({separator: _Source(tables, 0, tables.shape[1])})
            for variable in tree.cliques[index]:
                if variable in wanted and variable not in separator:
                    across = steps.carried(index, separator, tables, (variable,))
                    for other in wanted[variable]:
                        yield variable, other, across[:, block.columns[other]]
        if index in upward and above in arrived:
            source = upward[index]
            arrived[above].add(separator, source.tables, source.first, source.last, block.width)


def _downward(steps: _Steps, block: _Block, index: int, above: _Sources | None) -> FloatArray:
    """The separator of a clique with all variables of the block that came in before and are not in it."""
    tree, separator = steps.tree, steps.tree.separators[index]
    start, _ = tree.spans[index]
    width = block.before(start)
    if not separator:  # another tree of the forest: independent
        return block.own[None, :width]
    parent = tree.parents[index]
    inside = [v for v in block.inside(tree.cliques[parent]) if v not in separator and tree.places[v] < start]
    sources = above.by_separator if above is not None else {}
    if len(sources) == 1 and separator in sources and not inside:
        return sources[separator].tables[:, :width]
    found = np.zeros((steps.rows(separator), width))
    for own, source in sources.items():
        columns = slice(source.first, min(source.last, width))
        if columns.start < columns.stop:
            found[:, columns] += steps.carried(parent, own, source.tables[:, columns], separator)
    for variable in inside:
        found[:, block.columns[variable]] = steps.within(parent, separator, variable)
    return found


def _upward(steps: _Steps, block: _Block, last: int) -> dict[int, _Source]:
    """Of cliques with variables of the block below the separator with these; of those alone after which
    there are variables up to the place ``last``."""
    tree, found, below = steps.tree, dict[int, _Source](), dict[int, list[int]]()
    for index in reversed(tree.order):
        separator = tree.separators[index]
        fresh = [v for v in block.inside(tree.cliques[index]) if v not in separator]
        children = below.pop(index, [])
        if not separator or tree.spans[index][1] > last or not (fresh or children):
            continue
        columns = [block.columns[variable] for variable in fresh]
        first = min([one.start for one in columns] + [found[child].first for child in children])
        end = max([one.stop for one in columns] + [found[child].last for child in children])
        tables = np.zeros((steps.rows(separator), end))
        for child in children:
            source = found[child]
            part = slice(source.first, source.last)
            tables[:, part] = steps.carried(index, tree.separators[child], source.tables[:, part], separator)
        for variable, part in zip(fresh, columns, strict=True):
            tables[:, part] = steps.within(index, separator, variable)
        found[index] = _Source(tables, first, end)
        below.setdefault(tree.parents[index], []).append(index)
    return found
