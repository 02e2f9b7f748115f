"""What is kept of a model so that SQL can answer marginals: joint tables over working bins.

A marginal over some attributes is summed from the smallest table that holds them, and shared out to codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.errors import InputError
from dpsyn_sql.fit.adaptive import GraphicalModel, all_pairs
from dpsyn_sql.fit.belief import summed
from dpsyn_sql.fit.independent import ProductModel
from dpsyn_sql.interfaces import Model

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Table = tuple[tuple[int, ...], FloatArray]

MOST_CELLS = 2**22
"""Cells that are kept of pairs that no clique holds; smaller ones first. 4 million take some 16 MB."""


@dataclass(frozen=True, slots=True)
class Served:
    """Joint probabilities: ``tables`` are (positions of attributes, array over their bins; of shape (1,)
    if each has one bin, because arrays have at most 64 axes).

    ``bins[i]`` (int64, one per code of attribute i) is the bin of each code, ``within[i]`` its share of it.
    """

    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    tables: tuple[Table, ...]


@singledispatch
def served(model: Model) -> Served:
    """Tables of a model of any kind: all attributes and pairs that it answers."""
    total = max(model.total, 1e-300)
    names, sizes = model.domain.names, model.domain.shape()
    tables, left = list[Table](), MOST_CELLS
    for size in (1, 2):
        wanted = combinations(range(len(names)), size)
        for scope in sorted(wanted, key=lambda scope: int(np.prod([sizes[i] for i in scope]))):
            left -= int(np.prod([sizes[i] for i in scope]))
            if left < 0:
                break
            try:
                counts = model.project([names[i] for i in scope])
            except InputError:
                continue
            tables.append((scope, counts / total))
    bins = tuple(np.arange(size) for size in sizes)
    return Served(bins, tuple(np.ones(size) for size in sizes), tuple(tables))


@served.register
def _(model: ProductModel) -> Served:
    """Independent attributes: one bin each, so that every marginal is a product of shares."""
    names, sizes = model.domain.names, model.domain.shape()
    return Served(
        tuple(np.zeros(size, np.int64) for size in sizes),
        tuple(np.asarray(model.margins.probabilities[name], np.float64) for name in names),
        ((tuple(range(len(names))), np.ones(1)),),
    )


@served.register
def _(model: GraphicalModel) -> Served:
    """The cliques without their twins, and pairs of attributes across cliques."""
    cliques = _largest(_attribute_tables(model))
    inside = {pair for scope, _ in cliques for pair in combinations(scope, 2)}
    sizes = model.beliefs.tree.sizes
    across, left = list[tuple[int, int]](), MOST_CELLS
    pairs = [pair for pair in combinations(range(len(model.bins)), 2) if pair not in inside]
    for pair in sorted(pairs, key=lambda pair: sizes[pair[0]] * sizes[pair[1]]):
        left -= sizes[pair[0]] * sizes[pair[1]]
        if left < 0:
            break
        across.append(pair)
    return Served(model.bins, model.within, (*cliques, *all_pairs(model.beliefs, across).items()))


def _attribute_tables(model: GraphicalModel) -> Iterator[Table]:
    tree = model.beliefs.tree
    for clique, table in zip(tree.cliques, model.beliefs.tables, strict=True):
        twins = [axis for axis, variable in enumerate(clique) if variable >= len(model.bins)]
        scope = tuple(variable for variable in clique if variable < len(model.bins))
        if scope:
            yield scope, summed(table, twins)


def _largest(tables: Iterator[Table]) -> Sequence[Table]:
    """Without those whose attributes another one holds too."""
    ordered = sorted(tables, key=lambda table: -len(table[0]))
    kept = list[Table]()
    for scope, table in ordered:
        if not any(set(scope) <= set(other) for other, _ in kept):
            kept.append((scope, table))
    return kept
