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
from dpsyn_sql.accounting.tails import threshold_delta_units
from dpsyn_sql.accounting.zcdp import RHO_UNITS
from dpsyn_sql.errors import InternalError


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Discrete Gaussian noise of scale ``sigma`` on integer counts.

    ``l2_squared`` is the squared L2 sensitivity of the whole answer: m k^2 for m marginals and k
    rows a unit. Cost: rho = l2_squared / (2 sigma^2) (Canonne, Kamath, Steinke 2020, Theorem 4).
    """

    sigma: float
    l2_squared: int

    def cost(self, kind: Kind) -> Fraction:
        """Exact rho.

        Raises:
            InternalError: the account is pure; Gaussian noise has no pure epsilon.
        """
        if kind == "pure":
            raise InternalError("Gaussian noise cannot be charged to a pure account")
        return Fraction(self.l2_squared) / (2 * Fraction(self.sigma) ** 2)


@dataclass(frozen=True, slots=True)
class LaplaceEvent:
    """Discrete Laplace noise of ``scale`` on integer counts.

    ``l1`` is the L1 sensitivity of the whole answer: m k for m marginals and k rows a unit.
    Cost: epsilon = l1 / scale; in an approximate account epsilon^2 / 2 (Bun, Steinke 2016).
    """

    scale: float
    l1: int

    def cost(self, kind: Kind) -> Fraction:
        """Exact epsilon (pure) or rho (zcdp)."""
        epsilon = Fraction(self.l1) / Fraction(self.scale)
        return epsilon if kind == "pure" else epsilon**2 / 2


@dataclass(frozen=True, slots=True)
class SelectionEvent:
    """A private choice of ``number`` candidates by integer scores, each of ``sensitivity`` D.

    With e = 2 D / scale each choice costs rho = e^2 / 8 by the exponential mechanism (Cesar and Rogers 2021,
    bounded range; all at once by Gumbel noise: Durfee and Rogers 2019); permute-and-flip (McKenna
    and Sheldon 2020), used in pure accounts, costs e.
    """

    scale: float
    sensitivity: int
    number: int = 1

    def cost(self, kind: Kind) -> Fraction:
        """Exact epsilon (pure) or rho (zcdp)."""
        epsilon = self.single
        return self.number * (epsilon if kind == "pure" else epsilon**2 / 8)

    @property
    def single(self) -> Fraction:
        """The pure epsilon e of one of the choices."""
        return Fraction(2 * self.sensitivity) / Fraction(self.scale)


@dataclass(frozen=True, slots=True)
class ThresholdEvent:
    """Discrete Gaussian noise of scale ``sigma`` on the units of every key present, where only keys whose
    noisy count reaches ``threshold`` are shown; a unit has at most ``keys_per_unit`` keys.

    Cost: rho = keys_per_unit / (2 sigma^2), and ``delta_units`` for the keys that one unit alone has
    (docs/privacy.md, "Keys"; Bun, Steinke 2016, Definition 8.1).
    """

    sigma: float
    keys_per_unit: int
    threshold: int

    @property
    def l2_squared(self) -> int:
        """Squared L2 sensitivity of the counts: at most k of them change, by one each."""
        return self.keys_per_unit

    @property
    def delta_units(self) -> int:
        """1 - (1 - P[Z >= threshold - 1])^keys_per_unit in units of 1e-18, rounded up."""
        return threshold_delta_units(self.sigma, self.keys_per_unit, self.threshold)

    def cost(self, kind: Kind) -> Fraction:
        """Exact rho.

        Raises:
            InternalError: the account is pure.
        """
        return GaussianEvent(self.sigma, self.l2_squared).cost(kind)


@dataclass(frozen=True, slots=True)
class TreeEvent:
    """PrivTree (Zhang, Xiao, Xie 2016) with discrete Laplace noise of ``scale`` in every test. No question
    asks for it; ledgers hold it, and their sums count it.

    A unit has at most ``points_per_unit`` points k. Cost: epsilon = 3 k / scale, in an approximate account
    epsilon^2 / 2 (their Theorem 3.1, which holds for whole numbers too).
    """

    scale: float
    points_per_unit: int

    @property
    def decay(self) -> int:
        """What a level takes off a count: the least whole number >= scale ln 2, at least 1."""
        return max(1, math.ceil(Fraction(self.scale) * _LN_2_ABOVE))

    def cost(self, kind: Kind) -> Fraction:
        """Exact epsilon (pure) or rho (zcdp)."""
        epsilon = Fraction(3 * self.points_per_unit) / Fraction(self.scale)
        return epsilon if kind == "pure" else epsilon**2 / 2


_LN_2_ABOVE = Fraction(69_314_718_055_994_531, 10**17)

PrivacyEvent = GaussianEvent | LaplaceEvent | SelectionEvent | ThresholdEvent | TreeEvent

_KINDS: dict[str, type[PrivacyEvent]] = {
    "gaussian": GaussianEvent,
    "laplace": LaplaceEvent,
    "selection": SelectionEvent,
    "threshold": ThresholdEvent,
    "tree": TreeEvent,
}


def cost_units(event: PrivacyEvent, kind: Kind) -> int:
    """Cost of an event in units of 1e-15, rounded up."""
    return math.ceil(event.cost(kind) * RHO_UNITS)


def delta_units(event: PrivacyEvent) -> int:
    """Threshold delta of an event in units of 1e-18; only thresholds have any."""
    return event.delta_units if isinstance(event, ThresholdEvent) else 0


def total_units(events: Iterable[PrivacyEvent], kind: Kind) -> int:
    """Sequential (adaptive) composition: costs add up."""
    return sum(cost_units(event, kind) for event in events)


def event_to_dict(event: PrivacyEvent) -> dict[str, Any]:
    """A JSON-ready form; floats keep every bit through ``repr``."""
    name = next(name for name, cls in _KINDS.items() if isinstance(event, cls))
    return {"event": name, **asdict(event)}


def event_from_dict(data: Mapping[str, Any]) -> PrivacyEvent:
    """The inverse of ``event_to_dict``."""
    fields = dict(data)
    return _KINDS[fields.pop("event")](**fields)
