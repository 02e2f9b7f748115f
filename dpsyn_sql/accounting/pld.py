"""A second accountant: privacy loss distributions of the discrete mechanisms, pessimistic.

Uses the optional package dp-accounting (Google), which follows Koskela, Jalko and Honkela (2020)
and Doroshenko et al. (2022). It treats a private choice as plain epsilon-DP, which can cost more than the
account charges, so neither figure is always the smaller one. Its rounding is estimated, not bounded: what is
claimed is the account's own bound, and this one stands beside it.
"""

from __future__ import annotations

import importlib.util
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

from dpsyn_sql.accounting.events import (
    GaussianEvent,
    LaplaceEvent,
    PrivacyEvent,
    SelectionEvent,
    ThresholdEvent,
)

_INTERVAL = 1e-4
"""Grid of the privacy loss (nats), so much coarser for a mean loss above 1: the loss has a deviation of
sqrt(2 mean), and a finer grid makes a large epsilon take minutes. Rounding to it is upwards."""

_ROUNDING = 2.0**-51
_MOST_ROUNDING = 0.1
"""Composition by Fourier transforms rounds either way, in units of 1, not of the small tail. With t
compositions on n points the root mean square error of a probability is about t c, c that of a transform
(log2 n times the norm of a single distribution, a few tenths, in units of the last place); that of delta, a
sum over n points, is below t c sqrt(n). It comes off delta first; above a tenth of it there is no answer."""


_MOST_SCALE = 2.0**17
"""Of noise, in steps of its lattice. Google's package lists every output within 12 scales or so: above this
a release of tiny epsilon would take minutes and gigabytes for a bound that is a few per cent less."""

_LEAST_SIGMA = 0.05
"""In rows: the package refuses noise that is less than a 23rd of what one row changes."""


def is_available() -> bool:
    """Whether dp-accounting is installed."""
    return importlib.util.find_spec("dp_accounting") is not None


def epsilon_from_events(events: Sequence[PrivacyEvent], delta: Fraction) -> float | None:
    """Pessimistic epsilon at ``delta`` of all events together, for units of one row.

    One row shifts one cell of each of m tables by one: the events' noise vectors are m independent
    mechanisms of sensitivity 1 (in steps of the noise's lattice, so many as a row has), so their privacy loss
    is the m-fold composition. For units of
    several rows the shifts can fall into cells in many ways; no distribution is claimed then.

    Args:
        events: of one release; sensitivities as for one row a unit.
        delta: in (0, 1); the deltas of thresholds are beside it and add to it.

    Returns:
        Epsilon, or None without dp-accounting, without events, where its rounding is too coarse for delta or
        the loss too large for its grid, or where noise is too wide or too narrow to list.
    """
    if not events or not all(map(_is_listed, events)) or not is_available():
        return None
    return _epsilon(tuple(Counter(events).items()), delta)


@lru_cache(maxsize=1000)
def _epsilon(counted: tuple[tuple[PrivacyEvent, int], ...], delta: Fraction) -> float | None:
    """Remembered: releases of one plan ask the same again, and it takes as long as a small release."""
    mean = sum(_mean_loss(event) * count for event, count in counted)
    interval = _INTERVAL * max(1.0, mean)
    parts = [_distribution(event, count, interval) for event, count in counted]
    whole = reduce(lambda left, right: left.compose(right), parts)
    error = _ROUNDING * _compositions(counted) * math.sqrt(whole._pmf_remove.size)
    if error > _MOST_ROUNDING * float(delta):
        return None
    found = float(whole.get_epsilon_for_delta(float(delta) - error))
    return found if math.isfinite(found) else None


def _mean_loss(event: PrivacyEvent) -> float:
    """At most about so much; it decides only how fine the grid is."""
    if isinstance(event, GaussianEvent | ThresholdEvent):
        return event.l2_squared / (2 * event.sigma**2)
    return float(event.cost("gdp"))


def _is_listed(event: PrivacyEvent) -> bool:
    """Whether the outputs of an event can be listed; those of a private choice need not be."""
    if isinstance(event, GaussianEvent | ThresholdEvent):
        return event.sigma >= _LEAST_SIGMA and event.sigma * event.lattice <= _MOST_SCALE
    return not isinstance(event, LaplaceEvent) or event.scale <= _MOST_SCALE


def _compositions(counted: Sequence[tuple[PrivacyEvent, int]]) -> int:
    """How many distributions are composed."""
    times = len(counted)
    for event, count in counted:
        if isinstance(event, GaussianEvent | ThresholdEvent):
            times += event.l2_squared * count
        elif isinstance(event, LaplaceEvent):
            times += event.l1 * count
        else:
            times += count * (event.number if isinstance(event, SelectionEvent) else 1)
    return times


def _distribution(event: PrivacyEvent, count: int, interval: float) -> Any:
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    settings = {"value_discretization_interval": interval, "use_connect_dots": True}
    if isinstance(event, GaussianEvent | ThresholdEvent):
        single = pld.from_discrete_gaussian_mechanism(
            event.sigma * event.lattice, sensitivity=event.lattice, **settings
        )
        return single.self_compose(event.l2_squared * count)
    if isinstance(event, LaplaceEvent):
        parameter = _rounded_up(1 / Fraction(event.scale))
        single = pld.from_discrete_laplace_mechanism(parameter, sensitivity=1, **settings)
        return single.self_compose(event.l1 * count)
    exact, times = (
        (event.single, event.number) if isinstance(event, SelectionEvent) else (event.cost("pure"), 1)
    )
    parameters = common.DifferentialPrivacyParameters(_rounded_up(exact), 0.0)
    single = pld.from_privacy_parameters(parameters, value_discretization_interval=interval)
    return single.self_compose(times * count)


def _rounded_up(exact: Fraction) -> float:
    epsilon = float(exact)
    return epsilon if epsilon >= exact else math.nextafter(epsilon, math.inf)
