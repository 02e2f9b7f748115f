"""Labels of rows, and classes of their units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Attribute, Domain
from dpsyn_sql.errors import InternalError
from dpsyn_sql.sqltext.fragments import Fragment, code_type, lot, value_at

Table = tuple[tuple[int, ...], ...]
"""One row for each class of a label, one number for each code of an attribute."""

Columns = Mapping[str, NDArray[np.int64]]
"""The codes of each attribute, int64[rows]."""

MOST_CLASSES = 256
"""Codes of a ``NearestLabel``: its SQL has a sum of all its attributes for each."""

LARGEST_SUM = 2**62
"""No sum of scores reaches it, so BIGINT holds all of them."""


@dataclass(frozen=True, slots=True)
class NearestLabel:
    """The nearest of some classes: the least j that minimises offsets[j] + sum over a of scores[a][j][x_a].

    ``scores``: for each attribute a its name and a table with one row for each class and one number for each
    code of the attribute. Minus logarithms of probabilities give the likeliest class (hard EM), squared
    distances the nearest centre (k-means).
    """

    name: str
    offsets: tuple[int, ...]
    scores: tuple[tuple[str, Table], ...]

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.offsets)

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that it looks at."""
        return tuple(name for name, _ in self.scores)

    def ranked(self) -> tuple[tuple[int, ...], tuple[tuple[str, Table], ...]]:
        """Offsets and scores whose sum r_j tells the label: it is min(r_0, r_1, ...) modulo ``size``.

        r_j is ``size`` times the sum of class j, plus j. What all classes have in common is taken off, so
        that no sum is below zero.
        """
        least = min(self.offsets)
        offsets = tuple((offset - least) * self.size + code for code, offset in enumerate(self.offsets))
        scores = []
        for name, table in self.scores:
            least = min(map(min, table))
            scaled = (tuple((score - least) * self.size for score in row) for row in table)
            scores.append((name, tuple(scaled)))
        return offsets, tuple(scores)

    def codes(self, columns: Columns) -> NDArray[np.int64]:
        """The label of public rows: int64[rows]."""
        offsets, scores = self.ranked()
        ranks = np.array(offsets, dtype=np.int64)[:, None]
        for name, table in scores:
            ranks = ranks + np.array(table, dtype=np.int64)[:, columns[name]]
        return np.asarray(ranks.min(axis=0) % self.size)

    def code(self, codes: Mapping[str, Fragment]) -> Fragment:
        """The label of one row as SQL, once ``check_labels`` has accepted it. No two ranks are equal: they
        differ modulo the size, which gives the class of the least.

        ``codes``: of each of its attributes a plain reference to a BIGINT column, because it is repeated.
        """
        offsets, scores = self.ranked()
        ranks = [
            " + ".join(
                [
                    f"CAST({offset} AS BIGINT)",
                    *(value_at(table[j], codes[name]) for name, table in scores),
                ]
            )
            for j, offset in enumerate(offsets)
        ]
        return Fragment(f"(LEAST({', '.join(ranks)}) % {self.size})")

    def check(self, domain: Domain) -> None:
        """Raises:
        InternalError: it is not total over ``domain``, or its sums could pass BIGINT.
        """
        if not _holds(self.offsets, int) or not 1 <= self.size <= MOST_CLASSES:
            raise InternalError(f"a label has 1 to {MOST_CLASSES} classes, each with a whole number")
        for name, table in self.scores:
            integral = _holds(table, tuple) and all(_holds(row, int) for row in table)
            if not integral or [len(row) for row in table] != [domain[name].size] * self.size:
                raise InternalError("a label needs a whole number for every class and code")
        tables = ((self.offsets,), *(table for _, table in self.scores))
        spans = sum(max(map(max, table)) - min(map(min, table)) for table in tables)
        if (spans + 1) * self.size >= LARGEST_SUM:
            raise InternalError("the sums of a label could pass 2^62")


def _holds(values: object, kind: type) -> bool:
    """Whether they are a tuple of such values, without subclasses: what is checked can not change."""
    return type(values) is tuple and all(type(value) is kind for value in values)


def check_labels(labels: Sequence[NearestLabel], domain: Domain) -> None:
    """Accept labels whose values are total, whole, and functions of one row alone.

    Raises:
        InternalError: another type, a name that is taken, or what ``check`` refuses.
    """
    for label in labels:
        plain = type(label) is NearestLabel and _holds(label.scores, tuple)
        plain = plain and all(len(entry) == 2 for entry in label.scores)
        if not plain or not _holds((label.name, *label.attributes), str):
            raise InternalError("a label is a plain NearestLabel: no other function is counted")
    names = [label.name for label in labels]
    if len(set(names)) < len(names) or any(name in domain for name in names):
        raise InternalError("a label needs a name of its own")
    for label in labels:
        if not label.attributes or len(set(label.attributes)) < len(label.attributes):
            raise InternalError("a label looks at some attributes, at each once")
        label.check(domain)


def labelled(domain: Domain, labels: Sequence[NearestLabel]) -> Domain:
    """The domain with the labels as further attributes, in their order."""
    added = (
        Attribute(label.name, "INTEGER", "categorical", labels=tuple(range(label.size))) for label in labels
    )
    return Domain((*domain.attributes, *added)) if labels else domain


def free_names(domain: Domain, number: int) -> list[str]:
    """Names for labels: no attribute has them."""
    names = (f"label {index}" for index in range(1, number + len(domain.names) + 1))
    return [name for name in names if name not in domain][:number]


# -- classes -----------------------------------------------------------------------------------------

# The class of a unit: a public integer function of its rows, and of a draw (public).
#
# A unit has one of ``size`` codes, which all its rows share. It is drawn from what the classes say of the
# unit's own rows: the class that minimises costs less a Gumbel number has the probability exp(-cost) (Gumbel;
# Maddison, Tarlow and Minka 2014). The Gumbel numbers come from a hash of a secret key, the unit and the
# class (docs/privacy.md, "Classes of a family").

SCALE = 2**16
"""Costs are whole numbers of 1/SCALE."""

DRAW_BITS = 12
"""So many high bits of a hash choose one of the quantiles of a Gumbel law."""


_BITS = 62
# Of a BIGINT that holds the sums of several classes, which are not below zero.


def gumbel_costs() -> tuple[int, ...]:
    """What a draw adds to a cost: for each of its 2^DRAW_BITS values the largest Gumbel number less its own,
    the quantile at the middle of its share; 0 or more, in 1/SCALE."""
    values = 2**DRAW_BITS
    quantiles = [-math.log(-math.log((index + 0.5) / values)) for index in range(values)]
    return tuple(round((quantiles[-1] - quantile) * SCALE) for quantile in quantiles)


@dataclass(frozen=True, slots=True)
class FamilyClass:
    """The class of a unit: the least j that minimises, over the rows of the unit and the attributes a,

        offsets[j] + sum over rows x and a of scores[a][j][x_a] + gumbel_costs()[draw of the unit and j].

    ``costs`` has the offsets and scores; its own name is that of the attribute.
    """

    costs: NearestLabel

    @property
    def attribute(self) -> Attribute:
        """The class as an attribute of units."""
        return Attribute(self.costs.name, "INTEGER", "categorical", labels=tuple(range(self.costs.size)))

    def check(self, domain: Domain, rows: int) -> None:
        """Accept a class whose value is total and whole, for units of at most ``rows`` rows.

        Raises:
            InternalError: as ``check_labels``; it is no plain ``FamilyClass``, or its sums could pass BIGINT.
        """
        if type(self) is not FamilyClass or type(self.costs) is not NearestLabel:
            raise InternalError("a class of families is a plain FamilyClass of a NearestLabel")
        check_labels([self.costs], domain)
        offsets, scores = self.costs.ranked()
        most = sum(max(map(max, table)) for _, table in scores)
        if max(offsets) + rows * most + max(gumbel_costs()) * self.costs.size >= LARGEST_SUM:
            raise InternalError("the sums of a class of families could pass 2^62")

    def codes(
        self, columns: Columns, units: NDArray[np.int64], draws: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The classes of public units: int64[units].

        Args:
            columns: the codes of each attribute of the rows, int64[rows].
            units: the number of the unit of each row, int64[rows].
            draws: for each unit and class a whole number below 2^DRAW_BITS, int64[units, size].
        """
        offsets, scores = self.costs.ranked()
        ranks = np.array(offsets) + np.array(gumbel_costs())[draws] * self.costs.size
        for name, table in scores:
            np.add.at(ranks, units, np.array(table, dtype=np.int64).T[columns[name]])
        return np.asarray(ranks.min(axis=1) % self.costs.size)

    def code(
        self,
        codes: Mapping[str, Fragment],
        unit: Fragment,
        key: int,
        *,
        rows: int,
        number: int = 0,
    ) -> Fragment:
        """The class of a unit as SQL, in the smallest unsigned type: an aggregate of the kept rows of a unit,
        in a statement that groups them by ``unit``.

        Args:
            codes: of each of its attributes an expression of the row's code, BIGINT and never NULL.
            unit: whose row it is, as bytes; a plain reference.
            key: of the draw, 0 to 2**64 - 1, secret and of this statement alone.
            rows: that a unit has at most, as ``check`` was told.
            number: of the class among those of the statement: each has draws of its own.
        """
        offsets, _ = self.costs.ranked()
        size = self.costs.size
        drawn = [cost * size for cost in gumbel_costs()]
        ranks = []
        first = number * MOST_CLASSES
        for j, (offset, rank) in enumerate(zip(offsets, self._sums(codes, rows), strict=True)):
            hashed = lot([f"CAST({first + j} AS BIGINT)"], str(unit), key)
            draw = value_at(drawn, f"CAST({hashed} >> {64 - DRAW_BITS} AS BIGINT)")
            ranks.append(f"CAST({offset} AS BIGINT) + {rank} + {draw}")
        return Fragment(f"CAST(LEAST({', '.join(ranks)}) % {size} AS {code_type(size)})")

    def _sums(self, codes: Mapping[str, Fragment], rows: int) -> Iterator[str]:
        """For each class the sum of the scores of a unit's rows. One aggregate has those of as many classes
        as fit into it, each in bits of its own: no sum passes them."""
        _, scores = self.costs.ranked()
        bits = max(1, (rows * sum(max(map(max, table)) for _, table in scores)).bit_length())
        together = max(1, _BITS // bits)
        for first in range(0, self.costs.size, together):
            classes = range(first, min(first + together, self.costs.size))
            packed = [
                value_at(
                    [
                        sum(score << bits * place for place, score in enumerate(of_classes))
                        for of_classes in zip(*(table[j] for j in classes), strict=True)
                    ],
                    str(codes[name]),
                )
                for name, table in scores
            ]
            # A list of small numbers is INTEGER, and the sum of two such can pass it.
            row = " + ".join(f"CAST({score} AS BIGINT)" for score in packed)
            summed = f"COALESCE(CAST(sum({row}) AS BIGINT), 0)"
            for place in range(len(classes)):
                yield f"(({summed} >> {bits * place}) & {2**bits - 1})"


def class_costs(
    name: str, shares: NDArray[np.float64], laws: Sequence[tuple[str, NDArray[np.float64]]]
) -> FamilyClass:
    """The class of units whose rows follow a mixture.

    Args:
        name: of the class.
        shares: of the classes, float64[K], above 0.
        laws: attributes, each with the probabilities of its codes in each class, float64[K, codes], above 0.
    """
    offsets = tuple(_costs(shares))
    scores = tuple((attribute, tuple(tuple(_costs(row)) for row in law)) for attribute, law in laws)
    return FamilyClass(NearestLabel(name, offsets, scores))


def _costs(probabilities: NDArray[np.float64]) -> list[int]:
    return [round(-math.log(probability) * SCALE) for probability in probabilities.tolist()]
