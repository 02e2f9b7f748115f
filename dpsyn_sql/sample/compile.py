"""Who draws the rows of a model: its own sampler, or SQL, which draws each row independently."""

from __future__ import annotations

from dpsyn_sql.fit.network import Network
from dpsyn_sql.interfaces import Model
from dpsyn_sql.planning.deadline import NO_DEADLINE, Deadline
from dpsyn_sql.sample.sql_text import MOST_NODES
from dpsyn_sql.sample.systematic import BATCH_ROWS

MOST_LOW_VARIANCE_ROWS = 20_000_000
"""Up to this number rows are drawn with low variance. Above it the gain is small and the time is long."""

INDEPENDENTLY = "independently"
"""How SQL draws rows, in the words of certificates; ``Sampler.drawn`` has the words for other rows."""

_LOW_VARIANCE_PER_SECOND = 1e7
# Values, on two cores.


def independent_rows(model: Model, rows: int, deadline: Deadline = NO_DEADLINE) -> Network | None:
    """The network from which SQL draws so many rows, each independently. None if the sampler of the model
    draws them: few rows, a model that is not a network, one of too many variables, or one whose counts are to
    be met (``exact``)."""
    seconds = rows * len(model.domain.attributes) / _LOW_VARIANCE_PER_SECOND
    # One batch takes no longer than to plan a query.
    if (
        rows <= BATCH_ROWS
        or getattr(model, "exact", False)
        or (rows <= MOST_LOW_VARIANCE_ROWS and seconds <= deadline.left)
    ):
        return None
    network = model.network()
    if network is None or len(network.nodes) > MOST_NODES:
        return None
    deadline.forbids(seconds, "rows were drawn independently")
    return network
