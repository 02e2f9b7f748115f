"""The promise of a release on its page, and how its rows are tied."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpsyn_sql.accounting.events import cost_units
from dpsyn_sql.accounting.gdp import AMOUNT_UNITS
from dpsyn_sql.attributes.attribute import Attribute, edge_ticks
from dpsyn_sql.fit.network import MarginalModel
from dpsyn_sql.report.certificate import event_of
from dpsyn_sql.report.html.templates import Bar
from dpsyn_sql.report.labels import percent

WEAK = 8.0
"""Above it a promise reads as weak: epsilon alone lets nearly every bet be right."""

_FLOAT = 1e-12
"""What the arithmetic of floats may add to 100 times a chance, so that 50 of 100 stay 50."""

_ROUNDING = 1e-9
"""What exact Gaussian accounting keeps of delta for noise on a lattice."""


@dataclass(frozen=True, slots=True)
class Promise:
    """``by_epsilon``: the largest chance that a bet is right by epsilon and delta alone. ``exact``: by the
    account's own curve, if that is known and smaller. ``mu``: of exact Gaussian accounting, or None."""

    epsilon: float
    delta: float
    by_epsilon: float
    exact: float | None
    mu: float | None

    @property
    def best(self) -> float:
        """The smallest bound."""
        return self.by_epsilon if self.exact is None else min(self.exact, self.by_epsilon)

    @property
    def weak(self) -> bool:
        """Whether the promise hardly protects."""
        return self.epsilon > WEAK

    def of_group(self, rows: int) -> float:
        """The bound for so many units at once, by composition of the same claim: epsilon or mu times
        ``rows``, and the delta of the group (Dwork, Roth 2014, Theorem 2.2)."""
        exponent = rows * self.epsilon
        failing = self.delta * math.expm1(exponent) / math.expm1(self.epsilon) if exponent < 500 else 1.0
        by_epsilon = min(1.0, _right(exponent) + failing)
        if self.mu is None:
            return by_epsilon
        # From neighbour to neighbour delta grows with the slope of the curve: exp((rows mu)^2 / 2) at most.
        spread = rows * self.mu
        failing = 2 * rows * (self.delta + _ROUNDING) * math.exp(min(spread**2 / 2, 500.0))
        return min(by_epsilon, float(ndtr(spread / 2)) + min(1.0, failing))


def promise_of(facts: Mapping[str, Any]) -> Promise:
    """The promise of a certificate."""
    guarantee = facts["guarantee"]
    epsilon, delta = float(guarantee["epsilon"]), float(guarantee["delta"])
    by_epsilon = min(1.0, _right(epsilon) + delta)
    budget = facts["budget"]
    if budget["kind"] != "gdp":
        return Promise(epsilon, delta, by_epsilon, None, None)
    mu = math.sqrt(2 * float(budget["reserved_units_of_1e-15"]) / AMOUNT_UNITS)
    exact = float(ndtr(mu / 2)) + float(budget["threshold_delta"]) + _ROUNDING
    return Promise(epsilon, delta, by_epsilon, min(1.0, exact), mu)


def of_hundred(chance: float) -> str:
    """How many of 100 bets, rounded up; where that is nearly all, with decimals."""
    if chance < 0.99:
        return f"{math.ceil(100 * chance - _FLOAT)} of 100"
    return f"{math.ceil(1e4 * chance) / 100:g} of 100" if chance < 0.9999 else "practically all"


def chance_in_words(delta: float) -> str:
    """A tiny probability: ``one in a billion``."""
    number = 1 / delta
    for size, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size * 0.999:
            count = number / size
            return f"one in {'a' if round(count, 1) == 1 else f'{count:,.3g}'} {word}"
    return f"one in {number:,.0f}"


def _right(epsilon: float) -> float:
    return 1 / (1 + math.exp(-epsilon))


# -- the budget ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spending:
    """Shares of the budget that was reserved: ``steps`` by what they are about, ``columns`` for learning the
    values of one column, ``tables`` of the tree if there are several, ``unused``, and what that is in
    words."""

    steps: Mapping[str, float]
    columns: Mapping[str, float]
    tables: Mapping[str, float]
    unused: float
    unused_words: str = "Not used"

    @property
    def with_unused(self) -> Mapping[str, float]:
        """Steps, and what was not used if it shows."""
        return {**self.steps, **({self.unused_words: self.unused} if self.unused >= 0.0005 else {})}


def spending_of(facts: Mapping[str, Any]) -> Spending:
    """What a certificate says of the cost of each step."""
    reserved, kind = facts["budget"]["reserved_units_of_1e-15"], facts["budget"]["kind"]
    steps, columns, tables = (defaultdict[str, float](float) for _ in range(3))
    for mechanism in facts["mechanisms"]:
        share = cost_units(event_of(mechanism), kind) / reserved
        steps[_step_words(mechanism["step"])] += share
        if mechanism.get("column") is not None:
            columns[mechanism["column"]] += share
        if "table" in mechanism:
            tables[mechanism["table"]] += share
    unused = "Other tables, and what is not used" if facts.get("database") else "Not used"
    return Spending(steps, columns, tables, max(0.0, 1 - sum(steps.values())), unused)


def _step_words(step: str) -> str:
    """A step of a certificate by what it is about."""
    if step.startswith("discover"):
        return "Learning which values occur"
    if any(word in step for word in ("two-way", "three-way", "pair", "view", "network", "higher")):
        return "Counts of several columns together"
    if "one-way" in step:
        return "Counts of single columns"
    if step.startswith("rows"):
        return "The number of rows"
    return step[:1].upper() + step[1:]


# -- ties --------------------------------------------------------------------------------------------

# How tables are tied, how many rows belong to a row above or to a person, and how alike they are.
#
# All of it is computed from the models, in which each unit weighs one: rows of n count 1/n each.

FloatArray = NDArray[np.float64]

_MOST_CELLS = 400_000


@dataclass(frozen=True, slots=True)
class Alike:
    """A column. ``related``: chance that two rows of one person agree, at least; ``strangers``: that rows of
    two persons do."""

    name: str
    related: float
    strangers: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of rows. ``bars``: shares by number. ``mean``: of the number. ``none``: the share of 0."""

    bars: list[Bar]
    mean: float
    none: float


@dataclass(frozen=True, slots=True)
class PersonsRows:
    """``unit``: whose rows they are. ``bars``: shares of persons by their number of rows. ``mean``: of that
    number. ``most``: rows of a person that counted. ``shared``: columns of one value per person. ``alike``:
    the other columns, the most alike first. ``order``: what orders the rows, or nothing."""

    unit: str
    bars: list[Bar]
    mean: float
    most: int
    shared: list[str]
    alike: list[Alike]
    order: str


def hidden_names(facts: Mapping[str, Any]) -> frozenset[str]:
    """Attributes of the model that are not columns: what the rows of a person decide together."""
    families = facts["public_facts"].get("families") or {"hidden": ()}
    return frozenset(families["hidden"])


def persons_rows(model: MarginalModel, facts: Mapping[str, Any]) -> PersonsRows | None:
    """None if rows do not stay together; also of a table of several, whose page says how they are tied."""
    families, names = facts["public_facts"].get("families"), model.domain.names
    if not families or families.get("table"):
        return None
    sizes, hidden = sizes_of(model, families["size"]), hidden_names(facts)
    if sizes is None:
        return None
    persons = [name for name in names if name in families["persons"]]
    columns = [name for name in names if name not in hidden and name not in persons]
    return PersonsRows(
        unit=facts["guarantee"]["privacy_unit"],
        bars=sizes.bars,
        mean=sizes.mean,
        most=facts["guarantee"]["rows_per_unit"],
        shared=[name for name in persons if name not in hidden],
        alike=alike_columns(model, columns, persons),
        order=families["order"],
    )


def sizes_of(model: MarginalModel, name: str) -> Sizes | None:
    """Of the attribute that is a number of rows; None if there is none, or nothing is known."""
    if name not in model.domain.names:
        return None
    size = model.domain[name]
    if size.leaves is not None or size.type.family != "integer" or len(size.edges) != size.size + 1:
        return None  # a certificate that somebody changed
    sizes = model.project([name])
    total = float(sizes.sum())
    if not total > 0:
        return None
    shares = sizes / total
    none = float(shares[0]) if edge_ticks(size)[:2] == (0, 1) else 0.0
    return Sizes(_bars(size, shares), float(_middles(size) @ shares), none)


def alike_columns(model: MarginalModel, columns: Sequence[str], persons: Sequence[str]) -> list[Alike]:
    """How alike rows are that share ``persons``, column by column, the most alike first."""
    alike = [agreeing for name in columns if (agreeing := _alike(model, name, persons)) is not None]
    return sorted(alike, key=lambda column: column.strangers - column.related)


def _middles(size: Attribute) -> FloatArray:
    """The mean number of rows of each code."""
    edges = np.asarray(size.edges, np.float64)
    return (edges[:-1] + edges[1:] - 1) / 2


def _bars(size: Attribute, shares: FloatArray) -> list[Bar]:
    """By octaves of the number of rows: 0 if that occurs, 1, 2 to 3, 4 to 7, ..., as far as somebody is."""
    edges = [int(edge) for edge in size.edges]  # type: ignore[arg-type]
    octaves = np.array([max(0, edge).bit_length() - 1 for edge in edges[:-1]])
    bars = []
    for octave in range(int(octaves.min()), int(octaves[shares > 0].max(initial=0)) + 1):
        inside = np.flatnonzero(octaves == octave)
        if inside.size:
            first, last = edges[inside[0]], edges[inside[-1] + 1] - 1
            share = float(shares[inside].sum())
            words = f"{first:,}" if first == last else f"{first:,} to {last:,}"
            bars.append(Bar(words, share, share, share, percent(share)))
    return bars


def _alike(model: MarginalModel, name: str, persons: Sequence[str]) -> Alike | None:
    """Given one attribute of a person two of her rows are independent in the model, or more alike: the
    attribute that says most gives a lower bound of their agreement."""
    shares = model.project([name])
    total = float(shares.sum())
    if shares.size < 2 or not total > 0:
        return None
    strangers = float(((shares / total) ** 2).sum())
    related = [_agreement(model, name, shared) for shared in persons]
    return Alike(name, max([strangers, *related]), strangers)


def _agreement(model: MarginalModel, name: str, shared: str) -> float:
    """The chance that two draws of an attribute agree, given the same value of another; 0 if unknown."""
    pair = [name, shared]
    if model.domain.cells(pair) > _MOST_CELLS or not model.supports(pair):
        return 0.0
    joint = model.project(pair)
    margin = joint.sum(axis=0)
    occurs = margin > 0
    return float((joint[:, occurs] ** 2 / margin[occurs]).sum() / margin.sum())


# -- tables of a tree ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableLine:
    """A line of the tree: ``depth`` (the root has 0), ``most`` rows of a row of the parent, ``most_of_unit``
    of one root row, ``rows`` that were written."""

    name: str
    depth: int
    parent: str | None
    most: int
    most_of_unit: int
    rows: int


@dataclass(frozen=True, slots=True)
class Link:
    """A table and its parent. ``sizes``: rows of a row of the parent, None if unknown. ``alike``: columns in
    which rows of one row of the parent agree more often than others."""

    table: str
    parent: str
    most: int
    sizes: Sizes | None
    alike: Sequence[Alike]
    order: str


def tree_lines(tree: Sequence[Mapping[str, Any]], rows: Mapping[str, int]) -> list[TableLine]:
    """Each table followed by those below it.

    Args:
        tree: as the certificate has it, parents before their children.
        rows: that were written, by table.
    """
    depths, lines = dict[str, int](), list[TableLine]()
    for table in tree:
        name, parent = str(table["table"]), table["parent"]
        depths[name] = 0 if parent is None else depths[str(parent)] + 1
        lines.append(TableLine(name, depths[name], parent, table["most"], table["rows_per_unit"], rows[name]))
    return _below(lines, None)


def _below(lines: Sequence[TableLine], parent: str | None) -> list[TableLine]:
    ordered = list[TableLine]()
    for line in lines:
        if line.parent == parent:
            ordered += [line, *_below(lines, line.name)]
    return ordered


def link_of(
    line: TableLine,
    parent: tuple[MarginalModel, Mapping[str, Any]],
    table: tuple[MarginalModel, Mapping[str, Any]],
) -> Link | None:
    """How a table is tied to its parent; None for the root.

    Args:
        line: of the table.
        parent: its model and its certificate; of the root anything.
        table: the same of the table.
    """
    if line.parent is None:
        return None
    (above, above_facts), (model, facts) = parent, table
    numbers = [
        below["name"]
        for below in above_facts["public_facts"]["families"]["below"]
        if below["table"] == line.name and below["number"]
    ]
    families, hidden, names = facts["public_facts"]["families"], hidden_names(facts), model.domain.names
    return Link(
        table=line.name,
        parent=line.parent,
        most=line.most,
        sizes=sizes_of(above, numbers[0]) if numbers else None,
        alike=alike_columns(
            model,
            [name for name in names if name not in hidden],
            [attribute["name"] for attribute in families["above"] if attribute["name"] in names],
        ),
        order=families["order"],
    )
