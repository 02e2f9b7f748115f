"""What a fitted model answers, and how its rows are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsyn_sql.attributes.attribute import Domain
from dpsyn_sql.fit.network import ModelTables, Network
from dpsyn_sql.planning.families import Families
from dpsyn_sql.planning.limits import NO_DEADLINE, Deadline


class MarginalModel(Protocol):
    """What is known of a table after the fit, or read back from where it is stored; public."""

    @property
    def domain(self) -> Domain:
        """The attributes it models."""

    @property
    def total(self) -> float:
        """Estimated number of (bounded) rows of the source; may be negative."""

    def supports(self, attrs: Sequence[str]) -> bool:
        """Whether ``project`` answers for these attributes; cheap."""

    def project(self, attrs: Sequence[str]) -> NDArray[np.float64]:
        """Expected counts of a marginal the model can answer, axes in the order of ``attrs``.

        Raises:
            InputError: it does not support these attributes.
        """


class Model(MarginalModel, Protocol):
    """A fitted model. It says itself what it answers and how its rows are drawn."""

    def network(self) -> Network | None:
        """What SQL draws rows of it from; None for a model that is no network."""

    def tables(self) -> ModelTables:
        """What SQL answers marginals from."""

    def sampler(self, deadline: Deadline = NO_DEADLINE) -> Sampler:
        """What draws its rows; ``deadline`` says how much time there is."""


def families_in(model: Model) -> Families | None:
    """How rows of a unit go together in a model; None if every row is by itself."""
    families = getattr(model, "families", None)
    return families if isinstance(families, Families) else None


class Sampler(Protocol):
    """Draws synthetic rows as codes; post-processing, deterministic in the seed."""

    @property
    def drawn(self) -> str:
        """How it draws rows, as certificates have it: ``"with low variance"``."""

    def batches(self, rows: int, seed: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Arrays of shape (batch, attributes) that sum to ``rows`` rows."""
