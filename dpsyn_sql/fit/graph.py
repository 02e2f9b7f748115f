"""Undirected graphs over attributes: triangulation and junction trees.

Terms as in Koller and Friedman, Probabilistic Graphical Models (2009): variable elimination
orders (9.4.3), cliques of the triangulated graph, junction (clique) trees (10.4). Variables are
the integers 0..n-1; a scope is an ascending tuple of variables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from heapq import heapify, heappop, heappush
from itertools import combinations, groupby
from types import MappingProxyType

Scope = tuple[int, ...]

_LOG_UNITS = 2**32
# Logarithms of table sizes as integers: sums are exact, so that ties are ties on every machine.


@dataclass(frozen=True)
class JunctionTree:
    """Maximal cliques of a triangulated graph, joined to a forest with running intersection.

    ``parents[i]`` is the parent of clique i or -1 for a root, ``separators[i]`` what it shares with its
    parent, ``order`` lists every clique after its parent. Every variable is in some clique.
    ``levels``: of each variable, if those of higher levels were eliminated first. ``given_cliques``: those,
    first in ``order``, of variables whose joint distribution is given (``junction_tree``).
    """

    sizes: tuple[int, ...]
    cliques: tuple[Scope, ...]
    parents: tuple[int, ...]
    separators: tuple[Scope, ...]
    order: tuple[int, ...]
    levels: tuple[int, ...] = ()
    given_cliques: tuple[int, ...] = ()
    _homes: dict[Scope, int | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def cells(self) -> int:
        """Cells of all cliques together: what one calibration costs."""
        return cells_of(self.cliques, self.sizes)

    def home(self, scope: Scope) -> int | None:
        """The smallest clique that holds all of ``scope``, or None (remembered: a fit asks often)."""
        if scope not in self._homes:
            holding = set(range(len(self.cliques))).intersection(*(self._holding[v] for v in scope))
            self._homes[scope] = min(
                holding, key=lambda index: (cells_of([self.cliques[index]], self.sizes), index), default=None
            )
        return self._homes[scope]

    @cached_property
    def _holding(self) -> list[set[int]]:
        """Of each variable the cliques with it."""
        cliques_of: list[set[int]] = [set() for _ in self.sizes]
        for index, clique in enumerate(self.cliques):
            for variable in clique:
                cliques_of[variable].add(index)
        return cliques_of

    @cached_property
    def children(self) -> list[list[int]]:
        """Of each clique those that hang from it."""
        children: list[list[int]] = [[] for _ in self.cliques]
        for index, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(index)
        return children

    @cached_property
    def places(self) -> dict[int, int]:
        """Of each variable its place in the order in which the cliques bring them in from the roots."""
        order = (v for index in self.order for v in self.cliques[index] if v not in self.separators[index])
        return {variable: rank for rank, variable in enumerate(order)}

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """Of each clique the places of what it and those below it bring in: the first, and the one after."""
        spans, rank = [(0, 0)] * len(self.cliques), 0
        for index in self.order:
            fresh = len(self.cliques[index]) - len(self.separators[index])
            spans[index], rank = (rank, rank + fresh), rank + fresh
        for index in reversed(self.order):
            if (parent := self.parents[index]) >= 0:
                spans[parent] = spans[parent][0], max(spans[parent][1], spans[index][1])
        return spans


def cells_of(cliques: Iterable[Scope], sizes: Sequence[int]) -> int:
    """Cells of the tables over ``cliques``."""
    return sum(math.prod(sizes[v] for v in clique) for clique in cliques)


def largest(scopes: Iterable[Scope]) -> list[Scope]:
    """The scopes without those whose variables another one holds too, each once."""
    maximal, longer = list[Scope](), list[set[int]]()
    for _, group in groupby(sorted(dict.fromkeys(scopes), key=len, reverse=True), key=len):
        alone = [scope for scope in group if not any(members.issuperset(scope) for members in longer)]
        maximal += alone
        longer += map(set, alone)
    return maximal


class Triangulation:
    """Greedy elimination of a graph that is tried with one more scope again and again.

    Variables of the highest of ``levels`` go first (none: all have one level). Within a level those that
    need no fill edge go first, then the least table (min-weight, Koller and Friedman 9.4.3.2); ties go to the
    lower number. Given all variables of lower levels, those of a level then are a product of tables within
    cliques
    (strong triangulation, Jensen, Jensen and Dittmer 1994).

    The variables of the highest level that go before any fill edge is needed can go in any order, and a new
    edge between others changes nothing about them (a simplicial variable stays so until it goes). They are
    done once; only the rest is eliminated anew for each trial, with what of them hangs together with the ends
    of the new edge. Sets of variables are bit masks.
    """

    def __init__(self, sizes: Sequence[int], scopes: Iterable[Scope], levels: Sequence[int] = ()) -> None:
        self._sizes = sizes
        self._turns = [-level for level in levels] or [0] * len(sizes)
        self._weight = [round(_LOG_UNITS * math.log(max(size, 2))) for size in sizes]
        self._adjacent = _adjacency(len(sizes), scopes)
        left = _Left(dict(enumerate(self._adjacent)), {}, {})
        left.price(range(len(sizes)), self._weight)
        self._gone: dict[int, int] = {}  # of variables that go first their neighbours then
        self._masks, self.cells = list[int](), 0
        self._eliminate(left, math.inf)

    @property
    def cliques(self) -> list[Scope]:
        """The maximal cliques."""
        return [_members(clique) for clique in self._masks]

    def holds(self, scope: Scope) -> bool:
        """Whether a clique holds all of ``scope``: whether all are neighbours in the chordal graph."""
        wanted = sum(1 << variable for variable in scope)
        return all(wanted & ~self._chordal[variable] == 0 for variable in scope)

    def grown(self, scope: Scope, most: float = math.inf) -> Triangulation | None:
        """The triangulation of the graph with one more scope; None if it has more than ``most`` cells."""
        first, larger = self._simplicial, object.__new__(Triangulation)
        larger._sizes, larger._weight, larger._turns = self._sizes, self._weight, self._turns
        larger._adjacent = list(self._adjacent)
        affected = wanted = sum(1 << variable for variable in scope)
        for variable in scope:
            larger._adjacent[variable] |= wanted & ~(1 << variable)
            affected |= first.above.get(variable, 0)
        stays, gone = affected & first.all, first.all & ~affected
        remaining, changed = first.left.variables | stays, wanted
        for variable in _members(stays):
            changed |= larger._adjacent[variable] | 1 << variable
        for a, b in combinations(scope, 2):
            changed |= larger._adjacent[a] & larger._adjacent[b]
        left = _Left(
            {v: larger._adjacent[v] & remaining for v in _members(remaining)},
            dict(first.left.totals),
            dict(first.left.fills),
        )
        left.price(_members(changed & remaining), self._weight)
        larger._gone = {v: around for v, around in first.around.items() if gone >> v & 1}
        larger._masks = [clique for variable, clique in first.cliques.items() if gone >> variable & 1]
        larger.cells = first.cells - sum(first.cells_of.get(variable, 0) for variable in _members(stays))
        return larger if larger._eliminate(left, most, first.remainders, gone) else None

    def _eliminate(
        self, left: _Left, most: float, remainders: Mapping[int, int] = MappingProxyType({}), gone: int = 0
    ) -> bool:
        """Add the maximal cliques of what is ``left``; False as soon as there are more than ``most`` cells.

        ``remainders``: of the variables that are ``gone`` those with the same neighbours at their turn.
        """
        turns, weight, earlier = self._turns, self._weight, set[int]()
        for variable, around in left.taken(turns, weight):
            # An earlier clique holds this one only if it is this one and the variable it was made for.
            if (clique := around | 1 << variable) not in earlier and not remainders.get(clique, 0) & gone:
                self._masks.append(clique)
                self.cells += math.prod(self._sizes[member] for member in _members(clique))
                if self.cells > most:
                    return False
            earlier.add(around)
        return True

    @cached_property
    def _chordal(self) -> list[int]:
        """Of each variable those that are in a clique with it."""
        neighbours = [1 << variable for variable in range(len(self._sizes))]
        for clique in self._masks:
            for variable in _members(clique):
                neighbours[variable] |= clique
        return neighbours

    @cached_property
    def _simplicial(self) -> _Simplicial:
        first = min(self._turns, default=0)
        highest = sum(1 << variable for variable, turn in enumerate(self._turns) if turn == first)
        adjacent, order = self._adjacent, dict(self._gone)
        remaining = (1 << len(self._sizes)) - 1 & ~sum(1 << variable for variable in order)
        waiting = remaining & highest
        while waiting:
            variable = (waiting & -waiting).bit_length() - 1
            waiting &= waiting - 1
            around = adjacent[variable] & remaining
            if not _fills(around, adjacent):
                order[variable] = around
                remaining &= ~(1 << variable)
                waiting |= around & highest
        left = _Left({v: adjacent[v] & remaining for v in _members(remaining)}, {}, {})
        left.price(_members(remaining), self._weight)
        return _Simplicial(order, left, self._sizes)


class _Simplicial:
    """Variables of the highest level in an order in which they go without fill edges.

    ``around``: of each its neighbours then. ``above``: of each what has to stay if it does. ``remainders``:
    of each set of neighbours the variables that leave it. ``cliques``: of each with a maximal clique that
    one, ``cells_of`` its cells, ``cells`` those of all. ``left``: the others.
    """

    def __init__(self, around: Mapping[int, int], left: _Left, sizes: Sequence[int]) -> None:
        self.left, self.around = left, around
        self.all = sum(1 << variable for variable in around)
        self.above, self.remainders, self.cliques = dict[int, int](), dict[int, int](), dict[int, int]()
        for variable, neighbours in around.items():
            if (clique := neighbours | 1 << variable) not in self.remainders:
                self.cliques[variable] = clique
            self.remainders[neighbours] = self.remainders.get(neighbours, 0) | 1 << variable
        self.cells_of = {
            variable: math.prod(sizes[member] for member in _members(clique))
            for variable, clique in self.cliques.items()
        }
        self.cells = sum(self.cells_of.values())
        for variable in reversed(around):
            self.above[variable] = around[variable]
            for neighbour in _members(around[variable] & self.all):
                self.above[variable] |= self.above[neighbour]


@dataclass(slots=True)
class _Left:
    """Variables that are to be eliminated: of each its neighbours, the logarithm of its table, and whether
    its turn needs fill edges."""

    adjacent: dict[int, int]
    totals: dict[int, int]
    fills: dict[int, bool]

    @property
    def variables(self) -> int:
        """As a mask."""
        return sum(1 << variable for variable in self.adjacent)

    def price(self, variables: Iterable[int], weight: Sequence[int]) -> None:
        """Find out ``totals`` and ``fills`` of variables."""
        for variable in variables:
            around = self.adjacent[variable]
            self.totals[variable] = weight[variable] + sum(
                weight[neighbour] for neighbour in _members(around)
            )
            self.fills[variable] = _fills(around, self.adjacent)

    def taken(self, turns: Sequence[int], weight: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Each variable at its turn, with its neighbours then, which become neighbours of each other."""
        adjacent, totals, fills = self.adjacent, self.totals, self.fills
        prices = [(turns[v], fills[v], totals[v], v) for v in adjacent]
        heapify(prices)
        while prices:
            _, filled, total, variable = heappop(prices)
            if variable not in adjacent or (filled, total) != (fills[variable], totals[variable]):
                continue  # an earlier price
            around = adjacent.pop(variable)
            yield variable, around
            for changed in _members(self._join(variable, around, weight)):
                if changed in adjacent and (fills[changed] or around >> changed & 1):
                    fills[changed] = _fills(adjacent[changed], adjacent)
                    heappush(prices, (turns[changed], fills[changed], totals[changed], changed))

    def _join(self, variable: int, around: int, weight: Sequence[int]) -> int:
        """Join the neighbours of a variable that goes; returns whose price may have changed."""
        adjacent, totals, changed, gone = self.adjacent, self.totals, around, ~(1 << variable)
        for neighbour in _members(around):
            beyond = adjacent[neighbour]
            fill = around & ~beyond & ~(1 << neighbour)
            total = totals[neighbour] - weight[variable]
            for end in _members(fill):
                changed |= beyond & adjacent[end]
                total += weight[end]
            adjacent[neighbour], totals[neighbour] = (beyond | fill) & gone, total
        return changed


def _fills(around: int, adjacent: Sequence[int] | Mapping[int, int]) -> bool:
    """Whether any two of ``around`` are no neighbours."""
    left = around
    while left:
        lowest = left & -left
        left ^= lowest
        if around & ~adjacent[lowest.bit_length() - 1] & ~lowest:
            return True
    return False


def _adjacency(variables: int, scopes: Iterable[Scope]) -> list[int]:
    adjacent = [0] * variables
    for scope in scopes:
        together = sum(1 << variable for variable in scope)
        for variable in scope:
            adjacent[variable] |= together & ~(1 << variable)
    return adjacent


@lru_cache(maxsize=2**16)
def _members(mask: int) -> tuple[int, ...]:
    """Remembered: one trial after the other meets the same neighbours."""
    members = list[int]()
    while mask:
        lowest = mask & -mask
        members.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(members)


def junction_tree(
    sizes: Sequence[int],
    scopes: Iterable[Scope],
    levels: Sequence[int] = (),
    given_variables: Collection[int] = (),
) -> JunctionTree:
    """A junction tree whose cliques hold all ``scopes``; ``levels`` as of a ``Triangulation``.

    A maximum spanning forest of the separator sizes has the running intersection property (Koller and
    Friedman, 10.4.2). The largest clique of each tree is its root.

    ``given_variables``: those of the lowest level, if their joint distribution is known. They have cliques of
    their own then, from which the others hang: what of the others hangs together has a clique with all given
    variables that it depends on, and is below one that holds them too.
    """
    cliques = Triangulation(sizes, scopes, levels).cliques
    sets, given_cliques = [set(clique) for clique in cliques], list[int]()
    if given_variables:
        sets = [
            *map(set, largest(sorted({tuple(sorted(s & set(given_variables))) for s in sets} - {()}))),
            *(s for s in sets if not s <= set(given_variables)),
        ]
        cliques = [tuple(sorted(clique)) for clique in sets]
        given_cliques = [index for index, clique in enumerate(sets) if clique <= set(given_variables)]
    edges = _hung(sets, set(given_variables)) if given_variables else _spanning_forest(sets)
    parents, order = [-1] * len(cliques), list[int]()
    visited: set[int] = set()
    by_size = sorted(range(len(cliques)), key=lambda index: -cells_of([cliques[index]], sizes))
    for root in (*given_cliques, *by_size):
        waiting = [] if root in visited else [root]
        visited.add(root)
        while waiting:
            clique = waiting.pop()
            order.append(clique)
            for neighbour in edges[clique]:
                if neighbour not in visited:
                    visited.add(neighbour)
                    parents[neighbour] = clique
                    waiting.append(neighbour)
    separators = tuple(
        () if parent < 0 else tuple(sorted(sets[index] & sets[parent]))
        for index, parent in enumerate(parents)
    )
    return JunctionTree(
        tuple(sizes),
        tuple(cliques),
        tuple(parents),
        separators,
        tuple(order),
        tuple(levels),
        tuple(given_cliques),
    )


def _hung(sets: Sequence[set[int]], given_variables: set[int]) -> list[list[int]]:
    """Edges among cliques of given variables, among the others that share one that is not given, and one
    between each group of these and a clique that holds all given variables of the group."""

    def linked(i: int, j: int) -> bool:
        return bool((sets[i] & sets[j]) - given_variables) or (
            sets[i] <= given_variables and sets[j] <= given_variables
        )

    edges, grouped = _spanning_forest(sets, linked), set[int]()
    for first in range(len(sets)):
        if sets[first] <= given_variables or first in grouped:
            continue
        group, waiting = {first}, [first]
        while waiting:
            waiting += (new := set(edges[waiting.pop()]) - group)
            group |= new
        grouped |= group
        around = set[int]().union(*(sets[index] for index in group)) & given_variables
        member = next(index for index in sorted(group) if around <= sets[index])
        above = next(
            (index for index, clique in enumerate(sets) if clique <= given_variables and around <= clique),
            None,
        )
        if around and above is not None:
            edges[member].append(above)
            edges[above].append(member)
    return edges


def _spanning_forest(
    sets: Sequence[set[int]], linked: Callable[[int, int], bool] = lambda i, j: True
) -> list[list[int]]:
    """Kruskal's algorithm on the sizes of the intersections of those that are ``linked``; disjoint cliques
    stay apart."""
    leader = list(range(len(sets)))

    def find(index: int) -> int:
        while leader[index] != index:
            leader[index] = leader[leader[index]]
            index = leader[index]
        return index

    shared = sorted(
        (
            (len(sets[i] & sets[j]), i, j)
            for i in range(len(sets))
            for j in range(i)
            if sets[i] & sets[j] and linked(i, j)
        ),
        reverse=True,
    )
    edges: list[list[int]] = [[] for _ in sets]
    for _, i, j in shared:
        if find(i) != find(j):
            leader[find(i)] = find(j)
            edges[i].append(j)
            edges[j].append(i)
    return edges
