"""Model -> sampler: the one place that knows which sampler draws from which model, and how many rows."""

from __future__ import annotations

from functools import singledispatch

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.adaptive import GraphicalModel
from dpsyn_sql.fit.copula import CopulaModel
from dpsyn_sql.fit.independent import ProductModel
from dpsyn_sql.interfaces import Model, Sampler
from dpsyn_sql.sample.copula import CopulaSampler
from dpsyn_sql.sample.graphical import GraphicalSampler
from dpsyn_sql.sample.independent import ProductSampler
from dpsyn_sql.sample.sql_network import Network, network_of
from dpsyn_sql.sample.sql_text import MOST_NODES

MOST_LOW_VARIANCE_ROWS = 20_000_000
"""Up to here rows are drawn with low variance; above, what it removes is small and the time is not."""


@singledispatch
def compile_sampler(model: Model) -> Sampler:
    """The sampler of a fitted model.

    Raises:
        InternalError: no sampler is registered for this class of model.
    """
    raise InternalError(f"no sampler for models of class {type(model).__name__}")


@compile_sampler.register
def _(model: ProductModel) -> Sampler:
    return ProductSampler(model)


@compile_sampler.register
def _(model: CopulaModel) -> Sampler:
    return CopulaSampler(model)


@compile_sampler.register
def _(model: GraphicalModel) -> Sampler:
    return GraphicalSampler(model)


def independent_rows(model: Model, rows: int) -> Network | None:
    """The network that so many rows are drawn from by SQL, each by itself; None where ``compile_sampler``
    draws them, with low variance: few rows, a model that is no network, or one of too many variables."""
    network = network_of(model) if rows > MOST_LOW_VARIANCE_ROWS else None
    return network if network is None or len(network.nodes) <= MOST_NODES else None
