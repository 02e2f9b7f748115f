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
    """A private choice among candidates by integer scores, each of ``sensitivity`` D.

    With e = 2 D / scale: the exponential mechanism costs rho = e^2 / 8 (Cesar and Rogers 2021,
    bounded range); permute-and-flip (McKenna and Sheldon 2020), used in pure accounts, costs e.
    """

    scale: float
    sensitivity: int

    def cost(self, kind: Kind) -> Fraction:
        """Exact epsilon (pure) or rho (zcdp)."""
        epsilon = Fraction(2 * self.sensitivity) / Fraction(self.scale)
        return epsilon if kind == "pure" else epsilon**2 / 8


PrivacyEvent = GaussianEvent | LaplaceEvent | SelectionEvent

_KINDS: dict[str, type[PrivacyEvent]] = {
    "gaussian": GaussianEvent,
    "laplace": LaplaceEvent,
    "selection": SelectionEvent,
}


def cost_units(event: PrivacyEvent, kind: Kind) -> int:
    """Cost of an event in units of 1e-15, rounded up."""
    return math.ceil(event.cost(kind) * RHO_UNITS)


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
