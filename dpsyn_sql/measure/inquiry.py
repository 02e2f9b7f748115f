"""The parts of a question at the door, and the counters behind the door."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.accounting.events import PrivacyEvent
from dpsyn_sql.errors import InternalError
from dpsyn_sql.interfaces import DiscoveryCounter, NoiseSource
from dpsyn_sql.measure.counting import Counts
from dpsyn_sql.planning.queries import Answer, NoisyMarginal, NoisyResidual

Arrays = list[NDArray[np.int64]]


@dataclass(frozen=True, slots=True, repr=False)
class Inquiry(Generic[Answer]):
    """The parts of one question; making them charges and counts nothing.

    ``further``: events of the question beside its first. ``named`` is its name in the ledger; the first event
    is not part of it. ``noisy`` counts (PRIVATE) and adds the
    noise of the event. ``read`` makes the answer from the arrays that the ledger keeps. ``shown`` makes the
    tables that a release shows to its reader, if there are any.
    """

    event: PrivacyEvent
    named: Mapping[str, Any]
    noisy: Callable[[], Arrays]
    read: Callable[[Arrays], Answer]
    shown: Callable[[Arrays], Sequence[NoisyMarginal | NoisyResidual]] = lambda arrays: ()
    further: tuple[PrivacyEvent, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class Behind:
    """PRIVATE: the counters behind the door, and its noise; ``rows_per_unit`` is public.

    ``counts`` exists once the domain is complete, ``unknown`` until then.
    """

    rows_per_unit: int
    noise: NoiseSource
    counts: Counts | None
    unknown: DiscoveryCounter | None

    def marginals(self) -> Counts:
        """Counts of the encoded source.

        Raises:
            InternalError: the domain is not complete.
        """
        if self.counts is None:
            raise InternalError("marginals were asked for before the domain was complete")
        return self.counts

    def columns(self) -> DiscoveryCounter:
        """Counts of columns without a public domain.

        Raises:
            InternalError: the domain is complete.
        """
        if self.unknown is None:
            raise InternalError("nothing can be discovered once the domain is complete")
        return self.unknown
