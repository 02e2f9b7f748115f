"""What ``release()`` returns: all of it is public."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpsyn_sql.interfaces import Model
from dpsyn_sql.plan.queries import NoisyMarginal
from dpsyn_sql.report.marginals import marginal_table


@dataclass(frozen=True, slots=True, repr=False)
class Release:
    """A finished release.

    ``table`` is the quoted name or the path that was written, ``rows`` the number of synthetic
    rows, ``epsilon`` (rounded up) and ``rho`` those of the budget reserved before the run,
    ``id`` random, ``measurements`` every noisy answer it is made of. ``replayed``: the answers
    were stored by an earlier run of the same release and cost nothing now. ``notes``: what the
    ledger says to the operator.
    """

    table: str
    rows: int
    epsilon: float
    delta: float
    rho: float
    id: str
    model: Model
    measurements: tuple[NoisyMarginal, ...]
    facts: dict[str, Any]
    replayed: bool
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        claim = f"epsilon={self.epsilon:.6g}, delta={self.delta:g}"
        return f"Release({self.table}, rows={self.rows}, {claim}, id={self.id})"

    def marginal(self, attrs: Sequence[str]) -> pd.DataFrame:
        """Counts of a marginal, denoised and as measured with a standard error; costs nothing.

        Columns: the attributes, ``estimate`` (of the model, denoised: closest on average, biased),
        ``noisy`` (as measured: unbiased), ``standard_error`` (of ``noisy``, in rows), ``basis``, as
        ``dpsyn_sql.report.marginals.marginal_table`` says.

        Raises:
            InputError: unknown attributes, or a marginal the model cannot answer.
        """
        return marginal_table(self.model, self.measurements, attrs)

    def certificate(self) -> dict[str, Any]:
        """All that a reader needs to judge the privacy claim; JSON-ready."""
        return copy.deepcopy(self.facts)
