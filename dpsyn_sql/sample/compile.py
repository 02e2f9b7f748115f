"""Model -> sampler: the one place that knows which sampler draws from which model, and how many rows."""

from __future__ import annotations

from functools import singledispatch

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.adaptive import GraphicalModel
from dpsyn_sql.fit.copula import CopulaModel
from dpsyn_sql.fit.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.fit.independent import ProductModel
from dpsyn_sql.interfaces import Model, Sampler
from dpsyn_sql.sample.copula import CopulaSampler
from dpsyn_sql.sample.graphical import BATCH_ROWS, GraphicalSampler
from dpsyn_sql.sample.independent import ProductSampler
from dpsyn_sql.sample.sql_network import Network, network_of
from dpsyn_sql.sample.sql_text import MOST_NODES

MOST_LOW_VARIANCE_ROWS = 20_000_000
"""Up to here rows are drawn with low variance; above, what it removes is small and the time is not."""

_LOW_VARIANCE_PER_SECOND = 1e7
# Values, on two cores.


@singledispatch
def compile_sampler(model: Model, deadline: Deadline = NO_DEADLINE) -> Sampler:
    """The sampler of a fitted model; ``deadline`` says how much time it has.

    Raises:
        InternalError: no sampler is registered for this class of model.
    """
    raise InternalError(f"no sampler for models of class {type(model).__name__}")


@compile_sampler.register
def _(model: ProductModel, deadline: Deadline = NO_DEADLINE) -> Sampler:
    return ProductSampler(model)


@compile_sampler.register
def _(model: CopulaModel, deadline: Deadline = NO_DEADLINE) -> Sampler:
    return CopulaSampler(model)


@compile_sampler.register
def _(model: GraphicalModel, deadline: Deadline = NO_DEADLINE) -> Sampler:
    return GraphicalSampler(model, deadline)


def independent_rows(model: Model, rows: int, deadline: Deadline = NO_DEADLINE) -> Network | None:
    """The network that so many rows are drawn from by SQL, each by itself; None where ``compile_sampler``
    draws them, with low variance: few rows, a model that is no network, or one of too many variables."""
    seconds = rows * len(model.domain.attributes) / _LOW_VARIANCE_PER_SECOND
    # One batch takes no longer than to plan a query.
    if rows <= BATCH_ROWS or (rows <= MOST_LOW_VARIANCE_ROWS and seconds <= deadline.left):
        return None
    network = network_of(model)
    if network is None or len(network.nodes) > MOST_NODES:
        return None
    deadline.forbids(seconds, "rows were drawn independently")
    return network


def manner(model: Model, network: Network | None) -> str:
    """How rows are drawn, for the certificate; ``network`` as ``independent_rows`` answered."""
    if network is not None:
        return "independently"
    return "with low variance" if isinstance(model, GraphicalModel) else "with one-way counts met"
