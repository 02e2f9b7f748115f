"""Privacy events: what was asked at what noise. The ledger stores these, so that any
accountant can recompute the cost.

Neighbours add or remove one privacy unit. Sensitivities are already those of the unit: with at
most k rows a unit, k times (L1) and k^2 times (squared L2) those of one row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from dpsyn_sql.accounting.budget import Kind
from dpsyn_sql.accounting.gdp import AMOUNT_UNITS, choice_cost, gaussian_cost, pure_cost
from dpsyn_sql.accounting.tails import threshold_delta_units
from dpsyn_sql.errors import InternalError


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Discrete Gaussian noise of scale ``sigma`` on integer counts; both are in rows.

    With a ``lattice`` of g steps a row, g times the counts get noise of scale g sigma. ``l2_squared`` is the
    squared L2 sensitivity of the whole answer, in rows: m k^2 for m marginals and k rows a unit. Cost:
    mu^2 / 2 = l2_squared / (2 (sigma^2 - 4 / g^2)) (docs/privacy.md, "Exact Gaussian accounting").
    """

    sigma: float
    l2_squared: int
    lattice: int = 1

    def cost(self, kind: Kind) -> Fraction:
        """Exact mu^2 / 2.

        Raises:
            InternalError: the account is pure, and Gaussian noise has no pure epsilon; or it has no mu, since
                sigma is at most two steps.
        """
        if kind == "pure":
            raise InternalError("Gaussian noise cannot be charged to a pure account")
        return gaussian_cost(self.l2_squared, self.sigma, self.lattice)


@dataclass(frozen=True, slots=True)
class LaplaceEvent:
    """Discrete Laplace noise of ``scale`` on integer counts.

    ``l1`` is the L1 sensitivity of the whole answer: m k for m marginals and k rows a unit.
    Cost: epsilon = l1 / scale; in a GDP account ``gdp.pure_cost``.
    """

    scale: float
    l1: int

    def cost(self, kind: Kind) -> Fraction:
        """Exact epsilon; mu^2 / 2 rounded up."""
        return _pure(Fraction(self.l1) / Fraction(self.scale), kind)


@dataclass(frozen=True, slots=True)
class SelectionEvent:
    """A private choice of ``number`` candidates by integer scores, each of ``sensitivity`` D.

    With e = 2 D / scale each choice costs ``gdp.choice_cost``(e) by the exponential mechanism (Cesar and
    Rogers 2021, bounded range; all at once by Gumbel noise: Durfee and Rogers 2019); permute-and-flip
    (McKenna and Sheldon 2020), used in pure accounts, costs e.
    """

    scale: float
    sensitivity: int
    number: int = 1

    def cost(self, kind: Kind) -> Fraction:
        """Exact epsilon; mu^2 / 2 rounded up."""
        epsilon = self.single
        return self.number * (epsilon if kind == "pure" else choice_cost(epsilon))

    @property
    def single(self) -> Fraction:
        """The pure epsilon e of one of the choices."""
        return Fraction(2 * self.sensitivity) / Fraction(self.scale)


@dataclass(frozen=True, slots=True)
class ThresholdEvent:
    """Discrete Gaussian noise of scale ``sigma`` on the units of every key present, where only keys whose
    noisy count reaches ``threshold`` are shown; a unit has at most ``keys_per_unit`` keys.

    With a ``lattice`` of g steps a unit, g times the counts get noise of scale g sigma and are compared with
    g times the threshold, before they are rounded to whole units. Cost: that of a Gaussian event, and
    ``delta_units`` for the keys that one unit alone has (docs/privacy.md, "Keys"; Bun, Steinke 2016,
    Definition 8.1).
    """

    sigma: float
    keys_per_unit: int
    threshold: int
    lattice: int = 1

    @property
    def l2_squared(self) -> int:
        """Squared L2 sensitivity of the counts: at most k of them change, by one each."""
        return self.keys_per_unit

    @property
    def delta_units(self) -> int:
        """1 - (1 - P[Z >= g (threshold - 1)])^keys_per_unit in units of 1e-18, rounded up, for Z of scale
        g sigma."""
        steps = self.lattice * (self.threshold - 1)
        return threshold_delta_units(self.sigma * self.lattice, self.keys_per_unit, steps)

    def cost(self, kind: Kind) -> Fraction:
        """Exact mu^2 / 2 or rho.

        Raises:
            InternalError: as ``GaussianEvent.cost``.
        """
        return GaussianEvent(self.sigma, self.l2_squared, self.lattice).cost(kind)


@dataclass(frozen=True, slots=True)
class TreeEvent:
    """PrivTree (Zhang, Xiao, Xie 2016) with discrete Laplace noise of ``scale`` in every test, on trees whose
    nodes have at most ``branching`` children.

    A unit has at most ``points_per_unit`` rows k. Cost: epsilon = k (2 B - 1) / ((B - 1) scale) for branching
    B (their Theorem 3.1, which holds for whole numbers too); in other accounts that of a Laplace event of
    this epsilon.
    """

    scale: float
    points_per_unit: int
    branching: int = 2

    @property
    def decay(self) -> int:
        """What a level takes off a count: a whole number >= scale ln branching, at least 1."""
        return max(1, math.ceil(Fraction(self.scale) * log_above(self.branching)))

    def cost(self, kind: Kind) -> Fraction:
        """Exact epsilon; mu^2 / 2 rounded up."""
        factor = Fraction(2 * self.branching - 1, self.branching - 1)
        return _pure(factor * self.points_per_unit / Fraction(self.scale), kind)


@dataclass(frozen=True, slots=True)
class ImprovedEvent:
    """The improved adaptive histogram ("Synthetic Data via Differential Privacy", Figure 2) without its
    counts of leaves: discrete Laplace noise of ``scale`` in every test.

    A unit has at most ``points_per_unit`` rows k. Cost: epsilon = 2 k / scale (its Theorem 3, which holds for
    whole numbers with a whole discount); in other accounts that of a Laplace event of this epsilon.
    """

    scale: float
    points_per_unit: int

    def discount(self, threshold: int) -> int:
        """What a level takes off a count: a whole number >= threshold + scale ln 2, at least 1."""
        return max(1, threshold + math.ceil(Fraction(self.scale) * log_above(2)))

    def cost(self, kind: Kind) -> Fraction:
        """Exact epsilon; mu^2 / 2 rounded up."""
        return _pure(Fraction(2 * self.points_per_unit) / Fraction(self.scale), kind)


def log_above(number: int) -> Fraction:
    """A number just above ln ``number``."""
    return Fraction(math.nextafter(math.log(number), math.inf))


def _pure(epsilon: Fraction, kind: Kind) -> Fraction:
    """What a pure epsilon costs."""
    return epsilon if kind == "pure" else pure_cost(epsilon)


PrivacyEvent = GaussianEvent | LaplaceEvent | SelectionEvent | ThresholdEvent | TreeEvent | ImprovedEvent

_KINDS: dict[str, type[PrivacyEvent]] = {
    "gaussian": GaussianEvent,
    "laplace": LaplaceEvent,
    "selection": SelectionEvent,
    "threshold": ThresholdEvent,
    "tree": TreeEvent,
    "improved": ImprovedEvent,
}


def cost_units(event: PrivacyEvent, kind: Kind) -> int:
    """Cost of an event in units of 1e-15, rounded up."""
    return math.ceil(event.cost(kind) * AMOUNT_UNITS)


def delta_units(event: PrivacyEvent) -> int:
    """Threshold delta of an event in units of 1e-18; only thresholds have any."""
    return event.delta_units if isinstance(event, ThresholdEvent) else 0


def total_units(events: Iterable[PrivacyEvent], kind: Kind) -> int:
    """Sequential (adaptive) composition: costs add up."""
    return sum(cost_units(event, kind) for event in events)


def event_to_dict(event: PrivacyEvent) -> dict[str, Any]:
    """A JSON-ready form; floats keep every bit through ``repr``. Noise on whole counts names no lattice, and
    binary trees name no branching, so that events of stored ledgers stay the same."""
    name = next(name for name, cls in _KINDS.items() if isinstance(event, cls))
    fields = {"event": name, **asdict(event)}
    for field, value in (("lattice", 1), ("branching", 2)):
        if fields.get(field) == value:
            del fields[field]
    return fields


def event_from_dict(data: Mapping[str, Any]) -> PrivacyEvent:
    """The inverse of ``event_to_dict``."""
    fields = dict(data)
    return _KINDS[fields.pop("event")](**fields)
