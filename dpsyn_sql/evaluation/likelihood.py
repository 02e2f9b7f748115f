"""The probability of a row under the network that a release draws its rows from.

The network is read from where the release is stored (tables ``shares`` and ``variables``), with the rounded
weights that SQL draws by. Variables that are no codes (working bins, coarse twins) are functions of the
codes, which the lines themselves show; a network where one is not has no likelihood here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsyn_sql.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class _Lines:
    """The lines of one node: ``parent`` and ``value`` are numbers of configurations, row-major over
    ``parent_sizes`` and ``sizes``; ``weight`` is as often as a line is drawn given its parents."""

    parents: tuple[int, ...]
    parent_sizes: tuple[int, ...]
    variables: tuple[int, ...]
    sizes: tuple[int, ...]
    parent: IntArray
    value: IntArray
    weight: IntArray

    def columns(self) -> dict[int, IntArray]:
        """The value of each variable in each line."""
        return {
            **dict(zip(self.parents, _digits(self.parent, self.parent_sizes), strict=True)),
            **dict(zip(self.variables, _digits(self.value, self.sizes), strict=True)),
        }

    def log_shares(self) -> FloatArray:
        """The logarithm of each line's probability given its parents."""
        _, group = np.unique(self.parent, return_inverse=True)
        whole = np.bincount(group, self.weight)
        return np.asarray(np.log(self.weight) - np.log(whole[group]))


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The distribution of a row's codes; made by ``likelihood_of``. ``order``: the nodes; ``codes``: the
    variable of each attribute; ``found``: of every other variable the node and the variables that it
    follows from, in the order in which they can be found."""

    nodes: tuple[_Lines, ...]
    codes: tuple[int | None, ...]
    found: tuple[tuple[int, int, tuple[int, ...]], ...]

    def log(self, codes: IntArray) -> FloatArray:
        """The logarithm of the probability of each row; -inf for a row that is never drawn.

        Args:
            codes: int64 (rows, attributes).
        """
        rows = len(codes)
        known = {v: codes[:, place] for place, v in enumerate(self.codes) if v is not None}
        result = np.zeros(rows)
        for variable, number, given in self.found:
            columns = self.nodes[number].columns()
            line = _find([columns[v] for v in given], [known[v] for v in given])
            result[line < 0] = -np.inf
            known[variable] = np.where(line < 0, 0, columns[variable][line])
        for node in self.nodes:
            columns, drawn = node.columns(), (*node.parents, *node.variables)
            line = _find([columns[v] for v in drawn], [known[v] for v in drawn])
            result += np.where(line < 0, -np.inf, node.log_shares()[line])
        return result


def likelihood_of(shares: Columns, variables: Columns, attributes: int) -> Likelihood | None:
    """The distribution that is stored; None if a variable of it is no function of the codes.

    Args:
        shares: columns node, parent, value, weight.
        variables: columns node, place, parent, variable, size, attribute.
        attributes: how many there are; one without a variable has one code.

    Raises:
        InputError: the tables contradict each other.
    """
    if set(np.unique(shares["node"]).tolist()) != set(np.unique(variables["node"]).tolist()):
        raise InputError("The network of the stored release was changed or is damaged: its nodes differ.")
    nodes = tuple(_lines(shares, variables, node) for node in np.unique(variables["node"]).tolist())
    codes: list[int | None] = [None] * attributes
    for variable, attribute in zip(
        variables["variable"].tolist(), variables["attribute"].tolist(), strict=True
    ):
        if attribute >= attributes:
            raise InputError("The network of the stored release was changed or is damaged: its attributes.")
        if attribute >= 0:
            codes[attribute] = variable
    found = _functions(nodes, {v for v in codes if v is not None})
    return None if found is None else Likelihood(nodes, tuple(codes), found)


def _lines(shares: Columns, variables: Columns, node: int) -> _Lines:
    own = np.flatnonzero(variables["node"] == node)
    own = own[np.argsort(variables["place"][own], kind="stable")]
    above, drawn = own[variables["parent"][own]], own[~variables["parent"][own]]
    lines = np.flatnonzero(shares["node"] == node)

    def named(places: IntArray) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return tuple(variables["variable"][places].tolist()), tuple(variables["size"][places].tolist())

    parts = (shares[name][lines].astype(np.int64) for name in ("parent", "value", "weight"))
    made = _Lines(*named(above), *named(drawn), *parts)
    for numbers, sizes in ((made.parent, made.parent_sizes), (made.value, made.sizes)):
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < np.prod(sizes, dtype=float):
            raise InputError("The network of the stored release was changed or is damaged: its numbers.")
    return made


def _functions(
    nodes: Sequence[_Lines], known: set[int]
) -> tuple[tuple[int, int, tuple[int, ...]], ...] | None:
    """How each other variable follows from known ones; None if one does not."""
    known = set(known)
    wanted = {v for node in nodes for v in (*node.parents, *node.variables)} - known
    found = list[tuple[int, int, tuple[int, ...]]]()
    while wanted:
        step = _next(nodes, known, wanted)
        if step is None:
            return None
        found.append(step)
        known.add(step[0])
        wanted.discard(step[0])
    return tuple(found)


def _next(
    nodes: Sequence[_Lines], known: set[int], wanted: set[int]
) -> tuple[int, int, tuple[int, ...]] | None:
    for number, node in enumerate(nodes):
        columns = node.columns()
        given = tuple(v for v in columns if v in known)
        for variable in columns:
            if variable in wanted and given and _follows(columns[variable], [columns[v] for v in given]):
                return variable, number, given
    return None


def _follows(column: IntArray, given: Sequence[IntArray]) -> bool:
    """Whether lines that are equal in ``given`` are equal in ``column``."""
    groups = _numbered(given)
    first = np.full(int(groups.max()) + 1, -1, np.int64)
    first[groups] = column
    return bool((first[groups] == column).all())


def _digits(numbers: IntArray, sizes: Sequence[int]) -> list[IntArray]:
    """The values that row-major numbers stand for."""
    return list(np.unravel_index(numbers, sizes)) if sizes else []


def _numbered(columns: Sequence[IntArray]) -> IntArray:
    """A number for each different row; no number is as large as the rows are many."""
    rows = pd.DataFrame(dict(enumerate(columns)))
    return np.asarray(rows.groupby(list(rows.columns), sort=False).ngroup(), np.int64)


def _find(columns: Sequence[IntArray], asked: Sequence[IntArray]) -> IntArray:
    """Of each asked row the place of an equal row of ``columns``; -1 if there is none."""
    lines = len(columns[0])
    groups = _numbered([np.concatenate(pair) for pair in zip(columns, asked, strict=True)])
    place = np.full(int(groups.max()) + 1, -1, np.int64)
    place[groups[:lines]] = np.arange(lines)
    return place[groups[lines:]]
