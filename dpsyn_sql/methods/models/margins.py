"""Models made of tables: independent columns, copulas, views and stored ones; and what all models check."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.fit.arrays import FloatArray, IntArray
from dpsyn_sql.fit.belief import Beliefs
from dpsyn_sql.fit.copula import FittedCopula, FixedCopula
from dpsyn_sql.fit.elimination import tree_network
from dpsyn_sql.fit.graph import Scope
from dpsyn_sql.fit.latent import FittedLatent, Ordered
from dpsyn_sql.fit.network import Builder, ModelTables, Network, affordable, proper, tables_of_codes
from dpsyn_sql.fit.reconstruct import most_cells, reconstructed
from dpsyn_sql.fit.views import Margins, summed_to
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline
from dpsyn_sql.rows.sample.copula import copula_rows, latent_rows, product_rows
from dpsyn_sql.rows.sample.systematic import Batches, counted_rows
from dpsyn_sql.rows.sample.views import Synthesis, ViewRows
from dpsyn_sql.source.names import name_hint

# -- checks ------------------------------------------------------------------------------------------

# Questions to a model: their attributes are checked, and refused, in the same way for every model.


def fault(domain: Domain, attrs: Sequence[str], most: int | None = None) -> str:
    """Why a model over ``domain`` cannot answer for these attributes (a list of names, or one name): none,
    one twice, an unknown one, or more than ``most``. Empty if it can answer."""
    attrs = (attrs,) if isinstance(attrs, str) else attrs
    if not isinstance(attrs, list | tuple) or not all(isinstance(name, str) for name in attrs):
        return f"the attributes are {said(attrs)}: give a list of names of the model's attributes"
    names = tuple(attrs)
    unknown = [name for name in names if name not in domain]
    if unknown:
        owner = [
            attribute.name
            for attribute in domain.attributes
            for column in attribute.columns
            if column.name == unknown[0]
        ]
        if owner:
            return f"The column {unknown[0]!r} is part of the attribute {owner[0]!r}: ask for that"
        return f"There is no attribute {unknown[0]!r}; {name_hint(unknown[0], domain.names, 'the model has')}"
    if not names or len(set(names)) < len(names):
        return f"Name at least one attribute, each once, not {list(names)}."
    if most is not None and len(names) > most:
        return (
            f"this model answers marginals of at most {most} attributes, not {len(names)}; "
            "count larger ones in the synthetic table"
        )
    return ""


def checked_names(domain: Domain, attrs: Sequence[str], most: int | None = None) -> tuple[str, ...]:
    """The attributes of a question, if a model over ``domain`` can answer it.

    Raises:
        InputError: there is a ``fault``.
    """
    if problem := fault(domain, attrs, most):
        raise InputError(problem)
    return (attrs,) if isinstance(attrs, str) else tuple(attrs)


class Answering(ABC):
    """Answers questions about attributes of ``domain``, at most ``most`` together (None: any number)."""

    __slots__ = ()

    domain: Domain
    most: int | None = None

    def supports(self, attrs: Sequence[str]) -> bool:
        """Whether ``project`` answers for these attributes; cheap."""
        return not fault(self.domain, attrs, self.most) and self._answers(self._places(attrs))

    def project(self, attrs: Sequence[str]) -> FloatArray:
        """Expected counts, axes in the order of ``attrs``; they sum to max(0, total).

        Raises:
            InputError: no attribute, one twice, an unknown one, or several that the model does not answer
                together.
        """
        return self._counts(self._places(attrs))

    def _places(self, attrs: Sequence[str]) -> tuple[int, ...]:
        names = checked_names(self.domain, attrs, self.most)
        return tuple(self.domain.index(name) for name in names)

    def _answers(self, positions: tuple[int, ...]) -> bool:
        """Whether ``_counts`` has an answer for attributes at these places."""
        return True

    @abstractmethod
    def _counts(self, positions: tuple[int, ...]) -> FloatArray:
        """Expected counts of the attributes at these places, axes in their order.

        Raises:
            InputError: it does not answer for them.
        """


def over_codes(
    table: FloatArray, positions: Sequence[int], bins: Sequence[IntArray], within: Sequence[FloatArray]
) -> FloatArray:
    """A table over working bins of attributes (by position) as one over their codes.

    ``bins[i]`` is the bin of each code of attribute i, ``within[i]`` its share of the bin.
    """
    for axis, position in enumerate(positions):
        table = table.take(bins[position], axis=axis)
    return np.asarray(table * reduce(np.multiply.outer, (within[position] for position in positions)))


# -- independent columns -----------------------------------------------------------------------------

# Models of independent attributes: of their margins, or of one key, how many rows each code has.


@dataclass(frozen=True, slots=True)
class ProductModel(Answering):
    """Independent attributes: ``margins`` holds the total and the probabilities of each attribute.

    ``rows`` (float64[size], none negative): of the only attribute the rows of each code; they add up to
    max(0, ``total``). ``exact``: they are whole numbers, and a table of ``total`` rows has just these.
    """

    domain: Domain
    margins: Margins
    rows: FloatArray | None = None
    exact: bool = False

    @classmethod
    def of_rows(cls, domain: Domain, total: float, rows: FloatArray, exact: bool) -> ProductModel:
        """The model of these rows of the only attribute."""
        positive = proper(rows)
        return cls(domain, Margins(total, {domain.names[0]: positive / positive.sum()}), rows, exact)

    @property
    def total(self) -> float:
        """Estimated number of (bounded) rows of the source; may be negative."""
        return self.margins.total

    @property
    def _probabilities(self) -> tuple[FloatArray, ...]:
        """Of each attribute, in domain order."""
        return tuple(self.margins.probabilities[name] for name in self.domain.names)

    def _counts(self, positions: tuple[int, ...]) -> FloatArray:
        """The outer product of the margins."""
        probabilities = self._probabilities
        return np.asarray(
            max(0.0, self.total)
            * reduce(np.multiply.outer, (probabilities[position] for position in positions))
        )

    def network(self) -> Network:
        """Attributes without parents."""
        build = Builder(self.domain.names, self.domain.shape())
        for attribute, probability in enumerate(self._probabilities):
            build.add(self.domain.names[attribute], (), (attribute,), proper(probability))
        return build.network()

    def tables(self) -> ModelTables:
        """One bin per attribute, so that every marginal is a product of shares."""
        sizes = self.domain.shape()
        return ModelTables(
            tuple(np.zeros(size, np.int64) for size in sizes),
            tuple(np.asarray(probability, np.float64) for probability in self._probabilities),
            ((tuple(range(len(sizes))), np.ones(1)),),
        )

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Batches:
        """Rows that meet the counts; no way is faster."""
        return product_rows(self._probabilities) if self.rows is None else counted_rows(self.rows)


# -- copulas -----------------------------------------------------------------------------------------

# The Gaussian copula, and DPCopula over ordered codes in each part of a split.


@dataclass(frozen=True, slots=True)
class CopulaModel(Answering):
    """A fitted copula. It answers marginals of one or two attributes.

    In parts, marginals are those of the normals, cut into working bins; codes are independent within bins. In
    the rows, codes of one bin follow the normals too.
    """

    domain: Domain
    fitted: FittedCopula | FixedCopula | FittedLatent
    most: int | None = 2

    @property
    def total(self) -> float:
        """Estimated number of (bounded) rows of the source; may be negative."""
        return self.fitted.total

    def _counts(self, positions: tuple[int, ...]) -> FloatArray:
        table = max(0.0, self.total) * self._joint(positions)
        ordered = self._ordered
        return table if ordered is None else over_codes(table, positions, ordered.bins, ordered.within)

    def _joint(self, positions: Sequence[int]) -> FloatArray:
        """Probabilities of one or two attributes, over working bins in parts."""
        if isinstance(self.fitted, FittedLatent):
            return self.fitted.joint(positions)
        names = [self.domain.names[position] for position in positions]
        return self.fitted.margins.probabilities[names[0]] if len(names) == 1 else self.fitted.pair(*names)

    @property
    def _ordered(self) -> Ordered | None:
        return self.fitted.ordered if isinstance(self.fitted, FittedLatent) else None

    def network(self) -> None:
        """Latent normals are not a network of tables."""
        return

    def tables(self) -> ModelTables:
        """All attributes and pairs, over working bins in parts."""
        ordered, sizes = self._ordered, self.domain.shape()
        if ordered is not None:
            sizes = tuple(share.size for share in ordered.shares)
        singles, room = affordable(combinations(range(len(sizes)), 1), sizes)
        pairs, _ = affordable(combinations(range(len(sizes)), 2), sizes, room)
        tables = tuple((scope, self._joint(scope)) for scope in (*singles, *pairs))
        if ordered is None:
            return tables_of_codes(sizes, tables)
        return ModelTables(ordered.bins, ordered.within, tables)

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Batches:
        """Rows that meet the one-way counts, in parts with low variance; there is no faster way."""
        if isinstance(self.fitted, FittedLatent):
            return latent_rows(self.fitted)
        if isinstance(self.fitted, FittedCopula):
            return copula_rows(self.fitted)
        probabilities = tuple(self.fitted.margins.probabilities[name] for name in self.domain.names)
        return product_rows(probabilities, in_one_order=self.fitted.all_ones)


# -- views -------------------------------------------------------------------------------------------

# The model of consistent views: tables over a few attributes each, which agree where they share some.

MOST_CODES = 2**26
"""Cells over codes of a marginal of three or more attributes: 512 MB."""


@dataclass(frozen=True, slots=True)
class ViewsModel(Answering):
    """Consistent views.

    ``views``: probabilities over working bins by positions of attributes (ascending), none negative; every
    attribute has a one-way view too. ``beliefs``: a graphical model of the strongest views, of which a
    database draws rows. ``bins[i]`` (int64, one per code) is the working bin of each code, ``within[i]``
    (float64, one per code) its probability given the bin. ``synthesis`` and ``reconstruction``: the ways to
    rows and to marginals that no view holds.
    """

    domain: Domain
    total: float
    views: Mapping[Scope, FloatArray]
    beliefs: Beliefs
    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    synthesis: Synthesis
    reconstruction: str

    def _answers(self, positions: tuple[int, ...]) -> bool:
        """Whether a view holds them all, or they are few enough to be reconstructed."""
        return not self._too_large(positions)

    def _counts(self, positions: tuple[int, ...]) -> FloatArray:
        """From the smallest view that holds the attributes, or reconstructed from all that hold some."""
        if problem := self._too_large(positions):
            raise InputError(problem)
        scope = tuple(sorted(positions))
        table = self._joint(scope).transpose([scope.index(position) for position in positions])
        return over_codes(max(0.0, self.total) * table, positions, self.bins, self.within)

    def _joint(self, scope: Scope) -> FloatArray:
        """Probabilities over working bins."""
        view = self._smallest(scope)
        if view is not None:
            return summed_to(self.views[view], view, scope)
        return reconstructed(self.views, scope, self.beliefs.tree.sizes, self.reconstruction)

    def _smallest(self, scope: Scope) -> Scope | None:
        wanted = set(scope)
        holding = (view for view in self.views if wanted <= set(view))
        return min(holding, key=lambda view: self.views[view].size, default=None)

    def _too_large(self, scope: Scope) -> str:
        """Why a marginal cannot be made; empty if it can."""
        codes = math.prod(self.bins[attribute].size for attribute in scope)
        limits = [(codes, MOST_CODES, "")] if len(scope) > 2 else []
        if self._smallest(scope) is None:
            cells = math.prod(self.beliefs.tree.sizes[position] for position in scope)
            limits.append((cells, most_cells(self.reconstruction), ", as it is reconstructed from views"))
        for cells, most, why in limits:
            if cells > most:
                return (
                    f"a marginal of {cells:,} cells is too large{why}: allowed are {most:,}; ask for fewer "
                    "attributes, or count it in the synthetic table"
                )
        return ""

    def network(self) -> Network:
        """The graphical model of the strongest views, and codes after their bins."""
        return tree_network(self.beliefs, self.bins, self.within, self.domain.names)

    def tables(self) -> ModelTables:
        """The views, and the pairs that no view holds."""
        sizes = self.beliefs.tree.sizes
        covered = {attribute for view in self.views if len(view) > 1 for attribute in view}
        views = [view for view in self.views if len(view) > 1 or view[0] not in covered]
        affordable_views, room = affordable(views, sizes)
        inside = {pair for view in views for pair in combinations(view, 2)}
        across = (pair for pair in combinations(range(len(sizes)), 2) if pair not in inside)
        pairs, _ = affordable(across, sizes, max(room, 0))
        return ModelTables(self.bins, self.within, tuple(self._stored([*affordable_views, *pairs])))

    def _stored(self, scopes: Sequence[Scope]) -> Iterator[tuple[Scope, FloatArray]]:
        for scope in scopes:
            if scope in self.views:
                yield scope, self.views[scope]
            else:  # a pair in no view is independent
                yield scope, np.outer(self.views[scope[:1]], self.views[scope[1:]])

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Batches:
        """Rows that meet the views, as well as ``deadline`` leaves the time."""
        views = {scope: table for scope, table in self.views.items() if len(scope) > 1}
        return ViewRows(self.beliefs, views, self.bins, self.within, self.synthesis, deadline).sampler()


# -- stored tables -------------------------------------------------------------------------------------

# The stored form of any model: joint tables over working bins.


@dataclass(frozen=True, slots=True)
class StoredTable:
    """Joint probabilities over working bins.

    ``scope`` are positions of attributes, ``shape`` their numbers of bins. ``probabilities`` (float32) belong
    to ``cells`` (int64, row-major numbers); missing cells have probability 0.
    """

    scope: tuple[int, ...]
    shape: tuple[int, ...]
    cells: IntArray
    probabilities: NDArray[np.float32]

    @property
    def size(self) -> int:
        """Number of cells, empty ones included."""
        return math.prod(self.shape)

    def summed(self, scope: Sequence[int]) -> FloatArray:
        """The table over some of its attributes, axes in the order of ``scope``."""
        numbers, shape = np.zeros(self.cells.size, np.int64), []
        for position in scope:
            axis = self.scope.index(position)
            size, stride = self.shape[axis], math.prod(self.shape[axis + 1 :])
            numbers = numbers * size + self.cells // stride % size
            shape.append(size)
        sums = np.bincount(numbers, self.probabilities, math.prod(shape))
        return np.asarray(sums, np.float64).reshape(shape)


@dataclass(frozen=True, slots=True)
class StoredModel(Answering):
    """A model read back from where it is stored.

    ``bins[i]`` (int64, one per code of attribute i) is the working bin of each code, ``within[i]`` (float64)
    its share of the bin. ``most``: the most attributes that the fitted model answers together, None for no
    limit. The database that stores the model draws its rows.
    """

    domain: Domain
    total: float
    bins: tuple[IntArray, ...]
    within: tuple[FloatArray, ...]
    tables: tuple[StoredTable, ...]
    most: int | None = None
    _holding: dict[int, list[StoredTable]] = field(init=False, repr=False, compare=False)
    """The tables of each attribute: of hundreds of attributes tens of thousands of tables are stored."""

    def __post_init__(self) -> None:
        holding: dict[int, list[StoredTable]] = {}
        for table in self.tables:
            for position in table.scope:
                holding.setdefault(position, []).append(table)
        object.__setattr__(self, "_holding", holding)

    def _answers(self, positions: tuple[int, ...]) -> bool:
        """Whether a stored table holds them all."""
        return self._smallest(positions) is not None

    def _counts(self, positions: tuple[int, ...]) -> FloatArray:
        """Summed from the smallest table that holds the attributes."""
        table = self._smallest(positions)
        if table is None:
            raise InputError(self._without([self.domain.names[position] for position in positions]))
        return over_codes(max(0.0, self.total) * table.summed(positions), positions, self.bins, self.within)

    def _smallest(self, positions: Sequence[int]) -> StoredTable | None:
        wanted = set(positions)
        candidates = min((self._holding.get(position, []) for position in wanted), key=len)
        holding = (table for table in candidates if wanted <= set(table.scope))
        return min(holding, key=lambda table: table.size, default=None)

    def _without(self, names: Sequence[str]) -> str:
        """Why no table holds the attributes, in the words of the fitted model. Every fitted model answers
        pairs, so a missing pair was left out when the model was stored."""
        if len(names) <= 2:
            return (
                f"no table of {', '.join(map(repr, names))} is stored with the release, because the largest "
                "tables are left out; count them in rows of sample()"
            )
        return (
            "this model answers marginals of one or two attributes, and of more attributes if they "
            "were fitted together; count others in the synthetic table"
        )
