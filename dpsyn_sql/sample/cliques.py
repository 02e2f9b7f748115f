"""Rows of a calibrated tree over working bins, clique by clique, and codes within bins, systematically."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.fit.belief import Beliefs, summed
from dpsyn_sql.sample.cells import Codes, cells, whole
from dpsyn_sql.sample.quotas import code_type, meet_quotas
from dpsyn_sql.sample.systematic import stratified, systematic

FloatArray = NDArray[np.float64]
Wide = NDArray[np.int64]


def drawn_bins(beliefs: Beliefs, rows: int, generator: np.random.Generator) -> dict[int, Wide]:
    """Columns of all variables of the model, cliques after their parents; one-way counts are met.

    A clique has thousands of configurations, most of them of less than a row: rounding in each adds up to
    an error of the order of sqrt(rows) in one-way counts. So each variable has a quota of rows for each of
    its codes, and the few rows too many of a code move to codes that lack some: those to which the model
    gives about the same probability in their configuration.
    """
    tree = beliefs.tree
    columns: dict[int, Wide] = {}
    for index in tree.order:
        clique, table = tree.cliques[index], beliefs.tables[index]
        known = list(tree.separators[index])
        # Smaller variables first: a coarse twin meets its quota before what it is a function of.
        for variable in sorted(set(clique) - set(known), key=lambda v: (tree.sizes[v], v)):
            scope = (*known, variable)
            own = summed(table, [axis for axis, other in enumerate(clique) if other not in scope])
            kept = [other for other in clique if other in scope]
            joint = own.transpose([kept.index(other) for other in scope]).reshape(-1, tree.sizes[variable])
            columns[variable] = _drawn(joint, columns, known, tree.sizes, rows, generator)
            known.append(variable)
    return columns


def _drawn(
    joint: FloatArray,
    columns: Mapping[int, Wide],
    known: Sequence[int],
    sizes: Sequence[int],
    rows: int,
    generator: np.random.Generator,
) -> Wide:
    """Codes (n,) of a variable given those of ``known``; ``joint``: their probabilities (known, codes)."""
    groups = np.zeros(rows, np.int64)
    if known:
        groups += cells(columns, tuple(known), sizes)
    drawn = stratified(groups, joint, generator)
    quota = whole(joint.sum(axis=0), rows, generator)

    def suits(places: Codes, codes: Codes) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(joint[groups[places], codes]))

    if known:
        meet_quotas(suits, drawn, quota)
    return drawn


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
