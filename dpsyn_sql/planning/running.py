"""Running totals: which nodes are measured, what each may spend, and which way has less noise.

A total at period t is about the rows of windows 1 to t of a calendar of T windows. It is the sum of the
noisy tables of *nodes*, runs of consecutive windows. Each period measures one node, which ends with it. One
budget pays for all nodes of the calendar.

- ``sum``: each window is a node; a total is the sum of t nodes.
- ``tree``: the binary mechanism (Chan, Shi, Song 2011, algorithm 2; Dwork, Naor, Pitassi, Rothblum 2010).
  Period t measures its last 2^l windows, 2^l being the largest power of two that divides t. A total is the
  sum of as many nodes as t has binary ones: those of t, of t without its last one, and so on.

The argument for the costs is in docs/privacy.md, "Running totals". Nothing here reads a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from dpsyn_sql.accounting.budget import Budget, Kind
from dpsyn_sql.errors import InputError, said
from dpsyn_sql.source.slices import Slice, Window

Way = Literal["sum", "tree"]

MOST_ROWS_PER_UNIT = 2**31

WAYS: tuple[Way, Way] = ("sum", "tree")


@dataclass(frozen=True, slots=True)
class Level:
    """All nodes of ``span`` windows.

    ``nodes``: how many there are in the calendar. ``charged``: in how many of them a unit can count.
    ``rows``: how many rows of a unit count in one of them. ``uses``: how many nodes of this level all totals
    of the calendar have in their sums, added up.
    """

    span: int
    nodes: int
    charged: int
    rows: int
    uses: int

    def noise(self, share: Fraction, kind: Kind) -> Fraction:
        """Variance of a cell of one node at a share of the budget, as a multiple of that of one release of
        units of one row that spends the whole budget.

        Gaussian noise of variance rows^2 / (2 rho) costs ``charged`` times rho; Laplace noise of variance
        2 (rows / epsilon)^2 ``charged`` times epsilon.
        """
        if kind != "pure":
            return self.rows**2 * self.charged / share
        return (self.rows * self.charged / share) ** 2

    def weight(self, kind: Kind) -> Fraction:
        """Its part of the budget, so that the totals of all periods have the least noise on average.

        The sum over levels of uses * noise(share) is least, for shares that add up to one, where the
        derivatives are equal: shares as sqrt(uses charged) rows (Gaussian), or the cube root of
        uses (rows charged)^2 (Laplace). Rounded, so that it is the same on every machine.
        """
        if kind != "pure":
            return Fraction(round(math.sqrt(self.uses * self.charged) * self.rows, 6))
        return Fraction(round((self.uses * (self.rows * self.charged) ** 2) ** (1 / 3), 6))


@dataclass(frozen=True, slots=True)
class Running:
    """One way to make the totals of a calendar.

    Args:
        way: ``"sum"`` or ``"tree"``.
        periods: windows of the calendar, T.
        windows: a unit counts in at most so many of them, 1 to T.
        rows: at most so many rows of a unit count in a window.
        kind: of the budget.
        of_rows: a unit is a row, so it has one row in any node.
    """

    way: Way
    periods: int
    windows: int
    rows: int
    kind: Kind
    of_rows: bool = False

    @property
    def levels(self) -> tuple[Level, ...]:
        """Ascending in their spans."""
        if self.way == "sum":
            return (self._level(1, self.periods, self.periods * (self.periods + 1) // 2),)
        spans = [2**level for level in range(self.periods.bit_length())]
        return tuple(
            self._level(span, self.periods // span - self.periods // (2 * span), _ones(self.periods, span))
            for span in spans
        )

    def _level(self, span: int, nodes: int, uses: int) -> Level:
        rows = 1 if self.of_rows else self.rows * min(self.windows, span)
        return Level(span, nodes, min(self.windows, nodes), rows, uses)

    def span(self, period: int) -> int:
        """Windows of the node that ends with a period, counted from 1."""
        return 1 if self.way == "sum" else period & -period

    def nodes(self, period: int) -> tuple[int, ...]:
        """The periods, ascending, whose nodes add up to the total of a period."""
        return tuple(sorted(self._backwards(period)))

    def _backwards(self, period: int) -> Iterator[int]:
        while period:
            yield period
            period -= self.span(period)

    def level(self, period: int) -> Level:
        """The level of the node that ends with a period."""
        return _by_span(self)[self.span(period)]

    def node_budget(self, calendar_budget: Budget, period: int) -> Budget:
        """What the node of a period may spend, if all nodes of the calendar may spend ``calendar_budget``.

        For each level, ``charged`` times the budget of one node is at most the level's share.
        """
        return _node_budgets(self, calendar_budget)[self.span(period)]

    def variance(self, period: int) -> float:
        """Of a cell of the total of a period, as a multiple of that of one release of units of one row that
        spends the whole budget."""
        return self._summed({span: float(noise) for span, noise in self._noise().items()}, period)

    @property
    def mean_variance(self) -> float:
        """Mean of ``variance`` over all periods."""
        noise = self._noise()
        return float(sum(level.uses * noise[level.span] for level in self.levels) / self.periods)

    @property
    def largest_variance(self) -> float:
        """The largest ``variance`` of a period."""
        noise = {span: float(variance) for span, variance in self._noise().items()}
        if self.way == "sum":
            return self.periods * noise[1]
        return max(self._summed(noise, period) for period in range(1, self.periods + 1))

    def _summed(self, noise: Mapping[int, float], period: int) -> float:
        return sum(noise[self.span(each)] for each in self._backwards(period))

    def _noise(self) -> dict[int, Fraction]:
        """Variance of a cell of a node by its span."""
        levels = self.levels
        weight_of_all = sum(level.weight(self.kind) for level in levels)
        return {
            level.span: level.noise(level.weight(self.kind) / weight_of_all, self.kind) for level in levels
        }


@lru_cache(maxsize=16)
def _by_span(running: Running) -> Mapping[int, Level]:
    return {level.span: level for level in running.levels}


@lru_cache(maxsize=16)
def _node_budgets(running: Running, calendar_budget: Budget) -> Mapping[int, Budget]:
    """Of a node by its span."""
    levels = running.levels
    shares = calendar_budget.split([level.weight(running.kind) for level in levels])
    return {
        level.span: Budget(calendar_budget.kind, share.amount // level.charged)
        for level, share in zip(levels, shares, strict=True)
    }


def _ones(periods: int, span: int) -> int:
    """How many of the numbers 1 to ``periods`` have the binary digit of value ``span``."""
    full_runs, remainder = divmod(periods + 1, 2 * span)
    return full_runs * span + max(0, remainder - span)


def both_ways(
    periods: int, windows: int, rows: int, kind: Kind, of_rows: bool = False
) -> tuple[Running, Running]:
    """Both ways, the chosen one first: the one with less variance on average over the periods.

    With equal noise the sum is chosen: its nodes are the periods' own tables.
    """
    bound = min(windows, periods)
    candidates = [Running(scheme, periods, bound, rows, kind, of_rows) for scheme in WAYS]
    first, second = sorted(candidates, key=lambda running: running.mean_variance)
    return first, second


@dataclass(frozen=True, slots=True)
class Total:
    """The total of one period: the chosen way and the other, the labels of all periods, and which one it is.

    ``period`` is counted from 1; ``whole`` is the budget of the calendar.
    """

    running: Running
    other: Running
    labels: tuple[str, ...]
    period: int
    whole: Budget

    @property
    def budget(self) -> Budget:
        """Of the node that the period measures."""
        return self.running.node_budget(self.whole, self.period)

    @property
    def paid_before(self) -> bool:
        """Whether earlier periods of its level have paid for all nodes of the level that a unit can be in."""
        level, before = self.level, self.period - 1
        nodes = before if self.running.way == "sum" else before // level.span - before // (2 * level.span)
        return nodes >= level.charged

    @property
    def earlier(self) -> tuple[int, ...]:
        """The periods before it whose nodes are part of the total."""
        return self.running.nodes(self.period)[:-1]

    @property
    def level(self) -> Level:
        """Of that node."""
        return self.running.level(self.period)

    def node(self, window: Window) -> Window:
        """The windows that the period measures; ``window`` is any of the calendar."""
        span = self.level.span
        return replace(window, index=self.period - span, span=span)

    @property
    def identity(self) -> dict[str, Any]:
        """What else makes another release, JSON-ready: all that decides the nodes and their budgets.

        Without the budgets another version of this package could divide the rest of a calendar otherwise,
        and spend more than the whole.
        """
        return {"running_total": self.facts}

    @property
    def facts(self) -> dict[str, Any]:
        """The public facts that decide the nodes and their budgets, JSON-ready."""
        running = self.running
        return {
            "way": running.way,
            "periods": running.periods,
            "windows_per_unit": running.windows,
            "rows_per_unit": running.rows,
            "units_of_1e-15_for_a_node": {
                str(level.span): running.node_budget(self.whole, level.span).amount
                for level in running.levels
            },
        }

    @property
    def ways(self) -> tuple[str, str]:
        """The noise of both ways."""
        return f"{_noise_of(self.running)} (chosen: less on average)", _noise_of(self.other)

    @property
    def lines(self) -> tuple[str, ...]:
        """For the explained plan."""
        running, span = self.running, self.level.span
        nodes = len(running.nodes(self.period))
        facts = (
            f"period {self.period} of {running.periods}; a unit counts in at most "
            f"{_counted(running.windows, 'window')}, with at most {_counted(running.rows, 'row')} in each",
            "epsilon and delta are for the totals of all periods together",
            *self.ways,
            f"it measures {_counted(span, 'window')}; its total adds up {_counted(nodes, 'node')}",
        )
        labels = ("Total", *("" for _ in facts[1:]))
        return tuple(f"{label:<12}{line}" for label, line in zip(labels, facts, strict=True))


def total_of(
    sliced: Slice | None,
    *,
    name: str | None,
    version: str | None,
    rows: int,
    of_rows: bool,
    whole: Budget,
) -> Total:
    """The total of a period.

    Args:
        sliced: the window of the period, in the calendar of all of them.
        name: of the release.
        version: the label of the period, or None.
        rows: at most so many rows of a unit count in a window.
        of_rows: whether a unit is a row.
        whole: the budget of the calendar.

    Raises:
        InputError: all that is wrong with them.
    """
    faults = []
    labels = sliced.names if isinstance(sliced, Window) else ()
    if name is None:
        faults.append("name= is missing: all periods are releases of one name")
    if not isinstance(sliced, Window) or sliced.span != 1:
        faults.append("window= must be the window of the period, with span 1")
    elif version not in (None, labels[sliced.index]):
        faults.append(
            f"version={said(version)} must be the label of the window, {said(labels[sliced.index])}"
        )
    if rows * len(labels) >= MOST_ROWS_PER_UNIT:
        faults.append(f"a unit could have {rows * len(labels)} rows in a node, more than can be counted")
    if faults or not isinstance(sliced, Window):
        raise InputError(f"The running total cannot be made: {'; '.join(faults)}.")
    most = len(labels) if sliced.most is None else sliced.most
    running, alternative = both_ways(len(labels), most, rows, whole.kind, of_rows)
    return Total(running, alternative, labels, sliced.index + 1, whole.without_thresholds())


@lru_cache(maxsize=16)
def _noise_of(running: Running) -> str:
    average, most = math.sqrt(running.mean_variance), math.sqrt(running.largest_variance)
    return f"{running.way}: {average:.3g} times the noise of one release on average, at most {most:.3g}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
