"""The law of one attribute, the target, given all others: a graphical model, corrected by noisy tables.

    P(y | x)  proportional to  P_model(y | x) exp(sum over t of theta_t[cell_t(x), bin_t(y)])

Each table t counts rows by a cell of some other attributes, in bins, and by a bin of the target. The cells
need no junction tree, so tables of any columns can be added. The law is fitted over public rows, drawn from
the graphical model: what they expect in each table under the law moves towards the noisy counts. This is a
multinomial logistic regression from noisy sufficient statistics (Agresti 2013, "Categorical Data Analysis",
8.1), with the graphical model as its offset. Rows keep their other columns, so all other marginals stay.

*What a table says.* With q the share of a bin of the target in a cell under the present law, and c the noisy
counts, the residual c_y - q_y sum(c) is what the table says beyond how often the cell occurs: the rows that
were drawn may have it more or less often. Its noise has, for k bins, the variance
s^2 ((1 - q)^2 + (k - 1) q^2).

*How much of it is believed.* A correction theta moves its cell by about I theta, I = sum of P (1 - P) over
the rows of the cell. So the residuals of a table tell the variance t^2 of its corrections:
sum(residual^2 - noise) / sum I^2 (empirical Bayes, Efron and Morris 1973). The posterior mode of theta under
this prior has the penalty s^2 / (I t^2) theta^2 / 2 in the scale of the log-likelihood. Of the tables that
are tried only those count whose residuals noise alone would not make, by a chi-squared test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import gammaincc

from dpsyn_sql.fit.arrays import Codes, FloatArray, IntArray, summed
from dpsyn_sql.fit.belief import Beliefs
from dpsyn_sql.fit.graph import Scope

ITERATIONS = 60
"""The most steps of a fit; it also ends when the objective no longer moves."""

LUCK = 0.05
"""Probability that noise alone makes one of all tables that are tried stand out."""

_LEAST_LOG = -12.0
# The graphical model may give a value of the target no chance at all; noisy tables can still correct that.

_LEAST_PENALTY, _MOST_PENALTY = 1e-3, 1e9

_NEAR = 0.1
# Noise wants shares below 0 and above 1.

_CENTRED = 3
# Rounds of taking out the sums over other attributes.

_HELD = 0.3
# Deviation of the corrections that keep a table as it is, while others change.


@dataclass(frozen=True, slots=True)
class Cells:
    """A table over some attributes and the target.

    ``scope``: the attributes. ``maps``: of each the bin of every working bin (int64). ``target``: the same of
    the target.
    """

    scope: Scope
    maps: tuple[IntArray, ...]
    target: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """Cells of the attributes, and bins of the target."""
        return math.prod(int(bin_map.max()) + 1 for bin_map in self.maps), int(self.target.max()) + 1

    def of(self, columns: Mapping[int, Codes]) -> IntArray:
        """The cell (n,) of each row, from columns of working bins."""
        cells = np.zeros(len(columns[self.scope[0]]), np.int64)
        for variable, bin_map in zip(self.scope, self.maps, strict=True):
            cells = cells * (int(bin_map.max()) + 1) + bin_map[columns[variable]]
        return cells


@dataclass(frozen=True, slots=True)
class Evidence:
    """Noisy ``counts`` (rows) of ``cells``, of its shape, with noise of the deviation ``sigma`` in each."""

    cells: Cells
    counts: FloatArray
    sigma: float


@dataclass(frozen=True, slots=True)
class Twin:
    """A coarse variable of a model: the ``attribute`` it belongs to, and its bin of each working bin."""

    attribute: int
    bins: IntArray


@dataclass(frozen=True, slots=True)
class Conditional:
    """P(target | other attributes), over working bins.

    ``twins``: of the variables of ``beliefs`` that are no attributes. ``corrections``: theta of each table,
    of the shape of its cells.
    """

    beliefs: Beliefs
    twins: Mapping[int, Twin]
    target: int
    corrections: tuple[tuple[Cells, FloatArray], ...] = ()

    def given(self, columns: Mapping[int, Codes]) -> FloatArray:
        """Probabilities (n, bins of the target) of rows, from columns of the working bins of attributes."""
        logs = self._of_model(columns)
        for cells, theta in self.corrections:
            logs += theta[:, cells.target][cells.of(columns)]
        return _normalised(logs)

    def _of_model(self, columns: Mapping[int, Codes]) -> FloatArray:
        """Logarithms (n, bins) of P_model(y | x), up to a number for each row, 0 at most."""
        beliefs, tree = self.beliefs, self.beliefs.tree
        size = tree.sizes[self.target]
        target_bins = {self.target: np.arange(size)}
        target_bins |= {v: twin.bins for v, twin in self.twins.items() if twin.attribute == self.target}
        evidence: dict[int, Codes] = {v: column for v, column in columns.items() if v not in target_bins}
        evidence |= {
            v: t.bins[columns[t.attribute]] for v, t in self.twins.items() if t.attribute != self.target
        }
        logs = np.zeros((len(next(iter(columns.values()))), size))
        for clique, separator, table in zip(tree.cliques, tree.separators, beliefs.tables, strict=True):
            shared = tuple(variable for variable in clique if variable in separator)
            left_out = [axis for axis, variable in enumerate(clique) if variable not in separator]
            for sign, scope, joint in ((1, clique, table), (-1, shared, summed(table, left_out))):
                if not target_bins.keys().isdisjoint(scope):
                    logs += sign * _looked_up(joint, scope, target_bins, evidence)
        logs -= logs.max(axis=1, keepdims=True)
        return np.asarray(np.maximum(logs, _LEAST_LOG))


def _looked_up(
    joint: FloatArray, scope: Scope, target_bins: Mapping[int, IntArray], evidence: Mapping[int, Codes]
) -> FloatArray:
    """Logarithms of a joint table (n, bins of the target) at the known columns of each row."""
    conditions = [variable for variable in scope if variable not in target_bins]
    targets = [variable for variable in scope if variable in target_bins]
    table = joint.transpose([scope.index(variable) for variable in (*conditions, *targets)])
    with np.errstate(divide="ignore"):
        table = np.maximum(np.log(table), -60.0)
    table = table[(slice(None),) * len(conditions) + tuple(target_bins[variable] for variable in targets)]
    if not conditions:
        return table
    return np.asarray(table[tuple(evidence[variable] for variable in conditions)])


def _normalised(logs: FloatArray) -> FloatArray:
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class _Table:
    """What a table asks of the rows: counts ``wanted`` and the ``penalty`` of each correction.

    ``weight`` is I, ``expected`` what the law says, with ``noise`` (variance) in the residuals. ``misfit``
    are the squared residuals beyond their noise, relative to it, ``luck`` is the probability that noise alone
    has such residuals.
    """

    cells: Cells
    rows: IntArray
    wanted: FloatArray
    penalty: FloatArray
    weight: FloatArray
    expected: FloatArray
    noise: FloatArray
    misfit: float
    luck: float

    def held(self) -> _Table:
        """The same, to stay as it is."""
        penalty = _penalty(self.noise, self.weight, _HELD**2)
        return replace(self, wanted=self.expected, penalty=penalty)

    def beyond(self, paired: Collection[int]) -> _Table:
        """The same without what its noise says of the pairs of the target with ``paired`` attributes: they
        are met already. No share of the target comes nearer to 0 or 1 than ``_NEAR`` of its distance."""
        each = self.expected.sum(axis=1, keepdims=True)
        shape = [int(bin_map.max()) + 1 for bin_map in self.cells.maps]
        cells = each.reshape(*shape, 1)
        residual = (self.wanted - self.expected).reshape(*shape, -1)
        axes = [axis for axis, attribute in enumerate(self.cells.scope) if attribute in paired]
        for _ in range(_CENTRED):
            for axis in axes:
                other_axes = tuple(number for number in range(len(shape)) if number != axis)
                part = cells / np.maximum(cells.sum(axis=other_axes, keepdims=True), 1e-9)
                residual = residual - part * residual.sum(axis=other_axes, keepdims=True)
        wanted = self.expected + residual.reshape(self.wanted.shape)
        least, most = _NEAR * self.expected, each - _NEAR * (each - self.expected)
        return replace(self, wanted=np.clip(wanted, least, most))


def corrected(
    start: Conditional,
    columns: Mapping[int, Codes],
    total: float,
    required: Sequence[Evidence],
    tried: Sequence[Evidence],
    stop: Callable[[], bool] = lambda: False,
) -> Conditional:
    """The law that rows of the model follow, corrected by the tables; ``start`` if none of those that are
    tried stands out of noise.

    Args:
        start: without corrections.
        columns: (n,) working bins of each attribute of public rows of the model.
        total: N, rows (above 0).
        required: tables that the rows have to keep, such as the pairs of the target.
        tried: tables of which only those count that stand out of noise and of their number.
        stop: ends the fit after a step.
    """
    scale = total / len(next(iter(columns.values())))
    probabilities = start.given(columns)
    met = [_prepared(evidence, columns, probabilities, scale) for evidence in required]
    law = _with(start, probabilities, [table for table in met if table.misfit > 0], scale, stop)
    probabilities = law.given(columns)
    tables = [_prepared(evidence, columns, probabilities, scale) for evidence in tried]
    clear = [table for table in tables if table.luck < LUCK / len(tried)]
    if not clear:
        return start
    paired = {attribute for evidence in required for attribute in evidence.cells.scope}
    required_tables = [_prepared(evidence, columns, probabilities, scale).held() for evidence in required]
    return _with(
        law, probabilities, [*required_tables, *(table.beyond(paired) for table in clear)], scale, stop
    )


def _with(
    start: Conditional,
    probabilities: FloatArray,
    tables: Sequence[_Table],
    scale: float,
    stop: Callable[[], bool],
) -> Conditional:
    """Corrected by these tables; ``probabilities``: what ``start`` says of the rows."""
    if not tables:
        return start
    thetas = _Fit(tables, np.log(np.maximum(probabilities, 1e-30)), scale).fitted(stop)
    new = ((table.cells, theta) for table, theta in zip(tables, thetas, strict=True))
    return replace(start, corrections=(*start.corrections, *new))


def _prepared(
    evidence: Evidence, columns: Mapping[int, Codes], probabilities: FloatArray, scale: float
) -> _Table:
    """The residuals of a table, and how much of them is believed: see the module."""
    rows, (number, bins) = evidence.cells.of(columns), evidence.cells.shape
    coarse = _over_bins(probabilities, evidence.cells.target)
    expected = scale * _sums(rows, coarse, number)
    weight = scale * _sums(rows, coarse * (1 - coarse), number)
    each = expected.sum(axis=1, keepdims=True)
    share = expected / np.maximum(each, 1e-9)
    counted = evidence.counts.sum(axis=1, keepdims=True)
    residual = evidence.counts - share * counted
    noise = evidence.sigma**2 * ((1 - share) ** 2 + (bins - 1) * share**2)
    squares, expected_squares = float((residual**2).sum()), float(noise.sum())
    spread = max(0.0, squares - expected_squares) / max(float((weight**2).sum()), 1e-9)
    freedom = max(1, number * (bins - 1))
    ratio = squares / max(expected_squares, 1e-9)
    luck = float(gammaincc(freedom / 2, ratio * freedom / 2))
    # A cell that the rows have less often than the counts can follow them less.
    residual *= np.clip(each / np.maximum(counted, 2 * evidence.sigma), 0.0, 1.0)
    penalty = _penalty(noise, weight, spread)
    return _Table(
        evidence.cells, rows, expected + residual, penalty, weight, expected, noise, ratio - 1, luck
    )


def _penalty(noise: FloatArray, weight: FloatArray, spread: float) -> FloatArray:
    """Of corrections of the variance ``spread``: see the module."""
    penalty = noise / (np.maximum(weight, 1e-9) * max(spread, 1e-12))
    return np.asarray(np.clip(penalty, _LEAST_PENALTY, _MOST_PENALTY))


def _over_bins(probabilities: FloatArray, bins: IntArray) -> FloatArray:
    """Columns of the same bin added up."""
    if bins.size == int(bins.max()) + 1:
        return probabilities
    return np.asarray(probabilities @ (bins[:, None] == np.arange(int(bins.max()) + 1)).astype(np.float64))


def _sums(rows: IntArray, values: FloatArray, number: int) -> FloatArray:
    """Sums (number, k) over rows of each cell."""
    return np.stack([np.bincount(rows, column, number) for column in values.T], axis=1)


class _Fit:
    """The penalised log-likelihood of all corrections, in rows."""

    def __init__(self, tables: Sequence[_Table], offset: FloatArray, scale: float) -> None:
        self._tables, self._offset, self._scale = tables, offset, scale
        self._begins = np.cumsum([0, *(table.cells.shape[0] for table in tables)])
        self._ends = np.cumsum([table.wanted.size for table in tables])[:-1]
        cells = np.stack(
            [table.rows + begin for table, begin in zip(tables, self._begins, strict=False)], axis=1
        )
        number, width = cells.shape
        pointers = np.arange(0, cells.size + 1, width)
        shape = number, int(self._begins[-1])
        self._cells = csr_array((np.ones(cells.size), cells.ravel(), pointers), shape=shape)
        self._back = self._cells.T.tocsr()
        self._wanted, self._penalty, weight = (
            np.concatenate([array.ravel() for array in arrays])
            for arrays in (
                [table.wanted for table in tables],
                [table.penalty for table in tables],
                [table.weight for table in tables],
            )
        )
        self._unit = (weight * len(tables) + self._penalty + 1.0) ** -0.5

    def fitted(self, stop: Callable[[], bool]) -> list[FloatArray]:
        """Theta of each table."""

        def after_a_step(intermediate_result: object) -> None:
            if stop():
                raise StopIteration

        total = self._scale * len(self._offset)
        unit = self._unit * math.sqrt(total)

        def at(point: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = self._at(unit * point)
            return value / total, unit * gradient / total

        solution = minimize(
            at,
            np.zeros(self._wanted.size),
            jac=True,
            method="L-BFGS-B",
            callback=after_a_step,
            options={"maxiter": ITERATIONS, "maxcor": 12},
        )
        return self._parts(unit * solution.x)

    def _parts(self, flat: FloatArray) -> list[FloatArray]:
        thetas = np.split(flat, self._ends)
        return [theta.reshape(table.cells.shape) for table, theta in zip(self._tables, thetas, strict=True)]

    def _at(self, flat: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-likelihood with its penalty, and its gradient."""
        wide = np.concatenate(
            [
                theta[:, table.cells.target]
                for table, theta in zip(self._tables, self._parts(flat), strict=True)
            ]
        )
        logs = self._offset + self._cells @ wide
        highest = logs.max(axis=1, keepdims=True)
        probabilities = np.exp(logs - highest)
        sums = probabilities.sum(axis=1, keepdims=True)
        probabilities /= sums
        expected = self._scale * (self._back @ probabilities)
        expected_counts = [
            _over_bins(expected[begin:end], table.cells.target)
            for table, begin, end in zip(self._tables, self._begins, self._begins[1:], strict=False)
        ]
        counts = np.concatenate([part.ravel() for part in expected_counts])
        value = self._scale * float((np.log(sums) + highest).sum()) - float(flat @ self._wanted)
        value += 0.5 * float(self._penalty @ flat**2)
        return value, counts - self._wanted + self._penalty * flat
