"""Model -> sampler: the one place that knows which sampler draws from which model."""

from __future__ import annotations

from functools import singledispatch

from dpsyn_sql.errors import InternalError
from dpsyn_sql.fit.adaptive import GraphicalModel
from dpsyn_sql.fit.copula import CopulaModel
from dpsyn_sql.fit.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.fit.independent import ProductModel
from dpsyn_sql.interfaces import Model, Sampler
from dpsyn_sql.sample.copula import CopulaSampler
from dpsyn_sql.sample.graphical import GraphicalSampler
from dpsyn_sql.sample.independent import ProductSampler


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
