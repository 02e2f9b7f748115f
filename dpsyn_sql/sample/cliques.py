"""Rows of a calibrated tree over working bins, clique by clique, and codes within bins, systematically."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.belief import Beliefs
from dpsyn_sql.sample.cells import Codes, cells
from dpsyn_sql.sample.quotas import code_type
from dpsyn_sql.sample.systematic import stratified, systematic

FloatArray = NDArray[np.float64]
Wide = NDArray[np.int64]


def drawn_bins(beliefs: Beliefs, rows: int, generator: np.random.Generator) -> dict[int, Wide]:
    """Columns of all variables of the model, cliques after their parents."""
    tree = beliefs.tree
    columns: dict[int, Wide] = {}
    for index in tree.order:
        clique, separator = tree.cliques[index], tree.separators[index]
        new = [variable for variable in clique if variable not in separator]
        axes = [clique.index(variable) for variable in (*separator, *new)]
        parents = math.prod(tree.sizes[variable] for variable in separator)
        conditional = beliefs.tables[index].transpose(axes).reshape(parents, -1)
        groups = np.zeros(rows, np.int64)
        if separator:
            groups += cells(columns, separator, tree.sizes)
        drawn = stratified(groups, conditional, generator)
        for variable in reversed(new):
            drawn, columns[variable] = np.divmod(drawn, tree.sizes[variable])
    return columns


def drawn_codes(
    bins: Sequence[Wide],
    within: Sequence[FloatArray],
    columns: Mapping[int, Codes],
    generator: np.random.Generator,
) -> Codes:
    """Codes (n, attributes) of all attributes, unsigned.

    Args:
        bins: of each attribute (codes,) the bin of each code.
        within: of each (codes,) the probabilities of the codes given their bin.
        columns: of each (n,) the bin of each row.
        generator: of the order of rows within a bin and the jitter.
    """
    rows = columns[0].size if bins else 0
    found = np.empty((rows, len(bins)), code_type(max((own.size for own in bins), default=1)))
    for column, own in enumerate(bins):
        found[:, column] = _codes(own, within[column], columns[column], generator)
    return found


def _codes(bins: Wide, within: FloatArray, drawn: Codes, generator: np.random.Generator) -> Wide:
    by_bin = np.argsort(bins, kind="stable")
    if bins[by_bin[-1]] == bins.size - 1:  # one code a bin
        return np.asarray(by_bin[drawn])
    owners = bins[by_bin]
    sums = np.cumsum(within[by_bin])
    starts = np.searchsorted(owners, np.arange(owners[-1] + 1))
    before = np.append(0.0, sums)[starts]
    whole = np.append(before[1:], sums[-1]) - before
    upper = (sums - before[owners]) / np.maximum(whole, np.finfo(np.float64).tiny)[owners]
    return np.asarray(by_bin[systematic(drawn, owners, upper, generator)])
