"""Questions that may be asked of the source and their noisy answers (both public).

What each claims, and how it is charged and answered, is in the file of ``measure/questions`` of its name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from dpsyn_sql.attributes.attribute import Attribute, Domain, Granularity
from dpsyn_sql.attributes.trees import Hierarchy
from dpsyn_sql.attributes.types import SqlType, supported_type
from dpsyn_sql.sqltext.fragments import Fragment, ident

if TYPE_CHECKING:  # loads numpy, and a ledger is shown without
    import numpy as np
    from numpy.typing import NDArray

    from dpsyn_sql.planning.row_labels import NearestLabel

_LARGEST_RESIDUAL = 2**61
_UNITS_IN_A_CELL = 2**26
_ROUNDING = 1 / 12
# Variance of rounding to whole units.

Answer = TypeVar("Answer", covariant=True)


class Question(Generic[Answer]):
    """A question of the door; its answer is an ``Answer``."""

    __slots__ = ()


Map = tuple[int, ...]
"""Of each code of an attribute the bin it falls into; every bin 0..max has a code."""


@dataclass(frozen=True, slots=True)
class MarginalQuery:
    """The full contingency table over ``attrs``, empty cells included.

    ``maps``, if given, has one public map per attribute, or None for its original codes: the table is
    then over the bins of the maps, each the sum of its codes.
    """

    attrs: tuple[str, ...]
    maps: tuple[Map | None, ...] = ()

    @property
    def original(self) -> MarginalQuery:
        """The same marginal over original codes."""
        return MarginalQuery(self.attrs) if self.maps else self

    def shape(self, domain: Domain) -> tuple[int, ...]:
        """Sizes of the axes of the table."""
        sizes = domain.shape(self.attrs)
        if not self.maps:
            return sizes
        return tuple(
            size if bins is None else max(bins) + 1 for size, bins in zip(sizes, self.maps, strict=True)
        )


@dataclass(frozen=True, slots=True)
class NoisyMarginal:
    """A measured marginal: ``values`` int64 of the marginal's shape, noise of standard
    deviation ``sigma`` (rows) in every cell, independent between cells. ``maps`` as in its query.

    ``composed``: it is the sum of residuals of itself and of its margins (``fit/reconstruct.py``). It is
    unbiased, but its cells, and tables of one release, share noise: it stands for the marginal over exactly
    its attributes and is not averaged with others. ``sigma`` is then the largest of a cell.
    ``fitted``: ``values`` are those of a curve through the noisy counts. They have less noise than ``sigma``,
    and a bias: they are shown as no measurement.
    """

    attrs: tuple[str, ...]
    values: NDArray[np.int64]
    sigma: float
    maps: tuple[Map | None, ...] = ()
    composed: bool = False
    fitted: bool = False

    def in_units(self, weight: int) -> NoisyMarginal:
        """The same where a unit counts one, not ``weight``; in whole units."""
        if weight == 1:
            return self
        values = (2 * self.values + weight) // (2 * weight)
        return replace(self, values=values, sigma=math.sqrt((self.sigma / weight) ** 2 + _ROUNDING))

    def weighted(self, weight: int) -> NoisyMarginal:
        """The same where a unit counts ``weight``, not one."""
        return replace(self, values=self.values * weight, sigma=self.sigma * weight)


@dataclass(frozen=True, slots=True)
class NoisyResidual:
    """What a marginal of sizes k_1 ... k_m says beyond its margins: ``values`` int64, prod k_i times the
    residual, with independent noise of standard deviation ``scale`` in every cell.

    ``maps`` as in its query.
    """

    attrs: tuple[str, ...]
    values: NDArray[np.int64]
    scale: float
    maps: tuple[Map | None, ...] = ()


def largest_count(shape: Sequence[int]) -> int:
    """The count at which the cells of a table of this shape are cut, so that no residual reaches 2^61: the
    largest is prod 2 (k_i - 1) / 2 times the largest count (docs/privacy.md, "Residual marginals")."""
    return 2 * _LARGEST_RESIDUAL // math.prod(2 * (size - 1) for size in shape)


def holds_residuals(shape: Sequence[int], sensitivity: int) -> bool:
    """Whether a cell of this many units can be told by residuals, each of which adds up to ``sensitivity``.
    Larger tables are asked for whole."""
    return largest_count(shape) >= _UNITS_IN_A_CELL * sensitivity


@dataclass(frozen=True, slots=True)
class Marginals(Question[list[NoisyMarginal]]):
    """Noisy full marginals, all at the same noise; a repeated one counts each time.

    ``labels``: public functions of one row that the marginals name like attributes.
    """

    queries: Sequence[MarginalQuery]
    labels: Sequence[NearestLabel] = ()


@dataclass(frozen=True, slots=True)
class Siblings(Question[list[NoisyMarginal]]):
    """Noisy tables of ordered pairs of distinct rows of one unit, all at the same noise; a repeated one
    counts each time.

    Each query has two attributes, which may be the same one: that of the first row of a pair, and that of
    the second. A unit of n >= 2 rows counts ``WEIGHT`` in each table, spread evenly over its n (n - 1) pairs,
    less what is rounded off; other units count nothing. Values and noise are in these weights.
    """

    queries: Sequence[MarginalQuery]


@dataclass(frozen=True, slots=True)
class Residuals(Question[list[NoisyResidual]]):
    """Noisy residuals of marginals, all at noise of the same scale; a repeated one counts each time.

    Each marginal has one attribute or more, each of two codes or more.
    """

    queries: Sequence[MarginalQuery]


@dataclass(frozen=True, slots=True)
class Distances(Question[list[int]]):
    """Noisy L1 distances |counts - reference|_1 (rows) of marginals to public tables, all at the same noise.

    ``references``: for each marginal an int64 table of its full shape.
    """

    queries: Sequence[MarginalQuery]
    references: Sequence[NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Choice(Question[list[int]]):
    """A private choice of the ``number`` marginals that differ most from their public references, less a
    public allowance each (rows; none if not given). The answer is their indices, best first.

    ``references``: as for ``Distances``.
    """

    candidates: Sequence[MarginalQuery]
    references: Sequence[NDArray[np.int64]]
    number: int = 1
    allowances: Sequence[int] | None = None


Score = Literal["I", "F", "R"]


@dataclass(frozen=True, slots=True)
class FamilyChoice(Question[int]):
    """A private choice of the table whose child hangs most on its other attributes, its parents, by a score
    of PrivBayes. The answer is its place among the candidates.

    ``children``: of each candidate the attribute that is the child; of two values for ``F``. ``bits``: for
    ``I``, which is mutual information up to 2^bits rows; 0 for others.
    """

    candidates: Sequence[MarginalQuery]
    children: Sequence[str]
    score: Score
    bits: int = 0


Exact = bool | int | float | str
"""An exact value of a column: a text, a boolean, a double, or the tick of a discrete type."""


# -- what is asked about columns whose domain is not public ------------------------------------


class ColumnQuestion(Question[Answer]):
    """A question about one column of the source, or about an expression of it (``source``)."""

    __slots__ = ()
    attr: str
    sql_type: str
    source: Fragment | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "type", supported_type(self.sql_type, self.attr))

    @property
    def value(self) -> Fragment:
        """What stands for the column's values in a query of the source."""
        return ident(self.attr) if self.source is None else self.source


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first ``length`` characters of text that is at least so long, and whose code in ``known``, a public
    attribute, is that of ``__other__``."""

    length: int
    known: Attribute


@dataclass(frozen=True, slots=True)
class KeyQuery(ColumnQuestion["NoisyKeys"]):
    """The exact values of a column whose noisy count reaches the threshold.

    Counts are of distinct units per value; a unit counts for at most k values. NULL and text longer
    than ``longest`` characters are no keys, nor are NaN, infinities and times that Python has not. 0.0 and
    -0.0 are one key. With a ``beginning`` the keys are the beginnings of the values, however long these are.
    """

    attr: str
    sql_type: str = field(repr=False)  # an ENUM without a name may have been made from the rows
    longest: int = 1_000
    source: Fragment | None = None
    beginning: Beginning | None = None
    type: SqlType = field(init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class NoisyKeys:
    """The surviving keys, sorted by value, with their noisy counts (int64, each >= ``threshold``).

    Keys are text, booleans, doubles (FLOAT, DOUBLE), or ticks for all other types (``domain.types``).
    """

    attr: str
    keys: tuple[Exact, ...]
    values: NDArray[np.int64]
    sigma: float
    threshold: int


@dataclass(frozen=True, slots=True)
class GridQuery(Question[NoisyMarginal]):
    """Noisy counts of distinct units per code of a public ``grid`` over a column; all codes, empty ones
    included. A unit counts for at most k codes. ``owners``: of each cell the one that it is counted as, which
    is its own owner; the others count nothing. Empty: each is counted as itself."""

    grid: Attribute
    owners: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TypesQuery(Question[NoisyMarginal]):
    """Noisy counts of distinct units per class of text (``domain.text_types.CLASSES``) in a column of text;
    all classes, empty ones included. A unit counts for at most k classes."""

    attr: str


@dataclass(frozen=True, slots=True)
class StepQuery(ColumnQuestion["NoisySteps"]):
    """How many units have values that are multiples of which steps.

    ``steps`` ascend, and each divides the next: numbers of ticks, or for FLOAT and DOUBLE numbers, and last
    perhaps "month" for first days of months. A value counts for the last step that it is a multiple of, or
    for none of them; numbers that are zero, NULL and NaN do not count. A unit counts for one step.
    """

    attr: str
    sql_type: str
    steps: tuple[Granularity, ...]
    source: Fragment | None = None
    type: SqlType = field(init=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class NoisySteps:
    """``values[0]``: noisy number of units that no step fits, ``values[i + 1]``: that ``steps[i]`` is the
    last to fit; int64[len(steps) + 1], noise of deviation ``sigma``."""

    steps: tuple[Granularity, ...]
    values: NDArray[np.int64]
    sigma: float


@dataclass(frozen=True, slots=True)
class ContributionQuery(Question["NoisyContributions"]):
    """How many units have 1, 2, ..., ``most`` rows after the bound; a unit is in one cell, sensitivity 1."""

    most: int


@dataclass(frozen=True, slots=True)
class NoisyContributions:
    """``values[i]``: noisy number of units with i + 1 rows, int64[most], noise of deviation ``sigma``."""

    values: NDArray[np.int64]
    sigma: float


# -- what is asked about hierarchies --------------------------------------------------------------


Splitter = Literal["privtree", "basic", "improved", "direct"]
Discount = Literal["clamped", "uniform", "proportional"]
"""What the improved adaptive histogram takes off the counts (``private/measure/splitters.py``)."""


@dataclass(frozen=True, slots=True)
class TreeQuery(Question["NoisyTree"]):
    """Which nodes of a hierarchy are split, asked level by level from the root.

    ``hierarchies``: one, or several for a key of several attributes (which of them a node is split by is then
    chosen privately, node by node). ``depth``: levels that are split at most. ``threshold``: rows from which
    a node is split, where the algorithm has one; None: its own default. ``most``: nodes that are counted per
    level at most; of a level of more children those of the parents of most noisy rows are asked for (basic,
    direct), or none. ``discount``: of improved.
    """

    hierarchies: tuple[Hierarchy, ...]
    splitter: Splitter
    depth: int
    threshold: int | None = None
    most: int = 2**20
    discount: Discount = "clamped"


@dataclass(frozen=True, slots=True)
class NoisyTree:
    """The tree that was grown, down to its leaves: a partition of the hierarchy in the order of keys.

    Leaf i is node ``nodes[p][i]`` of level ``levels[p][i]`` of hierarchy p (see ``Leaves``). ``counts``:
    int64, the committed (``direct``) or noisy (``basic``) number of rows of each leaf, with noise of
    deviation ``sigma``; None where not all leaves have one. ``level_counts``: the same of all nodes, for each
    level that was counted, from the root; within a level children follow their parents and ascend in keys.
    """

    levels: tuple[NDArray[np.int64], ...]
    nodes: tuple[NDArray[Any], ...]
    counts: NDArray[np.int64] | None = None
    sigma: float | None = None
    level_counts: tuple[NDArray[np.int64], ...] = ()


@dataclass(frozen=True, slots=True)
class LeafQuery(Question["NoisyLeaves"]):
    """Noisy numbers of rows per leaf of a partition, empty leaves included; then of rows outside the
    hierarchy,
    then of rows without a value (NULL in a column). All counted at once: a row is in one of them."""

    hierarchies: tuple[Hierarchy, ...]
    levels: tuple[NDArray[np.int64], ...]
    nodes: tuple[NDArray[Any], ...]


@dataclass(frozen=True, slots=True)
class NoisyLeaves:
    """``values``: int64[leaves + 2], the leaves, rows outside, rows without a value; noise of deviation
    ``sigma``."""

    values: NDArray[np.int64]
    sigma: float
